/* SPDX-License-Identifier: BSD-3-Clause */
/* The server of a TCP store: one thread, any number of clients. */
#ifndef LIB_STORE_SERVER_H
#define LIB_STORE_SERVER_H

#include "lib/store/tcp/socket.h"

typedef struct {
    size_t connections; /* beyond them, new ones are closed */
    int validate_ms; /* for the first command of a connection */
    int stall_ms; /* for the rest of a request, and for a reader of
                     answers to take some */
    size_t kept; /* bytes of keys and values */
    size_t under_way; /* bytes of requests and answers that are incomplete */
} dscomm_priv_server_limits_t;

#define SERVER_LIMITS_INIT                                                     \
    {                                                                          \
        16384, 10000, 60000, DSCOMM_STORE_TOTAL_MAX, DSCOMM_STORE_TOTAL_MAX    \
    }

typedef struct dscomm_priv_server dscomm_priv_server_t;

/* Serves job, which clients are told that ask, on the sockets, which it takes
 * over if it succeeds. If job has a secret, nobody is served without it. limits
 * and job may be NULL. */
dscomm_status_t
dscomm_priv_server_open(const dscomm_priv_listen_t *listening,
                        const dscomm_priv_server_limits_t *limits,
                        const dscomm_priv_job_t *job,
                        dscomm_priv_server_t **ret_server);
/* Closes all connections and joins the thread; NULL is fine. */
void dscomm_priv_server_close(dscomm_priv_server_t *server);
const dscomm_priv_listen_t *
dscomm_priv_server_listening(const dscomm_priv_server_t *server);
/* How many clients are connected and have a last will. Any thread. */
int dscomm_priv_server_clients(const dscomm_priv_server_t *server);

#endif
