/* SPDX-License-Identifier: BSD-3-Clause */
/* torchrun, and `dscomm run`, which sets the same variables. */
#include "config.h"

#include "env/fields.h"
#include "lib/base/status.h"

#include <limits.h>
#include <string.h>

/* Nodes are groups. */
static dscomm_status_t check_group(const env_view_t *view, dscomm_env_t *env)
{
    static const char name[] = "GROUP_WORLD_SIZE";
    static const env_limits_t limit = {"a number of nodes", 1, INT_MAX, NULL};
    int count;
    dscomm_status_t status =
        dscomm_priv_env_count(view, env, name, &limit, &count);

    if (status != DSCOMM_OK || count < 0 ||
        env->numbers[DSCOMM_ENV_NODE_RANK] < count)
        return status;
    return dscomm_priv_env_fail(view, env, "GROUP_RANK",
                                "must be less than the %d of %s. Nodes count "
                                "from 0; correct or unset both",
                                count, name);
}

const env_family_t dscomm_priv_env_torchrun = {
    .name = "torchrun",
    .about = "torchrun, or dscomm run",
    .tier = ENV_TIER_AGENT,
    .all = {"TORCHELASTIC_RUN_ID"},
    .numbers =
        {
            [DSCOMM_ENV_RANK] = {"RANK"},
            [DSCOMM_ENV_WORLD_SIZE] = {"WORLD_SIZE"},
            [DSCOMM_ENV_LOCAL_RANK] = {"LOCAL_RANK"},
            [DSCOMM_ENV_LOCAL_SIZE] = {"LOCAL_WORLD_SIZE"},
            [DSCOMM_ENV_NODE_RANK] = {"GROUP_RANK"},
        },
    .complete = check_group,
    .finish = dscomm_priv_env_elastic,
};

/* Warns about other values, because torch compares with "True" only. */
static void warn_agent(dscomm_env_t *env, const char *name, const char *text)
{
    char quoted[96];

    if (text && strcmp(text, "False") != 0)
        dscomm_priv_env_warn(env,
                             "%s='%s' is neither True nor False; False is "
                             "taken, as torch does",
                             name,
                             dscomm_priv_quote(text, quoted, sizeof quoted));
}

/* Takes the agent's address, unless the user gives another. The agent always
 * listens at its own port. */
static dscomm_status_t torchrun_read_agent(const env_view_t *view,
                                           dscomm_env_t *env)
{
    static const char agent[] = "TORCHELASTIC_USE_AGENT_STORE";
    const char *text = dscomm_priv_view_value(view, agent);
    const char *missing = NULL;

    if (!text || strcmp(text, "True") != 0) {
        warn_agent(env, agent, text);
        return DSCOMM_OK;
    }
    env->agent_port = 1;
    if (dscomm_priv_view_either(view, "DSCOMM_MASTER_ADDR",
                                "DSCOMM_MASTER_PORT"))
        return DSCOMM_OK;
    if (!dscomm_priv_view_value(view, "MASTER_ADDR"))
        missing = "MASTER_ADDR";
    else if (!dscomm_priv_view_value(view, "MASTER_PORT"))
        missing = "MASTER_PORT";
    if (missing)
        return dscomm_priv_env_fail(view, env, agent,
                                    "%s is missing. Set MASTER_ADDR and "
                                    "MASTER_PORT to the agent's store, or "
                                    "unset it",
                                    missing);
    env->agent_store = 1;
    return DSCOMM_OK;
}

/* torchrun's default name is the same for all jobs, but their stores have
 * different addresses. */
static char *name_job(const env_view_t *view, const char *id, int restart)
{
    const char *address = dscomm_priv_view_value(view, "MASTER_ADDR");
    const char *port = dscomm_priv_view_value(view, "MASTER_PORT");

    if (strcmp(id, "none") == 0 && address && port)
        return g_strdup_printf("%s/%s:%s/%d", id, address, port, restart);
    return g_strdup_printf("%s/%d", id, restart);
}

/* A restarted job finds the keys of its predecessor in the agent's store. */
dscomm_status_t dscomm_priv_env_elastic(const env_view_t *view,
                                        dscomm_env_t *env)
{
    const char *id = dscomm_priv_view_value(view, "TORCHELASTIC_RUN_ID");
    static const env_limits_t limit = {"a number of restarts", 0, INT_MAX,
                                       NULL};
    int restart;
    char *name;
    dscomm_status_t status = dscomm_priv_env_count(
        view, env, "TORCHELASTIC_RESTART_COUNT", &limit, &restart);

    if (!id || status != DSCOMM_OK)
        return status;
    name = name_job(view, id, MAX(restart, 0));
    dscomm_priv_env_set_job(env, name);
    g_free(name);
    return torchrun_read_agent(view, env);
}
