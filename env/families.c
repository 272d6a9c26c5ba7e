/* SPDX-License-Identifier: BSD-3-Clause */
/* The one table of sources, in the order of precedence. */
#include "config.h"

#include "env/family.h"

/* The user's variables come first. Agents are started by managers or steps, so
 * they are nearer to the program. Managers come before bare PMI, which Flux,
 * PALS and Slurm export as well, and before Slurm's steps, because every rank
 * of mpirun sees the step of its daemon. Then come names that any program may
 * have left, and lists of hosts. */
const env_family_t *const dscomm_priv_env_families[] = {
    &dscomm_priv_env_explicit,  &dscomm_priv_env_torchrun,
    &dscomm_priv_env_deepspeed, &dscomm_priv_env_openmpi,
    &dscomm_priv_env_mvapich2,  &dscomm_priv_env_mvapich3,
    &dscomm_priv_env_jsrun,     &dscomm_priv_env_pals,
    &dscomm_priv_env_flux,      &dscomm_priv_env_hydra,
    &dscomm_priv_env_pmi,       &dscomm_priv_env_hydra_port,
    &dscomm_priv_env_slurm,     &dscomm_priv_env_torch,
    &dscomm_priv_env_pod,       &dscomm_priv_env_sagemaker,
    &dscomm_priv_env_vertex,    &dscomm_priv_env_batch,
    &dscomm_priv_env_tf_config, &dscomm_priv_env_singleton,
};
const size_t dscomm_priv_env_family_count =
    G_N_ELEMENTS(dscomm_priv_env_families);

const env_overlay_t *const dscomm_priv_env_overlays[ENV_OVERLAYS] = {
    &dscomm_priv_env_azureml,
    &dscomm_priv_env_sagemaker_mpi,
    &dscomm_priv_env_kubernetes,
};
