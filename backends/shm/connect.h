/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between ranks that form a group, and how they travel. */
#ifndef SHM_CONNECT_H
#define SHM_CONNECT_H

#include "backends/shm/shm.h"

#include <sys/socket.h>
#include <sys/un.h>

#define SHM_KEY "shm" /* in the group's store: rank 0's offer */
/* Bytes of the random name of rank 0's socket, and of the password; and of the
 * offer, which is both in hexadecimal. */
#define NAME 8
#define PASSWORD 16
#define OFFER (2 * (NAME + PASSWORD))
#define PEER_BATCH 64

/* From a rank to rank 0, with its pidfd if rank 0 needs it. */
typedef struct {
    uint64_t magic;
    unsigned char password[PASSWORD];
    int32_t rank, pid;
} hello_t;

/* Between rank 0 and a rank, in both directions: whether the sender can join.
 * The first one from rank 0 comes with the segment. */
typedef struct {
    uint64_t magic;
    int32_t status; /* negative: failure has the reason */
    shm_layout_t layout;
    unsigned char failure[DSCOMM_FAILURE_PACKED];
} join_result_t;

/* From rank 0 to a rank: pids, with the pidfds of those processes that have
 * one. */
typedef struct {
    uint64_t magic;
    int32_t pids[PEER_BATCH];
    uint8_t has_fd[PEER_BATCH];
} peers_t;

/* True if fd becomes readable before end_ns (shm_now_ns()). */
bool shm_message_poll(int fd, int64_t end_ns);

/* Sends one message with descriptors; waits until end_ns while too many
 * descriptors are in flight. Returns 0 or an errno. */
int shm_message_send(int fd, const void *message, size_t size, const int *fds,
                     int nfds, int64_t end_ns);

/* Receives exactly size bytes that begin with SHM_MAGIC, and at most max_fds
 * descriptors (missing ones are -1). Returns 0 or an errno: ETIMEDOUT;
 * ECONNRESET at the end of the connection; EMFILE if this process has no room
 * for the descriptors; EPROTO for anything else that is wrong. */
int shm_message_receive(int fd, void *message, size_t size, int *ret_fds,
                        int max_fds, int64_t end_ns);

/* True if one of the two calls above failed for a reason of this process
 * alone. */
bool shm_message_is_own(int error);

/* Waits until fd is readable. Fails with ERR_TIMEOUT without a sentence after
 * end_ns, or with the reason why the group can no longer be made. */
dscomm_status_t shm_connect_await(const dscomm_backend_args_t *args, int fd,
                                  int64_t end_ns);

/* True if the other end belongs to this process's user. For a listener's
 * socket that is the user who called listen(2). */
bool shm_message_same_user(int fd);

socklen_t shm_connect_address(const char *name,
                              struct sockaddr_un *ret_address);

/* Fails because of a system call, with the text of errno. */
dscomm_status_t shm_connect_fail(const shm_t *shm, const char *call);

/* If result has a failure, makes it this thread's last one and returns its
 * status; else OK. */
dscomm_status_t shm_connect_result(const join_result_t *result);

/* ERR_NO_MEMORY with a sentence. */
dscomm_status_t shm_connect_no_memory(const shm_t *shm);

/* Fails because a message to or from rank failed with error: in call of this
 * process, or because that rank has closed the connection. */
dscomm_status_t shm_connect_lost(const shm_t *shm,
                                 const dscomm_backend_args_t *args, int rank,
                                 const char *call, int error);

/* This process's pidfd, or -1 if the kernel has none: then a death is seen
 * only at the deadline. */
dscomm_status_t shm_connect_pidfd(const shm_t *shm, int *ret_fd);

/* Rank 0's part of shm_connect(). */
dscomm_status_t shm_connect_leader(shm_t *shm,
                                   const dscomm_backend_args_t *args,
                                   dscomm_status_t (*attach)(shm_t *shm));

#endif
