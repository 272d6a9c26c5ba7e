/* SPDX-License-Identifier: BSD-3-Clause */
/* The command handlers of the store's server, with their data: keys, queues,
 * waiting sessions and last wills. There are no locks: only the server's thread
 * uses these. */
#ifndef LIB_STORE_COMMANDS_H
#define LIB_STORE_COMMANDS_H

#include "lib/store/tcp/session.h"

#include <stdbool.h>

typedef struct {
    dscomm_priv_table_t table;
    dscomm_priv_map_t queues; /* lists of bytes (dscomm_priv_queue_push()) */
    dscomm_priv_waiters_t waiters;
    dscomm_priv_wills_t wills;
    bool full; /* out of room, and that was logged */
    char *secret; /* required of clients; or NULL */
    char *credential; /* holds the secret; or NULL */
    bool refused; /* a client was refused, and that was logged */
    dscomm_priv_refused_t reports; /* of processes that were refused */
} dscomm_priv_commands_t;

/* Makes empty tables; commands then stays at its place. most: limit of keys and
 * values, in bytes; job: the job that the store belongs to, or NULL. Clear also
 * after a failure. */
dscomm_status_t dscomm_priv_commands_init(dscomm_priv_commands_t *commands,
                                          size_t most,
                                          const dscomm_priv_job_t *job);
void dscomm_priv_commands_clear(dscomm_priv_commands_t *commands);
/* Reads what session's client has sent and executes it. false: the connection
 * must be closed; *ret_problem is the reason, or NULL if the client has left.
 */
bool dscomm_priv_commands_read(dscomm_priv_commands_t *commands,
                               dscomm_priv_session_t *session,
                               const char **ret_problem);
/* Sends as much as the socket takes, then executes requests that were held back
 * for room. */
bool dscomm_priv_commands_write(dscomm_priv_commands_t *commands,
                                dscomm_priv_session_t *session,
                                const char **ret_problem);
/* Removes a session whose connection ends, with its waits; ended: the client
 * has closed the connection. */
void dscomm_priv_commands_part(dscomm_priv_commands_t *commands,
                               dscomm_priv_session_t *session, bool ended);

#endif
