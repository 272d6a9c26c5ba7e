/* SPDX-License-Identifier: BSD-3-Clause */
/* Last wills of the server's clients: what is to be appended to a key if a
 * client ends all its connections without withdrawing its will.
 *
 * Connections that end by the client's side count as the end of the client,
 * after a grace period in which it may connect again: the network may have
 * reset them. Those that the server closes do not count: they tell nothing
 * about the client. No locks: the server's thread owns them. */
#ifndef LIB_STORE_WILL_H
#define LIB_STORE_WILL_H

#include "lib/store-map.h"

#define WILL_GRACE_MS 300

typedef struct dscomm_priv_wills dscomm_priv_wills_t;

/* NULL: no memory. */
dscomm_priv_wills_t *dscomm_priv_wills_new(void);
void dscomm_priv_wills_free(dscomm_priv_wills_t *wills);

/* One more connection of client, an identifier. The first one gives the will:
 * references to key and value; on later ones these are ignored. False: no
 * memory. */
bool dscomm_priv_wills_join(dscomm_priv_wills_t *wills,
                            dscomm_priv_bytes_t *client,
                            dscomm_priv_bytes_t *key,
                            dscomm_priv_bytes_t *value);
/* One connection less; ended: by the client's side. */
void dscomm_priv_wills_leave(dscomm_priv_wills_t *wills,
                             dscomm_priv_data_t client, bool ended);
/* The client has left orderly, or has no will any more. */
void dscomm_priv_wills_withdraw(dscomm_priv_wills_t *wills,
                                dscomm_priv_data_t client);

/* When the next will is to be carried out, of g_get_monotonic_time(); 0: none
 * is. */
gint64 dscomm_priv_wills_due(const dscomm_priv_wills_t *wills);
/* Takes the next will that is due at now; the caller gets the references to
 * key and value. False: none is. */
bool dscomm_priv_wills_take(dscomm_priv_wills_t *wills, gint64 now,
                            dscomm_priv_bytes_t **ret_key,
                            dscomm_priv_bytes_t **ret_value);

#endif
