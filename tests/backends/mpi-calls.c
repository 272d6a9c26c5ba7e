/* SPDX-License-Identifier: BSD-3-Clause */
/* Replacements of MPI functions that count their calls, and fail on request. */
#include "config.h"

#include "tests/backends/mpi-host.h"

#include <mpi.h>
#include <signal.h>
#include <unistd.h>

int kept;
int made_tags[2];
int dying;
int unmade, exhausted;
pthread_t outsider;
int strays;
int given = -1;
int endless_ms;
volatile int endless_begun;

DSCOMM_API int MPI_Improbe(int source, int tag, MPI_Comm comm, int *ret_found,
                           MPI_Message *ret_message, MPI_Status *ret_status)
{
    strays += pthread_equal(pthread_self(), outsider);
    return PMPI_Improbe(source, tag, comm, ret_found, ret_message, ret_status);
}

DSCOMM_API int MPI_Init_thread(int *argc, char ***argv, int wanted,
                               int *ret_level)
{
    if (endless_ms) {
        usleep((useconds_t)endless_ms * 1000);
        endless_begun = 1;
        pause();
    }
    return PMPI_Init_thread(argc, argv, given < 0 ? wanted : given, ret_level);
}

DSCOMM_API int MPI_Isend(const void *buffer, int count, MPI_Datatype type,
                         int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    strays += pthread_equal(pthread_self(), outsider);
    return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

DSCOMM_API int MPI_Testsome(int count, MPI_Request *requests, int *done,
                            int *indices, MPI_Status *statuses)
{
    strays += pthread_equal(pthread_self(), outsider);
    return PMPI_Testsome(count, requests, done, indices, statuses);
}

DSCOMM_API int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag,
                                     MPI_Comm *ret_comm)
{
    int size = 0;

    made_tags[0] = made_tags[1];
    made_tags[1] = tag;
    PMPI_Group_size(group, &size);
    if (dying)
        raise(SIGKILL);
    if (size == unmade)
        return MPI_ERR_OTHER;
    if (!exhausted) {
        kept++;
        return PMPI_Comm_create_group(comm, group, tag, ret_comm);
    }
    /* rank 0 serves the store, which the others still read */
    MPI_Barrier(comm);
    MPI_Comm_call_errhandler(comm, exhausted);
    return exhausted;
}

DSCOMM_API int MPI_Comm_free(MPI_Comm *comm)
{
    kept--;
    return PMPI_Comm_free(comm);
}
