/* SPDX-License-Identifier: BSD-3-Clause */
/* How the ranks of a group come together, as those see it that are not rank 0:
 * a unix socket without a file, whose name and password are in the store, gives
 * the segment and everyone's pidfd. */
#include "config.h"

#include "backends/shm/connect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <glib.h>

#define OFFER_PAUSE_US                                                         \
    10000 /* until an offer that is not rank 0's is replaced */

socklen_t shm_connect_address(const char *name, struct sockaddr_un *ret_address)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* The leading zero byte makes it a name without a file. */
    snprintf(ret_address->sun_path + 1, sizeof ret_address->sun_path - 1,
             "dscomm-%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       strlen(ret_address->sun_path + 1));
}

dscomm_status_t shm_connect_fail(const shm_t *shm, const char *call)
{
    int error = errno;

    return dscomm_fail(
        error == EMFILE || error == ENFILE ? DSCOMM_ERR_NO_MEMORY
                                           : DSCOMM_ERR_IO,
        "rank %d of group '%s' cannot meet its peers: %s: %s%s", shm->rank,
        shm->name, call, strerror(error),
        error == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
}

dscomm_status_t shm_connect_pidfd(const shm_t *shm, int *ret_fd)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return shm_connect_fail(shm, "pidfd_open");
    *ret_fd = fd;
    return DSCOMM_OK;
}

dscomm_status_t shm_connect_full(const shm_t *shm)
{
    errno = EMFILE;
    return shm_connect_fail(shm, "recvmsg");
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

/* Rank 0's offer: the address of its socket, and the password. */
static dscomm_status_t member_get_offer(const shm_t *shm, dscomm_store_t *store,
                                        int timeout_ms, char offer[OFFER + 1])
{
    void *value;
    size_t size;
    dscomm_status_t status =
        dscomm_store_get(store, SHM_KEY, timeout_ms, &value, &size);

    if (status)
        return status;
    if (!size)
        status = dscomm_fail(
            DSCOMM_ERR_PEER_FAILED,
            "group '%s': rank 0 gave up while the group was made", shm->name);
    memset(offer, 0, OFFER + 1);
    if (size == OFFER)
        memcpy(offer, value, OFFER);
    dscomm_store_free(value);
    return status;
}

/* Connects to an offer. *ret_true: it is rank 0's; an offer of another user, or
 * what is none, is no failure. */
static dscomm_status_t member_take_offer(const shm_t *shm, char *offer, int fd,
                                         unsigned char *ret_password,
                                         bool *ret_true)
{
    struct sockaddr_un address;
    socklen_t length;
    int failed;

    *ret_true = from_hex(offer + 2 * NAME, ret_password, PASSWORD);
    if (!*ret_true)
        return DSCOMM_OK;
    offer[2 * NAME] = 0;
    length = shm_connect_address(offer, &address);
    while ((failed = connect(fd, (struct sockaddr *)&address, length)) &&
           errno == EINTR)
        continue; /* it waits while rank 0's queue is full */
    if (failed)
        return shm_connect_fail(shm,
                                "connect to rank 0 (same network namespace?)");
    *ret_true = shm_message_same_user(fd);
    return DSCOMM_OK;
}

static dscomm_status_t fail_offer(const shm_t *shm, int timeout_ms,
                                  bool foreign)
{
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "group '%s': rank 0 did not offer its shared memory "
                       "within %.1f s; %s",
                       shm->name, timeout_ms / 1000.0,
                       foreign ? "the store's key '" SHM_KEY "' holds what "
                                 "another user or program has put there"
                               : "did it reach the same call?");
}

/* Connects to rank 0. Whoever may write to the store can put another offer in
 * the place of rank 0's. It is passed over: rank 0 soon makes its own again. */
static dscomm_status_t member_connect(const shm_t *shm,
                                      const dscomm_backend_args_t *args,
                                      int *ret_fd, unsigned char *ret_password)
{
    int64_t end = g_get_monotonic_time() +
                  (int64_t)args->open_ms * G_TIME_SPAN_MILLISECOND;
    char offer[OFFER + 1];
    bool found = false, foreign = false;

    while (!found) {
        int64_t left = (end - g_get_monotonic_time()) / 1000;
        dscomm_status_t status = member_get_offer(
            shm, args->store, (int)CLAMP(left, 0, G_MAXINT), offer);

        if (status == DSCOMM_ERR_TIMEOUT || (foreign && left <= 0))
            return fail_offer(shm, args->timeout_ms, foreign);
        if (status)
            return status;
        *ret_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (*ret_fd < 0)
            return shm_connect_fail(shm, "socket");
        status = member_take_offer(shm, offer, *ret_fd, ret_password, &found);
        if (status || found)
            return status;
        close(*ret_fd);
        *ret_fd = -1;
        if (!foreign)
            dscomm_log(DSCOMM_LOG_WARN, "shm",
                       "group '%s': passed over an offer of shared memory that "
                       "is not from a process of this user; who else can "
                       "write to the store?",
                       shm->name);
        foreign = true;
        g_usleep(OFFER_PAUSE_US);
    }
    return DSCOMM_OK;
}

static dscomm_status_t member_join(shm_t *shm,
                                   const dscomm_backend_args_t *args,
                                   int64_t deadline, int *ret_fd)
{
    hello_t hello = {.magic = SHM_MAGIC, .rank = shm->rank, .pid = getpid()};
    int pidfd = -1;
    dscomm_status_t status = member_connect(shm, args, ret_fd, hello.password);

    if (!status && !args->parent)
        status = shm_connect_pidfd(shm, &pidfd);
    if (status)
        return status;
    if (shm_message_send(*ret_fd, &hello, sizeof hello, &pidfd, pidfd >= 0,
                         deadline))
        status = shm_connect_fail(shm, "greet rank 0");
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

    if (failed == EMFILE)
        return shm_connect_full(shm);
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
        int failed = shm_message_receive(fd, &batch, sizeof batch, fds,
                                         PEER_BATCH, deadline);

        if (failed == EMFILE)
            return shm_connect_full(shm);
        if (failed)
            return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                               "group '%s': rank 0 did not introduce the other "
                               "processes",
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
                                   const dscomm_backend_args_t *args,
                                   int *ret_fd,
                                   dscomm_status_t (*attach)(shm_t *shm))
{
    /* Rank 0 gives up first, and says why. */
    int64_t deadline = g_get_monotonic_time() + (int64_t)args->open_ms * 1000 +
                       2 * G_USEC_PER_SEC;
    dscomm_status_t status = member_join(shm, args, deadline, ret_fd);

    if (!status)
        status = member_verdict(shm, *ret_fd, deadline, &shm->fd);
    if (!status)
        status = shm_segment_check(shm);
    if (!status && !args->parent)
        status = member_meet_peers(shm, *ret_fd, deadline);
    if (!status)
        status = attach(shm);
    if (status)
        return status;
    member_report(*ret_fd, DSCOMM_OK);
    return member_verdict(shm, *ret_fd, deadline, NULL);
}

/* Rank 0 learns it from the store, or from the connection where there is
 * one. */
static dscomm_status_t member_give_up(const dscomm_backend_args_t *args, int fd,
                                      dscomm_status_t status)
{
    char *sentence;
    int64_t told;

    status = shm_failure_settle(args->store, status);
    sentence = g_strdup(dscomm_last_error());
    if (fd >= 0)
        member_report(fd, status);
    dscomm_store_add(args->store, SHM_TOLD, 1, &told);
    dscomm_fail(status, "%s", sentence);
    g_free(sentence);
    return status;
}

static dscomm_status_t connect_member(shm_t *shm,
                                      const dscomm_backend_args_t *args,
                                      dscomm_status_t (*attach)(shm_t *shm))
{
    int fd = -1;
    dscomm_status_t status = member_meet(shm, args, &fd, attach);

    if (status)
        status = member_give_up(args, fd, status);
    if (fd >= 0)
        close(fd);
    return status;
}

dscomm_status_t shm_connect(shm_t *shm, const dscomm_backend_args_t *args,
                            dscomm_status_t (*attach)(shm_t *shm))
{
    if (args->parent)
        share_peers(shm, args->parent);
    else
        new_peers(shm);
    return shm->rank ? connect_member(shm, args, attach)
                     : shm_connect_leader(shm, args, attach);
}
