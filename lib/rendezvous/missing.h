/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that do not come: which ones, for those that have. */
#ifndef LIB_ABSENT_H
#define LIB_ABSENT_H

#include "lib/rendezvous/rendezvous.h"

#include <dscomm/store.h>

/* Each rank that has come has set a key, prefix and its number. OK where all
 * are there, else ERR_TIMEOUT with the numbers of those without, as far as half
 * a second suffices to look. *ret_came: so many are known to be there. */
dscomm_status_t dscomm_priv_absent_name(dscomm_store_t *store,
                                        const char *prefix, int size,
                                        int timeout_ms, int *ret_came);

/* The same for the member records of a world, with its address; ERR_MISMATCH if
 * the store has refused ranks whose secret differs, which may be those. */
dscomm_status_t dscomm_priv_absent_members(const dscomm_join_t *join,
                                           dscomm_store_t *store,
                                           int *ret_came);

/* How much longer than the one that names them the others wait for its words.
 */
#define DSCOMM_ABSENT_GRACE_MS 1000

/* Waits until so many have read them, that is added 1 to the key, or for twice
 * the grace. */
void dscomm_priv_absent_linger(dscomm_store_t *store, const char *key,
                               int readers);

#endif
