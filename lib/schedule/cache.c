/* SPDX-License-Identifier: BSD-3-Clause */
/* The shelf: boards of a few shapes each, of which the one not used for longest
 * makes room. A shape has its place on one board, so it is found at once, and a
 * program that goes through more shapes than there is room for still finds
 * most. */
#include "config.h"
#include "lib/schedule/cache.h"
#include "lib/schedule/algorithm.h"

#include <stdlib.h>
#include <string.h>

#define BOARDS 64 /* a power of two */
#define PLACES 4
/* What schedules may take, and idle runs of them. */
#define SHELVED_BYTES ((size_t)16 << 20)
#define KEPT_BYTES ((size_t)64 << 20)

/* What makes a schedule: equal bytes, equal schedule. */
typedef struct {
    const dscomm_algorithm_t *algorithm;
    size_t count;
    uint32_t fingerprint;
    int32_t dtype, op, root;
} shape_key_t;

typedef struct dscomm_shape {
    shape_key_t key;
    dscomm_schedule_t *schedule;
    size_t run_bytes;
    dscomm_run_t *idle;
    unsigned taken; /* runs under way */
    int shelved; /* 0: goes with its last run */
    uint64_t used;
} shape_t;

struct dscomm_shelf {
    dscomm_port_t port;
    int rank, ranks;
    const dscomm_nodes_t *nodes;
    shape_t *shapes[BOARDS][PLACES]; /* NULL: free */
    size_t shelved, kept; /* bytes: of schedules, of idle runs */
    uint64_t clock;
};

dscomm_shelf_t *dscomm_priv_shelf_new(const dscomm_port_t *port, int rank,
                                      int ranks, const dscomm_nodes_t *nodes)
{
    dscomm_shelf_t *shelf = g_try_new0(dscomm_shelf_t, 1);

    if (!shelf)
        return NULL;
    shelf->port = *port;
    shelf->rank = rank;
    shelf->ranks = ranks;
    shelf->nodes = nodes;
    return shelf;
}

static void shape_free(shape_t *shape)
{
    dscomm_priv_schedule_free(shape->schedule);
    free(shape);
}

/* Its runs under way outlive it on the shelf. */
static void unshelve(dscomm_shelf_t *shelf, shape_t **place)
{
    shape_t *shape = *place;

    *place = NULL;
    while (shape->idle) {
        dscomm_run_t *run = shape->idle;

        shape->idle = run->next;
        shelf->kept -= shape->run_bytes;
        dscomm_priv_run_free(run);
    }
    shelf->shelved -= shape->schedule->bytes;
    shape->shelved = 0;
    if (!shape->taken)
        shape_free(shape);
}

static void unshelve_all(dscomm_shelf_t *shelf)
{
    for (int b = 0; b < BOARDS; b++)
        for (int i = 0; i < PLACES; i++)
            if (shelf->shapes[b][i])
                unshelve(shelf, &shelf->shapes[b][i]);
}

void dscomm_priv_shelf_free(dscomm_shelf_t *shelf)
{
    if (!shelf)
        return;
    unshelve_all(shelf);
    g_free(shelf);
}

static void cache_free(dscomm_group_t *group)
{
    dscomm_priv_shelf_free(group->shelf);
    group->shelf = NULL;
}

const dscomm_group_part_t dscomm_priv_cache_part = {.free = cache_free};

static shape_t *shape_new(dscomm_shelf_t *shelf, const shape_key_t *key,
                          const dscomm_coll_args_t *args)
{
    shape_t *shape = calloc(1, sizeof *shape);

    if (!shape)
        return NULL;
    shape->key = *key;
    shape->schedule = dscomm_priv_schedule_new(
        key->algorithm, args, shelf->rank, shelf->ranks, shelf->nodes);
    if (!shape->schedule) {
        free(shape);
        return NULL;
    }
    shape->run_bytes = dscomm_priv_run_bytes(shape->schedule, &shelf->port);
    return shape;
}

/* The fingerprint is a hash of the rest. */
static shape_t **find_board(dscomm_shelf_t *shelf, const shape_key_t *key)
{
    return shelf->shapes[key->fingerprint % BOARDS];
}

/* A free place, or the place of what was not used for longest. */
static shape_t **oldest(shape_t **board)
{
    shape_t **place = board;

    for (int i = 0; i < PLACES; i++) {
        if (!board[i])
            return &board[i];
        if (board[i]->used < (*place)->used)
            place = &board[i];
    }
    return place;
}

/* What is larger than all that may be shelved together stays with its runs. */
static void put_on(dscomm_shelf_t *shelf, shape_t *shape)
{
    const size_t bytes = shape->schedule->bytes;
    shape_t **place;

    if (bytes > SHELVED_BYTES)
        return;
    if (shelf->shelved + bytes > SHELVED_BYTES)
        unshelve_all(shelf);
    place = oldest(find_board(shelf, &shape->key));
    if (*place)
        unshelve(shelf, place);
    *place = shape;
    shelf->shelved += bytes;
    shape->shelved = 1;
}

/* Calls with counts of their own for every rank come and go. */
static shape_t *find(dscomm_shelf_t *shelf, const shape_key_t *key,
                     const dscomm_coll_args_t *args)
{
    shape_t *shape, **board = find_board(shelf, key);

    if (args->send_counts || args->recv_counts)
        return shape_new(shelf, key, args);
    for (int i = 0; i < PLACES; i++)
        if (board[i] && !memcmp(&board[i]->key, key, sizeof *key))
            return board[i];
    shape = shape_new(shelf, key, args);
    if (shape)
        put_on(shelf, shape);
    return shape;
}

dscomm_run_t *dscomm_priv_shelf_take(dscomm_shelf_t *shelf,
                                     const dscomm_algorithm_t *algorithm,
                                     const dscomm_coll_args_t *args)
{
    shape_key_t key;
    shape_t *shape;
    dscomm_run_t *run;

    memset(&key, 0, sizeof key);
    key.algorithm = algorithm;
    key.count = args->count;
    key.fingerprint = args->fingerprint;
    key.dtype = args->dtype;
    key.op = args->op;
    key.root = args->root;
    shape = find(shelf, &key, args);
    if (!shape)
        return NULL;
    shape->used = ++shelf->clock;
    run = shape->idle;
    if (run) {
        shape->idle = run->next;
        shelf->kept -= shape->run_bytes;
    } else {
        run = dscomm_priv_run_new(shape->schedule, &shelf->port);
    }
    if (run) {
        run->shape = shape;
        shape->taken++;
    } else if (!shape->shelved) {
        shape_free(shape);
    }
    return run;
}

void dscomm_priv_shelf_give(dscomm_shelf_t *shelf, dscomm_run_t *run)
{
    shape_t *shape = run->shape;

    shape->taken--;
    if (!run->held && shape->shelved &&
        shelf->kept + shape->run_bytes <= KEPT_BYTES) {
        run->next = shape->idle;
        shape->idle = run;
        shelf->kept += shape->run_bytes;
        return;
    }
    dscomm_priv_run_free(run);
    if (!shape->shelved && !shape->taken)
        shape_free(shape);
}
