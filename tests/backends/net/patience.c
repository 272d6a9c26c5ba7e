/* SPDX-License-Identifier: BSD-3-Clause */
/* Backend tcp, where one side of a handshake gets no processor for longer than
 * an attempt to connect may take: whatever the other side may use already is
 * not given up. Peers are the test itself. */
#include "config.h"

#include "backends/net/engine.h"
#include "backends/net/tcp/tcp.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 5
#define TIMEOUT_MS 30000
#define CROWD 100 /* more than one look at the sockets sees */
#define BYE_BYTES DSCOMM_WIRE_HEADER

extern const dscomm_backend_t dscomm_backend_tcp;

static dscomm_store_t *store;
static engine_t *engine;
static tcp_t *tcp;

static void sleep_ms(unsigned ms)
{
    g_usleep(ms * 1000UL);
}

static void turns(void)
{
    for (int i = 0; i < 10; i++) {
        net_progress(engine);
        sleep_ms(2);
    }
}

static bool engine_open(void)
{
    static const int world_ranks[] = {0, 1, 2, 3, 4};
    static const char there[] = "4711 host\nthere";
    dscomm_backend_args_t args = {.size = sizeof args,
                                  .name = "g",
                                  .id = "g",
                                  .ranks = RANKS,
                                  .world_ranks = world_ranks,
                                  .timeout_ms = TIMEOUT_MS,
                                  .open_ms = 1000,
                                  .world = 1};
    dscomm_status_t status = dscomm_store_open("memory://", NULL, &store);
    char key[16];
    void *impl;

    args.store = store;
    for (int p = 1; p < RANKS && !status; p++) {
        snprintf(key, sizeof key, "net/%d", p);
        status = dscomm_store_set(store, key, there, sizeof there - 1);
    }
    if (!status)
        status = dscomm_backend_tcp.ops->open(&args, &impl);
    if (!is_int(status, DSCOMM_OK, "a world of backend tcp"))
        return false;
    engine = impl;
    tcp = engine->domain->wire;
    return true;
}

/* A connection of rank 0; returns the peer's end. peer -1: it is accepted. */
static int conn_open(int peer)
{
    int fds[2];
    conn_t *conn;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        abort();
    net_enter(engine->domain);
    conn = tcp_conn_new(tcp, fds[0], peer, peer >= 0);
    conn->unix_socket = true;
    conn->deadline_ns = tcp_now() + ATTEMPT_MS * INT64_C(1000000);
    if (peer < 0) {
        conn->state = CONN_HELLO;
        tcp->unproven++;
        tcp_conn_events(conn);
    } else {
        tcp->pairs[peer].state = PAIR_CONNECTING;
        tcp->pairs[peer].end_ns = INT64_MAX;
        tcp->pairs[peer].main = conn;
        tcp->pairs[peer].places = g_new0(place_t, 1);
        tcp->trying++;
        engine->domain->links[peer].state = LINK_OPEN;
        tcp_handshake_begin(conn);
    }
    net_leave(engine->domain);
    return fds[1];
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

/* Answers the hello of rank 0. */
static void challenge(int fd)
{
    unsigned char hello[HELLO_BYTES], data[CHALLENGE_BYTES] = {1, 2, 3};

    if (recv(fd, hello, sizeof hello, MSG_WAITALL) != sizeof hello)
        abort();
    prove('A', hello, data, data + NONCE_BYTES);
    send(fd, data, sizeof data, MSG_NOSIGNAL);
}

static void say_hello(int fd, char rank, unsigned char *hello)
{
    memset(hello, 0, HELLO_BYTES);
    memcpy(hello, "dscommN1", 8);
    hello[8] = (unsigned char)rank;
    send(fd, hello, HELLO_BYTES, MSG_NOSIGNAL);
}

/* Whether so many bytes come within a time. */
static bool gets(int fd, unsigned char *data, size_t bytes)
{
    const struct timeval limit = {.tv_sec = 5};

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return recv(fd, data, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

static void is_up(int peer, const char *what)
{
    dscomm_failure_t failure = DSCOMM_FAILURE_INIT;

    is_int(tcp->pairs[peer].state, PAIR_UP, "%s: it is used", what);
    is_int(net_status(engine, &failure), DSCOMM_OK, "nobody has died");
}

static int received(int fd)
{
    unsigned char data[1024];

    return (int)recv(fd, data, sizeof data, MSG_DONTWAIT);
}

/* Sends of long messages, one after another, to rank 1, which is at fd. */
static void announce(int fd)
{
    enum { COUNT = 3 };
    static const char data[EAGER_MAX + 1];
    static request_t requests[COUNT];
    const dscomm_message_t message = {
        .send = data, .bytes = sizeof data, .peer = 1, .tag = 7};

    while (received(fd) > 0)
        continue;
    for (int i = 0; i < COUNT; i++) {
        requests[i].head.status = DSCOMM_IN_PROGRESS;
        net_isend(engine, &message, &requests[i].head);
    }
    is_int(received(fd), DSCOMM_WIRE_HEADER,
           "the first of several announcements is sent at once");
    net_progress(engine);
    is_int(received(fd), (COUNT - 1) * DSCOMM_WIRE_HEADER,
           "and the next poll sends the others");
    for (int i = 0; i < COUNT; i++)
        net_cancel(engine, &requests[i].head);
}

static void late(void)
{
    static const unsigned char used = 1;
    unsigned char hello[HELLO_BYTES], data[CHALLENGE_BYTES], proof[PROOF_BYTES];
    const int answer = conn_open(1), question = conn_open(2);
    const int accepted = conn_open(-1);
    int crowd[CROWD], met = 0;

    challenge(answer);
    turns(); /* the proof is sent to rank 1 */
    challenge(question);
    say_hello(accepted, 3, hello);
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = conn_open(-1);
        say_hello(crowd[i], 3, data);
    }
    sleep_ms(ATTEMPT_MS + 200);
    turns();
    send(answer, &used, 1, MSG_NOSIGNAL);
    send(question, &used, 1, MSG_NOSIGNAL);
    if (gets(accepted, data, sizeof data)) {
        prove('C', hello, data, proof);
        send(accepted, proof, sizeof proof, MSG_NOSIGNAL);
    }
    for (int i = 0; i < CROWD; i++)
        met += gets(crowd[i], data, sizeof data);
    turns();
    is_up(1, "the peer's answer is late");
    is_up(2, "this rank sees the challenge late");
    is_up(3, "this rank sees the hello late");
    is_int(met, CROWD, "all who wait since then get a challenge");
    for (int i = 0; i < CROWD; i++)
        close(crowd[i]);
    turns();
    announce(answer);
}

/* The peer answers after as long as a world that has failed would wait. */
static void leave(void)
{
    static const unsigned char used = 1;
    unsigned char bye[BYE_BYTES];
    const int fd = conn_open(4);
    pid_t pid;
    int status = -1;

    challenge(fd);
    turns();
    pid = fork();
    if (pid == 0) {
        sleep_ms(2500);
        send(fd, &used, 1, MSG_NOSIGNAL);
        recv(fd, bye, PROOF_BYTES, MSG_WAITALL);
        _exit(gets(fd, bye, sizeof bye) ? bye[8] : 0);
    }
    close(fd);
    net_quiesce(engine);
    net_close(engine);
    waitpid(pid, &status, 0);
    is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, FRAME_BYE,
           "a rank that leaves says so to a peer whose answer was late");
}

int main(void)
{
    setenv("DSCOMM_SOCKET_IFNAME", "lo", 1);
    setenv("DSCOMM_TCP_UNIX", "no", 1);
    if (engine_open()) {
        late();
        leave();
    }
    dscomm_store_close(store);
    return tap_done();
}
