/* SPDX-License-Identifier: BSD-3-Clause */
/* Checking the settings of a tuning file, see tuning-check.h. */
#include "config.h"

#include "lib/base/tuning-check.h"

#include "lib/base/settings.h"
#include "lib/base/status.h"
#include "lib/base/tuning.h"

#include <string.h>

#define QUOTED 160 /* bytes of a path, key or value in a sentence */

/* Returns the row of a setting that a file may give, or else any row of that
 * name, or NULL: several backends may read one setting. */
static const dscomm_setting_t *
row_find(const char *name, const dscomm_setting_t *const *tables, size_t count)
{
    const dscomm_setting_t *found = NULL;

    for (size_t i = 0; i < count; i++)
        for (const dscomm_setting_t *row = tables[i]; row->name; row++)
            if (!strcmp(row->name, name) &&
                (!found || row->type & DSCOMM_SETTING_TUNABLE))
                found = row;
    return found;
}

/* Fails: the file, whose path is quoted, has a name that is in no table. */
static dscomm_status_t refuse_unknown(const char *file, const char *name,
                                      const dscomm_setting_t *const *tables,
                                      size_t count)
{
    const char *nearest = dscomm_priv_setting_nearest(name, tables, count);
    char quoted[QUOTED];

    return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                       "tuning file %s: %s is no setting of this library or "
                       "of its backends%s%s%s; remove the line",
                       file, dscomm_priv_quote(name, quoted, sizeof quoted),
                       nearest ? "; is " : "", nearest ? nearest : "",
                       nearest ? " meant?" : "");
}

/* Checks the value of a row; an empty one counts as unset. */
static dscomm_status_t
check_value(const char *file, const dscomm_setting_t *row, const char *value)
{
    char quoted[QUOTED];
    int64_t number;

    if (!(row->type & DSCOMM_SETTING_TUNABLE))
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "tuning file %s: %s cannot be set by a file; "
                           "remove the line, and set the variable itself",
                           file, row->name);
    if (!*value || dscomm_priv_setting_type(row) == DSCOMM_SETTING_STRING ||
        dscomm_priv_setting_try(row, value, &number) == 0)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                       "tuning file %s: %s='%s' is not accepted; set it to %s, "
                       "or remove the line",
                       file, row->name,
                       dscomm_priv_quote(value, quoted, sizeof quoted),
                       dscomm_priv_setting_accepted(row));
}

dscomm_status_t dscomm_priv_tuning_check(const dscomm_setting_t *const *tables,
                                         size_t count)
{
    const char *path = dscomm_priv_setting_text(SETTING_TUNING_FILE);
    const char *problem = path ? dscomm_priv_tuning_problem(path) : NULL;
    const char *name, *value;
    char file[QUOTED];

    if (!path)
        return DSCOMM_OK;
    if (problem)
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT, "%s", problem);
    dscomm_priv_quote(path, file, sizeof file);
    for (size_t i = 0; (name = dscomm_priv_tuning_item(path, i, &value)); i++) {
        const dscomm_setting_t *row = row_find(name, tables, count);
        dscomm_status_t status =
            row ? check_value(file, row, value)
                : refuse_unknown(file, name, tables, count);

        if (status != DSCOMM_OK)
            return status;
    }
    return DSCOMM_OK;
}
