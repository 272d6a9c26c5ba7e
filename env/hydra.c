/* SPDX-License-Identifier: BSD-3-Clause */
/* Process managers that speak PMI-1: Hydra of MPICH and Intel MPI, and others
 * that set only PMI's variables. */
#include "config.h"

#include "env/fields.h"
#include "lib/base/settings.h"

#include <string.h>

#define PMI_NUMBERS                                                            \
    {                                                                          \
        [DSCOMM_ENV_RANK] = {"PMI_RANK"},                                      \
        [DSCOMM_ENV_WORLD_SIZE] = {"PMI_SIZE"},                                \
        [DSCOMM_ENV_LOCAL_RANK] = {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},       \
        [DSCOMM_ENV_LOCAL_SIZE] = {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"},       \
    }

/* 1: PMI_JOBID is "JOB.STEP" of this job of Slurm, so it was set by Slurm's
 * step. */
static int has_slurm_id(const env_view_t *view)
{
    const char *id = dscomm_priv_view_value(view, "PMI_JOBID");
    const char *job = dscomm_priv_view_value(view, "SLURM_JOB_ID");
    const size_t length = job ? strlen(job) : 0;

    return id && job && strncmp(id, job, length) == 0 && id[length] == '.';
}

static int has_hydra_marks(const env_view_t *view)
{
    return dscomm_priv_view_either(view, "MPI_LOCALRANKID",
                                   "MPI_LOCALNRANKS") != NULL;
}

/* 1: mpiexec has several ranks on this node, or the step has started its
 * proxies. A user who calls srun below a rank of mpiexec mostly has one rank.
 */
static int is_within_step(const env_view_t *view)
{
    const char *here = dscomm_priv_view_value(view, "MPI_LOCALNRANKS");
    int64_t count = 1;

    return has_hydra_marks(view) &&
           ((here && dscomm_priv_parse_decimal(here, &count) == 0 &&
             count > 1) ||
            !dscomm_priv_env_is_own_step(view));
}

/* srun --mpi=pmi2 sets PMI_RANK and PMI_SIZE as well, but Slurm's variables
 * have more information. If mpiexec runs inside a step, that step has started
 * its proxies. */
static int hydra_is_slurm(const env_view_t *view, char **ret_why)
{
    const char *rank = dscomm_priv_view_value(view, "PMI_RANK");
    const char *size = dscomm_priv_view_value(view, "PMI_SIZE");

    if (!rank || !size || !dscomm_priv_env_is_step(view, rank, size) ||
        is_within_step(view))
        return 0;
    *ret_why = g_strdup("set by Slurm, whose step says the same");
    return 1;
}

/* A step of srun --mpi=pmi2 passes the pair on to all processes below it, also
 * to those of other steps, such as mpirun's daemons. */
static int is_of_step(const env_view_t *view, char **ret_why)
{
    if (hydra_is_slurm(view, ret_why))
        return 1;
    if (!has_slurm_id(view) || has_hydra_marks(view))
        return 0;
    *ret_why = g_strdup("set by Slurm, for a step around this one");
    return 1;
}

/* Names the scheduler or manager that may have set the pair. */
static const struct {
    const char *rank, *size;
} others[] = {
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    {"PALS_RANKID", "PMI_SIZE"},
};

static int is_of_other(const env_view_t *view)
{
    if (has_slurm_id(view) && !has_hydra_marks(view))
        return 1;
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
        if (dscomm_priv_view_same(view, "PMI_RANK", others[i].rank) &&
            dscomm_priv_view_same(view, "PMI_SIZE", others[i].size))
            return 1;
    }
    return 0;
}

const char *dscomm_priv_env_pmi_rival(const env_view_t *view)
{
    if (is_of_other(view))
        return NULL;
    return has_hydra_marks(view) ? "hydra" : "pmi";
}

static int is_not_hydra(const env_view_t *view, char **ret_why)
{
    if (dscomm_priv_view_either(view, "PMI_RANK", "PMI_SIZE"))
        return hydra_is_slurm(view, ret_why);
    *ret_why = g_strdup("PMI_RANK and PMI_SIZE not set");
    return 1;
}

const env_family_t dscomm_priv_env_hydra = {
    .name = "hydra",
    .about = "mpiexec of MPICH or Intel MPI",
    .tier = ENV_TIER_MANAGER,
    .any = {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    .refuses = is_not_hydra,
    .numbers = PMI_NUMBERS,
    .no_address = "mpiexec does not tell where rank 0 is",
    .ancestor = "hydra_pmi_proxy",
    .step = "SLURM_STEP_ID",
};

const env_family_t dscomm_priv_env_pmi = {
    .name = "pmi",
    .about = "a process manager that speaks PMI-1",
    .tier = ENV_TIER_MANAGER,
    .any = {"PMI_RANK", "PMI_SIZE"},
    .refuses = is_of_step,
    .numbers = PMI_NUMBERS,
    .job = {{"PMI_JOBID"}},
};

/* The number of ranks is missing, but MPI knows it, so a backend that uses MPI
 * can work with the rank alone. */
static dscomm_status_t hydra_refuse(const env_view_t *view, dscomm_env_t *env)
{
    dscomm_status_t status = dscomm_priv_env_number(
        view, env, "PMI_ID", DSCOMM_ENV_RANK, &env->lone_rank);

    if (status != DSCOMM_OK)
        return status;
    return dscomm_priv_env_fail(view, env, "PMI_ID",
                                "the number of ranks is not in the "
                                "environment. Start without -pmi-port, use "
                                "backend mpi, or set DSCOMM_RANK to PMI_ID, "
                                "and DSCOMM_WORLD_SIZE");
}

const env_family_t dscomm_priv_env_hydra_port = {
    .name = "hydra-port",
    .about = "mpiexec -pmi-port",
    .tier = ENV_TIER_MANAGER,
    .all = {"PMI_ID", "PMI_PORT"},
    .complete = hydra_refuse,
};
