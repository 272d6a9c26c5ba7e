/* SPDX-License-Identifier: BSD-3-Clause */
/* Setting and reading the fields of the object that discovery fills; used by
 * the sources of env/families.c. */
#include "config.h"

#include "env/fields.h"
#include "env/json.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define QUOTED 96

/* Range and name of each field. */
static const env_limits_t limits[] = {
    [DSCOMM_ENV_RANK] = {"a rank", 0, DSCOMM_RANKS_MAX - 1,
                         "the number of ranks"},
    [DSCOMM_ENV_WORLD_SIZE] = {"a number of ranks", 1, DSCOMM_RANKS_MAX,
                               "the rank"},
    [DSCOMM_ENV_LOCAL_RANK] = {"a rank", 0, DSCOMM_RANKS_MAX - 1, NULL},
    [DSCOMM_ENV_LOCAL_SIZE] = {"a number of ranks", 1, DSCOMM_RANKS_MAX, NULL},
    [DSCOMM_ENV_NODE_RANK] = {"the number of a node", 0, DSCOMM_RANKS_MAX - 1,
                              NULL},
    [DSCOMM_ENV_MASTER_ADDR] = {"", 0, 0, NULL},
    [DSCOMM_ENV_MASTER_PORT] = {"a port", 1, 65535, NULL},
};

void dscomm_priv_env_set(dscomm_env_t *env, dscomm_env_field_t field,
                         int64_t number, const char *origin)
{
    g_assert(field < ENV_NUMBERS && number >= 0 && number <= G_MAXINT);
    env->numbers[field] = (int)number;
    env->origins[field] = origin;
}

void dscomm_priv_env_set_address(dscomm_env_t *env, char *address,
                                 const char *origin)
{
    g_free(env->address);
    env->address = address;
    env->origins[DSCOMM_ENV_MASTER_ADDR] = address ? origin : NULL;
}

void dscomm_priv_env_set_port(dscomm_env_t *env, int port, const char *origin)
{
    env->port = port;
    env->origins[DSCOMM_ENV_MASTER_PORT] = origin;
}

static char *vtext(dscomm_env_t *env, const char *format, va_list args)
{
    va_list again;
    char *text;
    int length;

    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    text = length < 0 ? NULL : g_try_malloc((gsize)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, args);
    else
        env->bad = 1;
    return text;
}

char *dscomm_priv_env_text(dscomm_env_t *env, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = vtext(env, format, args);
    va_end(args);
    return text;
}

void dscomm_priv_env_warn(dscomm_env_t *env, const char *format, ...)
{
    va_list args;
    char **place, *text;

    va_start(args, format);
    text = vtext(env, format, args);
    va_end(args);
    place = text ? dscomm_priv_array_add(&env->warnings, sizeof *place) : NULL;
    if (place)
        *place = text;
    else
        g_free(text);
    env->bad |= !place;
}

void dscomm_priv_env_no_address(dscomm_env_t *env, const char *format, ...)
{
    va_list args;

    if (env->no_address)
        return;
    va_start(args, format);
    env->no_address = vtext(env, format, args);
    va_end(args);
}

void dscomm_priv_env_set_job(dscomm_env_t *env, const char *name)
{
    char *sum = NULL;

    if (strlen(name) >= sizeof env->job)
        sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, name, -1);
    g_strlcpy(env->job, sum ? sum : name, sizeof env->job);
    g_free(sum);
}

char *dscomm_priv_env_title(const dscomm_env_t *env)
{
    GString *title = g_string_new(env->family ? env->family->name : "launcher");

    for (size_t i = 0; env->overlays[i]; i++)
        g_string_append_printf(title, "+%s", env->overlays[i]->name);
    return g_string_free(title, FALSE);
}

dscomm_status_t dscomm_priv_env_fail(const env_view_t *view,
                                     const dscomm_env_t *env, const char *name,
                                     const char *format, ...)
{
    const char *value = dscomm_priv_view_value(view, name);
    char quoted[QUOTED] = "";
    char *title, *text;
    va_list args;
    dscomm_status_t status;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    title = dscomm_priv_env_title(env);
    if (value)
        dscomm_priv_quote(value, quoted, sizeof quoted);
    status =
        dscomm_fail(DSCOMM_ERR_ENVIRONMENT, "%s%s%s%s: %s (source: %s)", name,
                    value ? "='" : "", quoted, value ? "'" : "", text, title);
    g_free(title);
    g_free(text);
    return status;
}

dscomm_status_t dscomm_priv_env_count(const env_view_t *view,
                                      const dscomm_env_t *env, const char *name,
                                      const env_limits_t *limit,
                                      int *ret_number)
{
    const char *text = dscomm_priv_view_value(view, name);
    int64_t number = -1;

    if (text && (dscomm_priv_parse_decimal(text, &number) ||
                 number < limit->min || number > limit->max))
        return dscomm_priv_env_fail(view, env, name,
                                    "not %s. Set it to a decimal number "
                                    "from %d to %d, or unset it%s%s",
                                    limit->what, limit->min, limit->max,
                                    limit->with ? " and " : "",
                                    limit->with ? limit->with : "");
    *ret_number = (int)number;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_env_number(const env_view_t *view,
                                       const dscomm_env_t *env,
                                       const char *name,
                                       dscomm_env_field_t field,
                                       int *ret_number)
{
    return dscomm_priv_env_count(view, env, name, &limits[field], ret_number);
}

int dscomm_priv_env_one_node(const dscomm_env_t *env)
{
    const int *numbers = env->numbers;

    return numbers[DSCOMM_ENV_WORLD_SIZE] > 0 &&
           numbers[DSCOMM_ENV_LOCAL_SIZE] == numbers[DSCOMM_ENV_WORLD_SIZE];
}

dscomm_status_t dscomm_priv_hosts_json(const env_view_t *view,
                                       const dscomm_env_t *env,
                                       const char *name, const char **ret_value)
{
    const char *text = dscomm_priv_view_value(view, name);
    env_problem_t problem = dscomm_priv_json_check(text, ret_value);

    if (!problem.what)
        return DSCOMM_OK;
    return dscomm_priv_env_fail(view, env, name,
                                "no JSON: %s, at byte %zu. Correct it, or name "
                                "another source in DSCOMM_LAUNCHER",
                                problem.what, problem.at);
}

void dscomm_priv_hosts_set(dscomm_env_t *env, int64_t rank, int64_t world,
                           const char *origin)
{
    dscomm_priv_env_set(env, DSCOMM_ENV_RANK, rank, origin);
    dscomm_priv_env_set(env, DSCOMM_ENV_WORLD_SIZE, world, origin);
    dscomm_priv_env_set(env, DSCOMM_ENV_LOCAL_RANK, 0, "one process a host");
    dscomm_priv_env_set(env, DSCOMM_ENV_LOCAL_SIZE, 1, "one process a host");
    dscomm_priv_env_set(env, DSCOMM_ENV_NODE_RANK, rank, origin);
}

/* Returns the colon of "host:port" or "[::1]:port", but not one of "::1"; NULL
 * if there is none. */
static char *find_colon(char *text)
{
    char *first = strchr(text, ':'), *last = strrchr(text, ':');

    if (*text == '[')
        return last > text && last[-1] == ']' ? last : NULL;
    return first == last ? last : NULL;
}

int dscomm_priv_strip_brackets(char *text)
{
    size_t length = strlen(text);

    if (*text != '[')
        return 1;
    if (text[length - 1] != ']')
        return 0;
    text[length - 1] = '\0';
    memmove(text, text + 1, length - 1);
    return 1;
}

int dscomm_priv_hosts_set_master(dscomm_env_t *env, char *text,
                                 const char *origin)
{
    char *colon = find_colon(text);
    int64_t port = -1;

    if (colon) {
        *colon = '\0';
        if (dscomm_priv_parse_decimal(colon + 1, &port) || port < 1 ||
            port > 65535)
            g_clear_pointer(&text, g_free);
    }
    if (!text || !dscomm_priv_strip_brackets(text) ||
        !dscomm_priv_is_host(text)) {
        g_free(text);
        return 0;
    }
    dscomm_priv_env_set_address(env, text, origin);
    if (port > 0 && env->port < 0)
        dscomm_priv_env_set_port(env, (int)port, origin);
    return 1;
}
