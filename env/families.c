/* SPDX-License-Identifier: BSD-3-Clause */
/* The one table of sources, in the order of precedence, and the families that
 * are no more than a row of it. */
#include "config.h"

#include "env/family.h"

/* DSCOMM_RANK and related variables, set by the user; they override all other
 * sources. */
static const env_family_t by_user = {
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

/* DeepSpeed's launcher starts the processes of a node itself. It has its own
 * variable for the number of local ranks, and if nodes have different numbers
 * of them, its own order within a node. */
static const env_family_t deepspeed = {
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

/* MVAPICH's mpirun_rsh; version 3 has another prefix. */
#define NUMBERS(prefix)                                                        \
    {                                                                          \
        [DSCOMM_ENV_RANK] = {prefix "_COMM_WORLD_RANK"},                       \
        [DSCOMM_ENV_WORLD_SIZE] = {prefix "_COMM_WORLD_SIZE"},                 \
        [DSCOMM_ENV_LOCAL_RANK] = {prefix "_COMM_WORLD_LOCAL_RANK"},           \
        [DSCOMM_ENV_LOCAL_SIZE] = {prefix "_COMM_WORLD_LOCAL_SIZE"},           \
    }

static const env_family_t mvapich2 = {
    .name = "mvapich2",
    .about = "MVAPICH2's mpirun_rsh",
    .tier = ENV_TIER_MANAGER,
    .any = {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    .numbers = NUMBERS("MV2"),
    .ancestor = "mpispawn",
    .rival = 1,
};

static const env_family_t mvapich3 = {
    .name = "mvapich3",
    .about = "MVAPICH 3's mpirun_rsh",
    .tier = ENV_TIER_MANAGER,
    .any = {"MVP_COMM_WORLD_RANK", "MVP_COMM_WORLD_SIZE"},
    .numbers = NUMBERS("MVP"),
    .ancestor = "mpispawn",
    .rival = 1,
};

/* The user's variables come first. Agents are started by managers or steps, so
 * they are nearer to the program. Managers come before bare PMI, which Flux,
 * PALS and Slurm export as well, and before Slurm's steps, because every rank
 * of mpirun sees the step of its daemon. Then come names that any program may
 * have left, and lists of hosts. */
const env_family_t *const dscomm_priv_env_families[] = {
    &by_user,
    &dscomm_priv_env_torchrun,
    &deepspeed,
    &dscomm_priv_env_openmpi,
    &mvapich2,
    &mvapich3,
    &dscomm_priv_env_jsrun,
    &dscomm_priv_env_pals,
    &dscomm_priv_env_flux,
    &dscomm_priv_env_hydra,
    &dscomm_priv_env_pmi,
    &dscomm_priv_env_hydra_port,
    &dscomm_priv_env_slurm,
    &dscomm_priv_env_torch,
    &dscomm_priv_env_pod,
    &dscomm_priv_env_sagemaker,
    &dscomm_priv_env_vertex,
    &dscomm_priv_env_batch,
    &dscomm_priv_env_tf_config,
    &dscomm_priv_env_singleton,
};
const size_t dscomm_priv_env_family_count =
    G_N_ELEMENTS(dscomm_priv_env_families);

const env_overlay_t *const dscomm_priv_env_overlays[ENV_OVERLAYS] = {
    &dscomm_priv_env_azureml,
    &dscomm_priv_env_sagemaker_mpi,
    &dscomm_priv_env_kubernetes,
};
