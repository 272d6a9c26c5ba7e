/* SPDX-License-Identifier: BSD-3-Clause */
/* The sessions of the store's server that wait: in WAIT for keys, in BARRIER
 * for the others. No locks: the server's thread owns them. */
#ifndef LIB_STORE_WAITERS_H
#define LIB_STORE_WAITERS_H

#include "lib/store/tcp/session.h"

#include <stdbool.h>

typedef enum { WAITERS_KEY, WAITERS_BARRIER, WAITERS_KINDS } waiters_kind_t;

typedef struct {
    dscomm_priv_map_t of[WAITERS_KINDS]; /* lists by key */
} dscomm_priv_waiters_t; /* all zero: empty */

/* No session must wait. */
void dscomm_priv_waiters_clear(dscomm_priv_waiters_t *waiters);

/* Makes session wait for one more key; nothing if it waits for that already.
 * The wait itself begins when the caller sets session->waiting. False: there is
 * no memory. */
bool dscomm_priv_waiters_add(dscomm_priv_waiters_t *waiters,
                             waiters_kind_t kind, dscomm_priv_data_t key,
                             dscomm_priv_session_t *session);
/* Ends what session waits for, without an answer. */
void dscomm_priv_waiters_remove(dscomm_priv_session_t *session);
/* The key has come: all sessions that wait for it have one key less to wait
 * for, and get an answer after the last. */
void dscomm_priv_waiters_wake(dscomm_priv_waiters_t *waiters,
                              waiters_kind_t kind, dscomm_priv_data_t key);
/* The same for one session in WAIT. */
void dscomm_priv_waiters_wake_one(dscomm_priv_waiters_t *waiters,
                                  dscomm_priv_data_t key);
/* Tells session that all that it has waited for has come. */
void dscomm_priv_waiters_answer(dscomm_priv_session_t *session);

#endif
