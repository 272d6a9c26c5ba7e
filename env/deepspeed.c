/* SPDX-License-Identifier: BSD-3-Clause */
/* DeepSpeed's launcher, which starts the processes of a node itself. It has its
 * own variable for the number of local ranks, and if nodes have different
 * numbers of them, its own order within a node. */
#include "config.h"

#include "env/family.h"

const env_family_t dscomm_priv_env_deepspeed = {
    .name = "deepspeed",
    .about = "DeepSpeed's launcher",
    .tier = ENV_TIER_AGENT,
    .all = {"CROSS_SIZE", "LOCAL_SIZE", "RANK"},
    .numbers =
        {
            [DSCOMM_ENV_RANK] = {"RANK"},
            [DSCOMM_ENV_WORLD_SIZE] = {"WORLD_SIZE"},
            [DSCOMM_ENV_LOCAL_RANK] = {"LOCAL_RANK"},
            [DSCOMM_ENV_LOCAL_SIZE] = {"LOCAL_SIZE"},
            [DSCOMM_ENV_NODE_RANK] = {"CROSS_RANK"},
        },
};
