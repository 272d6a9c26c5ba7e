/* SPDX-License-Identifier: BSD-3-Clause */
/* A lease: a file without a name. Processes of the node that use something of
 * the owner's hold a lock on it, so the owner can see whether anybody still
 * does. When a process ends, the kernel releases its locks. */
#ifndef COMPRESSION_LEASE_H
#define COMPRESSION_LEASE_H

#include <stdint.h>

/* Identifies the file for other processes. */
typedef struct {
    int64_t process;
    int32_t fd, unused;
    unsigned char token[16];
} dscomm_lease_t;

/* Makes a lease. Returns its descriptor, or -1 with errno. */
int dscomm_priv_lease_make(dscomm_lease_t *ret_lease);
/* Takes hold of another process's lease. Returns a descriptor; -1: the lease
 * does not exist, or has ended. */
int dscomm_priv_lease_hold(const dscomm_lease_t *lease);
/* Releases a lease, even if processes that were forked meanwhile have copies of
 * the descriptor. */
void dscomm_priv_lease_give(int fd);
/* For the owner: ends the lease if nobody holds it. Returns 1 if it has
 * ended. */
int dscomm_priv_lease_end(int fd);

#endif
