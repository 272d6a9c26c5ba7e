/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses as text, transfers with a deadline, connecting, and names of hosts.
 */
#include "config.h"

#include "lib/store/tcp/socket.h"

#include "lib/base/status.h"
#include "lib/base/thread.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static dscomm_status_t bad_address(const char *address, const char *problem)
{
    char shown[80];

    return dscomm_fail(DSCOMM_ERR_INVALID,
                       "store address '%s': %s; give HOST:PORT or [v6]:PORT",
                       dscomm_priv_quote(address, shown, sizeof shown),
                       problem);
}

/* Without GLib's function, which allocates when it is first called. */
static bool read_port(const char *text, int *ret_port)
{
    const size_t digits = strspn(text, "0123456789");

    if (!digits || digits > 9 || text[digits])
        return false;
    *ret_port = atoi(text);
    return *ret_port <= 65535;
}

dscomm_status_t dscomm_priv_address_split(const char *address, char **ret_host,
                                          int *ret_port)
{
    const char *host = address, *end, *colon;

    if (*address == '[') {
        host = address + 1;
        end = strchr(host, ']');
        if (!end || end[1] != ':')
            return bad_address(address, "there is no ']:' and port");
        colon = end + 1;
    } else {
        colon = end = strrchr(address, ':');
        if (!colon)
            return bad_address(address, "there is no port");
        if (strchr(address, ':') != colon)
            return bad_address(address, "an IPv6 address needs brackets");
    }
    if (end == host)
        return bad_address(address, "there is no host");
    if (!read_port(colon + 1, ret_port))
        return bad_address(address, "the port is no number from 0 to 65535");
    *ret_host = strndup(host, (size_t)(end - host));
    if (!*ret_host)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no memory for a store's host");
    return DSCOMM_OK;
}

const char *dscomm_priv_address_name(const struct sockaddr *address,
                                     socklen_t length, char *buffer)
{
    char host[SOCKET_NAME_MAX - 9], port[6]; /* "[fe80::1%eth0]:29500" */

    if (getnameinfo(address, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        g_strlcpy(buffer, "(unknown address)", SOCKET_NAME_MAX);
    else
        snprintf(buffer, SOCKET_NAME_MAX,
                 address->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
                 port);
    return buffer;
}

bool dscomm_priv_address_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)address;

        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)address;

        return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    }
    return false;
}

void dscomm_priv_address_set_port(struct sockaddr *address, int port)
{
    if (address->sa_family == AF_INET)
        ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
    else if (address->sa_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
}

void dscomm_priv_socket_tune(int fd)
{
    int on = 1, idle = 60, interval = 15;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
}

int dscomm_priv_socket_port(int fd)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;

    if (getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return 0;
    if (address.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&address)->sin_port);
    if (address.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return 0;
}

/* Waits until fd is ready for events. false: the deadline has passed. */
static bool socket_wait(int fd, short events, dscomm_priv_deadline_t deadline)
{
    struct pollfd entry = {.fd = fd, .events = events};

    for (;;) {
        int left = dscomm_priv_clock_left(deadline.at);
        int ready = poll(&entry, 1, left);

        if (ready > 0)
            return true;
        if (left == 0)
            return false;
    }
}

static dscomm_status_t gone(const char *peer, int problem)
{
    return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                       "the store at %s is gone: %s; the process that serves "
                       "it, most often rank 0, has ended",
                       peer, problem ? strerror(problem) : "connection closed");
}

/* Sends or receives all of size bytes. */
static dscomm_status_t transfer(int fd, const char *peer, uint8_t *next,
                                size_t size, bool sends,
                                dscomm_priv_deadline_t deadline)
{
    while (size) {
        ssize_t done = sends ? send(fd, next, size, MSG_NOSIGNAL)
                             : recv(fd, next, size, 0);

        if (done > 0) {
            next += done;
            size -= (size_t)done;
        } else if (done == 0) {
            return gone(peer, 0);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!socket_wait(fd, sends ? POLLOUT : POLLIN, deadline))
                return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                                   "the store at %s did not answer within "
                                   "%d ms",
                                   peer, deadline.ms);
        } else if (errno != EINTR) {
            return gone(peer, errno);
        }
    }
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_send_all(int fd, const char *peer, const void *data,
                                     size_t size,
                                     dscomm_priv_deadline_t deadline)
{
    return transfer(fd, peer, (uint8_t *)data, size, true, deadline);
}

dscomm_status_t dscomm_priv_recv_all(int fd, const char *peer, void *data,
                                     size_t size,
                                     dscomm_priv_deadline_t deadline)
{
    return transfer(fd, peer, data, size, false, deadline);
}

/* Connecting to a host with several addresses, of which some may be dead:
 * attempts run side by side, each started a little after the one before, as in
 * RFC 8305. */

#define ADDRESSES_MAX 16
/* Limit for all attempts. The caller may connect anew; that helps against lost
 * packets, which TCP sends again at ever longer intervals. */
#define ATTEMPT_MS 10000
/* Before the next attempt, if the last one has no answer. */
#define STAGGER_MS 250

typedef struct {
    const struct addrinfo *addresses[ADDRESSES_MAX];
    /* one for each attempt; fd -1: none */
    struct pollfd waiting[ADDRESSES_MAX];
    int count, begun;
    int port;
    int problem; /* errno of the last failure worth reporting */
    char name[SOCKET_NAME_MAX]; /* the address of that failure */
    bool is_v4, is_loopback; /* that address */
} attempt_t;

/* Sorts addresses so that the second is of the other family: the first family
 * may be unreachable. */
static void attempt_sort(attempt_t *attempt, const struct addrinfo *list)
{
    const struct addrinfo *kinds[2] = {list, list};

    for (int turn = 0; attempt->count < ADDRESSES_MAX; turn = !turn) {
        const struct addrinfo **next = &kinds[turn];

        while (*next && ((*next)->ai_family == list->ai_family) == (turn != 0))
            *next = (*next)->ai_next;
        if (*next) {
            attempt->addresses[attempt->count++] = *next;
            *next = (*next)->ai_next;
        } else if (!kinds[!turn]) {
            break;
        }
    }
}

/* True if the socket is connected to itself. The kernel may choose the called
 * port, if it is free and local, as the caller's own. */
static bool talks_to_itself(int fd)
{
    struct sockaddr_storage own, peer;
    socklen_t own_length = sizeof own, peer_length = sizeof peer;

    memset(&own, 0, sizeof own);
    memset(&peer, 0, sizeof peer);
    return getsockname(fd, (struct sockaddr *)&own, &own_length) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_length) == 0 &&
           own_length == peer_length && memcmp(&own, &peer, own_length) == 0;
}

/* True for errors of this process, whatever the server does. */
static bool is_own_problem(int problem)
{
    return problem == EMFILE || problem == ENFILE || problem == ENOMEM ||
           problem == ENOBUFS;
}

/* Address i with the port, in storage; returns its length. */
static socklen_t attempt_address(const attempt_t *attempt, int i,
                                 struct sockaddr_storage *storage)
{
    const struct addrinfo *address = attempt->addresses[i];

    memcpy(storage, address->ai_addr, address->ai_addrlen);
    dscomm_priv_address_set_port((struct sockaddr *)storage, attempt->port);
    return address->ai_addrlen;
}

/* Notes why address i failed. An unsupported family is the least useful reason.
 */
static void attempt_note(attempt_t *attempt, int i, int problem)
{
    struct sockaddr_storage storage;
    socklen_t length;

    if (attempt->problem &&
        (problem == EADDRNOTAVAIL || problem == EAFNOSUPPORT ||
         problem == ENETUNREACH || is_own_problem(attempt->problem)))
        return;
    attempt->problem = problem;
    length = attempt_address(attempt, i, &storage);
    attempt->is_v4 = storage.ss_family == AF_INET;
    attempt->is_loopback =
        dscomm_priv_address_is_loopback((struct sockaddr *)&storage);
    dscomm_priv_address_name((struct sockaddr *)&storage, length,
                             attempt->name);
}

/* Starts the attempt for address i; true if it is under way or done. */
static bool attempt_begin(attempt_t *attempt, int i)
{
    struct sockaddr_storage storage;
    const socklen_t length = attempt_address(attempt, i, &storage);
    int fd = socket(storage.ss_family,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

    attempt->waiting[i] = (struct pollfd){.fd = fd, .events = POLLOUT};
    if (fd < 0) {
        attempt_note(attempt, i, errno);
        return false;
    }
    if (connect(fd, (struct sockaddr *)&storage, length) == 0 ||
        errno == EINPROGRESS || errno == EINTR)
        return true;
    attempt_note(attempt, i, errno);
    close(fd);
    attempt->waiting[i].fd = -1;
    return false;
}

/* Finishes an attempt whose socket is ready: 0 and *ret_fd, or -1. */
static int attempt_settle(attempt_t *attempt, int i, int *ret_fd)
{
    int fd = attempt->waiting[i].fd, problem = 0;
    socklen_t length = sizeof problem;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &length))
        problem = errno;
    if (!problem && talks_to_itself(fd))
        problem = ECONNREFUSED;
    attempt->waiting[i].fd = -1;
    if (!problem) {
        *ret_fd = fd;
        return 0;
    }
    attempt_note(attempt, i, problem);
    close(fd);
    return -1;
}

static int attempt_waiting(const attempt_t *attempt)
{
    int waiting = 0;

    for (int i = 0; i < attempt->begun; i++)
        waiting += attempt->waiting[i].fd >= 0;
    return waiting;
}

/* Runs until an attempt succeeds (0), or all have failed or the deadline has
 * passed (-1). */
static int attempt_run(attempt_t *attempt, dscomm_priv_deadline_t deadline,
                       int *ret_fd)
{
    dscomm_priv_deadline_t next = dscomm_priv_deadline(0);

    for (;;) {
        int waiting = attempt_waiting(attempt);
        int left = dscomm_priv_clock_left(deadline.at);

        while (attempt->begun < attempt->count &&
               (!waiting || dscomm_priv_clock() >= next.at)) {
            waiting += attempt_begin(attempt, attempt->begun++);
            next = dscomm_priv_deadline(STAGGER_MS);
        }
        if (!waiting)
            return -1;
        if (attempt->begun < attempt->count)
            left = MIN(left, dscomm_priv_clock_left(next.at));
        poll(attempt->waiting, (nfds_t)attempt->begun, left);
        for (int i = 0; i < attempt->begun; i++) {
            if (attempt->waiting[i].fd >= 0 && attempt->waiting[i].revents &&
                attempt_settle(attempt, i, ret_fd) == 0)
                return 0;
        }
        if (dscomm_priv_clock() >= deadline.at)
            return -1;
    }
}

/* Closes the sockets of all other attempts. */
static void attempt_close(attempt_t *attempt)
{
    for (int i = 0; i < attempt->begun; i++) {
        if (attempt->waiting[i].fd < 0)
            continue;
        if (!attempt->problem)
            attempt_note(attempt, i, ETIMEDOUT);
        close(attempt->waiting[i].fd);
    }
}

static const char *attempt_remedy(const attempt_t *attempt)
{
    switch (attempt->problem) {
    case EMFILE:
        return "; raise the limit of open files (ulimit -n)";
    case EADDRNOTAVAIL:
        return attempt->is_v4 ? "; allow more local ports (sysctl "
                                "net.ipv4.ip_local_port_range)"
                              : "";
    case ECONNREFUSED:
        return attempt->is_loopback ? "; that is this machine itself" : "";
    default:
        return "";
    }
}

static dscomm_status_t attempt_fail(const attempt_t *attempt, bool *ret_again)
{
    const int problem = attempt->problem;

    *ret_again = !is_own_problem(problem);
    return dscomm_fail(*ret_again ? DSCOMM_ERR_IO : DSCOMM_ERR_NO_MEMORY,
                       "connect to the store at %s: %s%s", attempt->name,
                       strerror(problem), attempt_remedy(attempt));
}

dscomm_status_t dscomm_priv_connect_list(const struct addrinfo *list, int port,
                                         dscomm_priv_deadline_t deadline,
                                         int *ret_fd, bool *ret_again)
{
    const dscomm_priv_deadline_t most = dscomm_priv_deadline(ATTEMPT_MS);
    attempt_t attempt = {.port = port};
    int result;

    attempt_sort(&attempt, list);
    result =
        attempt_run(&attempt, deadline.at < most.at ? deadline : most, ret_fd);
    attempt_close(&attempt);
    if (result)
        return attempt_fail(&attempt, ret_again);
    dscomm_priv_socket_tune(*ret_fd);
    return DSCOMM_OK;
}

/* Resolving a name with a deadline, which getaddrinfo() does not have. It runs
 * in a thread, which is abandoned if it takes too long. */

typedef struct {
    char service[8];
    struct addrinfo hints, *list;
    int problem, system; /* results of getaddrinfo(), and errno */
    bool done;
    int users; /* caller and thread, until each has left */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    char host[];
} lookup_t;

static lookup_t *lookup_new(const char *host, int port)
{
    lookup_t *lookup = calloc(1, sizeof *lookup + strlen(host) + 1);

    if (!lookup)
        return NULL;
    strcpy(lookup->host, host);
    snprintf(lookup->service, sizeof lookup->service, "%d", port);
    lookup->hints.ai_family = AF_UNSPEC;
    lookup->hints.ai_socktype = SOCK_STREAM;
    lookup->hints.ai_flags = AI_NUMERICSERV;
    lookup->users = 1;
    pthread_mutex_init(&lookup->mutex, NULL);
    dscomm_priv_cond_init(&lookup->changed);
    return lookup;
}

/* Called with the lock, which it releases. The last user frees the memory. */
static void lookup_leave(lookup_t *lookup)
{
    int users = --lookup->users;

    pthread_mutex_unlock(&lookup->mutex);
    if (users)
        return;
    if (lookup->list)
        freeaddrinfo(lookup->list);
    pthread_cond_destroy(&lookup->changed);
    pthread_mutex_destroy(&lookup->mutex);
    free(lookup);
}

static int lookup_resolve(lookup_t *lookup)
{
    int problem = getaddrinfo(lookup->host, lookup->service, &lookup->hints,
                              &lookup->list);

    lookup->system = errno;
    if (problem)
        lookup->list = NULL;
    return problem;
}

static void *lookup_run(void *arg)
{
    lookup_t *lookup = arg;
    int problem = lookup_resolve(lookup);

    pthread_mutex_lock(&lookup->mutex);
    lookup->problem = problem;
    lookup->done = true;
    pthread_cond_signal(&lookup->changed);
    lookup_leave(lookup);
    return NULL;
}

static int lookup_start(lookup_t *lookup)
{
    pthread_attr_t attr;
    pthread_t thread;
    int problem;

    lookup->users = 2;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    problem = dscomm_priv_thread_start(&thread, &attr, lookup_run, lookup);
    pthread_attr_destroy(&attr);
    return problem;
}

static dscomm_status_t lookup_fail(const lookup_t *lookup, bool *ret_again)
{
    int problem = lookup->problem;
    char shown[64];

    *ret_again =
        problem == EAI_AGAIN || problem == EAI_NONAME || problem == EAI_SYSTEM;
    return dscomm_fail(DSCOMM_ERR_NOT_FOUND,
                       "store host '%s' has no address: %s; give a name that "
                       "resolves on every node, or an address, as MASTER_ADDR "
                       "or in the URL",
                       dscomm_priv_quote(lookup->host, shown, sizeof shown),
                       problem == EAI_SYSTEM ? strerror(lookup->system)
                                             : gai_strerror(problem));
}

/* Resolves in a thread. */
static dscomm_status_t lookup_by_thread(lookup_t *lookup,
                                        dscomm_priv_deadline_t deadline,
                                        bool *ret_again)
{
    int problem = lookup_start(lookup);
    char shown[64];

    pthread_mutex_lock(&lookup->mutex);
    if (problem) {
        lookup->users = 1;
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "start a thread to look up a name: %s",
                           strerror(problem));
    }
    while (!lookup->done) {
        if (!dscomm_priv_cond_until(&lookup->changed, &lookup->mutex,
                                    deadline.at))
            break;
    }
    if (!lookup->done)
        return dscomm_fail(
            DSCOMM_ERR_TIMEOUT,
            "the name of store host '%s' found no answer within %d ms: is its "
            "name server reachable? Its address needs none",
            dscomm_priv_quote(lookup->host, shown, sizeof shown), deadline.ms);
    return lookup->problem ? lookup_fail(lookup, ret_again) : DSCOMM_OK;
}

dscomm_status_t dscomm_priv_resolve(const char *host, int port,
                                    dscomm_priv_deadline_t deadline,
                                    struct addrinfo **ret_list, bool *ret_again)
{
    lookup_t *lookup = lookup_new(host, port);
    dscomm_status_t status = DSCOMM_OK;

    *ret_again = false;
    if (!lookup)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no memory to look up a store's host");
    lookup->hints.ai_flags |= AI_NUMERICHOST;
    if (lookup_resolve(lookup) == 0) {
        pthread_mutex_lock(&lookup->mutex);
    } else {
        lookup->hints.ai_flags &= ~AI_NUMERICHOST;
        status = lookup_by_thread(lookup, deadline, ret_again);
    }
    if (!status)
        *ret_list = g_steal_pointer(&lookup->list);
    lookup_leave(lookup);
    return status;
}
