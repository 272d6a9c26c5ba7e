/* SPDX-License-Identifier: BSD-3-Clause */
/* Sequences of two collectives, see sequences.h. The second one works in place
 * on the result of the first, so no sequence needs a buffer that the collective
 * of the same result does not need.
 *
 * Elements that cannot be divided equally among the ranks are divided as
 * equally as possible, and the _v forms are called. */
#include "config.h"

#include "tools/perf/operations.h"
#include "tools/perf/sequences.h"

#include <stdbool.h>

dscomm_status_t perf_reduce_broadcast(const perf_call_t *c,
                                      dscomm_work_t **work)
{
    dscomm_status_t status = dscomm_reduce(c->group, c->send, c->recv, c->count,
                                           c->dtype, c->op, c->root, NULL);

    (void)work;
    if (status != DSCOMM_OK)
        return status;
    return dscomm_broadcast(c->group, c->recv, c->count, c->dtype, c->root,
                            NULL);
}

/* Returns this rank's part of the receive buffer. */
static char *own_part(const perf_call_t *c)
{
    return (char *)c->recv + c->displs[c->rank] * c->size;
}

/* Collects the parts of the receive buffer on all ranks. */
static dscomm_status_t gather_parts(const perf_call_t *c)
{
    const size_t own = c->counts[c->rank];

    if (c->count % (size_t)c->ranks == 0)
        return dscomm_all_gather(c->group, own_part(c), c->recv, own, c->dtype,
                                 NULL);
    return dscomm_all_gather_v(c->group, own_part(c), own, c->recv, c->counts,
                               c->displs, c->dtype, NULL);
}

dscomm_status_t perf_reduce_scatter_all_gather(const perf_call_t *c,
                                               dscomm_work_t **work)
{
    dscomm_status_t status;

    (void)work;
    if (c->count % (size_t)c->ranks == 0)
        status =
            dscomm_reduce_scatter(c->group, c->send, own_part(c),
                                  c->counts[c->rank], c->dtype, c->op, NULL);
    else
        status = dscomm_reduce_scatter_v(c->group, c->send, own_part(c),
                                         c->counts, c->dtype, c->op, NULL);
    return status == DSCOMM_OK ? gather_parts(c) : status;
}

dscomm_status_t perf_gather_broadcast(const perf_call_t *c,
                                      dscomm_work_t **work)
{
    dscomm_status_t status = dscomm_gather(c->group, c->send, c->recv, c->count,
                                           c->dtype, c->root, NULL);

    (void)work;
    if (status != DSCOMM_OK)
        return status;
    return dscomm_broadcast(c->group, c->recv, c->total, c->dtype, c->root,
                            NULL);
}

dscomm_status_t perf_scatter_all_gather(const perf_call_t *c,
                                        dscomm_work_t **work)
{
    const size_t own = c->counts[c->rank];
    dscomm_status_t status;

    (void)work;
    if (c->count % (size_t)c->ranks == 0)
        status = dscomm_scatter(c->group, c->recv, own_part(c), own, c->dtype,
                                c->root, NULL);
    else
        status = dscomm_scatter_v(c->group, c->recv, c->counts, c->displs,
                                  own_part(c), own, c->dtype, c->root, NULL);
    return status == DSCOMM_OK ? gather_parts(c) : status;
}

dscomm_coll_t perf_coll_v(dscomm_coll_t coll)
{
    switch (coll) {
    case DSCOMM_COLL_REDUCE_SCATTER:
        return DSCOMM_COLL_REDUCE_SCATTER_V;
    case DSCOMM_COLL_ALL_GATHER:
        return DSCOMM_COLL_ALL_GATHER_V;
    case DSCOMM_COLL_GATHER:
        return DSCOMM_COLL_GATHER_V;
    case DSCOMM_COLL_SCATTER:
        return DSCOMM_COLL_SCATTER_V;
    default:
        return coll;
    }
}

static const struct {
    perf_call_fn run;
    dscomm_coll_t parts[2];
} sequences[] = {
    {perf_reduce_broadcast, {DSCOMM_COLL_REDUCE, DSCOMM_COLL_BROADCAST}},
    {perf_reduce_scatter_all_gather,
     {DSCOMM_COLL_REDUCE_SCATTER, DSCOMM_COLL_ALL_GATHER}},
    {perf_gather_broadcast, {DSCOMM_COLL_GATHER, DSCOMM_COLL_BROADCAST}},
    {perf_scatter_all_gather, {DSCOMM_COLL_SCATTER, DSCOMM_COLL_ALL_GATHER}},
};

const dscomm_coll_t *perf_parts(const perf_operation_t *operation)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sequences); i++)
        if (sequences[i].run == operation->run)
            return sequences[i].parts;
    return NULL;
}

static bool is_whole(dscomm_coll_t coll)
{
    return coll == DSCOMM_COLL_REDUCE || coll == DSCOMM_COLL_BROADCAST;
}

/* The first call, from the send buffer, or from the root's receive buffer. */
static perf_part_t first_part(const perf_call_t *c, dscomm_coll_t coll)
{
    perf_part_t part = {.coll = coll, .send = c->send, .recv = c->recv};

    if (coll == DSCOMM_COLL_SCATTER)
        part.send = c->recv;
    if (coll == DSCOMM_COLL_SCATTER || coll == DSCOMM_COLL_REDUCE_SCATTER)
        part.recv = own_part(c);
    return part;
}

static perf_part_t second_part(const perf_call_t *c, dscomm_coll_t coll)
{
    return (perf_part_t){.coll = coll,
                         .send = is_whole(coll) ? c->recv : own_part(c),
                         .recv = c->recv};
}

perf_part_t perf_part(const perf_call_t *c, int number)
{
    const dscomm_coll_t *colls = perf_parts(c->operation);
    const size_t ranks = (size_t)c->ranks;
    perf_part_t part;

    if (!colls)
        return (perf_part_t){
            (dscomm_coll_t)c->operation->coll,
            c->operation->coll == DSCOMM_COLL_BROADCAST ? c->recv : c->send,
            c->recv, c->count};
    part = number ? second_part(c, colls[1]) : first_part(c, colls[0]);
    part.count = is_whole(part.coll) ? c->total : c->total / ranks;
    if (!is_whole(part.coll) && c->total % ranks)
        part.coll = perf_coll_v(part.coll);
    return part;
}
