/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that rank 0's server has not served, since their job secret is another
 * than the server's, or only one of both has one. Such a rank says so before it
 * gives up, on a connection of its own, so that rank 0 does not wait for it.
 *
 * Everyone can say so. Only a process of the same user on this machine is
 * believed, because the kernel tells who it is: it can end the start-up of its
 * world. What others say is kept until the start-up has failed for want of
 * ranks, and is part of the sentence then. */
#ifndef LIB_STORE_REFUSED_H
#define LIB_STORE_REFUSED_H

#include "lib/store/tcp/socket.h"

struct dscomm_priv_refused {
    pthread_mutex_t lock;
    bool guarded; /* the server has a secret */
    bool settled; /* all ranks have come: nothing is noted any more */
    bool member; /* the rank below is believed */
    char world[sizeof((dscomm_priv_rank_t *)NULL)->world]; /* the server's */
    unsigned count; /* connections that have said so */
    unsigned lookups; /* of the user of one */
    char
        peer[SOCKET_NAME_MAX]; /* of the first that is believed, or the first */
    dscomm_priv_rank_t rank; /* what it says */
};

/* world: of the job that the server serves, or "". */
void dscomm_priv_refused_init(dscomm_priv_refused_t *refused, const char *world,
                              bool guarded);
void dscomm_priv_refused_clear(dscomm_priv_refused_t *refused);
/* rank says so on the connection fd, from peer. */
void dscomm_priv_refused_note(dscomm_priv_refused_t *refused, int fd,
                              const char *peer, const dscomm_priv_rank_t *rank);

#endif
