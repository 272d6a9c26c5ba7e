/* SPDX-License-Identifier: BSD-3-Clause */
/* DSCOMM_RANK and its kin, set by the user; they override all other sources. */
#include "config.h"

#include "env/family.h"

const env_family_t dscomm_priv_env_explicit = {
    .name = "dscomm",
    .about = "DSCOMM_RANK and its kin",
    .tier = ENV_TIER_EXPLICIT,
    .any = {"DSCOMM_RANK", "DSCOMM_WORLD_SIZE", "DSCOMM_LOCAL_RANK",
            "DSCOMM_LOCAL_SIZE", "DSCOMM_NODE_RANK"},
    .numbers =
        {
            [DSCOMM_ENV_RANK] = {"DSCOMM_RANK"},
            [DSCOMM_ENV_WORLD_SIZE] = {"DSCOMM_WORLD_SIZE"},
            [DSCOMM_ENV_LOCAL_RANK] = {"DSCOMM_LOCAL_RANK"},
            [DSCOMM_ENV_LOCAL_SIZE] = {"DSCOMM_LOCAL_SIZE"},
            [DSCOMM_ENV_NODE_RANK] = {"DSCOMM_NODE_RANK"},
        },
    .finish = dscomm_priv_env_elastic,
};
