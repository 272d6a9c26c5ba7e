/* SPDX-License-Identifier: BSD-3-Clause */
/* The command handlers of the store's server, and what they work on: keys,
 * queues, sessions that wait, last wills. No locks: the server's thread owns
 * them. */
#ifndef LIB_STORE_COMMANDS_H
#define LIB_STORE_COMMANDS_H

#include "lib/store/tcp/session.h"
#include "lib/store/tcp/will.h"

/* Keys, queues and those who wait for them. most: bytes of keys and values;
 * job: whose they are, or NULL. NULL after dscomm_fail(). */
dscomm_priv_commands_t *dscomm_priv_commands_new(size_t most,
                                                 const dscomm_priv_job_t *job);
void dscomm_priv_commands_free(dscomm_priv_commands_t *commands);
/* How a session's requests are executed. */
extern const dscomm_priv_handlers_t dscomm_priv_commands_handlers;
/* The connection of session ends, and what it waits for; ended: by the client's
 * side. */
void dscomm_priv_commands_part(dscomm_priv_commands_t *commands,
                               dscomm_priv_session_t *session, bool ended);
/* The last wills of the clients. */
dscomm_priv_wills_t *
dscomm_priv_commands_wills(dscomm_priv_commands_t *commands);

#endif
