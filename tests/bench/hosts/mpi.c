/* SPDX-License-Identifier: BSD-3-Clause */
/* exchange.h by an MPI, whose errors end the job. */
#include "config.h"

#include "tests/bench/hosts/exchange.h"

#include <mpi.h>

#define WINDOW 16

static int other;

void peer_open(int *ret_rank, int *ret_ranks)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, ret_rank);
    MPI_Comm_size(MPI_COMM_WORLD, ret_ranks);
    other = !*ret_rank;
}

void peer_close(void)
{
    MPI_Finalize();
}

void peer_send(const char *data, size_t bytes)
{
    MPI_Send(data, (int)bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
}

void peer_recv(char *data, size_t bytes)
{
    MPI_Recv(data, (int)bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

void peer_stream(int rank, char *data, size_t bytes, int times)
{
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];

    for (int begun = 0, count; begun < times; begun += count) {
        for (count = 0; count < WINDOW && begun + count < times; count++)
            if (rank)
                MPI_Irecv(data, (int)bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD,
                          &requests[count]);
            else
                MPI_Isend(data, (int)bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD,
                          &requests[count]);
        MPI_Waitall(count, requests, statuses);
    }
}

void peer_all_reduce(const float *in, float *out, size_t count)
{
    MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
