/* SPDX-License-Identifier: BSD-3-Clause */
/* Is MPI's world as large as the launcher's? Where a process manager and an MPI
 * library do not speak with each other, every process is a world of its own,
 * and MPI says nothing. */
#include "config.h"

#include "backends/mpi/engine.h"

#include <string.h>

/* By what discovery calls the launcher; NULL: any other. */
static const struct {
    const char *source, *remedy;
} remedies[] = {
    {"slurm", "use srun --mpi=pmix or --mpi=pmi2, whichever this MPI speaks"},
    {"torchrun", "torchrun and dscomm run start no MPI: start it by the mpirun "
                 "of this MPI"},
    {NULL, "start it by the mpirun of this MPI"},
};

dscomm_status_t mpi_check_wiring(const mpi_wiring_t *wiring)
{
    const int count = wiring->mpi_ranks;
    size_t i = 0;

    if (count >= wiring->ranks)
        return DSCOMM_OK;
    while (remedies[i].source && strcmp(remedies[i].source, wiring->source))
        i++;
    return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                       "group '%s': MPI was not wired up: it has %d rank%s "
                       "where the job has %d; %s (%.60s)",
                       wiring->group, count, count == 1 ? "" : "s",
                       wiring->ranks, remedies[i].remedy, wiring->library);
}
