/* SPDX-License-Identifier: BSD-3-Clause */
/* AWS Batch's jobs of several nodes, with one process each. The main node
 * itself does not get the main node's address. */
#include "config.h"

#include "env/fields.h"

#include <string.h>

static const char size_name[] = "AWS_BATCH_JOB_NUM_NODES";
static const char rank_name[] = "AWS_BATCH_JOB_NODE_INDEX";
static const char main_name[] = "AWS_BATCH_JOB_MAIN_NODE_INDEX";
static const char address_name[] =
    "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS";

/* Ranks count from the main node, which is node 0 unless the job says
 * otherwise. */
static dscomm_status_t batch_find_self(const env_view_t *view,
                                       dscomm_env_t *env)
{
    int rank = env->numbers[DSCOMM_ENV_RANK], main_node;
    int world = env->numbers[DSCOMM_ENV_WORLD_SIZE];
    dscomm_status_t status = dscomm_priv_env_number(
        view, env, main_name, DSCOMM_ENV_NODE_RANK, &main_node);

    if (status != DSCOMM_OK || rank < 0 || world < 0 || rank >= world)
        return status;
    if (main_node >= world)
        return dscomm_priv_env_fail(view, env, main_name,
                                    "must be less than the %d of %s. Correct "
                                    "both",
                                    world, size_name);
    rank -= MAX(main_node, 0);
    dscomm_priv_hosts_set(env, rank < 0 ? rank + world : rank, world,
                          rank_name);
    env->origins[DSCOMM_ENV_WORLD_SIZE] = size_name;
    return DSCOMM_OK;
}

static dscomm_status_t batch_find_master(const env_view_t *view,
                                         dscomm_env_t *env)
{
    const char *text = dscomm_priv_view_value(view, address_name);
    char *own;

    if (text && !dscomm_priv_is_host(text))
        return dscomm_priv_env_fail(view, env, address_name,
                                    "not an address. Correct it, or set "
                                    "MASTER_ADDR");
    if (text)
        dscomm_priv_env_set_address(env, g_strdup(text), address_name);
    if (text || env->numbers[DSCOMM_ENV_RANK] != 0) {
        dscomm_priv_env_no_address(env, "%s is not set either", address_name);
        return DSCOMM_OK;
    }
    own = dscomm_priv_view_host(view);
    dscomm_priv_env_set_address(env, own, "this host");
    return DSCOMM_OK;
}

/* Each node has a job id of its own, with "#" and its number at the end. */
static dscomm_status_t find_job(const env_view_t *view, dscomm_env_t *env)
{
    const char *id = dscomm_priv_view_value(view, "AWS_BATCH_JOB_ID");
    const char *attempt = dscomm_priv_view_value(view, "AWS_BATCH_JOB_ATTEMPT");
    char *name;

    if (!id)
        return DSCOMM_OK;
    name = g_strdup_printf("batch/%.*s/%s", (int)strcspn(id, "#"), id,
                           attempt ? attempt : "1");
    dscomm_priv_env_set_job(env, name);
    g_free(name);
    return DSCOMM_OK;
}

const env_family_t dscomm_priv_env_batch = {
    .name = "batch",
    .about = "a job of several nodes of AWS Batch",
    .tier = ENV_TIER_LIST,
    .any = {size_name, rank_name},
    .numbers =
        {
            [DSCOMM_ENV_RANK] = {rank_name},
            [DSCOMM_ENV_WORLD_SIZE] = {size_name},
        },
    .complete = batch_find_self,
    .find_master = batch_find_master,
    .finish = find_job,
};
