/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages, see messages.h. */
#include "config.h"

#include "tools/perf/messages.h"
#include "tools/perf/operations.h"

dscomm_status_t perf_works_finish(dscomm_work_t **works, size_t count,
                                  dscomm_status_t status)
{
    if (status == DSCOMM_OK)
        status = dscomm_work_wait_all(works, count, DSCOMM_TIMEOUT_DEFAULT);
    for (size_t i = 0; i < count; i++)
        dscomm_work_free(works[i]);
    return status;
}

dscomm_status_t perf_latency(const perf_call_t *c, dscomm_work_t **work)
{
    dscomm_status_t status = DSCOMM_OK;

    (void)work;
    if (c->rank > 1)
        return DSCOMM_OK;
    if (c->rank == 0)
        status =
            dscomm_send(c->group, c->send, c->count, c->dtype, 1, PERF_TAG);
    if (status == DSCOMM_OK)
        status = dscomm_recv(c->group, c->recv, c->count, c->dtype, 1 - c->rank,
                             PERF_TAG, NULL, NULL);
    if (status == DSCOMM_OK && c->rank == 1)
        status =
            dscomm_send(c->group, c->send, c->count, c->dtype, 0, PERF_TAG);
    return status;
}

/* Sends many messages to partner if sends is true, else receives them. */
static dscomm_status_t run_window(const perf_call_t *c, int partner, bool sends)
{
    dscomm_work_t *works[PERF_WINDOW] = {NULL};
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < PERF_WINDOW && status == DSCOMM_OK; i++)
        status = sends ? dscomm_isend(c->group, c->send, c->count, c->dtype,
                                      partner, PERF_TAG, &works[i])
                       : dscomm_irecv(c->group, c->recv, c->count, c->dtype,
                                      partner, PERF_TAG, &works[i]);
    return perf_works_finish(works, PERF_WINDOW, status);
}

/* Sends, or receives, many messages and one answer. */
static dscomm_status_t run_one_way(const perf_call_t *c, int partner,
                                   bool sends)
{
    dscomm_status_t status = run_window(c, partner, sends);
    char answer = 1;

    if (status != DSCOMM_OK)
        return status;
    if (sends)
        return dscomm_recv(c->group, &answer, 1, DSCOMM_INT8, partner, PERF_TAG,
                           NULL, NULL);
    return dscomm_send(c->group, &answer, 1, DSCOMM_INT8, partner, PERF_TAG);
}

dscomm_status_t perf_bandwidth(const perf_call_t *c, dscomm_work_t **work)
{
    (void)work;
    if (c->rank > 1)
        return DSCOMM_OK;
    return run_one_way(c, 1 - c->rank, c->rank == 0);
}

dscomm_status_t perf_multi_pair(const perf_call_t *c, dscomm_work_t **work)
{
    const int partner = perf_partner(c);

    (void)work;
    return partner < 0 ? DSCOMM_OK : run_one_way(c, partner, c->rank < partner);
}

/* Exchanges so many messages with the partner. */
static dscomm_status_t exchange(const perf_call_t *c, int window)
{
    dscomm_work_t *works[2 * PERF_WINDOW_LONG] = {NULL};
    const int partner = perf_partner(c);
    dscomm_status_t status = DSCOMM_OK;

    if (partner < 0)
        return DSCOMM_OK;
    for (int i = 0; i < window && status == DSCOMM_OK; i++)
        status = dscomm_irecv(c->group, c->recv, c->count, c->dtype, partner,
                              PERF_TAG, &works[i]);
    for (int i = 0; i < window && status == DSCOMM_OK; i++)
        status = dscomm_isend(c->group, c->send, c->count, c->dtype, partner,
                              PERF_TAG, &works[window + i]);
    return perf_works_finish(works, 2 * (size_t)window, status);
}

dscomm_status_t perf_bidirectional(const perf_call_t *c, dscomm_work_t **work)
{
    (void)work;
    return exchange(c, PERF_WINDOW);
}

dscomm_status_t perf_many_messages(const perf_call_t *c, dscomm_work_t **work)
{
    (void)work;
    return exchange(c, PERF_WINDOW_LONG);
}

int perf_partner(const perf_call_t *call)
{
    const int half = call->ranks / 2;

    if (call->rank >= 2 * half)
        return -1;
    return call->rank < half ? call->rank + half : call->rank - half;
}
