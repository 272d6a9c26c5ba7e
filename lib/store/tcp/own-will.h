/* SPDX-License-Identifier: BSD-3-Clause */
/* The last wills of this process, on the connections of one store: what the
 * server does with them is in will.h. All connections that are bound give
 * the same name of the client, so the server carries the wills out when the
 * last of them has ended.
 *
 * The server reads connections in any order. So one connection at a time has
 * the turn to tell it of wills, and keeps it until the server has answered:
 * otherwise a will that was withdrawn on one could arrive on another later. */
#ifndef LIB_STORE_OWN_WILL_H
#define LIB_STORE_OWN_WILL_H

#include "lib/store/tcp/link.h"

/* Gives the server a last will for key. Nothing is done if the server is not of
 * this library. */
dscomm_status_t dscomm_priv_own_will_give(dscomm_priv_link_t *first,
                                          const char *key,
                                          dscomm_priv_data_t value,
                                          dscomm_priv_deadline_t deadline);
/* Withdraws the will for key, or all wills if key is NULL. If the server does
 * not answer within 100 ms, the next request tells it; if there is none,
 * dscomm_priv_link_clear() resets the connections. */
void dscomm_priv_own_will_withdraw(dscomm_priv_link_t *first, const char *key);

/* Binds a new connection: gives the server all wills on it, and withdraws those
 * that it must forget. */
dscomm_status_t dscomm_priv_own_wills_bind(dscomm_priv_link_t *link,
                                           dscomm_priv_deadline_t deadline);
/* Tells the server of the wills that are withdrawn, if there are any, on a
 * connection that the caller has alone; disconnects if that fails. OK, and
 * nothing is told, if another connection has the turn beyond turn_until. */
dscomm_status_t dscomm_priv_own_wills_flush(dscomm_priv_link_t *link,
                                            dscomm_priv_deadline_t turn_until,
                                            dscomm_priv_deadline_t deadline);
/* Whether the server has been told of all that were withdrawn. */
bool dscomm_priv_own_wills_settled(dscomm_priv_link_t *first);
void dscomm_priv_own_wills_free(dscomm_priv_link_t *first);

#endif
