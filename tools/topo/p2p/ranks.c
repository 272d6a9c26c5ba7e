/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between ranks, see ranks.h. The receiver posts its receives, and says
 * that it is ready; the sender's clock runs from then until the receiver says
 * that it has all. */
#include "config.h"

#include "tools/topo/p2p/ranks.h"

#include "tools/common/crowd.h"
#include "tools/common/memory.h"
#include "tools/topo/p2p/near.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Round trips of a message for one figure of latency, such figures, and bytes
 * of the message. */
#define TRIPS 100
#define LATENCIES 20
#define TRIP_BYTES 8
/* Tags; those below are tensors. */
enum { TAG_READY = 1 << 20, TAG_DONE, TAG_TRIP, TAG_SLICES };

/* The place of a rank, as the others learn it. */
typedef struct {
    tool_place_t where;
    bool has_core; /* its processors are in one core */
    double now; /* by its clock */
} place_t;

/* A rank's figures of the pair that goes from it to another. */
typedef struct {
    double times[TOPO_MODES], spreads[TOPO_MODES], latency, latency_spread;
    int near;
} figure_t;

/* Works that were started. */
typedef struct {
    dscomm_work_t **list;
    size_t count;
} works_t;

typedef struct {
    dscomm_group_t *group;
    const dscomm_topology_t *topology;
    const topo_copies_t *copies;
    guint rank, ranks;
    char *source, *dest;
    works_t sends, receives;
    figure_t *figures; /* ranks * ranks; this rank writes its own row */
    GArray *slices; /* topo_slice_t of this rank */
    double begun;
    char *crowd; /* see topo_pairs_t */
    gint64 wrong;
} state_t;

/* Waits for all works; status is that of the calls before. */
static dscomm_status_t works_finish(works_t *works, dscomm_status_t status)
{
    const dscomm_status_t waited =
        dscomm_work_wait_all(works->list, works->count, -1);

    for (size_t i = 0; i < works->count; i++) {
        dscomm_work_free(works->list[i]);
        works->list[i] = NULL;
    }
    works->count = 0;
    return status < 0 ? status : waited;
}

static dscomm_status_t send_tensors(state_t *s, int to)
{
    const gsize count = s->copies->elements;
    dscomm_status_t status = DSCOMM_OK;

    for (guint i = 0; i < s->copies->tensors && status >= 0; i++)
        status = dscomm_isend(s->group, (float *)(void *)s->source + i * count,
                              count, DSCOMM_FLOAT32, to, (int)i,
                              &s->sends.list[s->sends.count++]);
    return status;
}

static dscomm_status_t receive_tensors(state_t *s, int from)
{
    const gsize count = s->copies->elements;
    dscomm_status_t status = DSCOMM_OK;

    for (guint i = 0; i < s->copies->tensors && status >= 0; i++)
        status = dscomm_irecv(s->group, (float *)(void *)s->dest + i * count,
                              count, DSCOMM_FLOAT32, from, (int)i,
                              &s->receives.list[s->receives.count++]);
    return status;
}

static dscomm_status_t send_token(state_t *s, int to, int tag)
{
    static const char token = 1;

    return dscomm_isend(s->group, &token, 1, DSCOMM_UINT8, to, tag,
                        &s->sends.list[s->sends.count++]);
}

static dscomm_status_t receive_token(state_t *s, int from, int tag)
{
    char token;

    return dscomm_recv(s->group, &token, 1, DSCOMM_UINT8, from, tag, NULL,
                       NULL);
}

/* Sends all tensors to one rank, and receives as many from one; -1: none.
 * *ret_start: when the receiver was ready; *ret_stop: when it had all. */
static dscomm_status_t tensors_exchange(state_t *s, int to, int from,
                                        double *ret_start, double *ret_stop)
{
    dscomm_status_t status = DSCOMM_OK;

    if (from >= 0) {
        status = receive_tensors(s, from);
        if (status >= 0)
            status = send_token(s, from, TAG_READY);
    }
    if (status >= 0 && to >= 0)
        status = receive_token(s, to, TAG_READY);
    *ret_start = topo_now();
    if (status >= 0 && to >= 0)
        status = send_tensors(s, to);
    status = works_finish(&s->receives, status);
    if (status >= 0 && from >= 0)
        status = send_token(s, from, TAG_DONE);
    if (status >= 0 && to >= 0)
        status = receive_token(s, to, TAG_DONE);
    *ret_stop = topo_now();
    return works_finish(&s->sends, status);
}

/* Exchanges as often as a figure needs. */
static dscomm_status_t pair_measure_copies(state_t *s, int to, int from,
                                           topo_mode_t mode)
{
    const topo_copies_t *copies = s->copies;
    double *times = g_new(double, copies->iterations);
    dscomm_status_t status = DSCOMM_OK;

    if (from >= 0)
        memset(s->dest, 0, topo_copies_bytes(copies));
    for (guint i = 0; i < copies->warmups + copies->iterations; i++) {
        double start, stop;

        status = tensors_exchange(s, to, from, &start, &stop);
        if (status < 0)
            break;
        if (i < copies->warmups)
            continue;
        times[i - copies->warmups] = stop - start;
        if (to >= 0 && copies->traced) {
            const topo_slice_t slice = {s->rank, (guint)to, mode,
                                        start - s->begun, stop - start};

            g_array_append_val(s->slices, slice);
        }
    }
    if (status >= 0 && from >= 0)
        s->wrong +=
            (gint64)topo_wrong(s->dest, topo_copies_bytes(copies), (guint)from);
    if (status >= 0 && to >= 0) {
        figure_t *figure = &s->figures[s->rank * s->ranks + (guint)to];

        figure->times[mode] =
            topo_median(times, copies->iterations, &figure->spreads[mode]);
    }
    g_free(times);
    return status;
}

static dscomm_status_t token_pass(state_t *s, int peer, bool first)
{
    char message[TRIP_BYTES] = {0};

    return first ? dscomm_send(s->group, message, TRIP_BYTES, DSCOMM_UINT8,
                               peer, TAG_TRIP)
                 : dscomm_recv(s->group, message, TRIP_BYTES, DSCOMM_UINT8,
                               peer, TAG_TRIP, NULL, NULL);
}

/* Sends a message to and fro; the rank that is first has the figure. */
static dscomm_status_t pair_measure_latency(state_t *s, int peer, bool is_first)
{
    figure_t *figure = &s->figures[s->rank * s->ranks + (guint)peer];
    double times[LATENCIES];
    dscomm_status_t status = DSCOMM_OK;

    for (guint i = 0; i < LATENCIES; i++) {
        const double start = topo_now();

        for (guint k = 0; k < TRIPS && status >= 0; k++) {
            status = token_pass(s, peer, is_first);
            if (status >= 0)
                status = token_pass(s, peer, !is_first);
        }
        times[i] = (topo_now() - start) / TRIPS / 2;
    }
    if (is_first)
        figure->latency =
            topo_median(times, LATENCIES, &figure->latency_spread);
    return status;
}

/* Measures one pair; the other ranks wait for the next one. */
static dscomm_status_t pair_measure(state_t *s, guint from, guint to)
{
    const bool is_first = s->rank == from;
    const int peer = (int)(is_first ? to : from);
    dscomm_status_t status = dscomm_barrier(s->group, NULL);

    if (status < 0 || (s->rank != from && s->rank != to))
        return status;
    status = pair_measure_latency(s, peer, is_first);
    if (status >= 0)
        status = pair_measure_copies(s, is_first ? peer : -1,
                                     is_first ? -1 : peer, TOPO_ALONE);
    if (status >= 0 && from < to)
        status = pair_measure_copies(s, peer, peer, TOPO_BOTH);
    return status;
}

static dscomm_status_t pairs_measure(state_t *s)
{
    dscomm_status_t status = DSCOMM_OK;

    for (guint i = 0; i < s->ranks * s->ranks && status >= 0; i++)
        if (i / s->ranks != i % s->ranks)
            status = pair_measure(s, i / s->ranks, i % s->ranks);
    for (guint step = 1; step < s->ranks && status >= 0; step++) {
        status = dscomm_barrier(s->group, NULL);
        if (status >= 0)
            status = pair_measure_copies(
                s, (int)((s->rank + step) % s->ranks),
                (int)((s->rank + s->ranks - step) % s->ranks), TOPO_TOGETHER);
    }
    return status;
}

/* How near another rank of the same host is. */
static topo_near_t place_near(const state_t *s, const place_t *own,
                              const place_t *other)
{
    hwloc_bitmap_t a, b;
    topo_near_t near = TOPO_NEAR_HOST;

    if (strcmp(own->where.host, other->where.host) != 0)
        return TOPO_NEAR_NETWORK;
    if (!s->topology || !own->has_core || !other->has_core)
        return TOPO_NEAR_HOST;
    a = hwloc_bitmap_alloc();
    b = hwloc_bitmap_alloc();
    hwloc_bitmap_sscanf(a, own->where.processors);
    hwloc_bitmap_sscanf(b, other->where.processors);
    near = topo_near(s->topology, a, b);
    hwloc_bitmap_free(a);
    hwloc_bitmap_free(b);
    return near == TOPO_NEAR_SELF ? TOPO_NEAR_SMT : near;
}

/* Fills the place of this rank. Its processors may have changed since the
 * topology was read, which may be NULL. */
static void place_fill(const dscomm_topology_t *topology, place_t *own)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    const bool known = topology && hwloc_get_cpubind(topology->hwloc, set,
                                                     HWLOC_CPUBIND_THREAD) == 0;

    tool_place_fill(&own->where, known ? set : NULL);
    own->has_core =
        known && dscomm_priv_topology_count_cores(topology, set) == 1;
    hwloc_bitmap_free(set);
}

/* Returns the warning that ranks share processors, or NULL; g_free(). */
static char *places_crowd(const place_t *all, guint ranks)
{
    tool_place_t *places = g_new(tool_place_t, ranks);
    char *text;

    for (guint i = 0; i < ranks; i++)
        places[i] = all[i].where;
    text = tool_crowd_text(places, (int)ranks);
    g_free(places);
    return text;
}

/* Fills the nearness of this rank's row, counts the ranks of its host, and has
 * all of rank 0's host count time from the same moment. */
static dscomm_status_t places_share(state_t *s, guint *ret_locals)
{
    place_t own = {.now = topo_now()}, *all = g_new0(place_t, s->ranks);
    dscomm_status_t status;

    place_fill(s->topology, &own);
    status =
        dscomm_all_gather(s->group, &own, all, sizeof own, DSCOMM_UINT8, NULL);
    *ret_locals = 0;
    s->begun = strcmp(all[0].where.host, own.where.host) ? own.now : all[0].now;
    for (guint i = 0; i < s->ranks && status >= 0; i++) {
        *ret_locals += !strcmp(all[i].where.host, own.where.host);
        s->figures[s->rank * s->ranks + i].near =
            i == s->rank ? (int)TOPO_NEAR_SELF
                         : (int)place_near(s, &own, &all[i]);
    }
    if (status >= 0)
        s->crowd = places_crowd(all, s->ranks);
    g_free(all);
    return status;
}

/* Allocates the tensors; all ranks learn whether all have them. */
static dscomm_status_t tensors_get(state_t *s, guint locals,
                                   topo_outcome_t *ret_outcome)
{
    const gsize bytes = topo_copies_bytes(s->copies);
    int enough = bytes * 2 * locals <= tool_memory_available() / 2;
    dscomm_status_t status;

    if (enough) {
        s->source = malloc(bytes);
        s->dest = malloc(bytes);
        enough = s->source && s->dest;
    }
    status = dscomm_all_reduce(s->group, &enough, &enough, 1, DSCOMM_INT32,
                               DSCOMM_MIN, NULL);
    *ret_outcome = enough ? TOPO_MEASURED : TOPO_NO_MEMORY;
    if (status >= 0 && enough)
        memset(s->source, topo_pattern(s->rank), bytes);
    return status;
}

/* Sends the slices of all ranks to rank 0. */
static dscomm_status_t slices_gather(state_t *s, topo_pairs_t *pairs)
{
    dscomm_status_t status = DSCOMM_OK;

    if (s->rank)
        return dscomm_send(s->group, s->slices->data,
                           s->slices->len * sizeof(topo_slice_t), DSCOMM_UINT8,
                           0, TAG_SLICES);
    g_array_append_vals(pairs->slices, s->slices->data, s->slices->len);
    for (guint i = 1; i < s->ranks && status >= 0; i++) {
        dscomm_message_info_t info = DSCOMM_MESSAGE_INFO_INIT;
        guint before = pairs->slices->len;

        status = dscomm_probe(s->group, (int)i, TAG_SLICES, -1, &info);
        if (status < 0)
            break;
        g_array_set_size(pairs->slices,
                         before + (guint)(info.bytes / sizeof(topo_slice_t)));
        status = dscomm_recv(
            s->group, &g_array_index(pairs->slices, topo_slice_t, before),
            info.bytes, DSCOMM_UINT8, (int)i, TAG_SLICES, NULL, NULL);
    }
    return status;
}

static topo_pairs_t *ranks_pairs(const state_t *s)
{
    char **names = g_new0(char *, s->ranks + 1);
    char *how = g_strdup_printf("messages of backend %s; latency of %d bytes",
                                dscomm_group_backend(s->group), TRIP_BYTES);
    topo_pairs_t *pairs;

    for (guint i = 0; i < s->ranks; i++)
        names[i] = g_strdup_printf("rank%u", i);
    pairs =
        topo_pairs_new("ranks", how, "see what else runs on their processors",
                       names, s->copies);
    pairs->crowd = g_strdup(s->crowd);
    g_free(how);
    return pairs;
}

/* Puts all rows together on rank 0. */
static dscomm_status_t pairs_gather(state_t *s, topo_pairs_t **ret_pairs)
{
    const size_t row = s->ranks * sizeof(figure_t);
    topo_pairs_t *pairs = s->rank ? NULL : ranks_pairs(s);
    dscomm_status_t status =
        dscomm_all_gather(s->group, &s->figures[s->rank * s->ranks], s->figures,
                          row, DSCOMM_UINT8, NULL);

    if (status >= 0)
        status = slices_gather(s, pairs);
    for (guint i = 0; pairs && i < s->ranks * s->ranks; i++) {
        memcpy(pairs->pairs[i].times, s->figures[i].times,
               sizeof pairs->pairs[i].times);
        memcpy(pairs->pairs[i].spreads, s->figures[i].spreads,
               sizeof pairs->pairs[i].spreads);
        pairs->pairs[i].latency = s->figures[i].latency;
        pairs->pairs[i].latency_spread = s->figures[i].latency_spread;
        pairs->pairs[i].path = topo_near_path((topo_near_t)s->figures[i].near);
    }
    if (status < 0)
        g_clear_pointer(&pairs, topo_pairs_free);
    *ret_pairs = pairs;
    return status;
}

/* All ranks learn whether one has received wrong bytes. */
static dscomm_status_t wrong_share(state_t *s, topo_outcome_t *ret_outcome)
{
    const dscomm_status_t status = dscomm_all_reduce(
        s->group, &s->wrong, &s->wrong, 1, DSCOMM_INT64, DSCOMM_SUM, NULL);

    *ret_outcome = s->wrong ? TOPO_WRONG : TOPO_MEASURED;
    return status;
}

static dscomm_status_t ranks_run(state_t *s, topo_outcome_t *ret_outcome,
                                 topo_pairs_t **ret_pairs)
{
    guint locals = 0;
    dscomm_status_t status = places_share(s, &locals);

    if (status >= 0)
        status = tensors_get(s, locals, ret_outcome);
    if (status < 0 || *ret_outcome != TOPO_MEASURED)
        return status;
    status = pairs_measure(s);
    if (status >= 0)
        status = wrong_share(s, ret_outcome);
    if (status < 0 || *ret_outcome != TOPO_MEASURED)
        return status;
    return pairs_gather(s, ret_pairs);
}

dscomm_status_t topo_ranks(dscomm_group_t *group,
                           const dscomm_topology_t *topology,
                           const topo_copies_t *copies,
                           topo_outcome_t *ret_outcome,
                           topo_pairs_t **ret_pairs)
{
    state_t s = {.group = group,
                 .topology = topology,
                 .copies = copies,
                 .rank = (guint)dscomm_group_rank(group),
                 .ranks = (guint)dscomm_group_size(group)};
    dscomm_status_t status;

    *ret_pairs = NULL;
    /* tensors and two tokens */
    s.sends.list = g_new0(dscomm_work_t *, (gsize)copies->tensors + 2);
    s.receives.list = g_new0(dscomm_work_t *, copies->tensors);
    s.figures = g_new0(figure_t, (gsize)s.ranks * s.ranks);
    s.slices = g_array_new(FALSE, FALSE, sizeof(topo_slice_t));
    status = ranks_run(&s, ret_outcome, ret_pairs);
    g_array_unref(s.slices);
    g_free(s.crowd);
    g_free(s.sends.list);
    g_free(s.receives.list);
    g_free(s.figures);
    free(s.source);
    free(s.dest);
    return status;
}
