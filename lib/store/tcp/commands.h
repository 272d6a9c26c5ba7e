/* SPDX-License-Identifier: BSD-3-Clause */
/* The command handlers of the store's server, with their data: keys, queues,
 * waiting sessions and last wills. There are no locks: only the server's thread
 * uses these. */
#ifndef LIB_STORE_COMMANDS_H
#define LIB_STORE_COMMANDS_H

#include "lib/store/tcp/session.h"
#include "lib/store/tcp/will.h"

/* Makes empty tables. most: limit of keys and values, in bytes; job: the job
 * that the store belongs to, or NULL. NULL after dscomm_fail(). */
dscomm_priv_commands_t *dscomm_priv_commands_new(size_t most,
                                                 const dscomm_priv_job_t *job);
void dscomm_priv_commands_free(dscomm_priv_commands_t *commands);
/* How a session's requests are executed. */
extern const dscomm_priv_handlers_t dscomm_priv_commands_handlers;
/* Removes a session whose connection ends, with its waits; ended: the client
 * has closed the connection. */
void dscomm_priv_commands_part(dscomm_priv_commands_t *commands,
                               dscomm_priv_session_t *session, bool ended);
/* The last wills of the clients. */
dscomm_priv_wills_t *
dscomm_priv_commands_wills(dscomm_priv_commands_t *commands);

#endif
