/* SPDX-License-Identifier: BSD-3-Clause */
/* A schedule that is cancelled while its transport keeps the buffers. */
#include "config.h"

#include "lib/call/check.h"
#include "lib/schedule/cache.h"
#include "tests/lib/schedule/find.h"
#include "tests/tap.h"

#include <stdlib.h>

static int keeps; /* what cancel says */

static dscomm_status_t post(void *impl, const dscomm_message_t *message,
                            dscomm_request_t *request)
{
    (void)impl, (void)message, (void)request;
    return DSCOMM_OK;
}

static void cancel(void *impl, dscomm_request_t *request)
{
    (void)impl;
    request->held = keeps;
}

static const dscomm_backend_ops_t ops = {
    .size = sizeof ops,
    .request_size = sizeof(dscomm_request_t),
    .isend = post,
    .irecv = post,
    .cancel = cancel,
};

/* Returns whether the next run uses the memory of a cancelled one. */
static int is_reused(void)
{
    static int32_t send[100], recv[100];
    const dscomm_port_t port = {&ops, NULL, "wire", NULL, NULL};
    const dscomm_coll_args_t args = {
        .coll = DSCOMM_COLL_ALL_REDUCE,
        .dtype = DSCOMM_INT32,
        .op = DSCOMM_SUM,
        .root = -1,
        .count = 100,
        .element = sizeof *send,
        .send = send,
        .recv = recv,
        .sequence = 1,
        .fingerprint = dscomm_priv_fingerprint(
            DSCOMM_COLL_ALL_REDUCE, DSCOMM_INT32, DSCOMM_SUM, -1, 100),
    };
    dscomm_schedule_cache_t *cache = dscomm_priv_cache_new(&port, 0, 4, NULL);
    dscomm_run_t *run = dscomm_priv_cache_take(
        cache, find_algorithm(DSCOMM_COLL_ALL_REDUCE, "recursive_doubling"),
        &args);
    void *scratch = run->base[AT_SCRATCH];
    int reused;

    dscomm_priv_run_start(run, &args);
    dscomm_priv_run_cancel(run, DSCOMM_ERR_TIMEOUT);
    dscomm_priv_cache_give(cache, run);
    run = dscomm_priv_cache_take(
        cache, find_algorithm(DSCOMM_COLL_ALL_REDUCE, "recursive_doubling"),
        &args);
    reused = run->base[AT_SCRATCH] == scratch;
    dscomm_priv_cache_give(cache, run);
    dscomm_priv_cache_free(cache);
    if (!reused)
        free(scratch); /* this transport does not use it */
    return reused;
}

int main(void)
{
    ok(is_reused(), "what the transport gives back is used again");
    keeps = 1;
    ok(!is_reused(), "what it keeps is not");
    return tap_done();
}
