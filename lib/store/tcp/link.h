/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection of a client to a TCP store: requests, answers and the
 * handshake. */
#ifndef LIB_STORE_LINK_H
#define LIB_STORE_LINK_H

#include "lib/store/tcp/socket.h"
#include "lib/store/tcp/wire.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct dscomm_priv_own_will dscomm_priv_own_will_t;

typedef struct dscomm_priv_link {
    dscomm_priv_gate_t gate; /* one thread at a time */
    char *host;
    int port, ports; /* first port to try, and number of ports */
    char *job; /* name of the store's job, or NULL */
    char secret[SECRET_MAX + 1]; /* the job's, or "" */
    bool munge; /* the server's credential holds the secret */
    bool unproven; /* the last handshake failed because the secrets differ */
    unsigned reported; /* ports, from the first on, that got a report */
    bool replaced; /* the last handshake met another server than before */
    dscomm_priv_rank_t rank; /* this process as a rank; world "": none */
    char peer[STORE_PEER_MAX]; /* the address, for messages */
    int fd; /* -1: not connected */
    bool bound; /* the server has the client's name for fd */
    int old_fd; /* previous bound connection, now out of step; -1: none */
    /* name of the server that the first connection met, */
    uint8_t server[WIRE_NAME_SIZE];
    bool met; /* if it has met one */

    /* Further connections of the store, see connect.h. The lock is the first
     * one's; it protects the members after it on all connections. */
    pthread_mutex_t lock;
    struct dscomm_priv_link *first, *next;
    unsigned users; /* threads that use the connection or queue for it */
    bool waits; /* its user waits for keys */
    int64_t idle; /* when it became unused */
    bool binds; /* bind new connections, if there are wills */
    uint8_t client[WIRE_NAME_SIZE]; /* the client's name; the first one's */
    dscomm_priv_own_will_t *wills; /* the first one's */
    dscomm_priv_gate_t turn; /* to send wills; the first one's */
    struct sockaddr_storage address; /* of the server; the first one's */
    atomic_bool silent; /* the last answer did not come; the first one's */
} dscomm_priv_link_t;

/* Writes "host:29500" or "[::1]:61440-61447" into buffer and returns it. */
const char *dscomm_priv_link_peer(char buffer[STORE_PEER_MAX], const char *host,
                                  int port, int ports);

/* true if the server has closed the connection or sent bytes without a request.
 */
bool dscomm_priv_link_is_out_of_step(const dscomm_priv_link_t *link);
/* Gives up a connection that is out of step. A bound one is closed only after
 * the next one is bound; otherwise the server would take the client for dead.
 */
void dscomm_priv_link_disconnect(dscomm_priv_link_t *link);

/* Sends a request, which is cleared in any case. Receives size bytes of an
 * answer, and notes whether the server has answered. Both may use the
 * deadline's grace period. */
dscomm_status_t dscomm_priv_link_send(dscomm_priv_link_t *link,
                                      dscomm_priv_buffer_t *request,
                                      dscomm_priv_deadline_t deadline);
dscomm_status_t dscomm_priv_link_receive(dscomm_priv_link_t *link, void *data,
                                         size_t size,
                                         dscomm_priv_deadline_t deadline);
/* Receives a value with its size; free it with g_free(). */
dscomm_status_t dscomm_priv_link_answer_value(dscomm_priv_link_t *link,
                                              dscomm_priv_deadline_t deadline,
                                              void **ret_value,
                                              size_t *ret_size);
/* Fails with ERR_PROTOCOL: got is no valid answer to command. */
dscomm_status_t dscomm_priv_link_fail_answer(const dscomm_priv_link_t *link,
                                             const char *command, uint64_t got);

/* Performs the handshake on link->fd, which is connected. On reconnection, the
 * server must be the same. ERR_PROTOCOL: not a TCPStore. ERR_MISMATCH: the
 * server is of another job, or secrets differ. ERR_ENVIRONMENT: rank 0 cannot
 * make a secret. */
dscomm_status_t dscomm_priv_handshake(dscomm_priv_link_t *link,
                                      dscomm_priv_deadline_t deadline);

/* Reports to the server, on link->fd, that link->rank does not use its store
 * because secrets differ. The connection must be new. */
void dscomm_priv_handshake_refuse(dscomm_priv_link_t *link,
                                  dscomm_priv_deadline_t deadline);

/* Last wills of this process (session.h), on the connections of one store. All
 * bound connections carry the same client name, so the server carries the wills
 * out when the last of them has ended.
 *
 * The server reads connections in any order. So only one connection at a time
 * may send wills, until the server has answered: otherwise a will could arrive
 * on one connection after its withdrawal on another. */

/* Notes a will for key; or marks the will for key, or all if key is NULL, as
 * withdrawn. The caller sends it. False: no memory; no such will. */
bool dscomm_priv_own_will_note(dscomm_priv_link_t *first, const char *key,
                               dscomm_priv_data_t value);
bool dscomm_priv_own_will_withdraw(dscomm_priv_link_t *first, const char *key);

/* Binds a new connection: gives the server all wills on it, and withdraws those
 * that are marked. */
dscomm_status_t dscomm_priv_own_wills_bind(dscomm_priv_link_t *link,
                                           dscomm_priv_deadline_t deadline);
/* Sends pending withdrawals on a connection that only the caller uses;
 * disconnects on failure. OK without sending if another connection still has
 * the turn at turn_until. */
dscomm_status_t dscomm_priv_own_wills_flush(dscomm_priv_link_t *link,
                                            dscomm_priv_deadline_t turn_until,
                                            dscomm_priv_deadline_t deadline);
/* True if the server has got all withdrawals. */
bool dscomm_priv_own_wills_settled(dscomm_priv_link_t *first);
void dscomm_priv_own_wills_free(dscomm_priv_link_t *first);

#endif
