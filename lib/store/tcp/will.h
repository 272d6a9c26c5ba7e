/* SPDX-License-Identifier: BSD-3-Clause */
/* Last wills, at the server and at its clients. A will is a key and a value,
 * which is appended to the key if all connections of the client end while it
 * has the will, and taken out again if the client comes back or withdraws the
 * will after that. A client has one will for a key. Of the clients whose wills
 * were carried out the server remembers the last WILL_KEPT_MAX: what older ones
 * have appended stays.
 *
 * Connections that end by the client's side count as the end of the client,
 * after a grace period in which it may connect again: the network may have
 * reset them. Those that the server closes do not count: they tell nothing
 * about the client. */
#ifndef LIB_STORE_WILL_H
#define LIB_STORE_WILL_H

#include "lib/store/table.h"
#include "lib/store/tcp/link.h"
#include "lib/store/tcp/session.h"

#define WILL_GRACE_MS 300
#define WILL_COUNT_MAX 1024 /* wills of one client */
/* Clients that may come back: more than the ranks of a job that a failure of
 * the network cuts off at once. */
#define WILL_KEPT_MAX 16384

/* The server's side. No locks: the server's thread owns them. */

typedef struct dscomm_priv_wills dscomm_priv_wills_t;

/* Wills are carried out in table, and wake those who wait for their keys. NULL:
 * no memory. */
dscomm_priv_wills_t *dscomm_priv_wills_new(dscomm_priv_table_t *table,
                                           dscomm_priv_waiters_t *waiters);
void dscomm_priv_wills_free(dscomm_priv_wills_t *wills);

/* The connection whose client is *slot becomes one of client, an identifier.
 * False: no memory. And it ends, ended: by the client's side; *slot is NULL
 * then, as that of a connection without a client. */
bool dscomm_priv_wills_join(dscomm_priv_wills_t *wills,
                            dscomm_priv_bytes_t **slot,
                            dscomm_priv_bytes_t *client);
void dscomm_priv_wills_leave(dscomm_priv_wills_t *wills,
                             dscomm_priv_bytes_t **slot, bool ended);

/* Gives client, which is connected, a will: references to key and value.
 * Nothing if it has one for the key. ERR_INVALID: it has too many;
 * ERR_NO_MEMORY. */
dscomm_status_t dscomm_priv_wills_give(dscomm_priv_wills_t *wills,
                                       dscomm_priv_data_t client,
                                       dscomm_priv_bytes_t *key,
                                       dscomm_priv_bytes_t *value);
/* Withdraws the will for key; an empty key: all of the client's. */
void dscomm_priv_wills_withdraw(dscomm_priv_wills_t *wills,
                                dscomm_priv_data_t client,
                                dscomm_priv_data_t key);

/* How many clients are connected and have a will. */
int dscomm_priv_wills_clients(const dscomm_priv_wills_t *wills);

/* When the next wills are to be carried out, of g_get_monotonic_time(); 0: none
 * are. And carries out those that are due at now. */
gint64 dscomm_priv_wills_due(const dscomm_priv_wills_t *wills);
void dscomm_priv_wills_carry_out(dscomm_priv_wills_t *wills, gint64 now);

/* The client's side: the wills of this process, on the connections of one
 * store. All connections that are bound give the same name of the client, so
 * the server carries the wills out when the last of them has ended.
 *
 * The server reads connections in any order. So one connection at a time has
 * the turn to send wills, and keeps it until the server has answered: otherwise
 * a will that was withdrawn on one could arrive on another later. */

/* Notes a will for key, or that the will for key is withdrawn, or all wills if
 * key is NULL; the caller sends it. False: no memory; there is no such will. */
bool dscomm_priv_own_will_note(dscomm_priv_link_t *first, const char *key,
                               dscomm_priv_data_t value);
bool dscomm_priv_own_will_withdraw(dscomm_priv_link_t *first, const char *key);

/* Binds a new connection: gives the server all wills on it, and withdraws those
 * that it must forget. */
dscomm_status_t dscomm_priv_own_wills_bind(dscomm_priv_link_t *link,
                                           dscomm_priv_deadline_t deadline);
/* Sends what was withdrawn, if anything was, on a connection that the caller
 * has alone; disconnects if that fails. OK, and nothing is sent, if another
 * connection has the turn beyond turn_until. */
dscomm_status_t dscomm_priv_own_wills_flush(dscomm_priv_link_t *link,
                                            dscomm_priv_deadline_t turn_until,
                                            dscomm_priv_deadline_t deadline);
/* Whether the server knows of all that were withdrawn. */
bool dscomm_priv_own_wills_settled(dscomm_priv_link_t *first);
void dscomm_priv_own_wills_free(dscomm_priv_link_t *first);

#endif
