/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives that are cancelled on a group that goes on: later messages arrive
 * complete, and no rank waits for ever. Receives from any source are fair. */
#include "tests/backends/shm/fixture.h"

#include "backends/shm/request.h"

#define LARGE 200000

static unsigned char out[2][LARGE], in[LARGE];

static void start(shm_t *shm, const dscomm_message_t *message,
                  shm_request_t *request)
{
    memset(request, 0, sizeof *request);
    if (message->send ? shm_isend(shm, message, &request->head)
                      : shm_irecv(shm, message, &request->head))
        bail("%s", dscomm_last_error());
}

static void send_bytes(shm_t *shm, size_t bytes, int peer, int tag,
                       shm_request_t *request)
{
    const dscomm_message_t message = {
        .send = out[tag], .bytes = bytes, .peer = peer, .tag = tag};

    memset(out[tag], tag + 1, bytes);
    start(shm, &message, request);
}

static void receive_bytes(shm_t *shm, size_t bytes, int peer, int tag,
                          shm_request_t *request)
{
    const dscomm_message_t message = {
        .recv = in, .bytes = bytes, .peer = peer, .tag = tag};

    start(shm, &message, request);
}

static bool holds(size_t bytes, int tag)
{
    for (size_t i = 0; i < bytes; i++)
        if (in[i] != tag + 1)
            return false;
    return true;
}

/* Receives are cancelled after any part of their message has arrived. */
static void test_halfway(int turns)
{
    shm_request_t sent[2], received[2];
    shm_t *shms[2];

    fixture_open(shms, 2);
    receive_bytes(shms[1], LARGE, 0, 0, &received[0]);
    send_bytes(shms[0], LARGE, 1, 0, &sent[0]);
    for (int i = 0; i < turns; i++)
        shm_p2p_progress(shms[(i + 1) % 2]);
    shm_p2p_cancel(shms[1], &received[0]);
    send_bytes(shms[0], LARGE / 2, 1, 1, &sent[1]);
    receive_bytes(shms[1], LARGE / 2, 0, 1, &received[1]);
    is_int(fixture_message(shms, &received[1].head), DSCOMM_OK,
           "cancelled after %d turns: the next message comes", turns);
    ok(holds(LARGE / 2, 1), "and is whole");
    if (turns)
        is_int(fixture_message(shms, &sent[0].head), DSCOMM_OK,
               "the first one's sender is done");
    fixture_close(shms, 2);
}

/* The answer to a large message waits for room, because small messages fill the
 * ring. */
static void test_unanswered(void)
{
    static shm_request_t small[1000];
    shm_request_t sent, received;
    shm_t *shms[2];
    int n = 0;

    fixture_open(shms, 2);
    do {
        send_bytes(shms[1], 1000, 0, 1, &small[n]);
    } while (!small[n++].head.status && n < 1000);
    receive_bytes(shms[1], LARGE, 0, 0, &received);
    send_bytes(shms[0], LARGE, 1, 0, &sent);
    shm_p2p_progress(shms[1]);
    shm_p2p_cancel(shms[1], &received);
    receive_bytes(shms[1], LARGE, 0, 0, &received);
    is_int(fixture_message(shms, &received.head), DSCOMM_OK,
           "cancelled unanswered: the next receive has it");
    ok(holds(LARGE, 0), "and it is whole");
    is_int(fixture_message(shms, &sent.head), DSCOMM_OK, "its sender is done");
    fixture_close(shms, 2);
}

static void test_fair(void)
{
    static shm_request_t sent[2][16];
    shm_request_t received;
    int from[2] = {0, 0};
    shm_t *shms[3];

    fixture_open(shms, 3);
    for (int i = 0; i < 16; i++)
        for (int r = 0; r < 2; r++)
            send_bytes(shms[r], 10, 2, 0, &sent[r][i]);
    for (int i = 0; i < 12; i++) {
        receive_bytes(shms[2], 10, DSCOMM_ANY_SOURCE, 0, &received);
        while (received.head.status == DSCOMM_IN_PROGRESS)
            shm_p2p_progress(shms[2]);
        from[received.head.source]++;
    }
    ok(from[0] >= 3 && from[1] >= 3,
       "of 12 messages from any source, %d and %d are of each of two", from[0],
       from[1]);
    fixture_close(shms, 3);
}

int main(void)
{
    g_setenv("DSCOMM_SHM_CHANNEL", "64K", TRUE);
    for (int turns = 0; turns < 6; turns++)
        test_halfway(turns);
    test_unanswered();
    test_fair();
    return tap_done();
}
