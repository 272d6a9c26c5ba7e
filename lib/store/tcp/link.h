/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection of a client to a TCP store: requests, answers and the
 * handshake. */
#ifndef LIB_STORE_LINK_H
#define LIB_STORE_LINK_H

#include "lib/store/tcp/socket.h"
#include "lib/store/tcp/wire.h"

#include <stdatomic.h>

/* A host, cut off, its ports and what is between them. */
#define LINK_PEER_MAX STORE_PEER_MAX

typedef struct dscomm_priv_own_will dscomm_priv_own_will_t;

typedef struct dscomm_priv_link {
    dscomm_priv_gate_t gate; /* one thread at a time */
    char *host;
    int port, ports; /* the first that it may be at, and how many */
    char *job; /* whose store it must be, or NULL */
    char secret[SECRET_MAX + 1]; /* the job's, or "" */
    bool munge; /* the server gives it in a credential */
    bool unproven; /* the last handshake failed for want of the same secret */
    unsigned reported; /* ports, from the first on, whose servers know that */
    bool replaced; /* the last handshake met another server than before */
    dscomm_priv_rank_t rank; /* whose process this is; world "": none's */
    char peer[LINK_PEER_MAX]; /* the address, for messages */
    int fd; /* -1: to be connected again */
    bool bound; /* the server knows that fd is a connection of the client */
    int old_fd; /* one that was bound before and is out of step, or -1 */
    uint8_t server[WIRE_NAME_SIZE]; /* of the first connection, */
    gboolean met; /* if there was one */

    /* The other connections of the store, see connect.h. The
     * lock is the first one's, and guards what follows it on all of them. */
    pthread_mutex_t lock;
    struct dscomm_priv_link *first, *next;
    unsigned users; /* threads that have the connection, or queue for it */
    gboolean waits; /* its user waits for keys */
    gint64 idle; /* since when it has had no users, in us */
    bool binds; /* its connections are to be bound, if there are wills */
    uint8_t client[WIRE_NAME_SIZE]; /* the first one's: names the client */
    dscomm_priv_own_will_t *wills; /* the first one's, see will.h */
    dscomm_priv_gate_t turn; /* the first one's: to send wills */
    struct sockaddr_storage address; /* the first one's: of the server */
    atomic_bool silent; /* the first one's: the last answer did not come */
} dscomm_priv_link_t;

/* "host:29500", "[::1]:61440-61447", into buffer, which it returns. */
const char *dscomm_priv_link_peer(char buffer[LINK_PEER_MAX], const char *host,
                                  int port, int ports);

/* TRUE where the server has closed the connection, or sent what nobody asked
 * for. */
gboolean dscomm_priv_link_is_out_of_step(const dscomm_priv_link_t *link);
/* Gives up the connection, which is out of order. One that is bound stays open
 * until the next one is: the server must not take the client for dead. */
void dscomm_priv_link_disconnect(dscomm_priv_link_t *link);

/* Sends a request, which is cleared in any case; and receives size bytes of an
 * answer, and notes whether the server has answered. Both have the grace period
 * of the deadline. */
dscomm_status_t dscomm_priv_link_send(dscomm_priv_link_t *link,
                                      dscomm_priv_buffer_t *request,
                                      dscomm_priv_deadline_t deadline);
dscomm_status_t dscomm_priv_link_receive(dscomm_priv_link_t *link, void *data,
                                         size_t size,
                                         dscomm_priv_deadline_t deadline);
/* The same for a value after its size; free it with g_free(). */
dscomm_status_t dscomm_priv_link_answer_value(dscomm_priv_link_t *link,
                                              dscomm_priv_deadline_t deadline,
                                              void **ret_value,
                                              size_t *ret_size);
/* Fails with ERR_PROTOCOL: command was answered with got. */
dscomm_status_t dscomm_priv_link_fail_answer(const dscomm_priv_link_t *link,
                                             const char *command, uint64_t got);

/* Shakes hands on link->fd, which is connected; it must be the server of the
 * connections before, if there was one. ERR_PROTOCOL: no TCPStore answers.
 * ERR_MISMATCH: the server is of another job, or secrets differ.
 * ERR_ENVIRONMENT: it is rank 0's, which cannot make a secret. */
dscomm_status_t dscomm_priv_handshake(dscomm_priv_link_t *link,
                                      dscomm_priv_deadline_t deadline);

/* Reports to the server on link->fd, which is connected anew, that link->rank
 * does not use its store, because secrets differ. */
void dscomm_priv_handshake_refuse(dscomm_priv_link_t *link,
                                  dscomm_priv_deadline_t deadline);

/* Receives the answer to a PING with nonce. */
dscomm_status_t dscomm_priv_link_echo(dscomm_priv_link_t *link, uint32_t nonce,
                                      dscomm_priv_deadline_t deadline);

#endif
