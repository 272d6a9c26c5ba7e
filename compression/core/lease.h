/* SPDX-License-Identifier: BSD-3-Clause */
/* A file without a name, whose locks tell its owner whether other processes of
 * the node still use something of the owner's. What a process held is given up
 * by its end, however it ends. */
#ifndef COMPRESSION_LEASE_H
#define COMPRESSION_LEASE_H

#include <stdint.h>

/* What others need to find it. */
typedef struct {
    int64_t process;
    int32_t fd, unused;
    unsigned char token[16];
} dscomm_lease_t;

/* A new one; its descriptor, or -1 and errno. */
int dscomm_priv_lease_make(dscomm_lease_t *ret_lease);
/* Holds another process's; a descriptor. -1: there is no such lease here, or
 * no longer. */
int dscomm_priv_lease_hold(const dscomm_lease_t *lease);
/* Gives it up, though processes forked since have the descriptor as well. */
void dscomm_priv_lease_give(int fd);
/* By the owner: 1 where nobody holds it, or can any more. */
int dscomm_priv_lease_end(int fd);

#endif
