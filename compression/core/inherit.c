/* SPDX-License-Identifier: BSD-3-Clause */
/* The errors of a compressor that moves to another group. Worker errors stay on
 * their ranks. Server errors move to the ranks that serve their elements in the
 * new group. */
#include "config.h"

#include "compression/core/compressor.h"

#include "compression/device/device.h"

#include <dscomm/dscomm.h>
#include <string.h>

/* Elements [from, to) of a buffer with padding. */
typedef struct {
    size_t from, to;
} range_t;

dscomm_origin_t dscomm_priv_origin(const dscomm_compressor_t *old)
{
    dscomm_origin_t origin = {.rank = -1};

    if (!old)
        return origin;
    origin.chunk = old->chunk;
    origin.padded = old->padded;
    origin.ranks = old->channel->ranks;
    origin.rank = old->channel->rank;
    origin.group = old->channel->identity;
    origin.tag = old->tag;
    origin.complete = dscomm_priv_calls_complete(old);
    return origin;
}

static dscomm_status_t fail_origin(const char *name,
                                   const dscomm_group_t *group, int a, int b,
                                   const char *what)
{
    return dscomm_fail(DSCOMM_ERR_MISMATCH,
                       "%s on group '%s': the compressors of ranks %d and %d "
                       "%s; all ranks give the one that they had on the same "
                       "earlier group",
                       name, dscomm_group_name(group), a, b, what);
}

/* Why two origins are not those of one compressor; NULL: they are. Ranks
 * complete a call without elements at different times, but any other one only
 * after all ranks have begun it. */
static const char *origins_difference(const dscomm_origin_t *a,
                                      const dscomm_origin_t *b)
{
    if (a->group != b->group || a->ranks != b->ranks)
        return "come of different groups";
    if (a->tag != b->tag || a->chunk != b->chunk || a->padded != b->padded)
        return "are different ones of their group";
    if (a->rank == b->rank)
        return "had the same rank in their groups";
    if (a->padded && a->complete - b->complete + 1 > 2)
        return "differ by more than one call";
    return NULL;
}

/* Finds the rank with the first origin; -1: there is none. Fails unless all
 * origins are of one compressor. */
static dscomm_status_t origins_check(const char *name,
                                     const dscomm_group_t *group,
                                     const dscomm_origin_t *origins,
                                     int *ret_first)
{
    int first = -1;

    for (int r = 0; r < dscomm_group_size(group); r++) {
        if (origins[r].rank < 0)
            continue;
        first = first < 0 ? r : first;
        for (int s = first; s < r; s++) {
            const char *what =
                origins[s].rank < 0
                    ? NULL
                    : origins_difference(&origins[s], &origins[r]);

            if (what)
                return fail_origin(name, group, s, r, what);
        }
    }
    *ret_first = first;
    return DSCOMM_OK;
}

/* The number of calls that are complete on some rank. */
static uint32_t origins_complete(const dscomm_origin_t *origins, int ranks,
                                 int first)
{
    uint32_t most = origins[first].complete;

    for (int r = first + 1; r < ranks; r++)
        if (origins[r].rank >= 0 && (int32_t)(origins[r].complete - most) > 0)
            most = origins[r].complete;
    return most;
}

/* The elements that rank serves if parts have so many. */
static range_t range_of(size_t chunk, size_t padded, int rank)
{
    const size_t from = MIN((size_t)rank * chunk, padded);

    return (range_t){from, MIN(from + chunk, padded)};
}

/* The elements that a rank with origin has served, and rank serves in c.
 * Empty ranges begin where they end. */
static range_t range_shared(const dscomm_origin_t *origin,
                            const dscomm_compressor_t *c, int rank)
{
    const range_t new = range_of(c->chunk, c->padded, rank);
    range_t shared = {0, 0};

    if (origin->rank < 0)
        return shared;
    shared =
        range_of((size_t)origin->chunk, (size_t)origin->padded, origin->rank);
    shared.from = MAX(shared.from, new.from);
    shared.to = MAX(MIN(shared.to, new.to), shared.from);
    return shared;
}

/* Sends each server error to the rank that serves its element in c. layout: a
 * count and a displacement for each rank, for sending and for receiving. */
static dscomm_status_t server_move(dscomm_compressor_t *c, const float *server,
                                   dscomm_group_t *group,
                                   const dscomm_origin_t *origins,
                                   size_t *layout)
{
    const size_t ranks = (size_t)dscomm_group_size(group);
    const dscomm_origin_t *own = &origins[c->channel->rank];
    const size_t new_base = (size_t)c->channel->rank * c->chunk;
    size_t *const counts[] = {layout, layout + 2 * ranks};
    size_t *const displs[] = {layout + ranks, layout + 3 * ranks};
    dscomm_status_t status;

    for (size_t r = 0; r < ranks; r++) {
        const range_t out = range_shared(own, c, (int)r);
        const range_t in = range_shared(&origins[r], c, c->channel->rank);

        counts[0][r] = out.to - out.from;
        counts[1][r] = in.to - in.from;
        displs[0][r] =
            counts[0][r] ? out.from - (size_t)own->rank * own->chunk : 0;
        displs[1][r] = counts[1][r] ? in.from - new_base : 0;
    }
    status = dscomm_all_to_all_v(group, server, counts[0], displs[0], c->server,
                                 counts[1], displs[1], DSCOMM_FLOAT32, NULL);
    if (status < 0) { /* the backend may still write there */
        dscomm_priv_retain(c->server);
        c->server = NULL;
    }
    return status;
}

/* The worker error of old that counts, followed by where its server error is.
 * NULL: they are zero. complete: calls that count as complete. */
static const float *errors_choose(const dscomm_compressor_t *old,
                                  uint32_t complete, const float **ret_server)
{
    if (!old->lost || old->calls == complete) {
        *ret_server = old->server;
        return old->worker;
    }
    if (old->kept) {
        *ret_server = old->kept + old->padded;
        return old->kept;
    }
    dscomm_log(DSCOMM_LOG_INFO, "compression",
               "the call that failed has left no errors of %zu elements to go "
               "on with, so they begin at zero; attribute recoverable keeps "
               "them",
               old->count);
    *ret_server = NULL;
    return NULL;
}

/* Copies the worker error, and returns the server error to be sent. */
static const float *errors_take(dscomm_compressor_t *c,
                                dscomm_compressor_t *old, uint32_t complete)
{
    static const float nothing;
    const float *server, *worker;

    if (!old)
        return &nothing;
    worker = errors_choose(old, complete, &server);
    if (worker)
        memcpy(c->worker, worker, MIN(c->padded, old->padded) * sizeof(float));
    else
        memset(old->server, 0,
               dscomm_priv_part_count(old, old->channel->rank) * sizeof(float));
    return server ? server : old->server;
}

dscomm_status_t dscomm_priv_errors_inherit(const char *name,
                                           dscomm_compressor_t *c,
                                           dscomm_compressor_t *old,
                                           dscomm_group_t *group,
                                           const dscomm_origin_t *origins)
{
    const int ranks = dscomm_group_size(group);
    const float *server;
    size_t *layout;
    int first = -1;
    dscomm_status_t status = origins_check(name, group, origins, &first);

    if (status < 0 || first < 0)
        return status;
    c->calls = origins_complete(origins, ranks, first);
    if (!c->feedback)
        return DSCOMM_OK;
    layout = g_try_new(size_t, 4 * (gsize)ranks);
    if (!layout)
        return dscomm_priv_channel_fail(group);
    server = errors_take(c, old, c->calls);
    status = server_move(c, server, group, origins, layout);
    g_free(layout);
    return status;
}
