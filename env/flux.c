/* SPDX-License-Identifier: BSD-3-Clause */
/* Flux. A batch script of Flux has none of a task's variables. */
#include "config.h"

#include "env/fields.h"

#include <limits.h>

static dscomm_status_t flux_count_local(const env_view_t *view,
                                        dscomm_env_t *env)
{
    static const char origin[] = "FLUX_JOB_SIZE/FLUX_JOB_NNODES";
    static const env_limits_t limit = {"a number of nodes", 1, INT_MAX, NULL};
    int world = env->numbers[DSCOMM_ENV_WORLD_SIZE], nodes;
    dscomm_status_t status =
        dscomm_priv_env_count(view, env, "FLUX_JOB_NNODES", &limit, &nodes);

    if (status != DSCOMM_OK || nodes < 0 || world < 0)
        return status;
    if (nodes > world)
        return dscomm_priv_env_fail(view, env, "FLUX_JOB_NNODES",
                                    "must not exceed the %d of FLUX_JOB_SIZE. "
                                    "Correct or unset both",
                                    world);
    if (nodes == 1)
        dscomm_priv_env_set(env, DSCOMM_ENV_LOCAL_SIZE, world, origin);
    else if (nodes == world)
        dscomm_priv_env_set(env, DSCOMM_ENV_LOCAL_SIZE, 1, origin);
    return DSCOMM_OK;
}

const env_family_t dscomm_priv_env_flux = {
    .name = "flux",
    .about = "a task of Flux",
    .tier = ENV_TIER_MANAGER,
    .any = {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    .numbers =
        {
            [DSCOMM_ENV_RANK] = {"FLUX_TASK_RANK"},
            [DSCOMM_ENV_WORLD_SIZE] = {"FLUX_JOB_SIZE"},
            [DSCOMM_ENV_LOCAL_RANK] = {"FLUX_TASK_LOCAL_ID"},
        },
    .complete = flux_count_local,
    .no_address = "Flux does not tell where rank 0 is",
    .job = {{"FLUX_JOB_ID"}},
};
