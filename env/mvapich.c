/* SPDX-License-Identifier: BSD-3-Clause */
/* MVAPICH's mpirun_rsh; version 3 has another prefix. */
#include "config.h"

#include "env/family.h"

#define NUMBERS(prefix)                                                        \
    {                                                                          \
        [DSCOMM_ENV_RANK] = {prefix "_COMM_WORLD_RANK"},                       \
        [DSCOMM_ENV_WORLD_SIZE] = {prefix "_COMM_WORLD_SIZE"},                 \
        [DSCOMM_ENV_LOCAL_RANK] = {prefix "_COMM_WORLD_LOCAL_RANK"},           \
        [DSCOMM_ENV_LOCAL_SIZE] = {prefix "_COMM_WORLD_LOCAL_SIZE"},           \
    }

const env_family_t dscomm_priv_env_mvapich2 = {
    .name = "mvapich2",
    .about = "MVAPICH2's mpirun_rsh",
    .tier = ENV_TIER_MANAGER,
    .any = {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    .numbers = NUMBERS("MV2"),
    .ancestor = "mpispawn",
    .rival = 1,
};

const env_family_t dscomm_priv_env_mvapich3 = {
    .name = "mvapich3",
    .about = "MVAPICH 3's mpirun_rsh",
    .tier = ENV_TIER_MANAGER,
    .any = {"MVP_COMM_WORLD_RANK", "MVP_COMM_WORLD_SIZE"},
    .numbers = NUMBERS("MVP"),
    .ancestor = "mpispawn",
    .rival = 1,
};
