/* SPDX-License-Identifier: BSD-3-Clause */
/* The tuning file that DSCOMM_TUNING_FILE names: values of settings that
 * replace the defaults on one kind of machine. The environment has precedence.
 * A file is read once a process, at the first use of a setting that it may
 * give. It is a key file of GLib:
 *
 *     [machine]
 *     format=1
 *     processor=...          the facts of machine.h
 *
 *     [settings]
 *     DSCOMM_SHM_RING=1M     rows of type DSCOMM_SETTING_TUNABLE */
#ifndef LIB_TUNING_H
#define LIB_TUNING_H

#include <stddef.h>

#define DSCOMM_TUNING_FORMAT "1"
#define DSCOMM_TUNING_MACHINE "machine" /* names of the groups */
#define DSCOMM_TUNING_SETTINGS "settings"
#define DSCOMM_TUNING_KEY "format"
#define DSCOMM_TUNING_MAX 32768 /* bytes of a file */

/* The sentence that says why the file cannot be used: it cannot be read, is
 * malformed or was made for another kind of machine; NULL: it can. All strings
 * are permanent. MT: safe, as are the functions below. */
const char *dscomm_priv_tuning_problem(const char *path);

/* The value that the file has for the setting name; NULL: none, or the file
 * cannot be used. */
const char *dscomm_priv_tuning_value(const char *path, const char *name);

/* The name, and the value, of setting index = 0, 1, ... in the file; NULL after
 * the last. */
const char *dscomm_priv_tuning_item(const char *path, size_t index,
                                    const char **ret_value);

#endif
