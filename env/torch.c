/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables of torch's env://, as Ray, accelerate and people set them. */
#include "config.h"

#include "env/fields.h"

static int torch_has_loopback(const env_view_t *view)
{
    const char *name =
        dscomm_priv_view_either(view, "DSCOMM_MASTER_ADDR", "MASTER_ADDR");

    return name && dscomm_priv_is_loopback(dscomm_priv_view_value(view, name));
}

/* Without these variables, RANK and WORLD_SIZE may be a platform's numbers of
 * pods. */
static int is_pod(const env_view_t *view, char **ret_why)
{
    if (dscomm_priv_view_either(view, "LOCAL_RANK", "LOCAL_WORLD_SIZE") ||
        torch_has_loopback(view))
        return 0;
    *ret_why = g_strdup("LOCAL_RANK not set: see pod");
    return 1;
}

/* Ranks that meet at a loopback address are on one node. */
static dscomm_status_t torch_count_local(const env_view_t *view,
                                         dscomm_env_t *env)
{
    int world = env->numbers[DSCOMM_ENV_WORLD_SIZE];

    if (world >= 0 && env->numbers[DSCOMM_ENV_LOCAL_SIZE] < 0 &&
        torch_has_loopback(view))
        dscomm_priv_env_set(env, DSCOMM_ENV_LOCAL_SIZE, world,
                            "loopback address");
    return DSCOMM_OK;
}

const env_family_t dscomm_priv_env_torch = {
    .name = "torch",
    .about = "RANK, WORLD_SIZE and LOCAL_RANK",
    .tier = ENV_TIER_TORCH,
    .any = {"RANK", "WORLD_SIZE"},
    .refuses = is_pod,
    .numbers =
        {
            [DSCOMM_ENV_RANK] = {"RANK"},
            [DSCOMM_ENV_WORLD_SIZE] = {"WORLD_SIZE"},
            [DSCOMM_ENV_LOCAL_RANK] = {"LOCAL_RANK"},
            [DSCOMM_ENV_LOCAL_SIZE] = {"LOCAL_WORLD_SIZE"},
            [DSCOMM_ENV_NODE_RANK] = {"NODE_RANK"},
        },
    .complete = torch_count_local,
    .port = 29500,
};
