/* SPDX-License-Identifier: BSD-3-Clause */
/* How the ranks of a group come together: rank 0 listens on a unix socket
 * without a file, whose name and password go through the store, and hands out
 * the segment and everyone's pidfd. */
#include "config.h"

#include "backends/shm/connect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <glib.h>

#define KEY "shm"
#define NAMED 16

static void to_hex(const unsigned char *bytes, size_t count, char *ret_hex)
{
    for (size_t i = 0; i < count; i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", bytes[i]);
}

static socklen_t make_address(const char *name, struct sockaddr_un *ret_address)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* The leading zero byte makes it a name without a file. */
    snprintf(ret_address->sun_path + 1, sizeof ret_address->sun_path - 1,
             "dscomm-%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       strlen(ret_address->sun_path + 1));
}

static dscomm_status_t fail_socket(const shm_t *shm, const char *call)
{
    int error = errno;

    return dscomm_fail(
        error == EMFILE || error == ENFILE ? DSCOMM_ERR_NO_MEMORY
                                           : DSCOMM_ERR_IO,
        "rank %d of group '%s' cannot meet its peers: %s: %s%s", shm->rank,
        shm->name, call, strerror(error),
        error == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
}

/* Own pidfd, or -1 where the kernel has none: then a death is seen only by the
 * deadline. */
static int own_pidfd(void)
{
    return (int)syscall(SYS_pidfd_open, getpid(), 0);
}

/* Peers of a group that is made from another one are known already. */
static void share_peers(shm_t *shm, const shm_t *parent)
{
    shm->peers = parent->peers;
    atomic_fetch_add(&shm->peers->references, 1);
    for (int r = 0; r < shm->ranks; r++)
        for (int i = 0; i < parent->ranks; i++)
            if (parent->world_ranks[i] == shm->world_ranks[r])
                shm->peer[r] = parent->peer[i];
}

static void new_peers(shm_t *shm)
{
    shm->peers = shm_peers_new(shm->ranks);
    for (int r = 0; r < shm->ranks; r++)
        shm->peer[r] = r;
}

/* --- rank 0 --- */

typedef struct {
    shm_t *shm;
    int listener;
    int *sockets; /* of each rank, -1 = not here yet */
    unsigned char password[PASSWORD];
    bool with_peers;
    int64_t deadline; /* g_get_monotonic_time() */
} leader_t;

static dscomm_status_t leader_listen(leader_t *leader,
                                     const dscomm_backend_args_t *args)
{
    unsigned char name[8];
    char value[2 * (sizeof name + PASSWORD) + 1];
    struct sockaddr_un address;
    socklen_t length;

    if (getrandom(name, sizeof name, 0) != (ssize_t)sizeof name ||
        getrandom(leader->password, PASSWORD, 0) != PASSWORD)
        return fail_socket(leader->shm, "getrandom");
    to_hex(name, sizeof name, value);
    length = make_address(value, &address);
    to_hex(leader->password, PASSWORD, value + 2 * sizeof name);
    leader->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (leader->listener < 0)
        return fail_socket(leader->shm, "socket");
    if (bind(leader->listener, (struct sockaddr *)&address, length))
        return fail_socket(leader->shm, "bind");
    if (listen(leader->listener, SOMAXCONN))
        return fail_socket(leader->shm, "listen");
    return dscomm_store_set(args->store, KEY, value, strlen(value));
}

static bool same_user(int fd)
{
    struct ucred credentials;
    socklen_t length = sizeof credentials;

    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) &&
           credentials.uid == geteuid();
}

/* Takes one connection; strangers are closed and forgotten. */
static void leader_admit(leader_t *leader, int fd)
{
    shm_t *shm = leader->shm;
    hello_t hello;
    int pidfd = -1;
    int64_t soon = g_get_monotonic_time() + 2 * G_USEC_PER_SEC;

    if (!same_user(fd) ||
        shm_message_receive(fd, &hello, sizeof hello, &pidfd, 1,
                            MIN(soon, leader->deadline)) ||
        hello.magic != SHM_MAGIC ||
        memcmp(hello.password, leader->password, PASSWORD) || hello.rank <= 0 ||
        hello.rank >= shm->ranks || leader->sockets[hello.rank] >= 0) {
        dscomm_log(DSCOMM_LOG_INFO, "shm",
                   "group '%s': closed a connection that is not a rank's",
                   shm->name);
        close(fd);
        if (pidfd >= 0)
            close(pidfd);
        return;
    }
    leader->sockets[hello.rank] = fd;
    if (leader->with_peers) {
        shm->peers->fds[hello.rank] = pidfd;
        shm->peers->pids[hello.rank] = hello.pid;
    } else if (pidfd >= 0) {
        close(pidfd);
    }
}

static dscomm_status_t fail_missing(const leader_t *leader)
{
    const shm_t *shm = leader->shm;
    GString *list = g_string_new(NULL);
    dscomm_status_t status;
    int missing = 0;

    for (int r = 1; r < shm->ranks; r++)
        if (leader->sockets[r] < 0 && missing++ < NAMED)
            g_string_append_printf(list, "%s%d", list->len ? ", " : "", r);
    status = dscomm_fail(
        DSCOMM_ERR_TIMEOUT,
        "group '%s': rank%s %s%s of %d did not join its shared memory within "
        "%.1f s; did they reach the same call?",
        shm->name, missing > 1 ? "s" : "", list->str,
        missing > NAMED ? " and more" : "", shm->ranks,
        shm->timeout_ms / 1000.0);
    g_string_free(list, TRUE);
    return status;
}

static dscomm_status_t leader_gather(leader_t *leader)
{
    for (int here = 1; here < leader->shm->ranks;) {
        int fd;

        if (!shm_message_poll(leader->listener, leader->deadline))
            return fail_missing(leader);
        fd = accept4(leader->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
            return fail_socket(leader->shm, "accept");
        if (fd >= 0)
            leader_admit(leader, fd);
        here = 1;
        for (int r = 1; r < leader->shm->ranks; r++)
            here += leader->sockets[r] >= 0;
    }
    return DSCOMM_OK;
}

/* Same verdict to everyone who came. */
static void leader_tell(leader_t *leader, dscomm_status_t status, int fd)
{
    verdict_t verdict = {.magic = SHM_MAGIC, .status = status};

    verdict.layout = leader->shm->layout;
    if (status)
        snprintf(verdict.text, sizeof verdict.text, "%s", dscomm_last_error());
    for (int r = 1; r < leader->shm->ranks; r++)
        if (leader->sockets[r] >= 0)
            shm_message_send(leader->sockets[r], &verdict, sizeof verdict, &fd,
                             status || fd < 0 ? 0 : 1, leader->deadline);
}

/* Everyone's pid and pidfd to everyone, in messages of PEER_BATCH. */
static dscomm_status_t leader_introduce(leader_t *leader)
{
    const shm_t *shm = leader->shm;
    const shm_peers_t *peers = shm->peers;

    for (int from = 0; from < peers->count; from += PEER_BATCH) {
        peers_t batch = {.magic = SHM_MAGIC};
        int fds[PEER_BATCH], nfds = 0;

        for (int i = from; i < MIN(from + PEER_BATCH, peers->count); i++) {
            batch.pids[i - from] = peers->pids[i];
            batch.has_fd[i - from] = peers->fds[i] >= 0;
            if (peers->fds[i] >= 0)
                fds[nfds++] = peers->fds[i];
        }
        for (int r = 1; r < peers->count; r++) {
            int error =
                shm_message_send(leader->sockets[r], &batch, sizeof batch, fds,
                                 nfds, leader->deadline);

            if (error)
                return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                                   "group '%s': cannot introduce rank %d to "
                                   "the others: %s",
                                   shm->name, r, strerror(error));
        }
    }
    return DSCOMM_OK;
}

static dscomm_status_t leader_collect(leader_t *leader)
{
    shm_t *shm = leader->shm;

    for (int r = 1; r < shm->ranks; r++) {
        verdict_t ready;
        int failed =
            shm_message_receive(leader->sockets[r], &ready, sizeof ready, NULL,
                                0, leader->deadline);

        if (failed)
            return dscomm_fail(
                DSCOMM_ERR_PEER_FAILED,
                "group '%s': rank %d %s while the group was made", shm->name, r,
                failed == ETIMEDOUT ? "was silent" : "went away");
        if (ready.status)
            return dscomm_fail(ready.status, "%.*s", (int)sizeof ready.text - 1,
                               ready.text);
    }
    return DSCOMM_OK;
}

static dscomm_status_t leader_meet(leader_t *leader,
                                   dscomm_status_t (*attach)(shm_t *shm))
{
    shm_t *shm = leader->shm;
    dscomm_status_t status = leader_gather(leader);

    if (!status) {
        status = shm_layout_make(shm->ranks, &shm->layout);
        if (!status)
            status = shm_segment_create(shm->name, &shm->layout, &shm->fd);
    }
    leader_tell(leader, status, shm->fd);
    if (status)
        return status;
    if (leader->with_peers)
        status = leader_introduce(leader);
    if (!status)
        status = attach(shm);
    if (!status)
        status = leader_collect(leader);
    leader_tell(leader, status, -1);
    return status;
}

static dscomm_status_t connect_leader(shm_t *shm,
                                      const dscomm_backend_args_t *args,
                                      dscomm_status_t (*attach)(shm_t *shm))
{
    leader_t leader = {.shm = shm, .listener = -1, .with_peers = !args->parent};
    dscomm_status_t status;

    leader.deadline = g_get_monotonic_time() + (int64_t)args->timeout_ms * 1000;
    leader.sockets = g_new(int, (gsize)shm->ranks);
    for (int r = 0; r < shm->ranks; r++)
        leader.sockets[r] = -1;
    if (leader.with_peers)
        shm->peers->pids[0] = getpid();
    if (leader.with_peers && shm->peers->fds[0] < 0)
        shm->peers->fds[0] = own_pidfd();
    status = leader_listen(&leader, args);
    if (!status)
        status = leader_meet(&leader, attach);
    for (int r = 1; r < shm->ranks; r++)
        if (leader.sockets[r] >= 0)
            close(leader.sockets[r]);
    if (leader.listener >= 0)
        close(leader.listener);
    g_free(leader.sockets);
    return status;
}

/* --- the others --- */

static bool from_hex(const char *hex, unsigned char *ret_bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int high = g_ascii_xdigit_value(hex[2 * i]);
        int low = high < 0 ? -1 : g_ascii_xdigit_value(hex[2 * i + 1]);

        if (low < 0)
            return false;
        ret_bytes[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

static dscomm_status_t member_join(shm_t *shm,
                                   const dscomm_backend_args_t *args, int fd,
                                   int64_t deadline)
{
    hello_t hello = {.magic = SHM_MAGIC, .rank = shm->rank, .pid = getpid()};
    struct sockaddr_un address;
    socklen_t length;
    size_t size;
    void *value;
    bool sane;
    int pidfd;
    dscomm_status_t status =
        dscomm_store_get(args->store, KEY, args->timeout_ms, &value, &size);

    if (status == DSCOMM_ERR_TIMEOUT)
        return dscomm_fail(status,
                           "group '%s': rank 0 did not offer its shared memory "
                           "within %.1f s; did it reach the same call?",
                           shm->name, args->timeout_ms / 1000.0);
    if (status)
        return status;
    sane = size == 16 + 2 * PASSWORD &&
           from_hex((char *)value + 16, hello.password, PASSWORD);
    if (sane)
        ((char *)value)[16] = 0;
    length = make_address(sane ? value : "", &address);
    dscomm_store_free(value);
    if (!sane)
        return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                           "group '%s': the store's key '%s' holds no address; "
                           "is the store shared with another program?",
                           shm->name, KEY);
    if (connect(fd, (struct sockaddr *)&address, length))
        return fail_socket(shm, "connect to rank 0 (same network namespace?)");
    pidfd = args->parent ? -1 : own_pidfd();
    if (shm_message_send(fd, &hello, sizeof hello, &pidfd, pidfd >= 0,
                         deadline))
        status = fail_socket(shm, "greet rank 0");
    if (pidfd >= 0)
        close(pidfd);
    return status;
}

/* What rank 0 decided; *ret_fd may be NULL. */
static dscomm_status_t member_verdict(shm_t *shm, int fd, int64_t deadline,
                                      int *ret_fd)
{
    verdict_t verdict;
    int failed = shm_message_receive(fd, &verdict, sizeof verdict, ret_fd,
                                     ret_fd ? 1 : 0, deadline);

    if (failed)
        return dscomm_fail(
            failed == ETIMEDOUT ? DSCOMM_ERR_TIMEOUT : DSCOMM_ERR_PEER_FAILED,
            "group '%s': rank 0 %s while the group was made", shm->name,
            failed == ETIMEDOUT ? "was silent" : "went away");
    if (verdict.status)
        return dscomm_fail(verdict.status, "%.*s", (int)sizeof verdict.text - 1,
                           verdict.text);
    shm->layout = verdict.layout;
    return DSCOMM_OK;
}

static dscomm_status_t member_meet_peers(shm_t *shm, int fd, int64_t deadline)
{
    shm_peers_t *peers = shm->peers;

    for (int from = 0; from < peers->count; from += PEER_BATCH) {
        peers_t batch;
        int fds[PEER_BATCH], next = 0;

        if (shm_message_receive(fd, &batch, sizeof batch, fds, PEER_BATCH,
                                deadline))
            return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                               "group '%s': rank 0 did not introduce the other "
                               "processes (limit of open files, ulimit -n?)",
                               shm->name);
        for (int i = from; i < MIN(from + PEER_BATCH, peers->count); i++) {
            peers->pids[i] = batch.pids[i - from];
            if (batch.has_fd[i - from])
                peers->fds[i] = fds[next++];
        }
    }
    return DSCOMM_OK;
}

static void member_report(int fd, dscomm_status_t status)
{
    verdict_t ready = {.magic = SHM_MAGIC, .status = status};

    if (status)
        snprintf(ready.text, sizeof ready.text, "%s", dscomm_last_error());
    shm_message_send(fd, &ready, sizeof ready, NULL, 0, 0);
}

static dscomm_status_t member_meet(shm_t *shm,
                                   const dscomm_backend_args_t *args, int fd,
                                   dscomm_status_t (*attach)(shm_t *shm))
{
    /* Rank 0 gives up first, and says why. */
    int64_t deadline = g_get_monotonic_time() +
                       (int64_t)args->timeout_ms * 1000 + 2 * G_USEC_PER_SEC;
    dscomm_status_t status = member_join(shm, args, fd, deadline);

    if (status || (status = member_verdict(shm, fd, deadline, &shm->fd)))
        return status;
    if (!args->parent)
        status = member_meet_peers(shm, fd, deadline);
    if (!status)
        status = attach(shm);
    member_report(fd, status);
    return status ? status : member_verdict(shm, fd, deadline, NULL);
}

dscomm_status_t shm_connect(shm_t *shm, const dscomm_backend_args_t *args,
                            dscomm_status_t (*attach)(shm_t *shm))
{
    dscomm_status_t status;
    int fd;

    if (args->parent)
        share_peers(shm, args->parent);
    else
        new_peers(shm);
    if (!shm->rank)
        return connect_leader(shm, args, attach);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail_socket(shm, "socket");
    status = member_meet(shm, args, fd, attach);
    close(fd);
    return status;
}
