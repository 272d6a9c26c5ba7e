/* SPDX-License-Identifier: BSD-3-Clause */
/* The header of a message that is partly received by an early receive when its
 * step begins. */
#include "config.h"

#include "lib/call/check.h"
#include "lib/schedule/early.h"
#include "tests/lib/schedule/find.h"
#include "tests/tap.h"

#include <string.h>

/* A transport on which only the test makes things happen. */
typedef struct {
    dscomm_message_t message;
    dscomm_request_t *request;
    int ended, cancelled;
} posted_t;

static posted_t posted[16];
static int nposted;

static dscomm_status_t post(void *impl, const dscomm_message_t *message,
                            dscomm_request_t *request)
{
    (void)impl;
    posted[nposted++] = (posted_t){*message, request, 0, 0};
    return DSCOMM_OK;
}

static void cancel(void *impl, dscomm_request_t *request)
{
    (void)impl;
    for (int i = 0; i < nposted; i++)
        if (posted[i].request == request && !posted[i].ended)
            posted[i].ended = posted[i].cancelled = 1;
}

static const dscomm_backend_ops_t ops = {
    .size = sizeof ops,
    .request_size = sizeof(dscomm_request_t),
    .isend = post,
    .irecv = post,
    .cancel = cancel,
};

/* Counts the requests with peer, and those that were cancelled. */
static void count_posted(int receive, int peer, int *ret_all, int *ret_cancels)
{
    *ret_all = *ret_cancels = 0;
    for (int i = 0; i < nposted; i++)
        if (posted[i].message.peer == peer &&
            (posted[i].message.recv != NULL) == receive) {
            ++*ret_all;
            *ret_cancels += posted[i].cancelled;
        }
}

/* Delivers peer's header and value, and receives this rank's. */
static void arrive(const dscomm_run_t *run, int peer, int32_t value)
{
    dscomm_header_t header = run->schedule->header;

    header.total = sizeof value;
    header.chain = run->chain;
    for (int i = 0; i < nposted; i++) {
        posted_t *p = &posted[i];
        char *to = p->message.recv;

        if (p->message.peer != peer || p->ended)
            continue;
        if (to) {
            size_t head = dscomm_priv_header_put(to, &header);

            memcpy(to + head, &value, sizeof value);
            p->request->bytes = head + sizeof value;
        }
        p->ended = 1;
        p->request->status = DSCOMM_OK;
    }
}

/* Rank 0 of 4, which exchanges with rank 1 and then with rank 2, posts early
 * receives from all others in its first round. Then rank 1's message comes. */
static void begin(dscomm_run_t *run, const dscomm_coll_args_t *args)
{
    nposted = 0;
    dscomm_priv_run_start(run, args);
    dscomm_priv_early_begin(run);
    arrive(run, 1, 7);
    dscomm_priv_run_advance(run);
}

/* An early receive whose message may be arriving when its step begins is not
 * cancelled, which could lose the message, and no second receive is posted. */
static void test_halfway(void)
{
    int32_t send = 5, recv = 0;
    int all, cancels;
    const dscomm_port_t port = {&ops, NULL, "wire", NULL, NULL};
    const dscomm_coll_args_t args = {
        .coll = DSCOMM_COLL_ALL_REDUCE,
        .dtype = DSCOMM_INT32,
        .op = DSCOMM_SUM,
        .root = -1,
        .count = 1,
        .element = sizeof send,
        .send = &send,
        .recv = &recv,
        .sequence = 1,
        .fingerprint = dscomm_priv_fingerprint(DSCOMM_COLL_ALL_REDUCE,
                                               DSCOMM_INT32, DSCOMM_SUM, -1, 1),
    };
    dscomm_schedule_t *schedule = dscomm_priv_schedule_new(
        find_algorithm(DSCOMM_COLL_ALL_REDUCE, "recursive_doubling"), &args, 0,
        4, NULL, NULL);
    dscomm_run_t *run = dscomm_priv_run_new(schedule, &port);

    begin(run, &args);
    count_posted(1, 2, &all, &cancels);
    ok(all == 1 && !cancels, "one receive from rank 2 (%d, %d)", all, cancels);
    count_posted(0, 2, &all, &cancels);
    is_int(all, 1, "whose turn has come");
    arrive(run, 2, 30);
    dscomm_priv_run_advance(run);
    is_int(run->status, DSCOMM_OK, "all has come");
    is_int(recv, 42, "and is right");
    count_posted(1, 3, &all, &cancels);
    ok(all == 1 && cancels == 1, "rank 3 is not listened to any more");
    begin(run, &args);
    dscomm_priv_run_cancel(run, DSCOMM_ERR_ABORTED);
    for (int i = all = 0; i < nposted; i++)
        all += !posted[i].ended;
    is_int(all, 0, "cancelled halfway: nothing is left");
    dscomm_priv_run_free(run);
    dscomm_priv_schedule_free(schedule);
}

int main(void)
{
    test_halfway();
    return tap_done();
}
