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

/* A rank to rank 0, with its pidfd if rank 0 needs it. */
typedef struct {
    uint64_t magic;
    unsigned char password[PASSWORD];
    int32_t rank, pid;
} hello_t;

/* Rank 0 to a rank (with the segment, the first time), or back. */
typedef struct {
    uint64_t magic;
    int32_t status; /* a negative one is that of failure */
    shm_layout_t layout;
    unsigned char failure[DSCOMM_FAILURE_PACKED];
} join_result_t;

/* Rank 0 to a rank: pids, with the pidfds of those that have one. */
typedef struct {
    uint64_t magic;
    int32_t pids[PEER_BATCH];
    uint8_t has_fd[PEER_BATCH];
} peers_t;

/* True when fd is readable before deadline (g_get_monotonic_time()). */
bool shm_message_poll(int fd, int64_t deadline);

/* Sends one message with descriptors, for which it waits until deadline where
 * too many are on their way; 0, or an errno. */
int shm_message_send(int fd, const void *message, size_t size, const int *fds,
                     int nfds, int64_t deadline);

/* Receives exactly size bytes that begin with SHM_MAGIC, and at most max_fds
 * descriptors (absent ones are -1); 0, or an errno: ETIMEDOUT, ECONNRESET at
 * the end, EMFILE for a message whose descriptors found no room here, EPROTO
 * for anything else that is wrong. */
int shm_message_receive(int fd, void *message, size_t size, int *ret_fds,
                        int max_fds, int64_t deadline);

/* True where one of the two above failed in this process, and the other end has
 * no part in it. */
bool shm_message_is_own(int error);

/* Waits until fd is readable. ERR_TIMEOUT without a sentence after deadline, or
 * why the group can no longer be made. */
dscomm_status_t shm_connect_await(const dscomm_backend_args_t *args, int fd,
                                  int64_t deadline);

/* True where the other end belongs to this process's user. Of a listener's
 * socket that is the user who called listen(2). */
bool shm_message_same_user(int fd);

socklen_t shm_connect_address(const char *name,
                              struct sockaddr_un *ret_address);

/* A system call failed, as errno says. */
dscomm_status_t shm_connect_fail(const shm_t *shm, const char *call);

/* Makes the failure that a rank has told this thread's last one; OK if it has
 * told none. */
dscomm_status_t shm_connect_result(const shm_t *shm,
                                   const join_result_t *result);

/* ERR_NO_MEMORY with a sentence. */
dscomm_status_t shm_connect_no_memory(const shm_t *shm);

/* A message to or from rank failed with error, in call of this process or
 * because that rank has ended the connection. */
dscomm_status_t shm_connect_lost(const shm_t *shm,
                                 const dscomm_backend_args_t *args, int rank,
                                 const char *call, int error);

/* Own pidfd, or -1 where the kernel has none: then a death is seen only by the
 * deadline. */
dscomm_status_t shm_connect_pidfd(const shm_t *shm, int *ret_fd);

/* shm_connect() of rank 0. */
dscomm_status_t shm_connect_leader(shm_t *shm,
                                   const dscomm_backend_args_t *args,
                                   dscomm_status_t (*attach)(shm_t *shm));

#endif
