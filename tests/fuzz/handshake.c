/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary bytes on a connection of backend tcp. A stranger's never reach the
 * message engine, whatever it sends to a rank that has accepted or connected,
 * also if it has seen the handshake of another connection. After a handshake
 * they are frames, which may be cut anywhere. */
#include "config.h"

#include "backends/net/engine.h"
#include "backends/net/tcp/tcp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const dscomm_backend_t dscomm_backend_tcp;

static engine_t *engine;
static tcp_t *tcp;

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* The number of connections that have passed their handshake. */
static int count_up(void)
{
    const conn_t *conn;
    int count = 0;

    LIST_FOREACH (conn, &tcp->conns, in_tcp)
        count += conn->state == CONN_UP;
    return count;
}

/* A connection of the rank, whose other end is returned. */
static int conn_open(conn_state_t state)
{
    int fds[2];
    conn_t *conn;

    must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                     fds));
    net_enter(engine->domain);
    conn = tcp_conn_new(tcp, fds[0], state == CONN_HELLO ? -1 : 1,
                        state != CONN_HELLO);
    conn->unix_socket = true;
    conn->state = state;
    conn->deadline_ns = INT64_MAX;
    if (state == CONN_HELLO) {
        tcp->unproven++;
        tcp_conn_events(conn);
    } else {
        tcp_handshake_begin(conn);
    }
    net_leave(engine->domain);
    return fds[1];
}

static void feed(int fd, const void *data, size_t bytes)
{
    if (bytes && send(fd, data, bytes, MSG_NOSIGNAL) < 0)
        return; /* it has been closed */
    net_progress(engine);
    net_progress(engine);
}

/* Feeds the input in parts; their lengths are in it. */
static void feed_parts(int fd, const uint8_t *data, size_t size)
{
    while (size) {
        const size_t part = MIN((size_t)*data + 1, size);

        feed(fd, data, part);
        data += part;
        size -= part;
    }
}

static void prove(char side, const unsigned char *hello,
                  const unsigned char *nonce, unsigned char *ret_proof)
{
    GHmac *hmac = g_hmac_new(G_CHECKSUM_SHA256, engine->domain->secret,
                             sizeof engine->domain->secret);
    gsize size = PROOF_BYTES;

    g_hmac_update(hmac, (const guchar *)&side, 1);
    g_hmac_update(hmac, hello, HELLO_BYTES);
    g_hmac_update(hmac, nonce, NONCE_BYTES);
    g_hmac_get_digest(hmac, ret_proof, &size);
    g_hmac_unref(hmac);
}

static const unsigned char hello[HELLO_BYTES] = "dscommN1\1\0\0\0\0\0\0\0\0";

/* Rank 1 connects; proof gets what it has sent to prove itself. */
static int peer_connect(unsigned char *proof)
{
    unsigned char challenge[CHALLENGE_BYTES], expected[PROOF_BYTES], answer;
    const int fd = conn_open(CONN_HELLO);

    feed(fd, hello, sizeof hello);
    must(recv(fd, challenge, sizeof challenge, 0) == sizeof challenge);
    prove('A', hello, challenge, expected);
    must(!memcmp(expected, challenge + NONCE_BYTES, sizeof expected));
    prove('C', hello, challenge, proof);
    feed(fd, proof, PROOF_BYTES);
    must(recv(fd, &answer, 1, 0) == 1 && answer == 1 && count_up() == 1);
    must(engine->domain->links[1].state == LINK_OPEN);
    return fd;
}

static void engine_open(dscomm_store_t *store)
{
    static const int world_ranks[] = {0, 1, 2};
    const dscomm_backend_args_t args = {.size = sizeof args,
                                        .name = "g",
                                        .id = "g",
                                        .ranks = 3,
                                        .world_ranks = world_ranks,
                                        .store = store,
                                        .timeout_ms = 1000,
                                        .open_ms = 1000,
                                        .world = 1};
    void *impl;

    must(dscomm_backend_tcp.ops->open(&args, &impl) == DSCOMM_OK);
    engine = impl;
    tcp = engine->domain->wire;
}

static void try_bytes(const uint8_t *data, size_t size)
{
    unsigned char proof[PROOF_BYTES];
    int fd, other;

    switch (size ? *data++ % 5 : 0) {
    case 0: /* a stranger connects */
        fd = conn_open(CONN_HELLO);
        feed_parts(fd, data, size ? size - 1 : 0);
        must(!count_up());
        break;
    case 1: /* and knows how to begin */
        fd = conn_open(CONN_HELLO);
        feed(fd, hello, sizeof hello);
        feed_parts(fd, data, size - 1);
        must(!count_up());
        break;
    case 2: /* this rank connects to a stranger */
        fd = conn_open(CONN_CHALLENGE);
        feed_parts(fd, data, size - 1);
        must(!count_up());
        break;
    case 3: /* a stranger has seen another connection */
        fd = peer_connect(proof);
        other = conn_open(CONN_HELLO);
        feed(other, hello, sizeof hello);
        feed(other, proof, sizeof proof);
        feed_parts(other, data, size - 1);
        must(count_up() == 1);
        close(other);
        break;
    default: /* frames */
        fd = peer_connect(proof);
        feed_parts(fd, data, size - 1);
        break;
    }
    close(fd);
    net_progress(engine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char there[] = "4711 host\nthere";
    static dscomm_store_t *store;

    if (!store) {
        setenv("DSCOMM_SOCKET_IFNAME", "lo", 1);
        setenv("DSCOMM_TCP_UNIX", "no", 1);
        setenv("DSCOMM_LOG", "error", 1);
        must(!dscomm_store_open("memory://", NULL, &store) &&
             !dscomm_store_set(store, "net/1", there, sizeof there - 1) &&
             !dscomm_store_set(store, "net/2", there, sizeof there - 1));
    }
    engine_open(store);
    try_bytes(data, size);
    net_quiesce(engine);
    net_close(engine);
    return 0;
}
