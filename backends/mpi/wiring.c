/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the size of MPI's world with the launcher's. If process manager and
 * MPI library do not understand each other, every process is a world of its
 * own, and MPI does not report that. */
#include "config.h"

#include "backends/mpi/engine.h"

#include <string.h>

/* How Slurm starts a library whose version text begins with this; "": any other
 * library. */
static const struct {
    const char *library, *remedy;
} dialects[] = {
    {"MPICH", "use " MPI_SRUN_MPICH},
    {"Intel", "use " MPI_SRUN_MPICH},
    {"Open MPI", "use " MPI_SRUN_OPENMPI},
    {"", "use srun --mpi=pmix or --mpi=pmi2, whichever this MPI speaks"},
};

/* The launcher's name in discovery; NULL: any other. */
static const struct {
    const char *source, *remedy; /* NULL: by library */
} remedies[] = {
    {"slurm", NULL},
    {"torchrun", "torchrun and dscomm run start no MPI: start it by the mpirun "
                 "of this MPI"},
    {NULL, "start it by the mpirun of this MPI"},
};

static const char *find_dialect(const char *library)
{
    size_t i = 0;

    while (strncmp(dialects[i].library, library, strlen(dialects[i].library)))
        i++;
    return dialects[i].remedy;
}

dscomm_status_t mpi_check_wiring(const mpi_wiring_t *wiring)
{
    const int count = wiring->mpi_ranks;
    size_t i = 0;

    if (count >= wiring->ranks)
        return DSCOMM_OK;
    while (remedies[i].source && strcmp(remedies[i].source, wiring->source))
        i++;
    return dscomm_fail(
        DSCOMM_ERR_ENVIRONMENT,
        "MPI was not wired up: it has %d rank%s where the job has %d; %s "
        "(%.60s)",
        count, count == 1 ? "" : "s", wiring->ranks,
        remedies[i].remedy ? remedies[i].remedy : find_dialect(wiring->library),
        wiring->library);
}
