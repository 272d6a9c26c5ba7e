/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake, by which both sides of a connection prove that they know the
 * secret of the job, and say which ranks they are:
 *
 *   hello      connector: magic, its rank, the other's, channel, a nonce
 *   challenge  acceptor: a nonce, HMAC(secret, 'A' hello nonce)
 *   proof      connector: HMAC(secret, 'C' hello nonce)
 *   answer    acceptor: whether the connection is used
 *
 * Nonces are random, so that nothing that was seen before proves anything.
 * HMAC is with SHA-256. Numbers are little-endian. */
#include "config.h"

#include "backends/net/little.h"
#include "backends/net/tcp/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define MAGIC "dscommN1"
#define ANSWER_USED 1
#define ANSWER_BUSY 2 /* the acceptor is making that connection itself */

static void prove(const conn_t *conn, char side, const unsigned char *nonce,
                  unsigned char *ret_proof)
{
    GHmac *hmac = g_hmac_new(G_CHECKSUM_SHA256, conn->tcp->args.secret, 32);
    gsize size = PROOF_BYTES;

    g_hmac_update(hmac, (const guchar *)&side, 1);
    g_hmac_update(hmac, conn->hello, HELLO_BYTES);
    g_hmac_update(hmac, nonce, NONCE_BYTES);
    g_hmac_get_digest(hmac, ret_proof, &size);
    g_hmac_unref(hmac);
}

/* Compares in a time that does not depend on where they differ. */
static bool proof_equal(const unsigned char *a, const unsigned char *b)
{
    unsigned char different = 0;

    for (int i = 0; i < PROOF_BYTES; i++)
        different |= a[i] ^ b[i];
    return !different;
}

/* Sends a message of the handshake, which always fits into an empty socket. */
static bool put(conn_t *conn, const void *data, size_t bytes)
{
    if (send(conn->fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) ==
        (ssize_t)bytes)
        return true;
    tcp_conn_end(conn, EPROTO, "it ended in the handshake: %s",
                 strerror(errno));
    return false;
}

static bool random_bytes(conn_t *conn, unsigned char *to)
{
    if (getrandom(to, NONCE_BYTES, 0) == NONCE_BYTES)
        return true;
    tcp_conn_end(conn, EPROTO, "no random bytes: %s", strerror(errno));
    return false;
}

void tcp_handshake_begin(conn_t *conn)
{
    unsigned char *hello = conn->hello;

    memcpy(hello, MAGIC, 8);
    put_32(hello + 8, (uint32_t)conn->tcp->args.rank);
    put_32(hello + 12, (uint32_t)conn->peer);
    put_32(hello + 16, conn->channel);
    put_32(hello + 20, 0);
    if (!random_bytes(conn, hello + 24) || !put(conn, hello, HELLO_BYTES))
        return;
    conn->state = CONN_CHALLENGE;
    tcp_conn_due(conn);
    tcp_conn_events(conn);
}

void tcp_stranger(tcp_t *tcp, const place_t *place, const char *why)
{
    char text[PLACE_TEXT];

    dscomm_log(tcp->told ? DSCOMM_LOG_DEBUG : DSCOMM_LOG_WARN, "tcp",
               "closed a connection from %s: %s%s", tcp_place_text(place, text),
               why, tcp->told ? "" : "; further ones are not reported");
    tcp->told = true;
}

/* Refuses a connection of somebody else. */
static void refuse(conn_t *conn, const char *why)
{
    if (!conn->outgoing)
        tcp_stranger(conn->tcp, &conn->place, why);
    tcp_conn_end(conn, EPROTO, "%s", why);
}

static void hello_read(conn_t *conn, const unsigned char *data)
{
    const tcp_t *tcp = conn->tcp;
    const uint32_t from = get_32(data + 8);
    unsigned char *challenge = conn->challenge;

    memcpy(conn->hello, data, HELLO_BYTES);
    if (memcmp(data, MAGIC, 8)) {
        refuse(conn, "it speaks another protocol");
        return;
    }
    if (get_32(data + 12) != (uint32_t)tcp->args.rank ||
        from >= (uint32_t)tcp->args.ranks || from == (uint32_t)tcp->args.rank ||
        get_32(data + 16) >= CHANNELS_MAX || get_32(data + 20)) {
        refuse(conn, "it is for another rank");
        return;
    }
    conn->peer = (int)from;
    conn->channel = get_32(data + 16);
    if (!random_bytes(conn, challenge))
        return;
    prove(conn, 'A', challenge, challenge + NONCE_BYTES);
    if (!put(conn, challenge, CHALLENGE_BYTES))
        return;
    conn->state = CONN_PROOF;
    conn->deadline_ns = tcp_now() + ATTEMPT_MS * INT64_C(1000000);
}

static void challenge_read(conn_t *conn, const unsigned char *data)
{
    unsigned char proof[PROOF_BYTES];

    prove(conn, 'A', data, proof);
    if (!proof_equal(proof, data + NONCE_BYTES)) {
        refuse(conn, "it does not know the secret of this job");
        return;
    }
    prove(conn, 'C', data, proof);
    if (!put(conn, proof, PROOF_BYTES))
        return;
    conn->state = CONN_ANSWER;
    /* From now on the peer may use the connection. If this rank gave it up for
     * another attempt, the peer would see a death. */
    conn->deadline_ns =
        tcp_now() + conn->tcp->args.timeout_ms * INT64_C(1000000);
}

/* Whether this rank uses a connection that a peer has made. The further ones
 * are always used. Of two main ones that are made at the same time, that of the
 * lower rank counts. */
static bool conn_is_used(conn_t *conn)
{
    pair_t *pair = &conn->tcp->pairs[conn->peer];

    if (conn->channel)
        return pair->state == PAIR_UP;
    if (pair->state == PAIR_UP || pair->state == PAIR_LOST)
        return false;
    if (!pair->main)
        return true;
    if (conn->tcp->args.rank < conn->peer)
        return false;
    pair->main->state = CONN_ENDED;
    pair->main->peer = -1; /* its end changes nothing */
    pair->main = NULL;
    conn->tcp->ended++;
    return true;
}

static void proof_read(conn_t *conn, const unsigned char *data)
{
    unsigned char proof[PROOF_BYTES], answer = ANSWER_USED;

    prove(conn, 'C', conn->challenge, proof);
    if (!proof_equal(proof, data)) {
        conn->peer = -1;
        refuse(conn, "it does not know the secret of this job");
        return;
    }
    if (!conn_is_used(conn))
        answer = ANSWER_BUSY;
    if (!put(conn, &answer, 1))
        return;
    if (answer == ANSWER_USED) {
        tcp_conn_up(conn);
        return;
    }
    conn->peer = -1;
    tcp_conn_end(conn, EPROTO, "both sides have connected");
}

static void answer_read(conn_t *conn, const unsigned char *data)
{
    if (*data == ANSWER_USED)
        tcp_conn_up(conn);
    else
        tcp_conn_end(conn, EALREADY, "the peer makes the connection");
}

void tcp_handshake(conn_t *conn)
{
    static const struct {
        size_t bytes;
        void (*read)(conn_t *conn, const unsigned char *data);
    } steps[] = {
        [CONN_CHALLENGE] = {CHALLENGE_BYTES, challenge_read},
        [CONN_ANSWER] = {ANSWER_BYTES, answer_read},
        [CONN_HELLO] = {HELLO_BYTES, hello_read},
        [CONN_PROOF] = {PROOF_BYTES, proof_read},
    };

    while (conn->state != CONN_UP && conn->state != CONN_ENDED) {
        const size_t wanted = steps[conn->state].bytes;
        ssize_t got;

        if (conn->end < wanted) {
            got = recv(conn->fd, conn->stage + conn->end, wanted - conn->end,
                       MSG_DONTWAIT);
            if (got < 0 && (errno == EAGAIN || errno == EINTR))
                return;
            if (got <= 0) {
                tcp_conn_end(conn, EPROTO, "it ended in the handshake%s%s",
                             got ? ": " : "", got ? strerror(errno) : "");
                return;
            }
            conn->end += (size_t)got;
            continue;
        }
        conn->end = 0;
        steps[conn->state].read(conn, conn->stage);
    }
}
