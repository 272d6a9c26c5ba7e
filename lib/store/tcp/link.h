/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's connection to a TCP store. */
#ifndef LIB_STORE_LINK_H
#define LIB_STORE_LINK_H

#include "lib/store/tcp/socket.h"
#include "lib/store/tcp/wire.h"

#include <stdatomic.h>

/* How long a server may stay for clients that have not said goodbye, whatever
 * comes to its port in the meantime. */
#define STORE_LINGER_MS 5000

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
    int parked; /* one that was bound before and is out of step, or -1 */
    uint8_t server[WIRE_NAME_SIZE]; /* of the first connection, */
    gboolean met; /* if there was one */

    /* The other connections of the store, see dscomm_priv_link_enter(). The
     * lock is the first one's, and guards what follows it on all of them. */
    pthread_mutex_t lock;
    struct dscomm_priv_link *first, *next;
    unsigned users; /* threads that have the connection, or queue for it */
    gboolean waits; /* its user waits for keys */
    gint64 idle; /* since when it has had no users, in us */
    bool binds; /* its connections are to be bound, if there are wills */
    uint8_t client[WIRE_NAME_SIZE]; /* the first one's: names the client */
    dscomm_priv_own_will_t *wills; /* the first one's, see store-own-will.h */
    dscomm_priv_gate_t turn; /* the first one's: to tell the server of wills */
    struct sockaddr_storage address; /* the first one's: of the server */
    atomic_bool silent; /* the first one's: the last answer did not come */
} dscomm_priv_link_t;

/* Connections beyond the first that nobody has used for so long are closed. */
#define LINK_IDLE_US (10 * G_USEC_PER_SEC)

/* "host:29500", "[::1]:61440-61447", into buffer, which it returns. */
const char *dscomm_priv_link_peer(char buffer[LINK_PEER_MAX], const char *host,
                                  int port, int ports);

/* job may be NULL; peer is host and port for messages, NULL: as they are.
 * FALSE: no memory, and there is nothing to clear. */
gboolean dscomm_priv_link_init(dscomm_priv_link_t *link, const char *host,
                               int port, const dscomm_priv_job_t *job,
                               const char *peer);
void dscomm_priv_link_clear(dscomm_priv_link_t *link);

/* Connects, trying again until the deadline. A store of another job is given
 * time to end, but not one whose secret differs: that is ERR_MISMATCH at
 * once. ERR_ENVIRONMENT: rank 0 cannot make a secret. */
dscomm_status_t dscomm_priv_link_connect(dscomm_priv_link_t *link,
                                         dscomm_priv_deadline_t deadline);

/* dscomm_priv_store_silent() of the store whose first connection it is. */
bool dscomm_priv_link_silent(dscomm_priv_link_t *first,
                             dscomm_priv_store_place_t *ret_place);

/* Takes a connection for a request and its answers, connected anew if it was
 * lost, but to no other server than the first; leave gives it back, and drops
 * it where status says that no one knows what comes next on it. Returns status.
 *
 * *link is the store's first connection, and becomes the one that was taken.
 * A thread that waits for keys has one alone, so that the keys for which
 * it waits can be set through this store too; requests that are answered at
 * once share one. So there are as many as threads have waited at once, and one
 * for the others: a process with one thread has one. Those that are no longer
 * used are closed after LINK_IDLE_US, when another one is taken. */
dscomm_status_t dscomm_priv_link_enter(dscomm_priv_link_t **link,
                                       gboolean waits,
                                       dscomm_priv_deadline_t deadline);
dscomm_status_t dscomm_priv_link_leave(dscomm_priv_link_t *link,
                                       dscomm_status_t status);
/* After ERR_PEER_FAILED on a connection that enter has given: OK, and another
 * connection, if the server lives. ERR_NO_MEMORY if it closes that, too; the
 * last sentence again if it is gone. */
dscomm_status_t dscomm_priv_link_renew(dscomm_priv_link_t *link,
                                       dscomm_priv_deadline_t deadline);
/* Fails with the reason why the server may not execute a request on key, or
 * returns OK: there is none. Gives up a connection that is out of order. */
typedef dscomm_status_t (*dscomm_priv_reason_t)(
    dscomm_priv_link_t *link, const char *key, const void *arg,
    dscomm_priv_deadline_t deadline);
/* As leave, after a request, whose key may be NULL. A server can refuse it only
 * by closing the connection: without memory or room for it, or for a reason
 * that find tells, unless that is NULL. */
dscomm_status_t
dscomm_priv_link_leave_refused(dscomm_priv_link_t *link, dscomm_status_t status,
                               dscomm_priv_deadline_t deadline,
                               const char *request, const char *key,
                               dscomm_priv_reason_t find, const void *arg);

/* Takes a connection as enter does, but neither passes its gate nor connects
 * it; and gives it back. NULL: no memory. */
dscomm_priv_link_t *dscomm_priv_link_choose(dscomm_priv_link_t *first,
                                            gboolean waits);
void dscomm_priv_link_release(dscomm_priv_link_t *link);
/* TRUE where the server has closed the connection, or sent what nobody asked
 * for. */
gboolean dscomm_priv_link_is_out_of_step(const dscomm_priv_link_t *link);
/* Gives up the connection, which is out of order. One that is bound stays open
 * until the next one is: the server must not take the client for dead. */
void dscomm_priv_link_disconnect(dscomm_priv_link_t *link);

/* Sends a request, which is cleared in any case; ask adds the grace period that
 * an answer has. */
dscomm_status_t dscomm_priv_link_send(dscomm_priv_link_t *link,
                                      dscomm_priv_buffer_t *request,
                                      dscomm_priv_deadline_t deadline);
dscomm_status_t dscomm_priv_link_ask(dscomm_priv_link_t *link,
                                     dscomm_priv_buffer_t *request,
                                     dscomm_priv_deadline_t deadline);
/* Receives size bytes that are due at the deadline, and notes whether the
 * server has answered. */
dscomm_status_t dscomm_priv_link_receive(dscomm_priv_link_t *link, void *data,
                                         size_t size,
                                         dscomm_priv_deadline_t deadline);
/* The same for an answer, which has the grace period. */
dscomm_status_t dscomm_priv_link_answer(dscomm_priv_link_t *link, void *data,
                                        size_t size,
                                        dscomm_priv_deadline_t deadline);
/* Both. */
dscomm_status_t dscomm_priv_link_query(dscomm_priv_link_t *link,
                                       dscomm_priv_buffer_t *request,
                                       void *data, size_t size,
                                       dscomm_priv_deadline_t deadline);
dscomm_status_t dscomm_priv_link_answer_value(dscomm_priv_link_t *link,
                                              dscomm_priv_deadline_t deadline,
                                              void **ret_value,
                                              size_t *ret_size);
/* Fails with ERR_PROTOCOL. */
dscomm_status_t dscomm_priv_link_nonsense(const dscomm_priv_link_t *link,
                                          const char *command, uint64_t got);

#endif
