/* SPDX-License-Identifier: BSD-3-Clause */
/* Environments in which discovery and MPI disagree about the size of the
 * world. */
#include "config.h"

#include "backends/mpi/engine.h"
#include "tests/env/fixture.h"

#include <stdlib.h>

#define TASK                                                                   \
    {                                                                          \
        STEP(3, 4, 1, 1), "SLURM_STEP_TASKS_PER_NODE=2(x2)",                   \
            "SLURM_STEP_NODELIST=n[1-2]"                                       \
    }

static const struct {
    const char *name;
    const char *environment[VARIABLES];
    int mpi_ranks;
    const char *says; /* NULL: no failure */
    const char *library; /* NULL: "Some MPI 9.8" */
} vectors[] = {
    {"T28 srun without a wire-up: worlds of one", TASK, 1,
     "MPI was not wired up: it has 1 rank where the job has 4; use srun "
     "--mpi=pmix or --mpi=pmi2",
     NULL},
    {"T28 with MPICH, which speaks PMI-2", TASK, 1,
     "use srun --mpi=pmi2, or --mpi=pmix if", "MPICH Version: 4.0.2"},
    {"T28 with Intel MPI", TASK, 1, "use srun --mpi=pmi2, or --mpi=pmix if",
     "Intel(R) MPI Library 2021.11"},
    {"T28 with Open MPI", TASK, 1, "use srun --mpi=pmix, or --mpi=pmi2 if",
     "Open MPI v4.1.4"},
    {"T28 srun, wired up",
     {STEP(3, 4, 1, 1), "SLURM_STEP_TASKS_PER_NODE=2(x2)",
      "SLURM_STEP_NODELIST=n[1-2]", "PMI_RANK=3", "PMI_SIZE=4"},
     4,
     NULL,
     NULL},
    {"another MPI's mpirun",
     {OMPI(1, 2, 1, 2)},
     1,
     "1 rank where the job has 2; start it by the mpirun of this MPI (Some "
     "MPI 9.8)",
     NULL},
    {"torchrun",
     {TORCHRUN},
     1,
     "1 rank where the job has 16; torchrun and dscomm run start no MPI",
     NULL},
    {"a world that mpirun made too small",
     {"DSCOMM_RANK=0", "DSCOMM_WORLD_SIZE=4"},
     3,
     "3 ranks where the job has 4",
     NULL},
    {"a part of MPI's ranks",
     {"DSCOMM_RANK=0", "DSCOMM_WORLD_SIZE=2"},
     4,
     NULL,
     NULL},
};

static void try(size_t i)
{
    mpi_wiring_t wiring = {"", "Some MPI 9.8", 0, 0};
    dscomm_env_t *env;

    if (!is_int(fixture_discover(vectors[i].environment, NULL, &env), DSCOMM_OK,
                "%s is understood", vectors[i].name))
        return;
    wiring.source = dscomm_env_source(env);
    wiring.ranks = dscomm_env_world_size(env);
    wiring.mpi_ranks = vectors[i].mpi_ranks;
    if (vectors[i].library)
        wiring.library = vectors[i].library;
    if (!vectors[i].says) {
        is_int(mpi_check_wiring(&wiring), DSCOMM_OK, "%s", vectors[i].name);
    } else {
        is_int(mpi_check_wiring(&wiring), DSCOMM_ERR_ENVIRONMENT, "%s",
               vectors[i].name);
        if (!ok(strstr(dscomm_last_error(), vectors[i].says) != NULL,
                "%s: says %s", vectors[i].name, vectors[i].says))
            tap_text("", dscomm_last_error());
    }
    dscomm_env_free(env);
}

/* Variables of process managers, and the family whose module is tried first. */
static const struct {
    const char *variable, *family;
} marks[] = {
    {"OMPI_COMM_WORLD_SIZE", "openmpi"},
    {"PMIX_RANK", "openmpi"},
    {"PMI_RANK", "mpich"},
    {"PMI_ID", "mpich"},
    {"PMI_FD", "mpich"},
    {"PMI_LOCAL_RANK", "mpich"},
    {"PALS_RANKID", "mpich"},
    {"MV2_COMM_WORLD_RANK", "mpich"},
    {"MVP_COMM_WORLD_RANK", "mpich"},
};

static void test_marks(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(marks); i++)
        unsetenv(marks[i].variable);
    ok(!mpi_family_launched(), "no process manager");
    for (size_t i = 0; i < G_N_ELEMENTS(marks); i++) {
        setenv(marks[i].variable, "0", 1);
        is_str(mpi_family_launched(), marks[i].family, "%s", marks[i].variable);
        unsetenv(marks[i].variable);
    }
}

int main(void)
{
    test_marks();
    for (size_t i = 0; i < G_N_ELEMENTS(vectors); i++)
        try(i);
    return tap_done();
}
