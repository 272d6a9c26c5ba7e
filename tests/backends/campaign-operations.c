/* SPDX-License-Identifier: BSD-3-Clause */
/* See campaign.h. */
#include "config.h"

#include "tests/backends/campaign.h"
#include "tests/collective.h"

#define RANKS CAMPAIGN_RANKS
#define COUNT_MAX 20000

const size_t campaign_counts[CAMPAIGN_COUNTS] = {1, 5, 700, COUNT_MAX - 1};

/* A mismatched count is greater by one. */
static float in[COUNT_MAX * RANKS], out[COUNT_MAX * RANKS];

static dscomm_status_t turn_barrier(dscomm_group_t *world,
                                    const campaign_call_t *call)
{
    (void)call;
    return dscomm_barrier(world, NULL);
}

/* The leader of the new group is the world's last rank. */
static dscomm_status_t turn_new(dscomm_group_t *world,
                                const campaign_call_t *call)
{
    int list[RANKS];
    dscomm_group_t *group = NULL;
    dscomm_status_t status;

    (void)call;
    for (int i = 0; i < RANKS; i++)
        list[i] = RANKS - 1 - i;
    status = dscomm_group_new(world, list, RANKS, NULL, &group);
    dscomm_group_free(group);
    return status;
}

static dscomm_status_t turn_split(dscomm_group_t *world,
                                  const campaign_call_t *call)
{
    const int color = dscomm_group_rank(world) / 2;
    dscomm_group_t *group = NULL;
    dscomm_status_t status;

    (void)call;
    status = dscomm_group_split(world, color, 0, NULL, &group);
    dscomm_group_free(group);
    return status;
}

static dscomm_status_t turn_mesh(dscomm_group_t *world,
                                 const campaign_call_t *call)
{
    const int dims[2] = {2, RANKS / 2};
    dscomm_group_t *groups[2] = {NULL};
    dscomm_status_t status = dscomm_group_mesh(world, dims, 2, groups);

    (void)call;
    for (int i = 0; i < 2; i++)
        dscomm_group_free(groups[i]);
    return status;
}

/* Sends to the next rank of a ring, and receives from the one before. */
static dscomm_status_t turn_messages(dscomm_group_t *world,
                                     const campaign_call_t *call)
{
    const int rank = dscomm_group_rank(world);
    dscomm_work_t *work = NULL;
    dscomm_status_t status, received;

    status = dscomm_isend(world, in, call->count, call->dtype,
                          (rank + 1) % RANKS, 1, &work);
    if (status)
        return status;
    received = dscomm_recv(world, out, call->count, call->dtype,
                           (rank + RANKS - 1) % RANKS, 1, NULL, NULL);
    status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work);
    return received ? received : status;
}

/* Puts into memory of the next rank of a ring, which gives its key, and
 * signals. */
static dscomm_status_t ring_put(dscomm_group_t *world, dscomm_mem_t *mem,
                                size_t bytes)
{
    const int rank = dscomm_group_rank(world), next = (rank + 1) % RANKS;
    const int before = (rank + RANKS - 1) % RANKS;
    unsigned char own[DSCOMM_MEM_KEY_BYTES], key[DSCOMM_MEM_KEY_BYTES];
    dscomm_work_t *work = NULL;
    dscomm_status_t status = dscomm_mem_key(mem, own), sent;

    if (status == DSCOMM_OK)
        status = dscomm_isend(world, own, sizeof own, DSCOMM_UINT8, before, 1,
                              &work);
    if (status)
        return status;
    status =
        dscomm_recv(world, key, sizeof key, DSCOMM_UINT8, next, 1, NULL, NULL);
    sent = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work);
    if (status == DSCOMM_OK)
        status = sent;
    if (status == DSCOMM_OK)
        status = dscomm_put(world, in, bytes, key, 0, NULL);
    if (status == DSCOMM_OK)
        status = dscomm_signal(world, next, NULL);
    if (status == DSCOMM_OK)
        status = dscomm_signal_wait(world, before, DSCOMM_TIMEOUT_DEFAULT);
    return status;
}

static dscomm_status_t turn_accesses(dscomm_group_t *world,
                                     const campaign_call_t *call)
{
    const size_t bytes = call->count * sizeof *in;
    dscomm_mem_t *mem = NULL;
    dscomm_status_t status = dscomm_mem_register(world, out, bytes, &mem);

    if (status == DSCOMM_OK)
        status = ring_put(world, mem, bytes);
    dscomm_mem_deregister(mem);
    return status;
}

static dscomm_status_t turn_collective(dscomm_group_t *world, int coll,
                                       const campaign_call_t *call)
{
    size_t counts[RANKS];
    const collective_t collective = {.coll = coll,
                                     .send = in,
                                     .recv = out,
                                     .count = call->count,
                                     .send_counts = counts,
                                     .recv_counts = counts,
                                     .dtype = call->dtype,
                                     .op = call->op,
                                     .root = call->root};
    dscomm_work_t *work = NULL;
    dscomm_status_t status;

    for (int r = 0; r < RANKS; r++)
        counts[r] = call->count;
    status = collective_call(world, &collective, call->as_work ? &work : NULL);
    if (work)
        status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work);
    return status;
}

dscomm_status_t campaign_turn(const campaign_operation_t *operation,
                              dscomm_group_t *world,
                              const campaign_call_t *call)
{
    return operation->turn ? operation->turn(world, call)
                           : turn_collective(world, operation->coll, call);
}

enum {
    MOVES = CAMPAIGN_COLLECTIVE | CAMPAIGN_COUNTED,
    REDUCES = MOVES | CAMPAIGN_REDUCES,
    ROOTED = CAMPAIGN_ROOTED
};

const campaign_operation_t campaign_operations[] = {
    {"init", CAMPAIGN_CREATES | CAMPAIGN_EARLY, -1, turn_barrier},
    {"new", CAMPAIGN_CREATES, -1, turn_new},
    {"split", CAMPAIGN_CREATES, -1, turn_split},
    {"mesh", CAMPAIGN_CREATES | CAMPAIGN_CHAINED, -1, turn_mesh},
    {"broadcast", MOVES | ROOTED, DSCOMM_COLL_BROADCAST, NULL},
    {"reduce", REDUCES | ROOTED, DSCOMM_COLL_REDUCE, NULL},
    {"all_reduce", REDUCES, DSCOMM_COLL_ALL_REDUCE, NULL},
    {"all_gather", MOVES, DSCOMM_COLL_ALL_GATHER, NULL},
    {"all_gather_v", MOVES, DSCOMM_COLL_ALL_GATHER_V, NULL},
    {"reduce_scatter", REDUCES, DSCOMM_COLL_REDUCE_SCATTER, NULL},
    {"reduce_scatter_v", REDUCES, DSCOMM_COLL_REDUCE_SCATTER_V, NULL},
    {"gather", MOVES | ROOTED, DSCOMM_COLL_GATHER, NULL},
    {"gather_v", MOVES | ROOTED, DSCOMM_COLL_GATHER_V, NULL},
    {"scatter", MOVES | ROOTED, DSCOMM_COLL_SCATTER, NULL},
    {"scatter_v", MOVES | ROOTED, DSCOMM_COLL_SCATTER_V, NULL},
    {"all_to_all", MOVES, DSCOMM_COLL_ALL_TO_ALL, NULL},
    {"all_to_all_v", MOVES, DSCOMM_COLL_ALL_TO_ALL_V, NULL},
    {"barrier", CAMPAIGN_COLLECTIVE, DSCOMM_COLL_BARRIER, NULL},
    {"messages", CAMPAIGN_CHAINED, -1, turn_messages},
    {"accesses", CAMPAIGN_CHAINED, -1, turn_accesses},
    {"finalize", CAMPAIGN_LATE, -1, turn_barrier},
};

const int campaign_operations_count =
    sizeof campaign_operations / sizeof campaign_operations[0];
