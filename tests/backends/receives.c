/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives of messages that may never come. */
#include "config.h"

#include "tests/backends/conform.h"

#include <stdlib.h>
#include <string.h>

#define DEADLINE_MS 600 /* or more, see conform_group_within() */
#define LONG_MS 20000 /* no test needs more */

/* Makes a group of all ranks whose deadline passes soon: *ret_ms. */
static dscomm_group_t *short_lived_group(int *ret_ms)
{
    *ret_ms = DEADLINE_MS;
    return conform_group_within(ret_ms);
}

/* The group's deadline applies to a work that is tested, and never waited
 * for. */
static void test_polled(void)
{
    int deadline_ms;
    dscomm_group_t *group = short_lived_group(&deadline_ms);
    dscomm_status_t status = DSCOMM_IN_PROGRESS;
    dscomm_work_t *work = NULL;
    double start = conform_now_ms();
    int32_t in;

    if (!group)
        return;
    CHECK_OK(dscomm_irecv(group, &in, 1, DSCOMM_INT32, prev_rank(), 1, &work));
    while (status == DSCOMM_IN_PROGRESS && conform_now_ms() - start < LONG_MS) {
        status = dscomm_work_test(work);
        conform_pause(1);
    }
    check_status(status, DSCOMM_ERR_TIMEOUT, "a receive that is only tested");
    check(conform_now_ms() - start > deadline_ms / 2.0, "%.0f ms",
          conform_now_ms() - start);
    dscomm_work_free(work);
    CHECK_OK(dscomm_group_free(group));
}

/* Returns whether the backend can withdraw receives; if it cannot, checks that
 * it says so. */
static int can_withdraw(void)
{
    dscomm_status_t status;
    int32_t in;

    status = dscomm_recv_within(my.group, &in, 1, DSCOMM_INT32, prev_rank(), 9,
                                0, NULL);
    if (status != DSCOMM_ERR_UNSUPPORTED)
        return check_status(status, DSCOMM_ERR_TIMEOUT, "nothing was sent");
    check_sentence("cannot take back a receive", "recv_within");
    conform_skip("the backend cannot take back a receive");
    return 0;
}

static void send_number(dscomm_group_t *group, int dest, int tag, int32_t value)
{
    dscomm_work_t *work = NULL;

    CHECK_OK(dscomm_isend(group, &value, 1, DSCOMM_INT32, dest, tag, &work));
    CHECK_OK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(work);
}

/* Nothing arrives in time: the group goes on, and a later message is kept. */
static void test_own_deadline(void)
{
    dscomm_message_info_t info = DSCOMM_MESSAGE_INFO_INIT;
    dscomm_work_t *work = NULL;
    int32_t in = 0, out = my.rank;
    double start;

    if (!can_withdraw())
        return;
    start = conform_now_ms();
    CHECK_FAILS(dscomm_recv_within(my.group, &in, 1, DSCOMM_INT32, prev_rank(),
                                   1, 80, &info),
                DSCOMM_ERR_TIMEOUT);
    check(conform_now_ms() - start > 60, "80 ms took %.1f",
          conform_now_ms() - start);
    check_sentence("the group goes on", "a receive's own deadline");
    CHECK_OK(dscomm_group_status(my.group));
    CHECK_OK(dscomm_barrier(my.group, NULL));
    CHECK_OK(
        dscomm_isend(my.group, &out, 1, DSCOMM_INT32, next_rank(), 1, &work));
    CHECK_OK(dscomm_recv_within(my.group, &in, 1, DSCOMM_INT32, prev_rank(),
                                DSCOMM_ANY_TAG, LONG_MS, &info));
    check(in == prev_rank() && info.source == prev_rank() && info.tag == 1 &&
              info.bytes == 4 && info.status == DSCOMM_OK,
          "%d from rank %d with tag %d, %zu bytes", in, info.source, info.tag,
          info.bytes);
    CHECK_OK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(work);
}

/* For a message that is too long, the tag and the whole length are reported. */
static void test_info_truncated(void)
{
    dscomm_message_info_t info = DSCOMM_MESSAGE_INFO_INIT;
    dscomm_work_t *work = NULL;
    int32_t out[3] = {1, 2, 3}, in = 0;

    CHECK_OK(
        dscomm_isend(my.group, out, 3, DSCOMM_INT32, next_rank(), 77, &work));
    CHECK_FAILS(dscomm_recv_within(my.group, &in, 1, DSCOMM_INT32, prev_rank(),
                                   DSCOMM_ANY_TAG, DSCOMM_TIMEOUT_NONE, &info),
                DSCOMM_ERR_TRUNCATED);
    check(in == 1 && info.tag == 77 && info.bytes == 12 &&
              info.status == DSCOMM_ERR_TRUNCATED,
          "%d, tag %d, %zu bytes", in, info.tag, info.bytes);
    CHECK_OK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(work);
    info.size = 1;
    CHECK_FAILS(dscomm_recv_within(my.group, &in, 1, DSCOMM_INT32, prev_rank(),
                                   1, 0, &info),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_recv_within(my.group, &in, 1, DSCOMM_INT32, prev_rank(),
                                   1, -3, NULL),
                DSCOMM_ERR_INVALID);
}

/* A server is idle for longer than its group's deadline: in a blocking call, or
 * with a work that it tests. */
static void run_idle(int blocking)
{
    int deadline_ms;
    dscomm_group_t *group = short_lived_group(&deadline_ms);
    dscomm_status_t status = DSCOMM_IN_PROGRESS;
    dscomm_work_t *work = NULL;
    double start = conform_now_ms();
    int32_t in = -1;

    if (!group)
        return;
    if (my.rank != my.ranks - 1 || my.ranks == 1) {
        conform_pause(2 * deadline_ms);
        send_number(group, next_rank(), 5, my.rank);
    }
    if (blocking && my.rank) {
        status = dscomm_recv_within(group, &in, 1, DSCOMM_INT32, prev_rank(), 5,
                                    DSCOMM_TIMEOUT_NONE, NULL);
    } else if (my.rank) {
        CHECK_OK(
            dscomm_irecv(group, &in, 1, DSCOMM_INT32, prev_rank(), 5, &work));
        CHECK_OK(dscomm_work_set_timeout(work, DSCOMM_TIMEOUT_NONE));
        while (status == DSCOMM_IN_PROGRESS &&
               conform_now_ms() - start < LONG_MS + 2 * deadline_ms) {
            status = dscomm_work_test(work);
            conform_pause(1);
        }
        dscomm_work_free(work);
    }
    check(!my.rank || (status == DSCOMM_OK && in == prev_rank()),
          "%s, got %d: %s", dscomm_status_name(status), in,
          dscomm_last_error());
    CHECK_OK(dscomm_group_status(group));
    CHECK_OK(dscomm_barrier(my.group, NULL));
    CHECK_OK(dscomm_group_free(group));
}

static void test_idle(void)
{
    if (my.ranks == 1) {
        conform_skip("needs 2 ranks");
        return;
    }
    run_idle(1);
    run_idle(0);
}

/* The sender stalls in the middle of a message: it makes no call from before
 * the receive begins until the receiver has given up. Otherwise a receiver that
 * takes the message during the sending call would get all of it. */
static void send_half(dscomm_group_t *group, const void *out, size_t bytes)
{
    dscomm_work_t *work = NULL;
    double start = conform_now_ms();

    CHECK_OK(
        dscomm_isend(group, out, bytes, DSCOMM_UINT8, next_rank(), 6, &work));
    conform_notify(1);
    while (dscomm_group_status(group) == DSCOMM_OK &&
           conform_now_ms() - start < LONG_MS)
        conform_pause(5);
    check_status(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT),
                 DSCOMM_ERR_TIMEOUT, "the sender");
    dscomm_work_free(work);
}

static void receive_half(dscomm_group_t *group, void *in, size_t bytes)
{
    dscomm_status_t status = DSCOMM_IN_PROGRESS;
    dscomm_work_t *work = NULL;
    double start;

    conform_await(0);
    start = conform_now_ms();
    CHECK_OK(
        dscomm_irecv(group, in, bytes, DSCOMM_UINT8, prev_rank(), 6, &work));
    CHECK_OK(dscomm_work_set_timeout(work, DSCOMM_TIMEOUT_NONE));
    while (status == DSCOMM_IN_PROGRESS &&
           conform_now_ms() - start < LONG_MS / 2)
        status = dscomm_work_test(work);
    check_status(status, DSCOMM_ERR_TIMEOUT, "a message that stalls");
    dscomm_group_abort(group, "the message has stalled");
    dscomm_work_free(work);
}

/* When its message has begun to arrive, a receive without a deadline has the
 * group's. */
static void test_stalled(void)
{
    const size_t bytes = (size_t)16 << 20; /* more than a backend buffers */
    const char *watchdog = getenv("DSCOMM_WATCHDOG");
    const char *progress = getenv("DSCOMM_PROGRESS");
    dscomm_group_t *group;
    int deadline_ms;
    void *buffer;

    if (!watchdog || strcmp(watchdog, "no") ||
        (progress && !strcmp(progress, "thread"))) {
        conform_skip("a thread of the sender goes on with the message");
        return;
    }
    if (my.ranks < 2 || strcmp(dscomm_group_backend(my.group), "shm") != 0) {
        conform_skip("one rank, or a backend that may need no sender");
        return;
    }
    group = short_lived_group(&deadline_ms);
    buffer = calloc(1, bytes);
    if (group && buffer && my.rank == 0)
        send_half(group, buffer, bytes);
    if (group && buffer && my.rank == 1)
        receive_half(group, buffer, bytes);
    CHECK_OK(dscomm_group_free(group));
    free(buffer);
    CHECK_OK(dscomm_barrier(my.group, NULL));
}

/* A receive that is cancelled does not take the next receive's message. */
static void test_cancel(void)
{
    dscomm_work_t *work = NULL, *send = NULL;
    int32_t in = -1, other = -1, out = 40 + my.rank;

    if (!can_withdraw())
        return;
    CHECK_OK(
        dscomm_irecv(my.group, &in, 1, DSCOMM_INT32, prev_rank(), 1, &work));
    CHECK_OK(dscomm_work_cancel(work));
    CHECK_FAILS(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT),
                DSCOMM_ERR_CANCELLED);
    CHECK_OK(dscomm_work_cancel(work));
    CHECK_FAILS(dscomm_work_test(work), DSCOMM_ERR_CANCELLED);
    dscomm_work_free(work);
    CHECK_OK(dscomm_barrier(my.group, NULL));
    CHECK_OK(
        dscomm_isend(my.group, &out, 1, DSCOMM_INT32, next_rank(), 1, &send));
    CHECK_OK(dscomm_recv(my.group, &other, 1, DSCOMM_INT32, prev_rank(), 1,
                         NULL, NULL));
    check(in == -1 && other == 40 + prev_rank(), "got %d and %d", in, other);
    CHECK_FAILS(dscomm_work_cancel(send), DSCOMM_ERR_STATE);
    CHECK_OK(dscomm_work_wait(send, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(send);
    CHECK_FAILS(dscomm_work_cancel(NULL), DSCOMM_ERR_INVALID);
}

/* Posts a receive of message number i and cancels it at once; returns 1 if it
 * got the message. */
static int receive_or_cancel(int i, size_t bytes, unsigned char *in)
{
    dscomm_work_t *work = NULL;
    dscomm_status_t status;

    CHECK_OK(
        dscomm_irecv(my.group, in, bytes, DSCOMM_UINT8, prev_rank(), 3, &work));
    for (int k = (int)(mix((uint64_t)i) % 4); k; k--)
        dscomm_work_test(work);
    CHECK_OK(dscomm_work_cancel(work));
    status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work);
    if (status == DSCOMM_ERR_CANCELLED)
        return 0;
    return check_status(status, DSCOMM_OK, "a receive that was not cancelled");
}

/* Receives are cancelled while messages arrive: none is lost, and all arrive in
 * order. */
static void test_cancel_race(void)
{
    enum { MANY = 40 };
    const size_t sizes[] = {8, 4000, 200000, 600000};
    unsigned char *out, *in = malloc(600000);
    double start;

    if (!in || !can_withdraw()) {
        free(in);
        return;
    }
    for (size_t s = 0; s < CONFORM_LENGTH(sizes); s++) {
        dscomm_work_t *works[MANY] = {NULL};

        out = calloc(MANY, sizes[s]);
        for (int i = 0; out && i < MANY; i++) {
            memset(out + (size_t)i * sizes[s], i + 1, sizes[s]);
            CHECK_OK(dscomm_isend(my.group, out + (size_t)i * sizes[s],
                                  sizes[s], DSCOMM_UINT8, next_rank(), 3,
                                  &works[i]));
        }
        start = conform_now_ms();
        for (int i = 0, tries = 0;
             out && i < MANY && conform_now_ms() - start < LONG_MS; tries++) {
            if (tries % 64 == 63)
                /* gives other ranks the processor if they share one */
                conform_pause(1);
            if (!receive_or_cancel(tries, sizes[s], in))
                continue;
            i++;
            check(in[0] == i && in[sizes[s] - 1] == i,
                  "message %d is %d ... %d", i, in[0], in[sizes[s] - 1]);
        }
        conform_finish(works, MANY);
        free(out);
    }
    free(in);
}

/* Returns whether the backend can probe; if it cannot, checks that it says
 * so. */
static int can_probe(void)
{
    dscomm_status_t status = dscomm_probe(my.group, prev_rank(), 9, 0, NULL);

    if (status != DSCOMM_ERR_UNSUPPORTED)
        return check_status(status, DSCOMM_IN_PROGRESS, "nothing was sent");
    conform_skip("the backend cannot probe");
    return 0;
}

/* The length is known before the receive, however often the message is
 * probed. */
static void run_probe(size_t bytes, int source)
{
    dscomm_message_info_t info = DSCOMM_MESSAGE_INFO_INIT;
    message_t in = message_with(prev_rank(), 4, bytes, (uint64_t)prev_rank());
    message_t out = message_with(next_rank(), 4, bytes, (uint64_t)my.rank);

    message_isend(&out);
    for (int i = 0; i < 3; i++) {
        info.bytes = 1;
        CHECK_OK(dscomm_probe(my.group, source, i ? 4 : DSCOMM_ANY_TAG, LONG_MS,
                              &info));
        check(info.source == prev_rank() && info.tag == 4 &&
                  info.bytes == bytes && info.status == DSCOMM_OK,
              "rank %d, tag %d, %zu bytes", info.source, info.tag, info.bytes);
    }
    CHECK_FAILS(dscomm_probe(my.group, source, 5, 0, NULL), DSCOMM_IN_PROGRESS);
    message_recv(&in);
    message_end(&out);
}

static void test_probe(void)
{
    const size_t sizes[] = {0, 24, 5000, 200000, 600000};
    const uint64_t any =
        dscomm_group_capabilities(my.group) & DSCOMM_CAP_ANY_SOURCE;

    if (!can_probe())
        return;
    for (size_t i = 0; i < CONFORM_LENGTH(sizes); i++) {
        run_probe(sizes[i], prev_rank());
        if (any)
            run_probe(sizes[i], DSCOMM_ANY_SOURCE);
        CHECK_OK(dscomm_barrier(my.group, NULL));
    }
    CHECK_FAILS(dscomm_probe(my.group, my.ranks, 1, 0, NULL),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_probe(my.group, 0, 1, DSCOMM_TIMEOUT_NONE, NULL),
                DSCOMM_ERR_INVALID);
}

/* The first of three messages is set aside; the others are received before
 * it. */
static void run_matched(size_t bytes)
{
    dscomm_message_info_t info = DSCOMM_MESSAGE_INFO_INIT;
    dscomm_matched_t *matched = NULL;
    dscomm_work_t *works[3] = {NULL};
    unsigned char *out = malloc(3 * bytes), *in = calloc(1, bytes);

    for (int i = 0; out && i < 3; i++) {
        memset(out + (size_t)i * bytes, 10 * my.rank + i, bytes);
        CHECK_OK(dscomm_isend(my.group, out + (size_t)i * bytes, bytes,
                              DSCOMM_UINT8, next_rank(), 6, &works[i]));
    }
    if (CHECK_OK(dscomm_probe_matched(my.group, prev_rank(), DSCOMM_ANY_TAG,
                                      LONG_MS, &info, &matched)))
        check(info.tag == 6 && info.bytes == bytes, "tag %d, %zu bytes",
              info.tag, info.bytes);
    for (int i = 1; in && i < 3; i++) {
        CHECK_OK(dscomm_recv(my.group, in, bytes, DSCOMM_UINT8, prev_rank(),
                             i == 1 ? 6 : DSCOMM_ANY_TAG, NULL, NULL));
        check(in[0] == 10 * prev_rank() + i &&
                  in[bytes - 1] == 10 * prev_rank() + i,
              "message %d is %d", i, in[0]);
    }
    CHECK_FAILS(dscomm_probe(my.group, prev_rank(), 6, 0, NULL),
                DSCOMM_IN_PROGRESS);
    CHECK_FAILS(
        dscomm_recv_matched(matched, in, bytes, (dscomm_dtype_t)-1, &info),
        DSCOMM_ERR_INVALID);
    CHECK_FAILS(
        dscomm_recv_matched(matched, in, bytes - 1, DSCOMM_UINT8, &info),
        DSCOMM_ERR_TRUNCATED);
    check(in && in[0] == 10 * prev_rank() && in[bytes - 2] == in[0] &&
              in[bytes - 1] == 10 * prev_rank() + 2 && info.bytes == bytes &&
              info.source == prev_rank() && info.tag == 6,
          "the message set aside: %zu bytes", info.bytes);
    conform_finish(works, 3);
    free(in);
    free(out);
}

static void test_matched(void)
{
    const size_t sizes[] = {8, 5000, 200000, 600000};
    dscomm_matched_t *left;

    if (!can_probe())
        return;
    for (size_t i = 0; i < CONFORM_LENGTH(sizes); i++) {
        run_matched(sizes[i]);
        CHECK_OK(dscomm_barrier(my.group, NULL));
    }
    CHECK_FAILS(dscomm_recv_matched(NULL, NULL, 0, DSCOMM_UINT8, NULL),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_probe_matched(my.group, prev_rank(), 9, 10, NULL, &left),
                DSCOMM_IN_PROGRESS);
}

/* Each of several receives in one work is reported. */
static void test_coalesced(void)
{
    enum { MANY = 4 };
    dscomm_message_info_t info = DSCOMM_MESSAGE_INFO_INIT;
    dscomm_work_t *work = NULL;
    unsigned char out[100] = {0}, in[MANY][40];

    CHECK_OK(dscomm_coalesce_begin(my.group));
    for (int i = 0; i < MANY; i++) {
        CHECK_OK(dscomm_recv(my.group, in[i], sizeof in[i], DSCOMM_UINT8,
                             prev_rank(), DSCOMM_ANY_TAG, NULL, NULL));
        CHECK_OK(dscomm_send(my.group, out, (size_t)i * 20, DSCOMM_UINT8,
                             next_rank(), 30 + i));
    }
    CHECK_OK(dscomm_coalesce_end(my.group, &work));
    CHECK_FAILS(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT),
                DSCOMM_ERR_TRUNCATED);
    for (int i = 0; i < MANY; i++) {
        CHECK_OK(dscomm_work_received_at(work, (size_t)i, &info));
        check(info.source == prev_rank() && info.tag == 30 + i &&
                  info.bytes == (size_t)i * 20 &&
                  info.status == (i == 3 ? DSCOMM_ERR_TRUNCATED : DSCOMM_OK),
              "receive %d: tag %d, %zu bytes, %s", i, info.tag, info.bytes,
              dscomm_status_name(info.status));
    }
    CHECK_FAILS(dscomm_work_received_at(work, MANY, &info), DSCOMM_ERR_INVALID);
    dscomm_work_free(work);
}

static const conform_test_t tests[] = {
    {"a probe", test_probe},
    {"a message that is set aside", test_matched},
    {"lengths of coalesced receives", test_coalesced},
    {"a work that is only tested has the group's deadline", test_polled},
    {"a receive with a deadline of its own", test_own_deadline},
    {"what is told of a message that is too long", test_info_truncated},
    {"a server that is idle", test_idle},
    {"a message that stalls", test_stalled},
    {"a cancelled receive", test_cancel},
    {"receives cancelled while messages come", test_cancel_race},
    {NULL, NULL},
};
const conform_area_t conform_receives = {"receives", NULL, tests};
