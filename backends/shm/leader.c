/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 of a group that is made: it listens on a unix socket without a file,
 * whose name and password go through the store, and hands out the segment and
 * everyone's pidfd. */
#include "config.h"

#include "backends/shm/connect.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <glib.h>

#define NAMED 16
/* Between looks of rank 0 for a rank that has failed before it could say
 * hello. */
#define FIRST_LOOK_MS 20
#define MOST_LOOK_MS 250
/* How long a rank 0 that failed stays, with the store it may serve, for those
 * that have not read why. */
#define GRACE_MS 1000

static void to_hex(const unsigned char *bytes, size_t count, char *ret_hex)
{
    for (size_t i = 0; i < count; i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", bytes[i]);
}

typedef struct {
    shm_t *shm;
    dscomm_store_t *store;
    int listener;
    int *sockets; /* of each rank, -1 = not here yet */
    unsigned char password[PASSWORD];
    char offer[OFFER + 1]; /* what the store's key holds */
    bool with_peers;
    int64_t deadline; /* g_get_monotonic_time() */
} leader_t;

static dscomm_status_t leader_offer(const leader_t *leader)
{
    return dscomm_store_set(leader->store, SHM_KEY, leader->offer, OFFER);
}

/* Blocks, and may be interrupted, until the kernel's generator is seeded. */
static bool draw(unsigned char *ret_bytes, size_t size)
{
    ssize_t got;

    do {
        got = getrandom(ret_bytes, size, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)size;
}

static dscomm_status_t leader_listen(leader_t *leader)
{
    unsigned char name[NAME];
    struct sockaddr_un address;
    socklen_t length;

    if (!draw(name, sizeof name) || !draw(leader->password, PASSWORD))
        return shm_connect_fail(leader->shm, "getrandom");
    to_hex(name, sizeof name, leader->offer);
    length = shm_connect_address(leader->offer, &address);
    to_hex(leader->password, PASSWORD, leader->offer + 2 * sizeof name);
    leader->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (leader->listener < 0)
        return shm_connect_fail(leader->shm, "socket");
    if (bind(leader->listener, (struct sockaddr *)&address, length))
        return shm_connect_fail(leader->shm, "bind");
    if (listen(leader->listener, SOMAXCONN))
        return shm_connect_fail(leader->shm, "listen");
    return leader_offer(leader);
}

/* Takes one connection; strangers are closed and forgotten. */
static dscomm_status_t leader_admit(leader_t *leader, int fd)
{
    shm_t *shm = leader->shm;
    hello_t hello;
    int pidfd = -1, failed = EPROTO;
    int64_t soon = g_get_monotonic_time() + 2 * G_USEC_PER_SEC;

    if (shm_message_same_user(fd))
        failed = shm_message_receive(fd, &hello, sizeof hello, &pidfd, 1,
                                     MIN(soon, leader->deadline));
    if ((failed && failed != EMFILE) || hello.magic != SHM_MAGIC ||
        memcmp(hello.password, leader->password, PASSWORD) || hello.rank <= 0 ||
        hello.rank >= shm->ranks || leader->sockets[hello.rank] >= 0) {
        dscomm_log(DSCOMM_LOG_INFO, "shm",
                   "group '%s': closed a connection that is not a rank's",
                   shm->name);
        close(fd);
        if (pidfd >= 0)
            close(pidfd);
        return DSCOMM_OK;
    }
    leader->sockets[hello.rank] = fd;
    if (leader->with_peers) {
        shm->peers->fds[hello.rank] = pidfd;
        shm->peers->pids[hello.rank] = hello.pid;
    } else if (pidfd >= 0) {
        close(pidfd);
    }
    return failed ? shm_connect_full(shm) : DSCOMM_OK;
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

/* A process that is known from the parent group can be seen to end. */
static dscomm_status_t check_known(const leader_t *leader)
{
    const shm_t *shm = leader->shm;

    for (int r = 1; r < shm->ranks && !leader->with_peers; r++) {
        int peer = shm->peer[r];
        struct pollfd one = {shm->peers->fds[peer], POLLIN, 0};

        if (leader->sockets[r] < 0 && poll(&one, 1, 0) > 0)
            return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                               "group '%s': rank %d (pid %ld) died while the "
                               "group was made",
                               shm->name, r, (long)shm->peers->pids[peer]);
    }
    return DSCOMM_OK;
}

/* Waits for the next connection, and looks at times whether a rank has failed
 * before it could make one. Whoever may write to the store can overwrite the
 * offer, so it is made again each time. */
static dscomm_status_t leader_await(const leader_t *leader)
{
    int64_t slice = FIRST_LOOK_MS * 1000;

    for (;;) {
        int64_t now = g_get_monotonic_time();
        dscomm_status_t status;

        if (shm_message_poll(leader->listener,
                             MIN(now + slice, leader->deadline)))
            return DSCOMM_OK;
        status = shm_failure_look(leader->store);
        if (!status)
            status = check_known(leader);
        if (!status)
            status = leader_offer(leader);
        if (status)
            return status;
        if (now + slice >= leader->deadline)
            return fail_missing(leader);
        slice = MIN(2 * slice, MOST_LOOK_MS * 1000);
    }
}

static dscomm_status_t leader_gather(leader_t *leader)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int here = 1; here < leader->shm->ranks && !status;) {
        int fd;

        status = leader_await(leader);
        if (status)
            return status;
        fd = accept4(leader->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
            return shm_connect_fail(leader->shm, "accept");
        if (fd >= 0)
            status = leader_admit(leader, fd);
        here = 1;
        for (int r = 1; r < leader->shm->ranks; r++)
            here += leader->sockets[r] >= 0;
    }
    return status;
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
    if (status)
        return status;
    leader_tell(leader, DSCOMM_OK, shm->fd);
    if (leader->with_peers)
        status = leader_introduce(leader);
    if (!status)
        status = attach(shm);
    if (!status)
        status = leader_collect(leader);
    return status;
}

/* Have all connected, and those connections ended since? After a timeout those
 * that did not are not waited for any longer. */
static bool all_are_gone(const leader_t *leader, dscomm_status_t status)
{
    for (int r = 1; r < leader->shm->ranks; r++) {
        struct pollfd one = {leader->sockets[r], 0, 0};

        if (one.fd < 0 && status == DSCOMM_ERR_TIMEOUT)
            continue;
        if (one.fd < 0 || poll(&one, 1, 0) < 0 || !(one.revents & POLLHUP))
            return false;
    }
    return true;
}

/* Tells why it failed to those that wait for an address, for a connection or
 * for a message, and stays a moment while they read. */
static dscomm_status_t leader_give_up(leader_t *leader, dscomm_status_t status)
{
    int64_t end = g_get_monotonic_time() + GRACE_MS * 1000, told = 0;
    char *sentence;

    status = shm_failure_settle(leader->store, status);
    sentence = g_strdup(dscomm_last_error());
    leader_tell(leader, status, -1);
    if (leader->listener >= 0)
        close(leader->listener);
    leader->listener = -1;
    dscomm_store_set(leader->store, SHM_KEY, "", 0);
    while (!all_are_gone(leader, status) && g_get_monotonic_time() < end &&
           !dscomm_store_add(leader->store, SHM_TOLD, 0, &told) &&
           told < leader->shm->ranks - 1)
        g_usleep(2000);
    dscomm_fail(status, "%s", sentence);
    g_free(sentence);
    return status;
}

dscomm_status_t shm_connect_leader(shm_t *shm,
                                   const dscomm_backend_args_t *args,
                                   dscomm_status_t (*attach)(shm_t *shm))
{
    leader_t leader = {.shm = shm,
                       .store = args->store,
                       .listener = -1,
                       .with_peers = !args->parent};
    dscomm_status_t status = DSCOMM_OK;

    leader.deadline = g_get_monotonic_time() + (int64_t)args->open_ms * 1000;
    leader.sockets = g_new(int, (gsize)shm->ranks);
    for (int r = 0; r < shm->ranks; r++)
        leader.sockets[r] = -1;
    if (leader.with_peers)
        shm->peers->pids[0] = getpid();
    if (leader.with_peers && shm->peers->fds[0] < 0)
        status = shm_connect_pidfd(shm, &shm->peers->fds[0]);
    if (!status)
        status = leader_listen(&leader);
    if (!status)
        status = leader_meet(&leader, attach);
    if (status)
        status = leader_give_up(&leader, status);
    else
        leader_tell(&leader, DSCOMM_OK, -1);
    for (int r = 1; r < shm->ranks; r++)
        if (leader.sockets[r] >= 0)
            close(leader.sockets[r]);
    if (leader.listener >= 0)
        close(leader.listener);
    g_free(leader.sockets);
    return status;
}
