/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of collectives of backend mpi beyond the same MPI call, made
 * directly in the same process: blocking, with a work, and blocking while a
 * receive is posted. The calls alternate. Figures are medians, and lowest
 * deciles for machines that are not idle. A batch is shorter than the
 * scheduler's time slice. Run by mpirun with two ranks or more, each on its own
 * core:
 *
 *   DSCOMM_BACKEND=mpi mpirun -n 2 tests/bench/mpi-openmpi [ROW]
 *
 * ROW is a part of the names of the rows to measure. */
#include "config.h"

#include "tests/bench/bench.h"

#include <dscomm/dscomm.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define ROUNDS 601

static dscomm_group_t *world;
static float *in, *out;
static int ranks;

static dscomm_status_t our_all_reduce(size_t count, dscomm_work_t **ret_work)
{
    return dscomm_all_reduce(world, in, out, count, DSCOMM_FLOAT32, DSCOMM_SUM,
                             ret_work);
}

static void mpi_all_reduce(size_t count)
{
    MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static dscomm_status_t our_broadcast(size_t count, dscomm_work_t **ret_work)
{
    return dscomm_broadcast(world, out, count, DSCOMM_FLOAT32, 0, ret_work);
}

static void mpi_broadcast(size_t count)
{
    MPI_Bcast(out, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static dscomm_status_t our_all_gather(size_t count, dscomm_work_t **ret_work)
{
    return dscomm_all_gather(world, in, out, count / (size_t)ranks,
                             DSCOMM_FLOAT32, ret_work);
}

static void mpi_all_gather(size_t count)
{
    int part = (int)(count / (size_t)ranks);

    MPI_Allgather(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
}

static dscomm_status_t our_barrier(size_t count, dscomm_work_t **ret_work)
{
    (void)count;
    return dscomm_barrier(world, ret_work);
}

static void mpi_barrier(size_t count)
{
    (void)count;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void finish(dscomm_work_t *work)
{
    DSCOMM_CHECK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(work);
}

static void mpi_iallreduce(size_t count)
{
    MPI_Request request;

    MPI_Iallreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void mpi_ibcast(size_t count)
{
    MPI_Request request;

    MPI_Ibcast(out, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void mpi_iallgather(size_t count)
{
    int part = (int)(count / (size_t)ranks);
    MPI_Request request;

    MPI_Iallgather(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* standing: a receive is posted whose message has not arrived. */
static const struct {
    const char *name;
    dscomm_status_t (*ours)(size_t count, dscomm_work_t **ret_work);
    void (*theirs)(size_t count);
    int with_work, standing;
} rows[] = {
    {"all_reduce", our_all_reduce, mpi_all_reduce, 0, 0},
    {"broadcast", our_broadcast, mpi_broadcast, 0, 0},
    {"all_gather", our_all_gather, mpi_all_gather, 0, 0},
    {"barrier", our_barrier, mpi_barrier, 0, 0},
    {"all_reduce, work", our_all_reduce, mpi_iallreduce, 1, 0},
    {"broadcast, work", our_broadcast, mpi_ibcast, 1, 0},
    {"all_gather, work", our_all_gather, mpi_iallgather, 1, 0},
    {"all_reduce, irecv", our_all_reduce, mpi_all_reduce, 0, 1},
};

static void call(size_t row, int is_ours, size_t count)
{
    dscomm_work_t *work;

    if (!is_ours) {
        rows[row].theirs(count);
        return;
    }
    DSCOMM_CHECK(rows[row].ours(count, rows[row].with_work ? &work : NULL));
    if (rows[row].with_work)
        finish(work);
}

/* Returns nanoseconds of one call. */
static double measure(size_t row, int is_ours, size_t count, int loops)
{
    double start;

    for (int i = 0; i < loops / 8 + 1; i++)
        call(row, is_ours, count);
    MPI_Barrier(MPI_COMM_WORLD);
    start = now_ns();
    for (int i = 0; i < loops; i++)
        call(row, is_ours, count);
    return (now_ns() - start) / loops;
}

static double measure_ours(size_t row, size_t count, int loops)
{
    const int next = (dscomm_group_rank(world) + 1) % ranks;
    dscomm_work_t *work;
    double time;
    char byte;

    if (!rows[row].standing)
        return measure(row, 1, count, loops);
    DSCOMM_CHECK(dscomm_irecv(world, &byte, 1, DSCOMM_UINT8, DSCOMM_ANY_SOURCE,
                              0, &work));
    time = measure(row, 1, count, loops);
    DSCOMM_CHECK(dscomm_send(world, "", 1, DSCOMM_UINT8, next, 0));
    finish(work);
    return time;
}

static void run(size_t row, size_t count)
{
    const int loops = count > 100000 ? 2 : count > 2000 ? 20 : 200;
    static double ours[ROUNDS], theirs[ROUNDS], more[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2)
            ours[i] = measure_ours(row, count, loops);
        theirs[i] = measure(row, 0, count, loops);
        if (i % 2 == 0)
            ours[i] = measure_ours(row, count, loops);
        more[i] = ours[i] - theirs[i];
    }
    if (dscomm_group_rank(world) == 0)
        printf("%-18s %9zu %10.0f %10.0f %8.0f %10.0f %10.0f\n", rows[row].name,
               count * sizeof(float), quantile(theirs, ROUNDS, 50),
               quantile(ours, ROUNDS, 50), quantile(more, ROUNDS, 50),
               quantile(theirs, ROUNDS, 10), quantile(ours, ROUNDS, 10));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const size_t counts[] = {2, 256, 16384, 262144, 1048576};
    int level;

    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    ranks = dscomm_group_size(world);
    in = calloc(1048576, sizeof *in);
    out = calloc(1048576, sizeof *out);
    if (!in || !out)
        return 1;
    if (dscomm_group_rank(world) == 0)
        printf("%-18s %9s %10s %10s %8s %10s %10s\n", "ns", "bytes", "MPI",
               "dscomm", "more", "MPI 10%", "dscomm 10%");
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            if ((argc < 2 || strstr(rows[row].name, argv[1])) &&
                (rows[row].ours != our_barrier || i == 0))
                run(row, counts[i]);
    free(in);
    free(out);
    DSCOMM_CHECK(dscomm_finalize(world));
    MPI_Finalize();
    return 0;
}
