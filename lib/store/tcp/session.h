/* SPDX-License-Identifier: BSD-3-Clause */
/* One client of the server: its socket, its incoming request, and its outgoing
 * answers. */
#ifndef LIB_STORE_SESSION_H
#define LIB_STORE_SESSION_H

#include "lib/store/table.h"
#include "lib/store/tcp/socket.h"
#include "lib/store/tcp/wire.h"

#include <stdbool.h>

typedef struct dscomm_priv_session dscomm_priv_session_t;

struct dscomm_priv_session {
    int fd;
    char peer[SOCKET_NAME_MAX];
    GQueue *touched; /* sessions with new answers; the server's */
    bool queued; /* is in touched */
    bool dead; /* closed; freed when the server gets to it */
    /* Links of the server's lists; data is the session. */
    GList link; /* of sessions or dead */
    GList touch; /* of touched, if queued */
    GList silent; /* of silent; data NULL: not in it */
    unsigned events; /* watched by the server's epoll */
    int64_t accepted, request_began, answer_moved; /* 0: none */

    dscomm_priv_budget_t *under_way; /* budget of all sessions; the server's */
    size_t held; /* bytes of in that count in the budget */

    bool validate_received; /* has sent VALIDATE */
    /* may use the keys: has sent VALIDATE and, if there is a secret, proved it
     */
    bool validated;
    bool refused; /* proved no secret: its bytes are dropped */
    bool challenged;
    bool pinged; /* before a proof */
    bool more; /* has sent more than VALIDATE and PING */
    uint8_t nonces[2 * SECRET_NONCE_SIZE]; /* the client's and ours */
    dscomm_priv_buffer_t in;
    dscomm_priv_scan_t scan;

    GQueue out; /* bytes to be sent (dscomm_priv_queue_push()) */
    size_t out_sent; /* bytes of the first entry that were sent */
    size_t out_bytes; /* bytes of out and tail still to be sent */
    /* small answers, to be joined into one entry of out */
    dscomm_priv_buffer_t tail;

    /* the client's name, if it has a last will; or NULL */
    dscomm_priv_bytes_t *client;

    /* A WAIT or BARRIER is under way. */
    bool waiting;
    GQueue waits; /* one entry for each missing key */
};

/* Bytes that an entry of waits costs besides its own. */
#define SESSION_NOTE_COST ((size_t)768)

/* Makes a session, which then owns fd. NULL: no memory; the caller keeps fd. */
dscomm_priv_session_t *dscomm_priv_session_new(int fd, const char *peer,
                                               GQueue *touched,
                                               dscomm_priv_budget_t *under_way);
/* Closes the socket. dscomm_priv_commands_part() must be called before. */
void dscomm_priv_session_free(dscomm_priv_session_t *session);

/* Append to the answers: size bytes; and a copy of them after their size.
 * Answers own their bytes, because they are sent after the request's memory is
 * freed. */
void dscomm_priv_session_answer(dscomm_priv_session_t *session,
                                const void *data, size_t size);
void dscomm_priv_session_answer_copy(dscomm_priv_session_t *session,
                                     const void *data, size_t size);
/* Answers with the size and the bytes of value. A large value is referenced, so
 * it must own its bytes, as stored keys and values do. NULL: an empty value. */
void dscomm_priv_session_answer_value(dscomm_priv_session_t *session,
                                      dscomm_priv_bytes_t *value);

/* Receives a part of what has arrived. false: the connection must be closed;
 * *ret_problem is the reason, or NULL if the client has left. */
bool dscomm_priv_session_receive(dscomm_priv_session_t *session,
                                 const char **ret_problem);
/* Sends as many of the answers as the socket takes. false as above. */
bool dscomm_priv_session_send(dscomm_priv_session_t *session,
                              const char **ret_problem);
/* Drops the first done bytes of in, and counts the rest in the budget. false:
 * there is no memory or no room for it. */
bool dscomm_priv_session_consume(dscomm_priv_session_t *session, size_t done,
                                 const char **ret_problem);
/* true if so much is to be sent that requests are held back. */
bool dscomm_priv_session_is_full(const dscomm_priv_session_t *session);

/* Waiting sessions: in WAIT for keys, in BARRIER for other sessions. */

typedef enum { WAITERS_KEY, WAITERS_BARRIER, WAITERS_KINDS } waiters_kind_t;

typedef struct {
    dscomm_priv_map_t of[WAITERS_KINDS]; /* lists by key */
} dscomm_priv_waiters_t; /* all zero: empty */

/* Called when no session waits. */
void dscomm_priv_waiters_clear(dscomm_priv_waiters_t *waiters);

/* Makes session wait for one more key, unless it waits for that already. The
 * wait begins when the caller sets session->waiting. False: no memory. */
bool dscomm_priv_waiters_add(dscomm_priv_waiters_t *waiters,
                             waiters_kind_t kind, dscomm_priv_data_t key,
                             dscomm_priv_session_t *session);
/* Ends all waits of session, without an answer. */
void dscomm_priv_waiters_remove(dscomm_priv_session_t *session);
/* The key has been set: ends all waits for it. A session is answered after its
 * last wait. */
void dscomm_priv_waiters_wake(dscomm_priv_waiters_t *waiters,
                              waiters_kind_t kind, dscomm_priv_data_t key);
/* The same for the first session that waits for key in WAIT. */
void dscomm_priv_waiters_wake_one(dscomm_priv_waiters_t *waiters,
                                  dscomm_priv_data_t key);
/* Sends session the answer to WAIT or BARRIER. */
void dscomm_priv_waiters_answer(dscomm_priv_session_t *session);

/* Last wills. A will is a key and a value.
 * The server appends the value to the key when all connections of the client
 * have ended while it has the will. If the client then comes back or withdraws
 * the will, the server removes the value again. A client has one will for a
 * key. The server remembers the last WILL_KEPT_MAX clients whose wills were
 * carried out; the values of older ones stay.
 *
 * Only connections that the client's side has ended count. A grace period
 * follows, in which the client may connect again, because the network may have
 * reset them. Connections that the server closes do not count: they show
 * nothing about the client. */

#define WILL_GRACE_MS 300
#define WILL_COUNT_MAX 1024 /* wills of one client */
/* Clients that may come back; more than the ranks of a job that a network
 * failure can cut off at once. */
#define WILL_KEPT_MAX 16384

typedef struct {
    dscomm_priv_map_t of; /* clients by name, see session.c */
    GQueue due; /* clients without connections, the next one first */
    GQueue kept; /* clients whose wills were carried out, oldest first */
    int clients; /* number that are connected and have a will */
    dscomm_priv_table_t *table; /* in which wills are carried out */
    dscomm_priv_waiters_t *waiters; /* which this may wake */
} dscomm_priv_wills_t; /* all zero but the pointers: empty */

void dscomm_priv_wills_clear(dscomm_priv_wills_t *wills);

/* join makes a connection, whose client is *slot, one of the client with this
 * identifier; false: no memory. leave ends the connection; ended: the client's
 * side has closed it. *slot is NULL for a connection without a client, and
 * after leave. */
bool dscomm_priv_wills_join(dscomm_priv_wills_t *wills,
                            dscomm_priv_bytes_t **slot,
                            dscomm_priv_bytes_t *client);
void dscomm_priv_wills_leave(dscomm_priv_wills_t *wills,
                             dscomm_priv_bytes_t **slot, bool ended);

/* Gives a connected client a will, with references to key and value. Does
 * nothing if it has one for key. ERR_INVALID: too many wills; ERR_NO_MEMORY. */
dscomm_status_t dscomm_priv_wills_give(dscomm_priv_wills_t *wills,
                                       dscomm_priv_data_t client,
                                       dscomm_priv_bytes_t *key,
                                       dscomm_priv_bytes_t *value);
/* Withdraws the will for key, or all of the client's if key is empty. */
void dscomm_priv_wills_withdraw(dscomm_priv_wills_t *wills,
                                dscomm_priv_data_t client,
                                dscomm_priv_data_t key);

/* Returns when the next wills are due (dscomm_priv_clock()); 0: none.
 * carry_out carries out those that are due at now. */
int64_t dscomm_priv_wills_due(const dscomm_priv_wills_t *wills);
void dscomm_priv_wills_carry_out(dscomm_priv_wills_t *wills, int64_t now);

#endif
