/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection of a client: requests, answers, and the handshake, in which
 * both sides prove the job's secret and the server gives its name and job. */
#include "config.h"

#include "lib/store/tcp/link.h"

#include "lib/base/process.h"
#include "lib/base/random.h"
#include "lib/base/status.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A server that has not answered for this long counts as silent. */
#define LATE_NS (50 * NS_PER_MS)

typedef dscomm_priv_link_t link_t;

const char *dscomm_priv_link_peer(char buffer[STORE_PEER_MAX], const char *host,
                                  int port, int ports)
{
    const bool v6 = strchr(host, ':') != NULL;
    char shown[64], range[16] = "";

    if (ports > 1)
        g_snprintf(range, sizeof range, "-%d", port + ports - 1);
    g_snprintf(buffer, STORE_PEER_MAX, "%s%s%s:%d%s", v6 ? "[" : "",
               dscomm_priv_quote(host, shown, sizeof shown), v6 ? "]" : "",
               port, range);
    return buffer;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        dscomm_priv_fd_close(*fd);
    *fd = -1;
}

void dscomm_priv_link_disconnect(link_t *link)
{
    if (link->bound && link->old_fd < 0) {
        link->old_fd = link->fd;
        link->fd = -1;
    }
    link->bound = false;
    close_fd(&link->fd);
}

bool dscomm_priv_link_is_out_of_step(const link_t *link)
{
    uint8_t byte;
    ssize_t got = recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

/* Requests and answers */

/* A request or answer that began at begun has met its deadline. If less
 * than LATE_NS was left then, that says nothing about the server. */
static void note_late(link_t *link, int64_t begun)
{
    if (dscomm_priv_clock() - begun >= LATE_NS)
        atomic_store(&link->first->silent, true);
}

dscomm_status_t dscomm_priv_link_send(link_t *link,
                                      dscomm_priv_buffer_t *request,
                                      dscomm_priv_deadline_t deadline)
{
    const int64_t begun = dscomm_priv_clock();
    dscomm_status_t status;

    if (request->bad)
        status = dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a request");
    else
        status =
            dscomm_priv_send_all(link->fd, link->peer, request->data,
                                 request->size, dscomm_priv_grace(deadline));
    if (status == DSCOMM_ERR_TIMEOUT)
        note_late(link, begun);
    dscomm_priv_buffer_clear(request);
    return status;
}

dscomm_status_t dscomm_priv_link_receive(link_t *link, void *data, size_t size,
                                         dscomm_priv_deadline_t deadline)
{
    const int64_t begun = dscomm_priv_clock();
    const dscomm_status_t status = dscomm_priv_recv_all(
        link->fd, link->peer, data, size, dscomm_priv_grace(deadline));

    if (status == DSCOMM_ERR_TIMEOUT)
        note_late(link, begun);
    else
        atomic_store(&link->first->silent, false);
    return status;
}

dscomm_status_t dscomm_priv_link_fail_answer(const link_t *link,
                                             const char *command, uint64_t got)
{
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       "the store at %s answers %s with %" G_GUINT64_FORMAT
                       ", which makes no sense: is it a TCPStore?",
                       link->peer, command, got);
}

dscomm_status_t dscomm_priv_link_answer_value(link_t *link,
                                              dscomm_priv_deadline_t deadline,
                                              void **ret_value,
                                              size_t *ret_size)
{
    uint64_t size = 0;
    dscomm_status_t status =
        dscomm_priv_link_receive(link, &size, sizeof size, deadline);
    void *value;

    if (status)
        return status;
    if (size > DSCOMM_STORE_VALUE_MAX)
        return dscomm_priv_link_fail_answer(link, "with a value, whose size is",
                                            size);
    value = dscomm_priv_value(NULL, size);
    if (!value)
        return DSCOMM_ERR_NO_MEMORY;
    status = dscomm_priv_link_receive(link, value, size, deadline);
    if (status) {
        g_free(value);
        return status;
    }
    *ret_value = value;
    *ret_size = size;
    return DSCOMM_OK;
}

/* Handshake */

static void put_validate(dscomm_priv_buffer_t *request)
{
    dscomm_priv_put_u8(request, WIRE_VALIDATE);
    dscomm_priv_put_u32(request, WIRE_MAGIC);
}

static dscomm_status_t fail_secret(link_t *link, const char *what)
{
    link->unproven = true;
    return dscomm_fail(DSCOMM_ERR_MISMATCH,
                       "the store at %s %s: give all processes of the job the "
                       "same DSCOMM_JOB_SECRET or DSCOMM_JOB_SECRET_FILE, and "
                       "each job its own port",
                       link->peer, what);
}

/* A server without a credential is acceptable only if this machine has no MUNGE
 * either: then it is that of a job without MUNGE. */
static dscomm_status_t check_no_credential(link_t *link)
{
    char *own;
    const dscomm_status_t status = dscomm_priv_munge_encode("works", &own);

    free(own);
    return status == DSCOMM_ERR_NOT_FOUND
               ? DSCOMM_OK
               : fail_secret(link, "gives no credential, though this machine "
                                   "has MUNGE");
}

static dscomm_status_t fail_credential(link_t *link)
{
    link->unproven = true;
    return dscomm_fail(DSCOMM_ERR_MISMATCH,
                       "the store at %s gives a credential that is of no use: "
                       "%s; give all processes of the job the same "
                       "DSCOMM_JOB_SECRET, and each job its own port",
                       link->peer, dscomm_last_error());
}

/* Fails with the reason that rank 0 gives in place of a credential. If the
 * server belongs to another job, found while several ports are tried, it does
 * not count. */
static dscomm_status_t fail_announced(link_t *link, const char *text)
{
    char **lines = g_strsplit(text + 1, "\n", 2);
    const char *job = lines[0] ? lines[0] : "";
    const char *why = lines[0] && lines[1] ? lines[1] : "";
    char shown[DSCOMM_ERROR_MAX];
    dscomm_status_t status;

    link->unproven = true;
    if (link->job && strcmp(link->job, job) != 0)
        status = fail_secret(link, "is of another job");
    else
        status = dscomm_fail(
            DSCOMM_ERR_ENVIRONMENT, "rank 0 cannot serve the store at %s: %s",
            link->peer, dscomm_priv_quote(why, shown, sizeof shown));
    g_strfreev(lines);
    return status;
}

/* Reads the job's secret from the server's credential. On reconnection the
 * secret is known already, and identifies the server. */
static dscomm_status_t fetch_secret(link_t *link,
                                    dscomm_priv_deadline_t deadline)
{
    dscomm_priv_buffer_t request = {0};
    dscomm_status_t status;
    void *text;
    size_t size;

    *link->secret = '\0';
    put_validate(&request);
    dscomm_priv_put_u8(&request, WIRE_CREDENTIAL);
    status = dscomm_priv_link_send(link, &request, deadline);
    if (!status)
        status = dscomm_priv_link_answer_value(link, deadline, &text, &size);
    if (status)
        return status;
    if (!size)
        status = check_no_credential(link);
    else if (*(const char *)text == WIRE_NO_CREDENTIAL)
        status = fail_announced(link, text);
    else if (dscomm_priv_munge_decode(text, link->secret))
        status = fail_credential(link);
    g_free(text);
    return status;
}

/* Server and client prove to each other that they know the job's secret. */
static dscomm_status_t prove(link_t *link, dscomm_priv_deadline_t deadline)
{
    dscomm_priv_buffer_t request = {0};
    uint8_t nonces[2 * SECRET_NONCE_SIZE], proof[SECRET_PROOF_SIZE];
    dscomm_priv_challenge_t answer;
    dscomm_status_t status;

    if (!dscomm_priv_random(nonces, SECRET_NONCE_SIZE))
        return dscomm_fail(DSCOMM_ERR_IO, "no random numbers: %s",
                           strerror(errno));
    put_validate(&request);
    dscomm_priv_put_u8(&request, WIRE_CHALLENGE);
    dscomm_priv_buffer_put(&request, nonces, SECRET_NONCE_SIZE);
    status = dscomm_priv_link_send(link, &request, deadline);
    if (!status)
        status =
            dscomm_priv_link_receive(link, &answer, sizeof answer, deadline);
    if (status)
        return status;
    if (!answer.guarded)
        return fail_secret(link, "has no secret, but this process has one");
    memcpy(nonces + SECRET_NONCE_SIZE, answer.nonce, sizeof answer.nonce);
    if (!dscomm_priv_secret_check(link->secret, SECRET_SERVER, nonces,
                                  answer.proof))
        return fail_secret(link, "has another secret than this process");
    dscomm_priv_secret_prove(link->secret, SECRET_CLIENT, nonces, proof);
    dscomm_priv_put_u8(&request, WIRE_PROOF);
    dscomm_priv_buffer_put(&request, proof, sizeof proof);
    return dscomm_priv_link_send(link, &request, deadline);
}

/* Sends VALIDATE, PING and COMPARE_SET in one packet, because torch's server
 * reads the five bytes of VALIDATE at once. COMPARE_SET gives a name and a job
 * to a server that has none, which is torch's. While several ports are tried,
 * such a server is not the job's, so it gets an empty job. */
static dscomm_status_t link_validate(link_t *link, uint32_t nonce,
                                     dscomm_priv_deadline_t deadline)
{
    dscomm_priv_buffer_t hello = {0};
    uint8_t name[WIRE_NAME_SIZE];

    dscomm_priv_wire_name(name, WIRE_NAMED_BY_CLIENT);
    if (!*link->secret) /* otherwise prove() has sent it */
        put_validate(&hello);
    dscomm_priv_put_u8(&hello, WIRE_PING);
    dscomm_priv_put_u32(&hello, nonce);
    dscomm_priv_put_u8(&hello, WIRE_COMPARE_SET);
    dscomm_priv_put_key(&hello, WIRE_SERVER_KEY);
    dscomm_priv_put_bytes(&hello, NULL, 0);
    dscomm_priv_put_bytes(&hello, name, sizeof name);
    if (link->job) {
        dscomm_priv_put_u8(&hello, WIRE_COMPARE_SET);
        dscomm_priv_put_key(&hello, WIRE_JOB_KEY);
        dscomm_priv_put_bytes(&hello, NULL, 0);
        dscomm_priv_put_key(&hello, link->ports > 1 ? "" : link->job);
    }
    return dscomm_priv_link_send(link, &hello, deadline);
}

/* Receives the answer to a PING with nonce. */
static dscomm_status_t link_echo(link_t *link, uint32_t nonce,
                                 dscomm_priv_deadline_t deadline)
{
    dscomm_status_t status;
    uint32_t echo;

    status = dscomm_priv_link_receive(link, &echo, sizeof echo, deadline);
    if (!status && echo == ~nonce)
        return fail_secret(link, "serves only processes that know its job's "
                                 "secret, and this one has none");
    if (!status && echo != nonce)
        return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                           "%s answers, but not as a TCPStore does: another "
                           "service has that port; choose another",
                           link->peer);
    return status;
}

static dscomm_status_t receive_server(link_t *link,
                                      dscomm_priv_deadline_t deadline)
{
    struct {
        uint64_t size;
        uint8_t name[WIRE_NAME_SIZE];
    } answer;
    dscomm_status_t status =
        dscomm_priv_link_receive(link, &answer, sizeof answer, deadline);

    if (status)
        return status;
    if (answer.size != sizeof answer.name)
        return dscomm_priv_link_fail_answer(
            link, "COMPARE_SET with a value, whose size is", answer.size);
    link->replaced =
        link->met && memcmp(link->server, answer.name, sizeof answer.name) != 0;
    if (link->replaced)
        return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                           "the store at %s is another one than before: the "
                           "process that served it, most often rank 0, has "
                           "ended, and what it held is gone",
                           link->peer);
    if (!link->met)
        memcpy(link->server, answer.name, sizeof answer.name);
    return DSCOMM_OK;
}

static dscomm_status_t receive_job(link_t *link,
                                   dscomm_priv_deadline_t deadline)
{
    char shown[2][64];
    dscomm_status_t status;
    void *value;
    size_t size;

    if (!link->job)
        return DSCOMM_OK;
    status = dscomm_priv_link_answer_value(link, deadline, &value, &size);
    if (status)
        return status;
    if (size != strlen(link->job) || memcmp(value, link->job, size))
        status = dscomm_fail(
            DSCOMM_ERR_MISMATCH,
            "the store at %s is of job '%s', and this process of job '%s': "
            "two jobs have one port; give each its own (MASTER_PORT)",
            link->peer, dscomm_priv_quote(value, shown[0], sizeof shown[0]),
            dscomm_priv_quote(link->job, shown[1], sizeof shown[1]));
    g_free(value);
    return status;
}

/* Waits for the answer to PING, whatever it is: after it the server has the
 * report, and has looked up the user of this socket. */
void dscomm_priv_handshake_refuse(link_t *link, dscomm_priv_deadline_t deadline)
{
    dscomm_priv_buffer_t request = {0};
    uint32_t echo;

    deadline.end = deadline.at; /* no grace period here */
    put_validate(&request);
    dscomm_priv_put_u8(&request, WIRE_REFUSED);
    dscomm_priv_buffer_put(&request, &link->rank, sizeof link->rank);
    dscomm_priv_put_u8(&request, WIRE_PING);
    dscomm_priv_put_u32(&request, 0);
    if (dscomm_priv_link_send(link, &request, deadline) == DSCOMM_OK)
        dscomm_priv_recv_all(link->fd, link->peer, &echo, sizeof echo,
                             deadline);
}

dscomm_status_t dscomm_priv_handshake(link_t *link,
                                      dscomm_priv_deadline_t deadline)
{
    uint32_t nonce = (uint32_t)getpid() ^ 0x5CA1AB1E;
    dscomm_status_t status = DSCOMM_OK;

    deadline.end = deadline.at; /* no grace period here */
    link->unproven = link->replaced = false;
    if (link->munge && !link->met)
        status = fetch_secret(link, deadline);
    if (!status && *link->secret)
        status = prove(link, deadline);
    if (!status)
        status = link_validate(link, nonce, deadline);
    if (!status)
        status = link_echo(link, nonce, deadline);
    if (!status)
        status = receive_server(link, deadline);
    if (!status)
        status = receive_job(link, deadline);
    if (!status)
        link->met = true;
    return status;
}

/* Last wills */

struct dscomm_priv_own_will {
    struct dscomm_priv_own_will *next;
    bool withdrawn; /* the server may not have got that yet */
    bool sent; /* the request under way withdraws it */
    size_t size; /* of the value, which follows the key */
    char key[];
};

typedef dscomm_priv_own_will_t own_will_t;

static own_will_t *own_will_find(const link_t *first, const char *key)
{
    own_will_t *will = first->wills;

    while (will && (will->withdrawn || strcmp(will->key, key)))
        will = will->next;
    return will;
}

static void own_will_put(const link_t *first, const own_will_t *will,
                         dscomm_priv_buffer_t *request)
{
    dscomm_priv_put_u8(request, WIRE_WILL);
    dscomm_priv_buffer_put(request, first->client, sizeof first->client);
    dscomm_priv_put_key(request, will->key);
    dscomm_priv_put_bytes(request, will->key + strlen(will->key) + 1,
                          will->withdrawn ? 0 : will->size);
}

/* Writes the requests that withdraw wills. If given is true, requests that give
 * all others follow; a key may have both. */
static void own_wills_put(link_t *first, bool given,
                          dscomm_priv_buffer_t *request)
{
    pthread_mutex_lock(&first->lock);
    for (own_will_t *will = first->wills; will; will = will->next) {
        will->sent = will->withdrawn;
        if (will->withdrawn)
            own_will_put(first, will, request);
    }
    for (own_will_t *will = first->wills; will && given; will = will->next)
        if (!will->withdrawn)
            own_will_put(first, will, request);
    pthread_mutex_unlock(&first->lock);
}

/* Forgets withdrawn wills, after the server has executed the requests. */
static void own_wills_forget(link_t *first)
{
    own_will_t **at = &first->wills, *will;

    pthread_mutex_lock(&first->lock);
    while ((will = *at)) {
        if (will->withdrawn && will->sent) {
            *at = will->next;
            free(will);
        } else {
            at = &will->next;
        }
    }
    pthread_mutex_unlock(&first->lock);
}

/* Sends the requests of own_wills_put() and waits until the server has executed
 * them. */
static dscomm_status_t own_wills_send(link_t *link, bool given,
                                      dscomm_priv_deadline_t deadline)
{
    const uint32_t nonce = 0x3B1CF02D;
    dscomm_priv_buffer_t request = {0};
    dscomm_status_t status;

    deadline.end = deadline.at; /* no grace period here */
    own_wills_put(link->first, given, &request);
    if (!request.size && !request.bad)
        return DSCOMM_OK;
    dscomm_priv_put_u8(&request, WIRE_PING);
    dscomm_priv_put_u32(&request, nonce);
    status = dscomm_priv_link_send(link, &request, deadline);
    if (!status)
        status = link_echo(link, nonce, deadline);
    if (given)
        link->bound = !status;
    if (!status)
        own_wills_forget(link->first);
    return status;
}

dscomm_status_t dscomm_priv_own_wills_bind(link_t *link,
                                           dscomm_priv_deadline_t deadline)
{
    dscomm_priv_gate_t *turn = &link->first->turn;
    dscomm_status_t status = dscomm_priv_gate_enter(turn, deadline);

    if (status)
        return status;
    status = own_wills_send(link, true, deadline);
    dscomm_priv_gate_leave(turn);
    if (!status)
        close_fd(&link->old_fd);
    return status;
}

/* The first will makes the client's name. */
bool dscomm_priv_own_will_note(link_t *first, const char *key,
                               dscomm_priv_data_t value)
{
    const size_t length = strlen(key) + 1;
    own_will_t *will;

    pthread_mutex_lock(&first->lock);
    will = own_will_find(first, key);
    if (!will && (will = malloc(sizeof *will + length + value.size))) {
        *will = (own_will_t){.next = first->wills, .size = value.size};
        memcpy(will->key, key, length);
        memcpy(will->key + length, value.data, value.size);
        if (!*first->client)
            dscomm_priv_wire_name(first->client, WIRE_NAMED_BY_CLIENT);
        first->wills = will;
    }
    pthread_mutex_unlock(&first->lock);
    return will != NULL;
}

bool dscomm_priv_own_will_withdraw(link_t *first, const char *key)
{
    bool any = false;

    pthread_mutex_lock(&first->lock);
    for (own_will_t *will = first->wills; will; will = will->next)
        if (!key || !strcmp(will->key, key))
            any = will->withdrawn = true;
    pthread_mutex_unlock(&first->lock);
    return any;
}

dscomm_status_t dscomm_priv_own_wills_flush(link_t *link,
                                            dscomm_priv_deadline_t turn_until,
                                            dscomm_priv_deadline_t deadline)
{
    dscomm_priv_gate_t *turn = &link->first->turn;
    dscomm_status_t status = DSCOMM_ERR_PEER_FAILED;

    if (link->fd < 0 || dscomm_priv_own_wills_settled(link->first))
        return DSCOMM_OK;
    if (dscomm_priv_gate_enter(turn, turn_until))
        return DSCOMM_OK;
    if (!dscomm_priv_link_is_out_of_step(link))
        status = own_wills_send(link, false, deadline);
    if (status)
        dscomm_priv_link_disconnect(link);
    dscomm_priv_gate_leave(turn);
    return status;
}

bool dscomm_priv_own_wills_settled(link_t *first)
{
    bool settled = true;

    pthread_mutex_lock(&first->lock);
    for (own_will_t *will = first->wills; will; will = will->next)
        settled = settled && !will->withdrawn;
    pthread_mutex_unlock(&first->lock);
    return settled;
}

void dscomm_priv_own_wills_free(link_t *first)
{
    while (first->wills) {
        own_will_t *will = first->wills;

        first->wills = will->next;
        free(will);
    }
}
