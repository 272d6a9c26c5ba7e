/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.h by an MPI, whose errors end the job. */
#include "config.h"

#include "tests/bench/compare/peer.h"

#include <mpi.h>

void peer_open(int *ret_rank, int *ret_ranks)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, ret_rank);
    MPI_Comm_size(MPI_COMM_WORLD, ret_ranks);
}

void peer_close(void)
{
    MPI_Finalize();
}

void *peer_alloc(size_t bytes)
{
    void *memory;

    MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory);
    return memory;
}

void peer_free(void *memory)
{
    MPI_Free_mem(memory);
}

void peer_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

void peer_all_reduce(const void *in, void *out, size_t count)
{
    MPI_Allreduce(in == out ? MPI_IN_PLACE : in, out, (int)count, MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
}

void peer_reduce_scatter(const void *in, void *out, size_t count)
{
    MPI_Reduce_scatter_block(in, out, (int)count, MPI_FLOAT, MPI_SUM,
                             MPI_COMM_WORLD);
}

void peer_all_gather(const void *in, void *out, size_t bytes)
{
    MPI_Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE,
                  MPI_COMM_WORLD);
}

void peer_all_to_all(const void *in, void *out, size_t bytes)
{
    MPI_Alltoall(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE,
                 MPI_COMM_WORLD);
}

void peer_broadcast(void *data, size_t bytes, int root)
{
    MPI_Bcast(data, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

void peer_send(const void *data, size_t bytes, int to)
{
    MPI_Send(data, (int)bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD);
}

void peer_recv(void *data, size_t bytes, int from)
{
    MPI_Recv(data, (int)bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}
