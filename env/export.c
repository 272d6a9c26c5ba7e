/* SPDX-License-Identifier: BSD-3-Clause */
/* Exports what was discovered as variables for torch's env:// and its kin. */
#include "config.h"

#include "env/env.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    dscomm_env_field_t field;
} variables[] = {
    {"RANK", DSCOMM_ENV_RANK},
    {"WORLD_SIZE", DSCOMM_ENV_WORLD_SIZE},
    {"LOCAL_RANK", DSCOMM_ENV_LOCAL_RANK},
    {"LOCAL_WORLD_SIZE", DSCOMM_ENV_LOCAL_SIZE},
    {"MASTER_ADDR", DSCOMM_ENV_MASTER_ADDR},
    {"MASTER_PORT", DSCOMM_ENV_MASTER_PORT},
};

/* A process without a launcher is a job of its own. */
static int own_port(void)
{
    char name[32];

    g_snprintf(name, sizeof name, "process %d", (int)getpid());
    return dscomm_priv_env_port(name);
}

/* The field as text, "" if it is unknown. */
static const char *field_text(const dscomm_env_t *env, dscomm_env_field_t field,
                              char *buffer, size_t size)
{
    int number =
        field < ENV_NUMBERS ? env->numbers[field] : dscomm_env_master_port(env);

    if (field == DSCOMM_ENV_MASTER_ADDR)
        return dscomm_env_master_addr(env);
    if (field == DSCOMM_ENV_MASTER_PORT && number < 0)
        number = own_port();
    g_snprintf(buffer, (gulong)size, "%d", number);
    return number < 0 ? "" : buffer;
}

/* "[::1]" is "::1", which PyTorch reads. */
static int is_bracketed(const char *text, const char *inner)
{
    char *bare = g_strstrip(g_strdup(text));
    char *wanted = g_strdup_printf("[%s]", inner);
    int same = strchr(inner, ':') && strcmp(bare, wanted) == 0;

    g_free(wanted);
    g_free(bare);
    return same;
}

/* Compares as the variable's reader would. */
static int export_is_same(const char *left, const char *right)
{
    char *a = g_strstrip(g_strdup(left));
    int64_t x, y;
    int same = strcmp(a, right) == 0 || is_bracketed(a, right) ||
               (dscomm_priv_parse_decimal(left, &x) == 0 &&
                dscomm_priv_parse_decimal(right, &y) == 0 && x == y);

    g_free(a);
    return same;
}

static dscomm_status_t export_check(const char *name, const char *text)
{
    const char *old = getenv(name);
    char quoted[96];

    if (!old || !*old || !*text || export_is_same(old, text))
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                       "env: %s='%s': set, but found to be '%s'; nothing is "
                       "overwritten. Unset %s",
                       name, dscomm_priv_quote(old, quoted, sizeof quoted),
                       text, name);
}

static dscomm_status_t export_put(const char *name, const char *text)
{
    const char *old = getenv(name);

    if ((old && *old && !is_bracketed(old, text)) || !*text ||
        setenv(name, text, 1) == 0)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                       "env: no memory to set the variable %s", name);
}

dscomm_status_t dscomm_env_export(const dscomm_env_t *env)
{
    dscomm_status_t status = dscomm_env_status(env);
    char buffer[16];

    if (status == DSCOMM_OK && env->numbers[DSCOMM_ENV_WORLD_SIZE] > 1)
        status = dscomm_env_check_master(env);
    for (size_t i = 0; status == DSCOMM_OK && i < G_N_ELEMENTS(variables); i++)
        status =
            export_check(variables[i].name, field_text(env, variables[i].field,
                                                       buffer, sizeof buffer));
    for (size_t i = 0; status == DSCOMM_OK && i < G_N_ELEMENTS(variables); i++)
        status =
            export_put(variables[i].name, field_text(env, variables[i].field,
                                                     buffer, sizeof buffer));
    return status;
}
