/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting to a host of several addresses, some of which may be dead: side by
 * side, each a little after the one before, in the manner of RFC 8305. */
#include "config.h"

#include "lib/store/tcp/socket.h"

#include "lib/base/status.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define ADDRESSES_MAX 16
/* For all; the caller may try anew, as a lost packet is sent again after ever
 * longer times. */
#define ATTEMPT_MS 10000
#define STAGGER_MS 250 /* before the next, while one does not answer */

typedef struct {
    const struct addrinfo *addresses[ADDRESSES_MAX];
    struct pollfd waiting[ADDRESSES_MAX]; /* of each; fd -1: none */
    int count, begun;
    int port;
    int problem; /* an errno, of the last that counts */
    char name[SOCKET_NAME_MAX]; /* of its address */
} attempt_t;

/* The other family second, as the preferred one may lead nowhere. */
static void sort(attempt_t *attempt, const struct addrinfo *list)
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

static void set_port(struct sockaddr_storage *address, int port)
{
    if (address->ss_family == AF_INET)
        ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
    else if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
}

/* A connection to a free local port may meet itself: the kernel picks as its
 * own port the very one that it calls. */
static gboolean talks_to_itself(int fd)
{
    struct sockaddr_storage own, peer;
    socklen_t own_length = sizeof own, peer_length = sizeof peer;

    memset(&own, 0, sizeof own);
    memset(&peer, 0, sizeof peer);
    return getsockname(fd, (struct sockaddr *)&own, &own_length) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_length) == 0 &&
           own_length == peer_length && memcmp(&own, &peer, own_length) == 0;
}

/* What this process lacks, and no server can help. */
static gboolean is_own_problem(int problem)
{
    return problem == EMFILE || problem == ENFILE || problem == ENOMEM ||
           problem == ENOBUFS;
}

/* Notes why address i failed. That it is of no family here says least. */
static void note(attempt_t *attempt, int i, int problem)
{
    const struct addrinfo *address = attempt->addresses[i];
    struct sockaddr_storage storage;

    if (attempt->problem &&
        (problem == EADDRNOTAVAIL || problem == EAFNOSUPPORT ||
         problem == ENETUNREACH || is_own_problem(attempt->problem)))
        return;
    attempt->problem = problem;
    memcpy(&storage, address->ai_addr, address->ai_addrlen);
    set_port(&storage, attempt->port);
    dscomm_priv_address_name((struct sockaddr *)&storage, address->ai_addrlen,
                             attempt->name);
}

/* Begins with address i; TRUE where it has begun, or is done already. */
static gboolean begin(attempt_t *attempt, int i)
{
    const struct addrinfo *address = attempt->addresses[i];
    struct sockaddr_storage storage;
    int fd = socket(address->ai_family,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

    attempt->waiting[i] = (struct pollfd){.fd = fd, .events = POLLOUT};
    if (fd < 0) {
        note(attempt, i, errno);
        return FALSE;
    }
    memcpy(&storage, address->ai_addr, address->ai_addrlen);
    set_port(&storage, attempt->port);
    if (connect(fd, (struct sockaddr *)&storage, address->ai_addrlen) == 0 ||
        errno == EINPROGRESS || errno == EINTR)
        return TRUE;
    note(attempt, i, errno);
    close(fd);
    attempt->waiting[i].fd = -1;
    return FALSE;
}

/* What became of a socket that is ready: 0 and *ret_fd, or -1. */
static int settle(attempt_t *attempt, int i, int *ret_fd)
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
    note(attempt, i, problem);
    close(fd);
    return -1;
}

static int count_waiting(const attempt_t *attempt)
{
    int waiting = 0;

    for (int i = 0; i < attempt->begun; i++)
        waiting += attempt->waiting[i].fd >= 0;
    return waiting;
}

/* Until one is connected (0), all have failed or it is too late (-1). */
static int run(attempt_t *attempt, dscomm_priv_deadline_t deadline, int *ret_fd)
{
    dscomm_priv_deadline_t next = dscomm_priv_deadline(0);

    for (;;) {
        int waiting = count_waiting(attempt);
        int left = dscomm_priv_deadline_left(deadline);

        while (attempt->begun < attempt->count &&
               (!waiting || dscomm_priv_deadline_passed(next))) {
            waiting += begin(attempt, attempt->begun++);
            next = dscomm_priv_deadline(STAGGER_MS);
        }
        if (!waiting)
            return -1;
        if (attempt->begun < attempt->count)
            left = MIN(left, dscomm_priv_deadline_left(next));
        poll(attempt->waiting, (nfds_t)attempt->begun, left);
        for (int i = 0; i < attempt->begun; i++) {
            if (attempt->waiting[i].fd >= 0 && attempt->waiting[i].revents &&
                settle(attempt, i, ret_fd) == 0)
                return 0;
        }
        if (dscomm_priv_deadline_passed(deadline))
            return -1;
    }
}

/* Those that are not needed, or never answered. */
static void give_up(attempt_t *attempt)
{
    for (int i = 0; i < attempt->begun; i++) {
        if (attempt->waiting[i].fd < 0)
            continue;
        if (!attempt->problem)
            note(attempt, i, ETIMEDOUT);
        close(attempt->waiting[i].fd);
    }
}

static dscomm_status_t fail_connect(const attempt_t *attempt,
                                    gboolean *ret_again)
{
    int problem = attempt->problem;

    *ret_again = !is_own_problem(problem);
    return dscomm_fail(
        *ret_again ? DSCOMM_ERR_IO : DSCOMM_ERR_NO_MEMORY,
        "connect to the store at %s: %s%s", attempt->name, strerror(problem),
        problem == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
}

dscomm_status_t dscomm_priv_connect_list(const struct addrinfo *list, int port,
                                         dscomm_priv_deadline_t deadline,
                                         int *ret_fd, gboolean *ret_again)
{
    const dscomm_priv_deadline_t most = dscomm_priv_deadline(ATTEMPT_MS);
    attempt_t attempt = {.port = port};
    int result;

    sort(&attempt, list);
    result = run(&attempt, deadline.at < most.at ? deadline : most, ret_fd);
    give_up(&attempt);
    if (result)
        return fail_connect(&attempt, ret_again);
    dscomm_priv_socket_tune(*ret_fd);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_connect(const char *host, int port,
                                    dscomm_priv_deadline_t deadline,
                                    int *ret_fd, gboolean *ret_again)
{
    struct addrinfo *list;
    dscomm_status_t status =
        dscomm_priv_resolve(host, port, deadline, &list, ret_again);

    if (status)
        return status;
    status = dscomm_priv_connect_list(list, port, deadline, ret_fd, ret_again);
    freeaddrinfo(list);
    return status;
}
