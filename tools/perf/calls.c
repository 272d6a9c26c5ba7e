/* SPDX-License-Identifier: BSD-3-Clause */
/* One function an operation, see perf-calls.h. */
#include "config.h"

#include "tools/perf/calls.h"

#include <string.h>

#define TAG 7

dscomm_status_t perf_run_all_reduce(const perf_call_t *c, dscomm_work_t **work)
{
    return dscomm_all_reduce(c->group, c->send, c->recv, c->count, c->dtype,
                             c->op, work);
}

dscomm_status_t perf_run_all_reduce_premul(const perf_call_t *c,
                                           dscomm_work_t **work)
{
    return dscomm_all_reduce_premul_sum(c->group, c->send, c->recv, c->count,
                                        c->dtype, c->factor, work);
}

dscomm_status_t perf_run_reduce(const perf_call_t *c, dscomm_work_t **work)
{
    return dscomm_reduce(c->group, c->send, c->recv, c->count, c->dtype, c->op,
                         c->root, work);
}

dscomm_status_t perf_run_reduce_premul(const perf_call_t *c,
                                       dscomm_work_t **work)
{
    return dscomm_reduce_premul_sum(c->group, c->send, c->recv, c->count,
                                    c->dtype, c->factor, c->root, work);
}

dscomm_status_t perf_run_reduce_scatter(const perf_call_t *c,
                                        dscomm_work_t **work)
{
    return dscomm_reduce_scatter(c->group, c->send, c->recv, c->count, c->dtype,
                                 c->op, work);
}

dscomm_status_t perf_run_reduce_scatter_premul(const perf_call_t *c,
                                               dscomm_work_t **work)
{
    return dscomm_reduce_scatter_premul_sum(
        c->group, c->send, c->recv, c->count, c->dtype, c->factor, work);
}

dscomm_status_t perf_run_reduce_scatter_v(const perf_call_t *c,
                                          dscomm_work_t **work)
{
    return dscomm_reduce_scatter_v(c->group, c->send, c->recv, c->recv_counts,
                                   c->dtype, c->op, work);
}

dscomm_status_t perf_run_broadcast(const perf_call_t *c, dscomm_work_t **work)
{
    return dscomm_broadcast(c->group, c->recv, c->count, c->dtype, c->root,
                            work);
}

dscomm_status_t perf_run_broadcast_blob(const perf_call_t *c,
                                        dscomm_work_t **work)
{
    void *blob;
    size_t size;
    dscomm_status_t status = dscomm_broadcast_blob(
        c->group, c->send, c->total * c->size, c->root, &blob, &size);

    (void)work;
    if (status != DSCOMM_OK)
        return status;
    if (c->keep && size == c->total * c->size)
        memcpy(c->keep, blob, size);
    dscomm_blob_free(blob);
    return DSCOMM_OK;
}

dscomm_status_t perf_run_all_gather(const perf_call_t *c, dscomm_work_t **work)
{
    return dscomm_all_gather(c->group, c->send, c->recv, c->count, c->dtype,
                             work);
}

dscomm_status_t perf_run_all_gather_v(const perf_call_t *c,
                                      dscomm_work_t **work)
{
    return dscomm_all_gather_v(c->group, c->send, c->recv_counts[c->rank],
                               c->recv, c->recv_counts, c->recv_displs,
                               c->dtype, work);
}

/* The lengths go where a _v call would put what is received. */
dscomm_status_t perf_run_all_gather_blob(const perf_call_t *c,
                                         dscomm_work_t **work)
{
    void *blob;
    size_t size = 0;
    dscomm_status_t status = dscomm_all_gather_blob(
        c->group, c->send, c->send_counts[c->rank] * c->size, &blob,
        c->recv_displs);

    (void)work;
    if (status != DSCOMM_OK)
        return status;
    for (int i = 0; i < c->ranks; i++)
        size += c->recv_displs[i];
    if (c->keep && size == c->total * c->size)
        memcpy(c->keep, blob, size);
    dscomm_blob_free(blob);
    return DSCOMM_OK;
}

dscomm_status_t perf_run_gather(const perf_call_t *c, dscomm_work_t **work)
{
    return dscomm_gather(c->group, c->send, c->recv, c->count, c->dtype,
                         c->root, work);
}

dscomm_status_t perf_run_gather_v(const perf_call_t *c, dscomm_work_t **work)
{
    return dscomm_gather_v(c->group, c->send, c->recv_counts[c->rank], c->recv,
                           c->recv_counts, c->recv_displs, c->dtype, c->root,
                           work);
}

dscomm_status_t perf_run_scatter(const perf_call_t *c, dscomm_work_t **work)
{
    return dscomm_scatter(c->group, c->send, c->recv, c->count, c->dtype,
                          c->root, work);
}

dscomm_status_t perf_run_scatter_v(const perf_call_t *c, dscomm_work_t **work)
{
    return dscomm_scatter_v(c->group, c->send, c->send_counts, c->send_displs,
                            c->recv, c->send_counts[c->rank], c->dtype, c->root,
                            work);
}

dscomm_status_t perf_run_all_to_all(const perf_call_t *c, dscomm_work_t **work)
{
    return dscomm_all_to_all(c->group, c->send, c->recv, c->count, c->dtype,
                             work);
}

dscomm_status_t perf_run_all_to_all_v(const perf_call_t *c,
                                      dscomm_work_t **work)
{
    return dscomm_all_to_all_v(c->group, c->send, c->send_counts,
                               c->send_displs, c->recv, c->recv_counts,
                               c->recv_displs, c->dtype, work);
}

dscomm_status_t perf_run_barrier(const perf_call_t *c, dscomm_work_t **work)
{
    return dscomm_barrier(c->group, work);
}

dscomm_status_t perf_run_monitored_barrier(const perf_call_t *c,
                                           dscomm_work_t **work)
{
    (void)work;
    return dscomm_monitored_barrier(c->group, DSCOMM_TIMEOUT_DEFAULT);
}

/* Waits for all and frees them; NULL entries were never started. */
static dscomm_status_t finish(dscomm_work_t **works, size_t count,
                              dscomm_status_t status)
{
    if (status == DSCOMM_OK)
        status = dscomm_work_wait_all(works, count, DSCOMM_TIMEOUT_DEFAULT);
    for (size_t i = 0; i < count; i++)
        dscomm_work_free(works[i]);
    return status;
}

dscomm_status_t perf_run_sendrecv(const perf_call_t *c, dscomm_work_t **work)
{
    dscomm_work_t *works[2] = {NULL, NULL};
    int next = (c->rank + 1) % c->ranks;
    int previous = (c->rank + c->ranks - 1) % c->ranks;
    dscomm_status_t status = dscomm_irecv(c->group, c->recv, c->count, c->dtype,
                                          previous, TAG, &works[0]);

    (void)work;
    if (status == DSCOMM_OK)
        status = dscomm_isend(c->group, c->send, c->count, c->dtype, next, TAG,
                              &works[1]);
    return finish(works, 2, status);
}

dscomm_status_t perf_run_latency(const perf_call_t *c, dscomm_work_t **work)
{
    dscomm_status_t status = DSCOMM_OK;

    (void)work;
    if (c->rank > 1)
        return DSCOMM_OK;
    if (c->rank == 0)
        status = dscomm_send(c->group, c->send, c->count, c->dtype, 1, TAG);
    if (status == DSCOMM_OK)
        status = dscomm_recv(c->group, c->recv, c->count, c->dtype, 1 - c->rank,
                             TAG, NULL, NULL);
    if (status == DSCOMM_OK && c->rank == 1)
        status = dscomm_send(c->group, c->send, c->count, c->dtype, 0, TAG);
    return status;
}

static dscomm_status_t run_window(const perf_call_t *c)
{
    dscomm_work_t *works[PERF_WINDOW] = {NULL};
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < PERF_WINDOW && status == DSCOMM_OK; i++)
        status = c->rank == 0 ? dscomm_isend(c->group, c->send, c->count,
                                             c->dtype, 1, TAG, &works[i])
                              : dscomm_irecv(c->group, c->recv, c->count,
                                             c->dtype, 0, TAG, &works[i]);
    return finish(works, PERF_WINDOW, status);
}

dscomm_status_t perf_run_bandwidth(const perf_call_t *c, dscomm_work_t **work)
{
    dscomm_status_t status;
    char answer = 1;

    (void)work;
    if (c->rank > 1)
        return DSCOMM_OK;
    status = run_window(c);
    if (status != DSCOMM_OK)
        return status;
    if (c->rank == 0)
        return dscomm_recv(c->group, &answer, 1, DSCOMM_INT8, 1, TAG, NULL,
                           NULL);
    return dscomm_send(c->group, &answer, 1, DSCOMM_INT8, 0, TAG);
}
