/* SPDX-License-Identifier: BSD-3-Clause */
/* The server of a TCP store: one thread, any number of clients. */
#ifndef LIB_STORE_SERVER_H
#define LIB_STORE_SERVER_H

#include "lib/store/tcp/listen.h"

typedef struct {
    size_t connections; /* number at which new ones are closed */
    int validate_ms; /* time for the first command of a connection */
    /* time for the rest of a request, and for a client to read some of its
     * answers */
    int stall_ms;
    size_t kept; /* bytes of keys and values */
    size_t under_way; /* bytes of incomplete requests and answers */
} dscomm_priv_server_limits_t;

#define SERVER_LIMITS_INIT                                                     \
    {                                                                          \
        16384, 10000, 60000, DSCOMM_STORE_TOTAL_MAX, DSCOMM_STORE_TOTAL_MAX    \
    }

typedef struct dscomm_priv_server dscomm_priv_server_t;

/* Starts a server for job on the sockets, which it owns if it succeeds. Clients
 * get the job's name on request, and must prove the job's secret, if it has
 * one. limits and job may be NULL. */
dscomm_status_t
dscomm_priv_server_open(const dscomm_priv_listen_t *listening,
                        const dscomm_priv_server_limits_t *limits,
                        const dscomm_priv_job_t *job,
                        dscomm_priv_server_t **ret_server);
/* Closes all connections and joins the thread. server may be NULL. */
void dscomm_priv_server_close(dscomm_priv_server_t *server);
const dscomm_priv_listen_t *
dscomm_priv_server_listening(const dscomm_priv_server_t *server);
/* Number of connected clients with a last will. Any thread may call it. */
int dscomm_priv_server_clients(const dscomm_priv_server_t *server);

#endif
