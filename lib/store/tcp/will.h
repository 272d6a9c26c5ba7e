/* SPDX-License-Identifier: BSD-3-Clause */
/* Last wills, at the server and at its clients. A will is a key and a value.
 * The server appends the value to the key when all connections of the client
 * have ended while it has the will. If the client then comes back or withdraws
 * the will, the server removes the value again. A client has one will for a
 * key. The server remembers the last WILL_KEPT_MAX clients whose wills were
 * carried out; the values of older ones stay.
 *
 * Only connections that the client's side has ended count. A grace period
 * follows, in which the client may connect again, because the network may have
 * reset them. Connections that the server closes do not count: they show
 * nothing about the client. */
#ifndef LIB_STORE_WILL_H
#define LIB_STORE_WILL_H

#include "lib/store/table.h"
#include "lib/store/tcp/link.h"
#include "lib/store/tcp/session.h"

#define WILL_GRACE_MS 300
#define WILL_COUNT_MAX 1024 /* wills of one client */
/* Clients that may come back; more than the ranks of a job that a network
 * failure can cut off at once. */
#define WILL_KEPT_MAX 16384

/* The server's side. No locks: only the server's thread uses it. */

typedef struct dscomm_priv_wills dscomm_priv_wills_t;

/* Makes an empty set of wills. They are carried out in table, and wake sessions
 * that wait for their keys. NULL: no memory. */
dscomm_priv_wills_t *dscomm_priv_wills_new(dscomm_priv_table_t *table,
                                           dscomm_priv_waiters_t *waiters);
void dscomm_priv_wills_free(dscomm_priv_wills_t *wills);

/* join makes a connection, whose client is *slot, one of the client with this
 * identifier; false: no memory. leave ends the connection; ended: the client's
 * side has closed it. *slot is NULL for a connection without a client, and
 * after leave. */
bool dscomm_priv_wills_join(dscomm_priv_wills_t *wills,
                            dscomm_priv_bytes_t **slot,
                            dscomm_priv_bytes_t *client);
void dscomm_priv_wills_leave(dscomm_priv_wills_t *wills,
                             dscomm_priv_bytes_t **slot, bool ended);

/* Gives a connected client a will, with references to key and value. Does
 * nothing if it has one for key. ERR_INVALID: too many wills; ERR_NO_MEMORY. */
dscomm_status_t dscomm_priv_wills_give(dscomm_priv_wills_t *wills,
                                       dscomm_priv_data_t client,
                                       dscomm_priv_bytes_t *key,
                                       dscomm_priv_bytes_t *value);
/* Withdraws the will for key, or all of the client's if key is empty. */
void dscomm_priv_wills_withdraw(dscomm_priv_wills_t *wills,
                                dscomm_priv_data_t client,
                                dscomm_priv_data_t key);

/* Number of connected clients that have a will. */
int dscomm_priv_wills_clients(const dscomm_priv_wills_t *wills);

/* Returns when the next wills are due (g_get_monotonic_time()); 0: none.
 * carry_out carries out those that are due at now. */
gint64 dscomm_priv_wills_due(const dscomm_priv_wills_t *wills);
void dscomm_priv_wills_carry_out(dscomm_priv_wills_t *wills, gint64 now);

/* The client's side: the wills of this process, on the connections of one
 * store. All bound connections carry the same client name, so the server
 * carries the wills out when the last of them has ended.
 *
 * The server reads connections in any order. So only one connection at a time
 * may send wills, until the server has answered: otherwise a will could arrive
 * on one connection after its withdrawal on another. */

/* Notes a will for key; or marks the will for key, or all if key is NULL, as
 * withdrawn. The caller sends it. False: no memory; no such will. */
bool dscomm_priv_own_will_note(dscomm_priv_link_t *first, const char *key,
                               dscomm_priv_data_t value);
bool dscomm_priv_own_will_withdraw(dscomm_priv_link_t *first, const char *key);

/* Binds a new connection: gives the server all wills on it, and withdraws those
 * that are marked. */
dscomm_status_t dscomm_priv_own_wills_bind(dscomm_priv_link_t *link,
                                           dscomm_priv_deadline_t deadline);
/* Sends pending withdrawals on a connection that only the caller uses;
 * disconnects on failure. OK without sending if another connection still has
 * the turn at turn_until. */
dscomm_status_t dscomm_priv_own_wills_flush(dscomm_priv_link_t *link,
                                            dscomm_priv_deadline_t turn_until,
                                            dscomm_priv_deadline_t deadline);
/* True if the server has got all withdrawals. */
bool dscomm_priv_own_wills_settled(dscomm_priv_link_t *first);
void dscomm_priv_own_wills_free(dscomm_priv_link_t *first);

#endif
