/* SPDX-License-Identifier: BSD-3-Clause */
/* The first requests of a client on a new connection. */
#ifndef LIB_STORE_HANDSHAKE_H
#define LIB_STORE_HANDSHAKE_H

#include "lib/store/tcp/link.h"

/* Shakes hands on link->fd, which is connected; it must be the server of the
 * connections before, if there was one. ERR_PROTOCOL: no TCPStore answers.
 * ERR_MISMATCH: the server is of another job, or secrets differ.
 * ERR_ENVIRONMENT: it is rank 0's, which cannot make a secret. */
dscomm_status_t dscomm_priv_handshake(dscomm_priv_link_t *link,
                                      dscomm_priv_deadline_t deadline);

/* Reports to the server on link->fd, which is connected anew, that link->rank
 * does not use its store, because secrets differ. */
void dscomm_priv_handshake_refuse(dscomm_priv_link_t *link,
                                  dscomm_priv_deadline_t deadline);

/* Receives the answer to a PING with nonce. */
dscomm_status_t dscomm_priv_link_echo(dscomm_priv_link_t *link, uint32_t nonce,
                                      dscomm_priv_deadline_t deadline);

#endif
