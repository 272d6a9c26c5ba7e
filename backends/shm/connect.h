/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between ranks that form a group, and how they travel. */
#ifndef SHM_CONNECT_H
#define SHM_CONNECT_H

#include "backends/shm/shm.h"

#define PASSWORD 16
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
    int32_t status;
    shm_layout_t layout;
    char text[SHM_TEXT];
} verdict_t;

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
 * the end, EPROTO for anything else that is wrong. */
int shm_message_receive(int fd, void *message, size_t size, int *ret_fds,
                        int max_fds, int64_t deadline);

#endif
