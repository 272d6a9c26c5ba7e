/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of a client to a TCP store: finding the server, sharing the
 * connections among threads, and replacing those that were lost. */
#ifndef LIB_STORE_CONNECT_H
#define LIB_STORE_CONNECT_H

#include "lib/store/tcp/link.h"

/* How long a server may stay for clients that have not left, whatever
 * comes to its port in the meantime. */
#define STORE_LINGER_MS 5000

/* Connections beyond the first that nobody has used for so long are closed. */
#define LINK_IDLE_US (10 * G_USEC_PER_SEC)

/* job may be NULL; peer is host and port for messages, NULL: as they are.
 * FALSE: no memory, and there is nothing to clear. */
gboolean dscomm_priv_link_init(dscomm_priv_link_t *link, const char *host,
                               int port, const dscomm_priv_job_t *job,
                               const char *peer);
void dscomm_priv_link_clear(dscomm_priv_link_t *link);

/* Connects, trying again until the deadline. A store of another job is given
 * time to end, but not one whose secret differs: that is ERR_MISMATCH at
 * once. ERR_ENVIRONMENT: rank 0 cannot make a secret. */
dscomm_status_t dscomm_priv_link_connect(dscomm_priv_link_t *link,
                                         dscomm_priv_deadline_t deadline);

/* dscomm_priv_store_silent() of the store whose first connection it is. */
bool dscomm_priv_link_silent(dscomm_priv_link_t *first,
                             dscomm_priv_store_place_t *ret_place);

/* Takes a connection for a request and its answers, connected anew if it was
 * lost, but to no other server than the first; leave gives it back, and drops
 * it where status says that no one knows what comes next on it. Returns status.
 *
 * *link is the store's first connection, and becomes the one that was taken.
 * A thread that waits for keys has one alone, so that the keys for which
 * it waits can be set through this store too; requests that are answered at
 * once share one. So there are as many as threads have waited at once, and one
 * for the others: a process with one thread has one. Those that are no longer
 * used are closed after LINK_IDLE_US, when another one is taken. */
dscomm_status_t dscomm_priv_link_enter(dscomm_priv_link_t **link,
                                       gboolean waits,
                                       dscomm_priv_deadline_t deadline);
dscomm_status_t dscomm_priv_link_leave(dscomm_priv_link_t *link,
                                       dscomm_status_t status);
/* After ERR_PEER_FAILED on a connection that enter has given: OK, and another
 * connection, if the server lives. ERR_NO_MEMORY if it closes that, too; the
 * last sentence again if it is gone. */
dscomm_status_t dscomm_priv_link_renew(dscomm_priv_link_t *link,
                                       dscomm_priv_deadline_t deadline);

/* Takes a connection as enter does, but neither passes its gate nor connects
 * it; and gives it back. NULL: no memory. */
dscomm_priv_link_t *dscomm_priv_link_choose(dscomm_priv_link_t *first,
                                            gboolean waits);
void dscomm_priv_link_release(dscomm_priv_link_t *link);

/* Gives the server a last will for key (will.h). Nothing is done if the server
 * is not of this library. */
dscomm_status_t dscomm_priv_link_give_will(dscomm_priv_link_t *first,
                                           const char *key,
                                           dscomm_priv_data_t value,
                                           dscomm_priv_deadline_t deadline);
/* Withdraws the will for key, or all wills if key is NULL. If the server does
 * not answer within 100 ms, the next request tells it; if there is none,
 * dscomm_priv_link_clear() resets the connections. */
void dscomm_priv_link_withdraw_will(dscomm_priv_link_t *first, const char *key);

#endif
