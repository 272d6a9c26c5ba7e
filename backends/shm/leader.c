/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's part of making a group: it listens on a unix socket without a file,
 * whose name and password it puts into the store, and sends the segment and
 * the pidfds of all ranks to every rank. */
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
/* pause between repetitions of the offer */
#define OFFER_NS (250 * NS_PER_MS)

static void to_hex(const unsigned char *bytes, size_t count, char *ret_hex)
{
    for (size_t i = 0; i < count; i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", bytes[i]);
}

typedef struct {
    shm_t *shm;
    const dscomm_backend_args_t *args;
    int listener;
    int *sockets; /* socket of each rank, -1 = not connected yet */
    unsigned char password[PASSWORD];
    char offer[OFFER + 1]; /* the value of the store's key */
    bool with_peers;
    int64_t end_ns; /* shm_now_ns() */
} leader_t;

static dscomm_status_t leader_offer(const leader_t *leader)
{
    return dscomm_store_set(leader->args->store, SHM_KEY, leader->offer, OFFER);
}

/* Draws random bytes. May block until the kernel's generator is seeded, and a
 * signal may interrupt that. */
static bool secret_draw(unsigned char *ret_bytes, size_t size)
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

    if (!secret_draw(name, sizeof name) ||
        !secret_draw(leader->password, PASSWORD))
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

/* Accepts one connection; those of strangers are closed and not counted. */
static dscomm_status_t leader_admit(leader_t *leader, int fd)
{
    shm_t *shm = leader->shm;
    hello_t hello;
    int pidfd = -1, failed = EPROTO;
    int64_t soon_ns = shm_now_ns() + 2000 * NS_PER_MS;

    if (shm_message_same_user(fd))
        failed = shm_message_receive(fd, &hello, sizeof hello, &pidfd, 1,
                                     MIN(soon_ns, leader->end_ns));
    if (shm_message_is_own(failed) && failed != EMFILE) {
        close(fd);
        errno = failed;
        return shm_connect_fail(shm, "recvmsg");
    }
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
    return failed ? shm_connect_lost(shm, leader->args, hello.rank, "recvmsg",
                                     failed)
                  : DSCOMM_OK;
}

static dscomm_status_t leader_fail_missing(const leader_t *leader)
{
    const shm_t *shm = leader->shm;
    char who[DSCOMM_CREATION_RANK_MAX], list[DSCOMM_FAILURE_DETAIL_MAX] = "";
    int missing = 0;

    for (int r = 1; r < shm->ranks; r++) {
        if (leader->sockets[r] >= 0 || missing++ >= NAMED)
            continue;
        if (*list)
            g_strlcat(list, ", ", sizeof list);
        g_strlcat(list, dscomm_backend_creation_rank(leader->args, r, who),
                  sizeof list);
    }
    return dscomm_fail(
        DSCOMM_ERR_TIMEOUT,
        "%s%s did not join its shared memory within %.1f s; did they reach the "
        "same call?",
        list, missing > NAMED ? " and more" : "",
        leader->args->open_ms / 1000.0);
}

/* Waits for the next connection. Another process that may write to the store
 * can overwrite the offer, so it is repeated from time to time. */
static dscomm_status_t leader_await(const leader_t *leader)
{
    for (;;) {
        int64_t now_ns = shm_now_ns();
        dscomm_status_t status =
            shm_connect_await(leader->args, leader->listener,
                              MIN(now_ns + OFFER_NS, leader->end_ns));

        if (status != DSCOMM_ERR_TIMEOUT)
            return status;
        if (now_ns + OFFER_NS >= leader->end_ns)
            return leader_fail_missing(leader);
        status = leader_offer(leader);
        if (status && status != DSCOMM_ERR_TIMEOUT)
            return status;
    }
}

/* Accepts every rank, whatever number of strangers connect meanwhile. */
static dscomm_status_t leader_gather(leader_t *leader)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int here = 1, before = 0; here < leader->shm->ranks && !status;) {
        int fd;

        if (here == before)
            status = dscomm_backend_creation_check(leader->args);
        if (!status && shm_now_ns() >= leader->end_ns)
            status = leader_fail_missing(leader);
        before = here;
        if (!status)
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

/* Sends the same result to every connected rank: failure, or success if that
 * is NULL. A rank that has gone is detected later. */
static dscomm_status_t
leader_send_result(leader_t *leader, const dscomm_failure_t *failure, int fd)
{
    const dscomm_status_t status = failure ? failure->status : DSCOMM_OK;
    join_result_t result = {.magic = SHM_MAGIC, .status = status};
    int failed;

    result.layout = leader->shm->layout;
    if (failure)
        dscomm_backend_failure_pack(failure, result.failure);
    for (int r = 1; r < leader->shm->ranks; r++) {
        if (leader->sockets[r] < 0)
            continue;
        failed =
            shm_message_send(leader->sockets[r], &result, sizeof result, &fd,
                             status || fd < 0 ? 0 : 1, leader->end_ns);
        if (!status && shm_message_is_own(failed)) {
            errno = failed;
            return shm_connect_fail(leader->shm, "sendmsg");
        }
    }
    return DSCOMM_OK;
}

/* Sends the pids and pidfds of all ranks to every rank, in messages of
 * PEER_BATCH. */
static dscomm_status_t leader_send_peers(const leader_t *leader)
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
            int failed =
                shm_message_send(leader->sockets[r], &batch, sizeof batch, fds,
                                 nfds, leader->end_ns);

            if (failed)
                return shm_connect_lost(shm, leader->args, r, "sendmsg",
                                        failed);
        }
    }
    return DSCOMM_OK;
}

/* Receives the result of a rank. */
static dscomm_status_t leader_receive_result(const leader_t *leader, int rank)
{
    char who[DSCOMM_CREATION_RANK_MAX];
    dscomm_status_t status =
        shm_connect_await(leader->args, leader->sockets[rank], leader->end_ns);
    join_result_t ready;
    int failed;

    if (status == DSCOMM_ERR_TIMEOUT)
        return dscomm_fail(
            status, "%s was silent for %.1f s while the group was made",
            dscomm_backend_creation_rank(leader->args, rank, who),
            leader->args->open_ms / 1000.0);
    if (status)
        return status;
    failed = shm_message_receive(leader->sockets[rank], &ready, sizeof ready,
                                 NULL, 0, 0);
    if (failed)
        return shm_connect_lost(leader->shm, leader->args, rank, "recvmsg",
                                failed);
    return shm_connect_result(&ready);
}

static dscomm_status_t leader_collect(const leader_t *leader)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int r = 1; r < leader->shm->ranks && !status; r++)
        status = leader_receive_result(leader, r);
    return status;
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
    status = leader_send_result(leader, NULL, shm->fd);
    if (!status && leader->with_peers)
        status = leader_send_peers(leader);
    if (!status)
        status = attach(shm);
    if (!status)
        status = leader_collect(leader);
    return status;
}

/* Sends the failure to the ranks that wait for an address, a connection or a
 * message. */
static dscomm_status_t leader_give_up(leader_t *leader, dscomm_status_t status)
{
    dscomm_failure_t failure;

    status = dscomm_backend_creation_fail(leader->args, status);
    dscomm_backend_failure_last(leader->shm->group, status, &failure);
    (void)leader_send_result(leader, &failure, -1);
    if (leader->listener >= 0)
        close(leader->listener);
    leader->listener = -1;
    dscomm_store_set(leader->args->store, SHM_KEY, "", 0);
    return dscomm_backend_fail(&failure);
}

dscomm_status_t shm_connect_leader(shm_t *shm,
                                   const dscomm_backend_args_t *args,
                                   dscomm_status_t (*attach)(shm_t *shm))
{
    leader_t leader = {
        .shm = shm, .args = args, .listener = -1, .with_peers = !args->parent};
    dscomm_status_t status = DSCOMM_OK;

    leader.end_ns = shm_now_ns() + args->open_ms * NS_PER_MS;
    leader.sockets = g_try_new(int, (gsize)shm->ranks);
    if (!leader.sockets)
        return shm_connect_no_memory(shm);
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
    if (!status)
        status = leader_send_result(&leader, NULL, -1);
    if (status)
        status = leader_give_up(&leader, status);
    else /* if this fails, only memory of the store is lost */
        (void)dscomm_store_delete(args->store, SHM_KEY, NULL);
    for (int r = 1; r < shm->ranks; r++)
        if (leader.sockets[r] >= 0)
            close(leader.sockets[r]);
    if (leader.listener >= 0)
        close(leader.listener);
    g_free(leader.sockets);
    return status;
}
