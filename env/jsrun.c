/* SPDX-License-Identifier: BSD-3-Clause */
/* jsrun, which starts the ranks of a job of LSF. */
#include "config.h"

#include "env/env.h"
#include "env/settings.h"

#include <string.h>

/* "h1 n1 h2 n2", with numbers of slots. NULL, and what is wrong, where it is
 * not that. The first host of a system with CSM is not one that computes. */
static char **read_hosts(const env_view_t *view, const char *text,
                         const char **ret_wrong)
{
    char **words = g_strsplit_set(text, " \t\n", -1);
    GPtrArray *hosts = g_ptr_array_new_with_free_func(g_free);
    int skip = dscomm_priv_view_value(view, "CSM_ALLOCATION_ID") != NULL;
    int64_t slots;
    int at = 0;

    *ret_wrong = NULL;
    for (char **word = words; *word && !*ret_wrong; word++) {
        if (!**word)
            continue;
        if (at % 2 && dscomm_priv_parse_decimal(*word, &slots))
            *ret_wrong = "what follows a host is no number of slots";
        else if (at % 2 == 0 && !dscomm_priv_is_host(*word))
            *ret_wrong = "what is no host";
        else if (at % 2 == 0 && at / 2 >= skip)
            g_ptr_array_add(hosts, g_strdup(*word));
        at++;
    }
    if (!*ret_wrong && (at % 2 || !hosts->len))
        *ret_wrong = at % 2 ? "a host without a number of slots" : "no host";
    g_strfreev(words);
    g_ptr_array_add(hosts, NULL);
    return (char **)g_ptr_array_free(hosts, FALSE);
}

/* Names may be short or not. */
static int is_same_host(const char *a, const char *b)
{
    size_t length = strcspn(a, ".");

    return length == strcspn(b, ".") && g_ascii_strncasecmp(a, b, length) == 0;
}

static dscomm_status_t find_node(const env_view_t *view, dscomm_env_t *env)
{
    static const char list[] = "LSB_MCPU_HOSTS";
    const char *text = dscomm_priv_view_value(view, list);
    char *own = text ? dscomm_priv_view_host(view) : NULL;
    const char *wrong;
    char **hosts;

    if (!own)
        return DSCOMM_OK;
    hosts = read_hosts(view, text, &wrong);
    for (int i = 0; !wrong && hosts[i]; i++) {
        if (!is_same_host(hosts[i], own))
            continue;
        dscomm_priv_env_set(env, DSCOMM_ENV_NODE_RANK, i, list);
        break;
    }
    g_strfreev(hosts);
    g_free(own);
    return DSCOMM_OK;
}

static dscomm_status_t find_master(const env_view_t *view, dscomm_env_t *env)
{
    static const char list[] = "LSB_MCPU_HOSTS";
    const char *text = dscomm_priv_view_value(view, list);
    const char *wrong;
    char **hosts;

    if (!text) {
        dscomm_priv_env_no_address(env, "LSB_MCPU_HOSTS is not set either");
        return DSCOMM_OK;
    }
    hosts = read_hosts(view, text, &wrong);
    if (!wrong)
        dscomm_priv_env_set_address(env, g_strdup(hosts[0]),
                                    "first host of LSB_MCPU_HOSTS");
    g_strfreev(hosts);
    if (wrong)
        return dscomm_priv_env_fail(view, env, list,
                                    "not a list of hosts and slots: %s. "
                                    "Correct it, or set MASTER_ADDR",
                                    wrong);
    return DSCOMM_OK;
}

const env_family_t dscomm_priv_env_jsrun = {
    .name = "jsrun",
    .about = "jsrun in a job of LSF",
    .tier = ENV_TIER_MANAGER,
    .any = {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    .numbers =
        {
            [DSCOMM_ENV_RANK] = {"JSM_NAMESPACE_RANK"},
            [DSCOMM_ENV_WORLD_SIZE] = {"JSM_NAMESPACE_SIZE"},
            [DSCOMM_ENV_LOCAL_RANK] = {"JSM_NAMESPACE_LOCAL_RANK"},
            [DSCOMM_ENV_LOCAL_SIZE] = {"JSM_NAMESPACE_LOCAL_SIZE"},
        },
    .complete = find_node,
    .find_master = find_master,
    .job = {{"LSB_JOBID"}, {"LSB_JOBINDEX"}},
};
