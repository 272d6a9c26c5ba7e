/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of a client to a TCP store: finding the server, sharing
 * connections among threads, and replacing lost ones. */
#ifndef LIB_STORE_CONNECT_H
#define LIB_STORE_CONNECT_H

#include "lib/store/tcp/link.h"

#include <stdbool.h>

/* How long a server waits at its end for clients that have not left. */
#define STORE_READERS_MS 5000

/* A connection beyond the first is closed after it has been idle for this long.
 */
#define LINK_IDLE_NS (10000 * NS_PER_MS)

/* Initialises a link that is not connected. job may be NULL. peer is the server
 * in messages; NULL: host and port. false: no memory, and nothing is left to
 * clear. */
bool dscomm_priv_link_init(dscomm_priv_link_t *link, const char *host, int port,
                           const dscomm_priv_job_t *job, const char *peer);
void dscomm_priv_link_clear(dscomm_priv_link_t *link);

/* Connects; tries again until the deadline. A store of another job gets time to
 * end. ERR_MISMATCH: the store is of another job or, without further attempts,
 * its secret differs. ERR_ENVIRONMENT: rank 0 cannot make a secret. */
dscomm_status_t dscomm_priv_link_connect(dscomm_priv_link_t *link,
                                         dscomm_priv_deadline_t deadline);

/* See dscomm_priv_store_silent(); first is the store's first connection. */
bool dscomm_priv_link_silent(dscomm_priv_link_t *first,
                             dscomm_priv_store_place_t *ret_place);

/* Appends "the store at PEER does not answer" to text, of size bytes, after ";
 * " if there is some already. If the server is stopped on this machine, adds
 * its pid, or "rank 0 (pid 812), which serves it" if by_rank_0 is true, and
 * returns true. Only the kernel is queried, never the store. */
bool dscomm_priv_stopped_server(const dscomm_priv_store_place_t *place,
                                bool by_rank_0, char *text, size_t size);

/* Takes a connection for a request and its answers. Reconnects it if it was
 * lost, but only to the same server. leave returns the connection, and closes
 * it if status says that it is out of step. Returns status.
 *
 * *link is the store's first connection, and is set to the one that was taken.
 * A thread that waits for keys has a connection alone, so that other threads
 * can set those keys through this store. Requests that are answered at once
 * share one. So a store has as many connections as threads have waited at the
 * same time, and one more; a process with one thread has one. Unused ones are
 * closed after LINK_IDLE_NS, when another is taken. */
dscomm_status_t dscomm_priv_link_enter(dscomm_priv_link_t **link, bool waits,
                                       dscomm_priv_deadline_t deadline);
dscomm_status_t dscomm_priv_link_leave(dscomm_priv_link_t *link,
                                       dscomm_status_t status);
/* After ERR_PEER_FAILED: reconnects to the server, if it lives. ERR_NO_MEMORY
 * if the server closes the new connection too; the last error again if the
 * server is gone. */
dscomm_status_t dscomm_priv_link_renew(dscomm_priv_link_t *link,
                                       dscomm_priv_deadline_t deadline);

/* Chooses a connection as enter does, but neither enters its gate nor connects
 * it; and returns it. NULL: no memory. */
dscomm_priv_link_t *dscomm_priv_link_choose(dscomm_priv_link_t *first,
                                            bool waits);
void dscomm_priv_link_release(dscomm_priv_link_t *link);

/* Gives the server a last will for key (session.h). Does nothing if the server
 * is not of this library. */
dscomm_status_t dscomm_priv_link_give_will(dscomm_priv_link_t *first,
                                           const char *key,
                                           dscomm_priv_data_t value,
                                           dscomm_priv_deadline_t deadline);
/* Withdraws the will for key, or all wills if key is NULL. If the server does
 * not answer within 100 ms, the next request withdraws it. If there is no next
 * request, dscomm_priv_link_clear() resets the connections. */
void dscomm_priv_link_withdraw_will(dscomm_priv_link_t *first, const char *key);

#endif
