/* SPDX-License-Identifier: BSD-3-Clause */
/* The schedule cache has sets of WAYS shapes each. A shape belongs to one set,
 * so lookup is short. In a full set the least recently used shape is evicted.
 */
#include "config.h"
#include "lib/schedule/cache.h"
#include "lib/schedule/choice.h"

#include <stdlib.h>
#include <string.h>

#define SETS 64 /* a power of two */
#define WAYS 4
/* Limits of cached schedules, and of idle runs, in bytes. */
#define CACHED_BYTES ((size_t)16 << 20)
#define KEPT_BYTES ((size_t)64 << 20)

/* The key of a schedule; equal keys have equal schedules. */
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
    int cached; /* 0: freed with its last run */
    uint64_t used;
} shape_t;

struct dscomm_schedule_cache {
    dscomm_port_t port;
    int rank, ranks;
    const dscomm_nodes_t *nodes;
    shape_t *shapes[SETS][WAYS]; /* NULL: free */
    size_t cached, kept; /* bytes: of schedules, of idle runs */
    uint64_t clock;
};

dscomm_schedule_cache_t *dscomm_priv_cache_new(const dscomm_port_t *port,
                                               int rank, int ranks,
                                               const dscomm_nodes_t *nodes)
{
    dscomm_schedule_cache_t *cache = g_try_new0(dscomm_schedule_cache_t, 1);

    if (!cache)
        return NULL;
    cache->port = *port;
    cache->rank = rank;
    cache->ranks = ranks;
    cache->nodes = nodes;
    return cache;
}

static void shape_free(shape_t *shape)
{
    dscomm_priv_schedule_free(shape->schedule);
    free(shape);
}

/* Removes the shape from the cache. It is freed after its last run. */
static void cache_evict(dscomm_schedule_cache_t *cache, shape_t **place)
{
    shape_t *shape = *place;

    *place = NULL;
    while (shape->idle) {
        dscomm_run_t *run = shape->idle;

        shape->idle = run->next;
        cache->kept -= shape->run_bytes;
        dscomm_priv_run_free(run);
    }
    cache->cached -= shape->schedule->bytes;
    shape->cached = 0;
    if (!shape->taken)
        shape_free(shape);
}

static void cache_evict_all(dscomm_schedule_cache_t *cache)
{
    for (int b = 0; b < SETS; b++)
        for (int i = 0; i < WAYS; i++)
            if (cache->shapes[b][i])
                cache_evict(cache, &cache->shapes[b][i]);
}

void dscomm_priv_cache_free(dscomm_schedule_cache_t *cache)
{
    if (!cache)
        return;
    cache_evict_all(cache);
    g_free(cache);
}

static void cache_free(dscomm_group_t *group)
{
    dscomm_priv_cache_free(group->schedules.cache);
    group->schedules.cache = NULL;
}

const dscomm_group_part_t dscomm_priv_cache_part = {.on[PART_FREE] =
                                                        cache_free};

static shape_t *shape_new(dscomm_schedule_cache_t *cache,
                          const shape_key_t *key,
                          const dscomm_coll_args_t *args)
{
    shape_t *shape = calloc(1, sizeof *shape);

    if (!shape)
        return NULL;
    shape->key = *key;
    shape->schedule = dscomm_priv_schedule_new(
        key->algorithm, args, cache->rank, cache->ranks, cache->nodes,
        dscomm_priv_choice_default);
    if (!shape->schedule) {
        free(shape);
        return NULL;
    }
    shape->schedule->header.algorithm =
        (uint8_t)dscomm_priv_algorithm_number(key->algorithm);
    shape->run_bytes = dscomm_priv_run_bytes(shape->schedule, &cache->port);
    return shape;
}

/* Returns the set of key; the fingerprint is a hash of the other members. */
static shape_t **cache_set_of(dscomm_schedule_cache_t *cache,
                              const shape_key_t *key)
{
    return cache->shapes[key->fingerprint % SETS];
}

/* Returns a free place of the set, or that of the least recently used shape. */
static shape_t **set_find_victim(shape_t **set)
{
    shape_t **place = set;

    for (int i = 0; i < WAYS; i++) {
        if (!set[i])
            return &set[i];
        if (set[i]->used < (*place)->used)
            place = &set[i];
    }
    return place;
}

/* Caches the shape, unless it is larger than the whole cache. */
static void cache_insert(dscomm_schedule_cache_t *cache, shape_t *shape)
{
    const size_t bytes = shape->schedule->bytes;
    shape_t **place;

    if (bytes > CACHED_BYTES)
        return;
    if (cache->cached + bytes > CACHED_BYTES)
        cache_evict_all(cache);
    place = set_find_victim(cache_set_of(cache, &shape->key));
    if (*place)
        cache_evict(cache, place);
    *place = shape;
    cache->cached += bytes;
    shape->cached = 1;
}

/* Finds or makes the shape. Calls with one count for each rank are not cached,
 * because they rarely come again. */
static shape_t *cache_find(dscomm_schedule_cache_t *cache,
                           const shape_key_t *key,
                           const dscomm_coll_args_t *args)
{
    shape_t *shape, **set = cache_set_of(cache, key);

    if (args->send_counts || args->recv_counts)
        return shape_new(cache, key, args);
    for (int i = 0; i < WAYS; i++)
        if (set[i] && !memcmp(&set[i]->key, key, sizeof *key))
            return set[i];
    shape = shape_new(cache, key, args);
    if (shape)
        cache_insert(cache, shape);
    return shape;
}

dscomm_run_t *dscomm_priv_cache_take(dscomm_schedule_cache_t *cache,
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
    shape = cache_find(cache, &key, args);
    if (!shape)
        return NULL;
    shape->used = ++cache->clock;
    run = shape->idle;
    if (run) {
        shape->idle = run->next;
        cache->kept -= shape->run_bytes;
    } else {
        run = dscomm_priv_run_new(shape->schedule, &cache->port);
    }
    if (run) {
        run->shape = shape;
        shape->taken++;
    } else if (!shape->cached) {
        shape_free(shape);
    }
    return run;
}

void dscomm_priv_cache_give(dscomm_schedule_cache_t *cache, dscomm_run_t *run)
{
    shape_t *shape = run->shape;

    shape->taken--;
    if (!run->held && shape->cached &&
        cache->kept + shape->run_bytes <= KEPT_BYTES) {
        run->next = shape->idle;
        shape->idle = run;
        cache->kept += shape->run_bytes;
        return;
    }
    dscomm_priv_run_free(run);
    if (!shape->cached && !shape->taken)
        shape_free(shape);
}
