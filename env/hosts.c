/* SPDX-License-Identifier: BSD-3-Clause */
/* Common parts of platforms that list hosts. */
#include "config.h"

#include "env/hosts.h"
#include "env/json.h"
#include "lib/base/settings.h"

#include <string.h>

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

/* The colon of "host:port" and "[::1]:port", not one of "::1"; NULL if there
 * is none. */
static char *find_colon(char *text)
{
    char *first = strchr(text, ':'), *last = strrchr(text, ':');

    if (*text == '[')
        return last > text && last[-1] == ']' ? last : NULL;
    return first == last ? last : NULL;
}

/* "[::1]" becomes "::1", as torch reads it; 0 if the brackets are no pair */
static int strip_brackets(char *text)
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
    if (!text || !strip_brackets(text) || !dscomm_priv_is_host(text)) {
        g_free(text);
        return 0;
    }
    dscomm_priv_env_set_address(env, text, origin);
    if (port > 0 && env->port < 0)
        dscomm_priv_env_set_port(env, (int)port, origin);
    return 1;
}
