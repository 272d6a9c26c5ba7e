/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages whose bytes come in chunks before there is a receive. */
#include "config.h"

#include "backends/shm/p2p.h"
#include "tests/backends/shm/fixture.h"
#include "tests/tap.h"

#include <string.h>

#include <glib.h>

#define MESSAGES 3
#define BYTES 100000

static unsigned char out[MESSAGES][BYTES], in[BYTES];

static void send_tag(shm_t *shm, int tag, shm_request_t *request)
{
    const dscomm_message_t message = {
        .send = out[tag], .bytes = BYTES, .peer = 1, .tag = tag};

    memset(out[tag], tag + 1, BYTES);
    if (shm_isend(shm, &message, &request->head) < 0)
        bail("%s", dscomm_last_error());
}

static void receive_tag(shm_t *shm, int tag, size_t bytes,
                        shm_request_t *request)
{
    const dscomm_message_t message = {
        .recv = in, .bytes = bytes, .peer = 0, .tag = tag};

    memset(in, 0, sizeof in);
    if (shm_irecv(shm, &message, &request->head) < 0)
        bail("%s", dscomm_last_error());
}

static bool holds(size_t bytes, int tag)
{
    for (size_t i = 0; i < sizeof in; i++)
        if (in[i] != (i < bytes ? tag + 1 : 0))
            return false;
    return true;
}

/* Messages are received in any order, also if the channel has room for few of
 * their bytes. */
static void test_order(const char *channel)
{
    static const int orders[][MESSAGES] = {
        {0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    shm_request_t sent[MESSAGES], received;
    shm_t *shms[2];
    bool whole;

    g_setenv("DSCOMM_SHM_CHANNEL", channel, TRUE);
    for (size_t o = 0; o < G_N_ELEMENTS(orders); o++) {
        whole = true;
        fixture_open(shms, 2);
        for (int i = 0; i < MESSAGES; i++)
            send_tag(shms[0], i, &sent[i]);
        for (int i = 0; i < MESSAGES; i++) {
            const int tag = orders[o][i];

            receive_tag(shms[1], tag, BYTES, &received);
            whole = fixture_message(shms, &received.head) == DSCOMM_OK &&
                    holds(BYTES, tag) && whole;
        }
        for (int i = 0; i < MESSAGES; i++)
            whole = whole && sent[i].head.status == DSCOMM_OK;
        ok(whole, "channel of %s: received in the order %d %d %d", channel,
           orders[o][0], orders[o][1], orders[o][2]);
        fixture_close(shms, 2);
    }
}

/* A receive that is too short takes its part of a message that was kept aside
 * in part, or as a whole. */
static void test_short(int turns)
{
    shm_request_t sent[2], received[2];
    shm_t *shms[2];

    g_setenv("DSCOMM_SHM_CHANNEL", "64K", TRUE);
    fixture_open(shms, 2);
    for (int i = 0; i < 2; i++)
        send_tag(shms[0], i, &sent[i]);
    receive_tag(shms[1], 1, BYTES, &received[1]);
    for (int i = 0; i < turns; i++)
        shm_p2p_progress(shms[(i + 1) % 2]);
    shm_p2p_cancel(shms[1], &received[1]);
    receive_tag(shms[1], 0, 1000, &received[0]);
    is_int(fixture_message(shms, &received[0].head), DSCOMM_ERR_TRUNCATED,
           "after %d turns: a short receive is told", turns);
    ok(holds(1000, 0) && received[0].head.bytes == BYTES, "and has its part");
    fixture_close(shms, 2);
}

static void test_before(void)
{
    shm_request_t sent, received;
    shm_t *shms[2];

    g_setenv("DSCOMM_SHM_CHANNEL", "1M", TRUE);
    fixture_open(shms, 2);
    send_tag(shms[0], 2, &sent);
    is_int(sent.head.status, DSCOMM_OK,
           "a send needs no receive if there is "
           "room");
    memset(out[2], 0, BYTES);
    receive_tag(shms[1], 2, BYTES, &received);
    is_int(fixture_message(shms, &received.head), DSCOMM_OK,
           "its message arrives");
    ok(holds(BYTES, 2), "as it was");
    fixture_close(shms, 2);
}

int main(void)
{
    test_order("64K");
    test_order("256K");
    test_order("4M");
    for (int turns = 0; turns < 30; turns += 3)
        test_short(turns);
    test_before();
    return tap_done();
}
