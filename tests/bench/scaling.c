/* SPDX-License-Identifier: BSD-3-Clause */
/* Simulates the library's schedules of an all_reduce by SimGrid's SMPI, whose
 * hosts and links need not exist. Each rank carries out the steps of its own
 * schedule, with MPI messages between unused buffers, and with simulated time
 * for reductions and copies. The result is the simulated time of the slowest
 * rank. tests/bench/scaling.sh runs it:
 *
 *   scaling BYTES RANKS-PER-HOST NAME...
 *
 * NAME is an algorithm for all ranks; two_level also uses the hosts.
 * "two_level:NAME" is a reduce_scatter inside each host, an all_reduce by NAME
 * between ranks of equal local number, and an all_gather inside each host. */
#include "config.h"

#include "lib/schedule/algorithms/algorithms.h"
#include "lib/schedule/choice.h"

#include <mpi.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A host has 1e9 flops, each of which stands for so many bytes that a processor
 * handles. */
#define BYTES_PER_FLOP 10.0

typedef struct {
    uint32_t chain, next, end, outstanding;
} slot_t;

/* SMPI's ranks share global variables, so the state is in a structure. */
typedef struct {
    char *nothing; /* the buffer of all messages; its contents are not used */
    MPI_Comm inside, rail;
    int local_ranks;
    dscomm_nodes_t nodes;
} world_t;

typedef struct {
    const dscomm_schedule_t *schedule;
    char *nothing;
    size_t element;
    MPI_Comm comm;
    slot_t slots[WINDOW_MOST];
    MPI_Request *requests;
    slot_t **owners;
    int count;
} sim_t;

static void work(double bytes)
{
    smpi_execute_flops(bytes / BYTES_PER_FLOP);
}

static void post(sim_t *sim, const dscomm_step_t *step, slot_t *slot,
                 size_t bytes, int tag)
{
    MPI_Request *request = &sim->requests[sim->count];

    if (step->kind == STEP_SEND)
        MPI_Isend(sim->nothing, (int)bytes, MPI_BYTE, step->peer, tag,
                  sim->comm, request);
    else
        MPI_Irecv(sim->nothing, (int)bytes, MPI_BYTE, step->peer, tag,
                  sim->comm, request);
    sim->owners[sim->count++] = slot;
    slot->outstanding++;
}

static void message(sim_t *sim, const dscomm_step_t *step, slot_t *slot)
{
    const int tag = 1 + (int)(slot - sim->slots);
    const size_t header = sizeof(dscomm_header_t);

    if (!step->has_header) {
        post(sim, step, slot, step->bytes, tag);
    } else if (step->bytes <= dscomm_priv_header_most(sim->schedule->ranks)) {
        post(sim, step, slot, header + step->bytes, 0);
    } else {
        post(sim, step, slot, header, 0);
        post(sim, step, slot, step->bytes, tag);
    }
}

static void carry_out(sim_t *sim, const dscomm_step_t *step, slot_t *slot)
{
    if (step->kind == STEP_SEND || step->kind == STEP_RECV)
        message(sim, step, slot);
    else if (step->kind == STEP_COPY)
        work(2.0 * (double)step->bytes);
    else
        work((double)(step->bytes * sim->element * (step->nsources + 1)));
}

static void begin(sim_t *sim, slot_t *slot, uint32_t chain)
{
    const dscomm_schedule_t *schedule = sim->schedule;

    slot->chain = chain;
    slot->next = slot->end = 0;
    if (chain < schedule->nchains) {
        slot->next = schedule->chains[chain];
        slot->end = schedule->chains[chain + 1];
    }
}

/* Runs rounds, until one must wait for messages. */
static void advance(sim_t *sim, slot_t *slot)
{
    const dscomm_schedule_t *schedule = sim->schedule;

    while (!slot->outstanding && slot->chain < schedule->nchains) {
        while (slot->next < slot->end) {
            const dscomm_step_t *step = &schedule->steps[slot->next++];

            carry_out(sim, step, slot);
            if (step->last)
                break;
        }
        if (!slot->outstanding && slot->next == slot->end)
            begin(sim, slot, slot->chain + schedule->window);
    }
}

static void wait_for_one(sim_t *sim)
{
    int which;
    slot_t *slot;

    MPI_Waitany(sim->count, sim->requests, &which, MPI_STATUS_IGNORE);
    slot = sim->owners[which];
    sim->requests[which] = sim->requests[--sim->count];
    sim->owners[which] = sim->owners[sim->count];
    slot->outstanding--;
    advance(sim, slot);
}

static const dscomm_algorithm_t *find(int coll, const char *name)
{
    const dscomm_algorithm_t *row = dscomm_priv_algorithms;

    while (row->name && (row->coll != coll || strcmp(row->name, name)))
        row++;
    if (row->name)
        return row;
    fprintf(stderr, "there is no algorithm %s\n", name);
    exit(2);
}

/* Runs one collective of count floats on comm. */
static void run(const world_t *world, MPI_Comm comm, int coll, const char *name,
                size_t count)
{
    static char here[64];
    dscomm_coll_args_t args = {
        .coll = coll,
        .dtype = DSCOMM_FLOAT32,
        .op = coll == DSCOMM_COLL_ALL_GATHER ? -1 : DSCOMM_SUM,
        .root = -1,
        .count = count,
        .element = sizeof(float),
        .send = here,
        .recv = here + 32,
        .factor = 1.0};
    const dscomm_algorithm_t *algorithm = find(coll, name);
    sim_t sim = {
        .comm = comm, .nothing = world->nothing, .element = sizeof(float)};
    dscomm_schedule_t *schedule;
    size_t room;
    int rank, ranks;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (ranks == 1)
        return;
    schedule =
        dscomm_priv_schedule_new(algorithm, &args, rank, ranks,
                                 comm == MPI_COMM_WORLD ? &world->nodes : NULL,
                                 dscomm_priv_choice_default);
    room = 2 * (size_t)schedule->most_messages + 2;
    sim.schedule = schedule;
    sim.requests = calloc(room, sizeof *sim.requests);
    sim.owners = calloc(room, sizeof *sim.owners);
    for (uint32_t i = 0; i < schedule->window; i++) {
        begin(&sim, &sim.slots[i], i);
        advance(&sim, &sim.slots[i]);
    }
    while (sim.count)
        wait_for_one(&sim);
    free(sim.requests);
    free(sim.owners);
    dscomm_priv_schedule_free(schedule);
}

static void two_level(const world_t *world, const char *name, size_t count)
{
    const size_t part = count / (size_t)world->local_ranks;

    run(world, world->inside, DSCOMM_COLL_REDUCE_SCATTER, "pairwise", part);
    run(world, world->rail, DSCOMM_COLL_ALL_REDUCE, name, part);
    run(world, world->inside, DSCOMM_COLL_ALL_GATHER, "ring", part);
}

static void find_nodes(world_t *world)
{
    int ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    dscomm_priv_nodes_one(ranks, &world->nodes);
    for (int r = 0; r < ranks; r++) {
        world->nodes.node[r] = r / world->local_ranks;
        world->nodes.local[r] = r % world->local_ranks;
    }
    world->nodes.count = ranks / world->local_ranks;
}

/* Returns the simulated seconds of the slowest rank. */
static double measure(const world_t *world, const char *name, size_t count)
{
    double start, own, slowest = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    if (strncmp(name, "two_level:", 10) == 0)
        two_level(world, name + 10, count);
    else
        run(world, MPI_COMM_WORLD, DSCOMM_COLL_ALL_REDUCE, name, count);
    own = MPI_Wtime() - start;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

int main(int argc, char **argv)
{
    size_t bytes;
    world_t world;
    int rank;

    MPI_Init(&argc, &argv);
    if (argc < 4)
        return 2;
    bytes = strtoull(argv[1], NULL, 10);
    world.local_ranks = atoi(argv[2]);
    world.nothing = SMPI_SHARED_MALLOC(bytes + 4096);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank / world.local_ranks, rank,
                   &world.inside);
    MPI_Comm_split(MPI_COMM_WORLD, rank % world.local_ranks, rank, &world.rail);
    find_nodes(&world);
    for (int i = 3; i < argc; i++) {
        double seconds = measure(&world, argv[i], bytes / sizeof(float));

        if (rank == 0)
            printf("%s %zu %.1f\n", argv[i], bytes, seconds * 1e6);
    }
    dscomm_priv_nodes_clear(&world.nodes);
    SMPI_SHARED_FREE(world.nothing);
    MPI_Finalize();
    return 0;
}
