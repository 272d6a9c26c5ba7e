/* SPDX-License-Identifier: BSD-3-Clause */
/* A store's connections: connecting, sharing among threads, and reconnecting
 * after a failure. */
#include "config.h"

#include "lib/store/tcp/connect.h"

#include "lib/base/node.h"
#include "lib/base/process.h"
#include "lib/base/socket-table.h"
#include "lib/base/status.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESOLVE_MS 30000 /* for a name that does not resolve yet */
/* Connections that the server may close during the handshake. With the pauses
 * between them that takes 2 s, in which a server may get memory again. */
#define CLOSED_MAX 12
/* for a store of another job to end */
#define OTHER_JOB_MS (STORE_READERS_MS + 1000)
#define REFUSE_MS 1000 /* to report to a server that it is not used */
/* Time limit of withdrawing a will, in ms: for the turn on the connection, and
 * for the server's answer. */
#define WITHDRAW_MS 100
#define PROBE_MS 1000 /* for one of several addresses or ports */
#define FIRST_PAUSE_NS NS_PER_MS
#define MOST_PAUSE_NS (500 * NS_PER_MS)

typedef dscomm_priv_link_t link_t;

bool dscomm_priv_link_init(link_t *link, const char *host, int port,
                           const dscomm_priv_job_t *job, const char *peer)
{
    static const dscomm_priv_job_t any = {.ports = 1};

    if (!job)
        job = &any;
    *link = (link_t){.host = strdup(host),
                     .port = port,
                     .ports = job->ports,
                     .job = job->name ? strdup(job->name) : NULL,
                     .munge = job->munge && !job->secret,
                     .fd = -1,
                     .old_fd = -1,
                     .first = link,
                     .binds = true};
    if (!link->host || (job->name && !link->job)) {
        free(link->host);
        free(link->job);
        return false;
    }
    if (job->rank)
        link->rank = *job->rank;
    if (job->secret)
        g_strlcpy(link->secret, job->secret, sizeof link->secret);
    if (peer)
        g_strlcpy(link->peer, peer, sizeof link->peer);
    else
        dscomm_priv_link_peer(link->peer, host, port, link->ports);
    pthread_mutex_init(&link->lock, NULL);
    dscomm_priv_gate_init(&link->gate);
    dscomm_priv_gate_init(&link->turn);
    return true;
}

/* Connecting */

static void clear_one(link_t *link)
{
    link->bound = false;
    dscomm_priv_link_disconnect(link);
    if (link->old_fd >= 0)
        dscomm_priv_fd_close(link->old_fd);
    dscomm_priv_own_wills_free(link);
    dscomm_priv_gate_clear(&link->turn);
    dscomm_priv_gate_clear(&link->gate);
    pthread_mutex_destroy(&link->lock);
    explicit_bzero(link->secret, sizeof link->secret);
    free(link->job);
    free(link->host);
}

static void links_free(link_t *link)
{
    while (link) {
        link_t *next = link->next;

        clear_one(link);
        g_free(link);
        link = next;
    }
}

/* Makes connections end with a reset, after which the server carries out no
 * last will. */
static void set_reset(const link_t *link)
{
    const struct linger at_once = {.l_onoff = 1};

    setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    setsockopt(link->old_fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void dscomm_priv_link_clear(link_t *link)
{
    if (!dscomm_priv_own_wills_settled(link))
        for (link_t *other = link; other; other = other->next)
            set_reset(other);
    links_free(link->next);
    clear_one(link);
}

/* Adds a connection to the server of the first one; NULL: no memory. */
static link_t *link_add(link_t *first)
{
    const dscomm_priv_job_t job = {
        .name = first->job, .ports = 1, .secret = first->secret};
    link_t *link = g_try_new(link_t, 1);

    if (!link)
        return NULL;
    if (!dscomm_priv_link_init(link, first->host, first->port, &job,
                               first->peer)) {
        g_free(link);
        return NULL;
    }
    memcpy(link->server, first->server, sizeof link->server);
    link->met = first->met;
    link->binds = false;
    link->first = first;
    link->next = first->next;
    first->next = link;
    return link;
}

/* Removes and returns the connections that have been idle for LINK_IDLE_NS. The
 * connections on which wills were given stay. */
static link_t *links_take_idle(link_t *first)
{
    const int64_t since = dscomm_priv_clock() - LINK_IDLE_NS;
    link_t **at = &first->next, *idle = NULL;

    while (*at) {
        link_t *link = *at;

        if (link->users || link->binds || link->idle > since) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        link->next = idle;
        idle = link;
    }
    return idle;
}

link_t *dscomm_priv_link_choose(link_t *first, bool waits)
{
    link_t *link = first, *idle;

    pthread_mutex_lock(&first->lock);
    while (link && (waits ? link->users > 0 : link->waits))
        link = link->next;
    if (!link)
        link = link_add(first);
    if (link) {
        link->users++;
        link->waits = waits;
    }
    idle = links_take_idle(first);
    pthread_mutex_unlock(&first->lock);
    links_free(idle);
    return link;
}

void dscomm_priv_link_release(link_t *link)
{
    link_t *first = link->first;

    pthread_mutex_lock(&first->lock);
    if (--link->users == 0)
        link->idle = dscomm_priv_clock();
    link->waits = false;
    pthread_mutex_unlock(&first->lock);
}

static void note_address(link_t *link)
{
    link_t *first = link->first;
    socklen_t length = sizeof first->address;

    pthread_mutex_lock(&first->lock);
    if (getpeername(link->fd, (struct sockaddr *)&first->address, &length))
        first->address.ss_family = AF_UNSPEC;
    pthread_mutex_unlock(&first->lock);
}

bool dscomm_priv_link_silent(link_t *first,
                             dscomm_priv_store_place_t *ret_place)
{
    if (!atomic_load(&first->silent))
        return false;
    if (!ret_place)
        return true;
    pthread_mutex_lock(&first->lock);
    ret_place->address = first->address;
    pthread_mutex_unlock(&first->lock);
    g_strlcpy(ret_place->peer, first->peer, sizeof ret_place->peer);
    return true;
}

bool dscomm_priv_stopped_server(const dscomm_priv_store_place_t *place,
                                bool by_rank_0, char *text, size_t size)
{
    const char *how = NULL;
    const long pid = dscomm_priv_socket_stopped(&place->address, &how);
    size_t used = strlen(text);

    snprintf(text + used, size - used, "%sthe store at %s does not answer",
             used ? "; " : "", place->peer);
    used = strlen(text);
    if (pid)
        snprintf(text + used, size - used,
                 by_rank_0 ? ": rank 0 (pid %ld), which serves it, is stopped%s"
                           : ": its server (pid %ld) is stopped%s",
                 pid, how);
    return pid != 0;
}

static dscomm_status_t fail_silent(link_t *link)
{
    dscomm_priv_store_place_t place;
    char text[DSCOMM_ERROR_MAX] = "";

    if (!dscomm_priv_link_silent(link->first, &place))
        return DSCOMM_ERR_TIMEOUT;
    dscomm_priv_stopped_server(&place, false, text, sizeof text);
    return dscomm_priv_fail_with(DSCOMM_ERR_TIMEOUT, text);
}

/* Names a process that is no rank, such as a launcher, by its program. */
static void rank_name_program(dscomm_priv_rank_t *rank)
{
    const char *program = g_get_prgname();
    char node[DSCOMM_NODE_MAX];

    dscomm_priv_node_name(node);
    if (!program)
        program = program_invocation_short_name;
    g_strlcpy(rank->world, program, sizeof rank->world);
    g_snprintf(rank->name, sizeof rank->name, "%s (pid %ld on %s)", program,
               (long)getpid(), node);
}

/* Reports once to the server at port that this process does not use it. That
 * takes a new connection: the server reads nothing more on one that it has
 * refused. */
static dscomm_status_t link_report(link_t *link, const struct addrinfo *list,
                                   int port, dscomm_status_t status)
{
    const dscomm_priv_deadline_t deadline = dscomm_priv_deadline(REFUSE_MS);
    const unsigned bit = 1u << (port - link->port);
    bool again;

    if (link->met || (link->reported & bit))
        return status;
    link->reported |= bit;
    if (!*link->rank.world)
        rank_name_program(&link->rank);
    dscomm_priv_fail_hold();
    if (dscomm_priv_connect_list(list, port, deadline, &link->fd, &again) ==
        DSCOMM_OK) {
        dscomm_priv_fd_keep(link->fd);
        dscomm_priv_handshake_refuse(link, deadline);
        dscomm_priv_link_disconnect(link);
    }
    dscomm_priv_fail_release();
    return status;
}

/* Connects to one port of one host. *ret_again: another attempt may succeed. */
static dscomm_status_t connect_port(link_t *link, const struct addrinfo *list,
                                    int port, dscomm_priv_deadline_t deadline,
                                    bool *ret_again)
{
    dscomm_status_t status =
        dscomm_priv_connect_list(list, port, deadline, &link->fd, ret_again);

    if (status)
        return status;
    dscomm_priv_fd_keep(link->fd);
    note_address(link);
    status = dscomm_priv_handshake(link, deadline);
    if (!status && link->binds)
        status = dscomm_priv_own_wills_bind(link, deadline);
    *ret_again =
        status == DSCOMM_ERR_PEER_FAILED || status == DSCOMM_ERR_MISMATCH;
    if (status)
        dscomm_priv_link_disconnect(link);
    return link->unproven ? link_report(link, list, port, status) : status;
}

/* From now on the store is looked for at this place only. */
static void settle_place(link_t *link, const char *host, int port)
{
    memmove(link->host, host, strlen(host) + 1); /* a part of what is there */
    link->port = port;
    link->ports = 1;
    dscomm_priv_link_peer(link->peer, link->host, port, 1);
}

static dscomm_priv_deadline_t probe_deadline(dscomm_priv_deadline_t deadline)
{
    const int left = dscomm_priv_clock_left(deadline.at);

    return dscomm_priv_deadline(MIN(left, PROBE_MS));
}

/* True if no other place helps. */
static bool is_final(dscomm_status_t status)
{
    return !status || status == DSCOMM_ERR_NO_MEMORY ||
           status == DSCOMM_ERR_ENVIRONMENT;
}

/* Tries the ports of one host. Among several places, answers of other programs
 * are no failure, because the store may still start; but a server that does not
 * know the secret may be the job's, so refused, a part of the sentence about
 * all places, names it. */
static dscomm_status_t connect_host(link_t *link, const char *host, bool alone,
                                    dscomm_priv_deadline_t deadline,
                                    char refused[DSCOMM_ERROR_MAX],
                                    bool *ret_again)
{
    const int ports = link->ports;
    struct addrinfo *list;
    dscomm_status_t status =
        dscomm_priv_resolve(host, link->port, deadline, &list, ret_again);

    if (status)
        return status;
    for (int i = 0; i < ports && (!i || !is_final(status)); i++) {
        status = connect_port(link, list, link->port + i,
                              ports > 1 ? probe_deadline(deadline) : deadline,
                              ret_again);
        if (status == DSCOMM_ERR_MISMATCH && link->unproven)
            snprintf(refused, DSCOMM_ERROR_MAX, "; %s", dscomm_last_error());
        if (!status && !alone)
            settle_place(link, host, link->port + i);
    }
    freeaddrinfo(list);
    if (ports == 1 || is_final(status))
        return status;
    *ret_again = true;
    return dscomm_fail(DSCOMM_ERR_IO,
                       "no store of job '%s' answers at any port of %s%s",
                       link->job ? link->job : "", link->peer, refused);
}

/* Makes one attempt to connect. Of several addresses of a host, some may be
 * unreachable from here, or belong to another host. */
static dscomm_status_t
connect_once(link_t *link, dscomm_priv_deadline_t deadline, bool *ret_again)
{
    char refused[DSCOMM_ERROR_MAX] = "";
    dscomm_status_t status = DSCOMM_ERR_IO;
    char **hosts;

    if (!strchr(link->host, ','))
        return connect_host(link, link->host, link->ports == 1, deadline,
                            refused, ret_again);
    hosts = g_strsplit(link->host, ",", -1);
    for (char **host = hosts; *host && !is_final(status); host++)
        status = connect_host(link, *host, false, probe_deadline(deadline),
                              refused, ret_again);
    g_strfreev(hosts);
    if (is_final(status))
        return status;
    *ret_again = true;
    return dscomm_fail(DSCOMM_ERR_IO, "rank 0's store answers at none of %s%s",
                       link->peer, refused);
}

/* True if another attempt is worthwhile after one that began at start and
 * failed. A server with another secret would only answer the same again. */
static bool is_worth_it(const link_t *link, dscomm_status_t status,
                        int64_t start, int *closed)
{
    if (status == DSCOMM_ERR_NOT_FOUND)
        return dscomm_priv_clock() - start < RESOLVE_MS * NS_PER_MS;
    if (status == DSCOMM_ERR_MISMATCH)
        return !link->unproven &&
               dscomm_priv_clock() - start < OTHER_JOB_MS * NS_PER_MS;
    if (status == DSCOMM_ERR_PEER_FAILED)
        return ++*closed < CLOSED_MAX;
    return true;
}

dscomm_status_t dscomm_priv_link_connect(link_t *link,
                                         dscomm_priv_deadline_t deadline)
{
    int64_t start = dscomm_priv_clock(), pause = FIRST_PAUSE_NS;
    dscomm_status_t status;
    bool again;
    int closed = 0;

    for (;;) {
        status = connect_once(link, deadline, &again);
        if (!status || !again || !is_worth_it(link, status, start, &closed))
            break;
        dscomm_priv_back_off(deadline, &pause, MOST_PAUSE_NS);
        if (dscomm_priv_clock() >= deadline.at)
            break;
    }
    if (status == DSCOMM_ERR_PEER_FAILED)
        return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                           "%s accepts connections and closes them: no "
                           "TCPStore, or one that is full or out of memory%s",
                           link->peer,
                           *link->secret ? ", or one that knows no secret of a "
                                           "job, as torchrun's own: unset "
                                           "DSCOMM_JOB_SECRET for that"
                                         : "");
    if (status == DSCOMM_ERR_IO)
        return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                           "no store within %d ms: %s; is the process that "
                           "serves it running, and may this host reach it?",
                           deadline.ms, dscomm_last_error());
    return status == DSCOMM_ERR_TIMEOUT ? fail_silent(link) : status;
}

static bool is_over(dscomm_priv_deadline_t deadline)
{
    return dscomm_priv_clock() >= deadline.end;
}

static dscomm_status_t fail_unanswered(const link_t *link)
{
    return dscomm_fail(DSCOMM_ERR_TIMEOUT, "the store at %s does not answer",
                       link->peer);
}

/* Connects again to the same server. If it has ended, nobody accepts. If it
 * accepts and closes the connection, it has no memory, or as many clients as
 * allowed. */
static dscomm_status_t reconnect(link_t *link, dscomm_priv_deadline_t deadline)
{
    const dscomm_priv_deadline_t grace = dscomm_priv_grace(deadline);
    int64_t pause = FIRST_PAUSE_NS;
    dscomm_status_t status;
    bool again;

    for (int i = 0; i < CLOSED_MAX; i++) {
        status = connect_once(link, grace, &again);
        if (status != DSCOMM_ERR_PEER_FAILED || link->replaced)
            return status;
        dscomm_priv_back_off(grace, &pause, MOST_PAUSE_NS);
    }
    return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                       "the store at %s closes each connection: the process "
                       "that serves it, most often rank 0, is out of memory, "
                       "or has as many clients as it may have",
                       link->peer);
}

/* Enters the gate, and reconnects if the connection is out of step. */
static dscomm_status_t link_take(link_t *link, dscomm_priv_deadline_t deadline)
{
    const dscomm_priv_deadline_t now = {0};
    dscomm_status_t status = dscomm_priv_gate_enter(&link->gate, deadline);

    if (status)
        return status;
    if (link->fd >= 0 && dscomm_priv_link_is_out_of_step(link))
        dscomm_priv_link_disconnect(link);
    status =
        dscomm_priv_own_wills_flush(link, now, dscomm_priv_grace(deadline));
    if (link->fd < 0 && status != DSCOMM_ERR_TIMEOUT)
        status = reconnect(link, deadline);
    if (!status)
        return DSCOMM_OK;
    dscomm_priv_gate_leave(&link->gate);
    if (status != DSCOMM_ERR_IO)
        return status;
    /* The kernel accepts for a stopped server until its backlog is full. */
    if (atomic_load(&link->first->silent) && is_over(deadline))
        return fail_unanswered(link);
    return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                       "the store at %s is gone; the process that serves it, "
                       "most often rank 0, has ended",
                       link->peer);
}

dscomm_status_t dscomm_priv_link_enter(link_t **link, bool waits,
                                       dscomm_priv_deadline_t deadline)
{
    link_t *chosen;
    dscomm_status_t status;

    if (atomic_load(&(*link)->silent) && is_over(deadline))
        return fail_unanswered(*link);
    chosen = dscomm_priv_link_choose(*link, waits);
    if (!chosen)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no memory for a connection to the store");
    status = link_take(chosen, deadline);
    if (status)
        dscomm_priv_link_release(chosen);
    else
        *link = chosen;
    return status;
}

/* After a failure the connection is out of step, so it is closed. */
dscomm_status_t dscomm_priv_link_leave(link_t *link, dscomm_status_t status)
{
    if (status)
        dscomm_priv_link_disconnect(link);
    dscomm_priv_gate_leave(&link->gate);
    dscomm_priv_link_release(link);
    return status;
}

dscomm_status_t dscomm_priv_link_renew(link_t *link,
                                       dscomm_priv_deadline_t deadline)
{
    char cause[DSCOMM_ERROR_MAX];
    dscomm_status_t status;

    g_strlcpy(cause, dscomm_last_error(), sizeof cause);
    dscomm_priv_link_disconnect(link);
    status = reconnect(link, deadline);
    if (!status || status == DSCOMM_ERR_NO_MEMORY)
        return status;
    return dscomm_priv_fail_with(DSCOMM_ERR_PEER_FAILED, cause);
}

/* Last wills */

dscomm_status_t dscomm_priv_link_give_will(link_t *first, const char *key,
                                           dscomm_priv_data_t value,
                                           dscomm_priv_deadline_t deadline)
{
    link_t *link = first;
    dscomm_status_t status = dscomm_priv_link_enter(&link, false, deadline);

    if (status)
        return status;
    if (link->server[0] != WIRE_NAMED_ITSELF)
        return dscomm_priv_link_leave(link, DSCOMM_OK);
    if (!dscomm_priv_own_will_note(first, key, value)) {
        dscomm_priv_link_leave(link, DSCOMM_OK); /* nothing was sent */
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a last will");
    }
    link->binds = true;
    status = dscomm_priv_own_wills_bind(link, dscomm_priv_grace(deadline));
    if (status == DSCOMM_ERR_PEER_FAILED) /* reconnecting gives the wills */
        status = dscomm_priv_link_renew(link, deadline);
    return dscomm_priv_link_leave(link, status);
}

/* Uses any connection, but opens none for this. */
void dscomm_priv_link_withdraw_will(link_t *first, const char *key)
{
    dscomm_priv_deadline_t deadline = dscomm_priv_deadline(WITHDRAW_MS);
    link_t *link;

    if (!dscomm_priv_own_will_withdraw(first, key))
        return;
    link = dscomm_priv_link_choose(first, false);
    if (!link)
        return;
    dscomm_priv_fail_hold();
    deadline.end = deadline.at;
    if (dscomm_priv_gate_enter(&link->gate, deadline) == DSCOMM_OK) {
        dscomm_priv_own_wills_flush(link, deadline, deadline);
        dscomm_priv_gate_leave(&link->gate);
    }
    dscomm_priv_fail_release();
    dscomm_priv_link_release(link);
}
