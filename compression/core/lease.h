/* SPDX-License-Identifier: BSD-3-Clause */
/* A lease: a file without a name, whose locks show its owner whether other
 * processes of the node still use something of the owner's. The end of a
 * process ends all leases that it held. */
#ifndef COMPRESSION_LEASE_H
#define COMPRESSION_LEASE_H

#include <stdint.h>

/* By this other processes find the file. */
typedef struct {
    int64_t process;
    int32_t fd, unused;
    unsigned char token[16];
} dscomm_lease_t;

/* Makes a lease; its descriptor, or -1 and errno. */
int dscomm_priv_lease_make(dscomm_lease_t *ret_lease);
/* Takes hold of another process's lease; a descriptor. -1: there is none, or no
 * longer. */
int dscomm_priv_lease_hold(const dscomm_lease_t *lease);
/* Releases it, although processes forked since have the descriptor, too. */
void dscomm_priv_lease_give(int fd);
/* For the owner: ends the lease if nobody holds it. 1: it has ended. */
int dscomm_priv_lease_end(int fd);

#endif
