/* SPDX-License-Identifier: BSD-3-Clause */
/* A collective as data, for tests that make many of them alike. */
#ifndef TESTS_COLLECTIVE_H
#define TESTS_COLLECTIVE_H

#include <dscomm/dscomm.h>

typedef struct {
    int coll; /* dscomm_coll_t */
    const void *send;
    void *recv; /* of a broadcast: the buffer */
    size_t count; /* _v: what this rank sends, in scatter_v what it gets */
    /* _v: for each rank; reduce_scatter_v has send_counts */
    const size_t *send_counts, *send_displs, *recv_counts, *recv_displs;
    dscomm_dtype_t dtype;
    dscomm_op_t op;
    int root;
    double factor; /* of PREMUL_SUM */
} collective_t;

static inline dscomm_status_t collective_premul(dscomm_group_t *group,
                                                const collective_t *c,
                                                dscomm_work_t **work)
{
    if (c->coll == DSCOMM_COLL_REDUCE)
        return dscomm_reduce_premul_sum(group, c->send, c->recv, c->count,
                                        c->dtype, c->factor, c->root, work);
    if (c->coll == DSCOMM_COLL_ALL_REDUCE)
        return dscomm_all_reduce_premul_sum(group, c->send, c->recv, c->count,
                                            c->dtype, c->factor, work);
    return dscomm_reduce_scatter_premul_sum(group, c->send, c->recv, c->count,
                                            c->dtype, c->factor, work);
}

/* Makes the call. work as in the call: NULL blocks. */
static inline dscomm_status_t collective_call(dscomm_group_t *group,
                                              const collective_t *c,
                                              dscomm_work_t **work)
{
    const dscomm_dtype_t dtype = c->dtype;
    const void *send = c->send;
    void *recv = c->recv;

    if (c->op == DSCOMM_PREMUL_SUM)
        return collective_premul(group, c, work);
    switch (c->coll) {
    case DSCOMM_COLL_BROADCAST:
        return dscomm_broadcast(group, recv, c->count, dtype, c->root, work);
    case DSCOMM_COLL_REDUCE:
        return dscomm_reduce(group, send, recv, c->count, dtype, c->op, c->root,
                             work);
    case DSCOMM_COLL_ALL_REDUCE:
        return dscomm_all_reduce(group, send, recv, c->count, dtype, c->op,
                                 work);
    case DSCOMM_COLL_ALL_GATHER:
        return dscomm_all_gather(group, send, recv, c->count, dtype, work);
    case DSCOMM_COLL_ALL_GATHER_V:
        return dscomm_all_gather_v(group, send, c->count, recv, c->recv_counts,
                                   c->recv_displs, dtype, work);
    case DSCOMM_COLL_REDUCE_SCATTER:
        return dscomm_reduce_scatter(group, send, recv, c->count, dtype, c->op,
                                     work);
    case DSCOMM_COLL_REDUCE_SCATTER_V:
        return dscomm_reduce_scatter_v(group, send, recv, c->send_counts, dtype,
                                       c->op, work);
    case DSCOMM_COLL_GATHER:
        return dscomm_gather(group, send, recv, c->count, dtype, c->root, work);
    case DSCOMM_COLL_GATHER_V:
        return dscomm_gather_v(group, send, c->count, recv, c->recv_counts,
                               c->recv_displs, dtype, c->root, work);
    case DSCOMM_COLL_SCATTER:
        return dscomm_scatter(group, send, recv, c->count, dtype, c->root,
                              work);
    case DSCOMM_COLL_SCATTER_V:
        return dscomm_scatter_v(group, send, c->send_counts, c->send_displs,
                                recv, c->count, dtype, c->root, work);
    case DSCOMM_COLL_ALL_TO_ALL:
        return dscomm_all_to_all(group, send, recv, c->count, dtype, work);
    case DSCOMM_COLL_ALL_TO_ALL_V:
        return dscomm_all_to_all_v(group, send, c->send_counts, c->send_displs,
                                   recv, c->recv_counts, c->recv_displs, dtype,
                                   work);
    default:
        return dscomm_barrier(group, work);
    }
}

#endif
