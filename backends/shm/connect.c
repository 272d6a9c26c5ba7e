/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks other than rank 0 join a group: they connect to rank 0's unix
 * socket, which has no file, and receive the segment and the pidfds of all
 * ranks. The socket's name and password are in the store. */
#include "config.h"

#include "backends/shm/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <glib.h>

/* pause after an offer that was not rank 0's */
#define OFFER_PAUSE_US 10000
/* Time after the deadline: rank 0 gives up first and publishes the reason, and
 * the store may take that long to answer. */
#define LEADER_FIRST_NS (1000 * NS_PER_MS)

/* The processes of a group with a parent group are known already. */
static void share_peers(shm_t *shm, const shm_t *parent)
{
    shm->peers = parent->peers;
    atomic_fetch_add(&shm->peers->references, 1);
    for (int r = 0; r < shm->ranks; r++)
        for (int i = 0; i < parent->ranks; i++)
            if (parent->world_ranks[i] == shm->world_ranks[r])
                shm->peer[r] = parent->peer[i];
}

static dscomm_status_t new_peers(shm_t *shm)
{
    shm->peers = shm_peers_new(shm->ranks);
    for (int r = 0; r < shm->ranks; r++)
        shm->peer[r] = r;
    return shm->peers ? DSCOMM_OK : shm_connect_no_memory(shm);
}

/* The result of trying an offer. */
typedef enum { OFFER_NONE, OFFER_FOREIGN, OFFER_TAKEN } offer_t;

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

/* Reads the store's key; "" if what it holds is not an offer. */
static dscomm_status_t member_get_offer(const dscomm_backend_args_t *args,
                                        int timeout_ms, char offer[OFFER + 1])
{
    const char *key = SHM_KEY;
    void *value;
    size_t size;
    dscomm_status_t status =
        dscomm_backend_creation_get(args, &key, 1, timeout_ms, &value, &size);

    if (status)
        return status;
    memset(offer, 0, OFFER + 1);
    if (size == OFFER)
        memcpy(offer, value, OFFER);
    dscomm_store_free(value);
    return DSCOMM_OK;
}

/* Connects to the process that has made an offer: rank 0, which may have given
 * up or died since, or a process of another user. */
static dscomm_status_t member_take_offer(const shm_t *shm, char *offer, int fd,
                                         unsigned char *ret_password,
                                         offer_t *ret_offer)
{
    struct sockaddr_un address;
    socklen_t length;
    int failed;

    *ret_offer = OFFER_NONE;
    if (!from_hex(offer + 2 * NAME, ret_password, PASSWORD))
        return DSCOMM_OK;
    offer[2 * NAME] = 0;
    length = shm_connect_address(offer, &address);
    do
        failed = connect(fd, (struct sockaddr *)&address, length);
    while (failed && errno == EINTR);
    /* EAGAIN: the listener's queue is full; the caller tries again. */
    if (failed)
        return errno == ECONNREFUSED || errno == EAGAIN
                   ? DSCOMM_OK
                   : shm_connect_fail(shm, "connect to rank 0");
    *ret_offer = shm_message_same_user(fd) ? OFFER_TAKEN : OFFER_FOREIGN;
    return DSCOMM_OK;
}

static dscomm_status_t member_try_offer(const shm_t *shm, char *offer,
                                        int *ret_fd,
                                        unsigned char *ret_password,
                                        offer_t *ret_offer)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    dscomm_status_t status;

    if (fd < 0)
        return shm_connect_fail(shm, "socket");
    status = member_take_offer(shm, offer, fd, ret_password, ret_offer);
    if (!status && *ret_offer == OFFER_TAKEN &&
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK))
        status = shm_connect_fail(shm, "fcntl");
    if (!status && *ret_offer == OFFER_TAKEN)
        *ret_fd = fd;
    else
        close(fd);
    return status;
}

static dscomm_status_t fail_offer(const dscomm_backend_args_t *args,
                                  const char *why)
{
    char who[DSCOMM_CREATION_RANK_MAX];

    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "%s did not offer its shared memory within %.1f s; %s",
                       dscomm_backend_creation_rank(args, 0, who),
                       args->open_ms / 1000.0, why);
}

/* Connects to rank 0. Another process that may write to the store can replace
 * rank 0's offer. Such an offer is ignored: rank 0 soon writes its own again.
 */
static dscomm_status_t member_connect(const shm_t *shm,
                                      const dscomm_backend_args_t *args,
                                      int *ret_fd, unsigned char *ret_password)
{
    static const char *const whys[] = {
        [OFFER_NONE] = "the process that listened there, or what another "
                       "program has put into the store, does not answer",
        [OFFER_FOREIGN] = "in its place there is the offer of another user, "
                          "who can write to the store"};
    int64_t end_ns = shm_now_ns() + args->open_ms * NS_PER_MS, left_ms;
    offer_t offer = OFFER_NONE;
    char text[OFFER + 1];
    dscomm_status_t status;

    do {
        left_ms = MAX((end_ns - shm_now_ns()) / NS_PER_MS, 0);
        status = member_get_offer(args, (int)MIN(left_ms, G_MAXINT), text);
        if (status == DSCOMM_ERR_TIMEOUT)
            return fail_offer(args, "did it reach the same call?");
        if (!status)
            status = member_try_offer(shm, text, ret_fd, ret_password, &offer);
        if (status || offer == OFFER_TAKEN)
            return status;
        dscomm_log(DSCOMM_LOG_INFO, "shm",
                   "group '%s': passed over an offer of shared memory: %s",
                   shm->name, whys[offer]);
        status = dscomm_backend_creation_check(args);
        g_usleep(OFFER_PAUSE_US);
    } while (!status && left_ms);
    return status ? status : fail_offer(args, whys[offer]);
}

static dscomm_status_t member_join(shm_t *shm,
                                   const dscomm_backend_args_t *args,
                                   int64_t end_ns, int *ret_fd)
{
    hello_t hello = {.magic = SHM_MAGIC, .rank = shm->rank, .pid = getpid()};
    int pidfd = -1;
    dscomm_status_t status = member_connect(shm, args, ret_fd, hello.password);
    int failed;

    if (!status && !args->parent)
        status = shm_connect_pidfd(shm, &pidfd);
    if (status)
        return status;
    failed = shm_message_send(*ret_fd, &hello, sizeof hello, &pidfd, pidfd >= 0,
                              end_ns);
    if (failed)
        status = shm_connect_lost(shm, args, 0, "sendmsg", failed);
    if (pidfd >= 0)
        close(pidfd);
    return status;
}

/* Receives a message from rank 0; fails as soon as the group can no longer be
 * made. Rank 0 may send a failure instead of the message; the store has the
 * same failure. */
static dscomm_status_t member_receive(const shm_t *shm,
                                      const dscomm_backend_args_t *args, int fd,
                                      void *message, size_t size, int *ret_fds,
                                      int max_fds, int64_t end_ns)
{
    char who[DSCOMM_CREATION_RANK_MAX];
    dscomm_status_t status = shm_connect_await(args, fd, end_ns);
    int failed;

    if (status == DSCOMM_ERR_TIMEOUT)
        return dscomm_fail(
            status, "%s was silent for %.1f s while the group was made",
            dscomm_backend_creation_rank(args, 0, who), args->open_ms / 1000.0);
    if (status)
        return status;
    failed = shm_message_receive(fd, message, size, ret_fds, max_fds, 0);
    return failed ? shm_connect_lost(shm, args, 0, "recvmsg", failed)
                  : DSCOMM_OK;
}

/* Receives rank 0's result; *ret_fd may be NULL. */
static dscomm_status_t member_receive_result(shm_t *shm,
                                             const dscomm_backend_args_t *args,
                                             int fd, int64_t end_ns,
                                             int *ret_fd)
{
    join_result_t result;
    dscomm_status_t status = member_receive(
        shm, args, fd, &result, sizeof result, ret_fd, ret_fd ? 1 : 0, end_ns);

    if (status)
        return status;
    shm->layout = result.layout;
    return shm_connect_result(&result);
}

static dscomm_status_t member_meet_peers(shm_t *shm,
                                         const dscomm_backend_args_t *args,
                                         int fd, int64_t end_ns)
{
    shm_peers_t *peers = shm->peers;

    for (int from = 0; from < peers->count; from += PEER_BATCH) {
        peers_t batch;
        int fds[PEER_BATCH], next = 0;
        dscomm_status_t status = member_receive(
            shm, args, fd, &batch, sizeof batch, fds, PEER_BATCH, end_ns);

        if (status)
            return status;
        for (int i = from; i < MIN(from + PEER_BATCH, peers->count); i++) {
            peers->pids[i] = batch.pids[i - from];
            if (batch.has_fd[i - from])
                peers->fds[i] = fds[next++];
        }
    }
    return DSCOMM_OK;
}

/* Sends rank 0 the failure, or success if failure is NULL. Returns 0 or an
 * errno. */
static int member_report(int fd, const dscomm_failure_t *failure)
{
    join_result_t ready = {.magic = SHM_MAGIC};

    if (failure) {
        ready.status = failure->status;
        dscomm_backend_failure_pack(failure, ready.failure);
    }
    return shm_message_send(fd, &ready, sizeof ready, NULL, 0, 0);
}

static dscomm_status_t member_meet(shm_t *shm,
                                   const dscomm_backend_args_t *args,
                                   int *ret_fd,
                                   dscomm_status_t (*attach)(shm_t *shm))
{
    int64_t end_ns = shm_now_ns() + args->open_ms * NS_PER_MS + LEADER_FIRST_NS;
    dscomm_status_t status = member_join(shm, args, end_ns, ret_fd);
    int failed;

    if (!status)
        status = member_receive_result(shm, args, *ret_fd, end_ns, &shm->fd);
    if (!status)
        status = shm_segment_check(shm);
    if (!status && !args->parent)
        status = member_meet_peers(shm, args, *ret_fd, end_ns);
    if (!status)
        status = attach(shm);
    if (status)
        return status;
    failed = member_report(*ret_fd, NULL);
    if (failed)
        return shm_connect_lost(shm, args, 0, "sendmsg", failed);
    return member_receive_result(shm, args, *ret_fd, end_ns, NULL);
}

/* Rank 0 gets the failure from the store, or from the connection if there is
 * one. */
static dscomm_status_t member_give_up(const dscomm_backend_args_t *args, int fd,
                                      dscomm_status_t status)
{
    dscomm_failure_t failure;

    status = dscomm_backend_creation_fail(args, status);
    if (fd < 0)
        return status;
    dscomm_backend_failure_last(args->group, status, &failure);
    member_report(fd, &failure);
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
    dscomm_status_t status = DSCOMM_OK;

    if (args->parent)
        share_peers(shm, args->parent);
    else
        status = new_peers(shm);
    if (status)
        return status;
    return shm->rank ? connect_member(shm, args, attach)
                     : shm_connect_leader(shm, args, attach);
}
