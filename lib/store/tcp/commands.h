/* SPDX-License-Identifier: BSD-3-Clause */
/* The command handlers of the store's server, with their data: keys, queues,
 * waiting sessions and last wills. There are no locks: only the server's thread
 * uses these. */
#ifndef LIB_STORE_COMMANDS_H
#define LIB_STORE_COMMANDS_H

#include "lib/store/tcp/session.h"

typedef struct dscomm_priv_commands dscomm_priv_commands_t;

/* Makes empty tables. most: limit of keys and values, in bytes; job: the job
 * that the store belongs to, or NULL. NULL after dscomm_fail(). */
dscomm_priv_commands_t *dscomm_priv_commands_new(size_t most,
                                                 const dscomm_priv_job_t *job);
void dscomm_priv_commands_free(dscomm_priv_commands_t *commands);
/* Reads what session's client has sent and executes it. FALSE: the connection
 * must be closed; *ret_problem is the reason, or NULL if the client has left.
 */
gboolean dscomm_priv_commands_read(dscomm_priv_commands_t *commands,
                                   dscomm_priv_session_t *session,
                                   const char **ret_problem);
/* Sends as much as the socket takes, then executes requests that were held back
 * for room. */
gboolean dscomm_priv_commands_write(dscomm_priv_commands_t *commands,
                                    dscomm_priv_session_t *session,
                                    const char **ret_problem);
/* Removes a session whose connection ends, with its waits; ended: the client
 * has closed the connection. */
void dscomm_priv_commands_part(dscomm_priv_commands_t *commands,
                               dscomm_priv_session_t *session, bool ended);
/* The last wills of the clients. */
dscomm_priv_wills_t *
dscomm_priv_commands_wills(dscomm_priv_commands_t *commands);

#endif
