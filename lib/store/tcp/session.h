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
typedef struct dscomm_priv_commands dscomm_priv_commands_t;

/* The functions that execute requests: the command handlers. */
typedef struct {
    /* Executes the request that session->scan has found in data. FALSE: the
     * connection must be closed; *ret_problem is the reason. */
    gboolean (*execute)(dscomm_priv_commands_t *commands,
                        dscomm_priv_session_t *session, const uint8_t *data,
                        const char **ret_problem);
    /* Logs, once, that a client has not proved the job's secret. */
    void (*refuse)(dscomm_priv_commands_t *commands,
                   dscomm_priv_session_t *session);
} dscomm_priv_handlers_t;

struct dscomm_priv_session {
    const dscomm_priv_handlers_t *handlers;
    int fd;
    char peer[SOCKET_NAME_MAX];
    GQueue *touched; /* sessions with new answers; the server's */
    gboolean queued; /* is in touched */
    gboolean dead; /* closed; freed when the server gets to it */
    /* Links of the server's lists; data is the session. */
    GList link; /* of sessions or dead */
    GList touch; /* of touched, if queued */
    GList silent; /* of silent; data NULL: not in it */
    unsigned events; /* watched by the server's epoll */
    gint64 accepted, request_began, answer_moved; /* us; 0: none */

    dscomm_priv_budget_t *under_way; /* budget of all sessions; the server's */
    size_t held; /* bytes of in that count in the budget */

    bool validate_received; /* has sent VALIDATE */
    /* may use the keys: has sent VALIDATE and, if there is a secret, proved it
     */
    bool validated;
    bool refused; /* proved no secret: its bytes are dropped */
    bool challenged;
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
    gboolean waiting;
    GQueue waits; /* one entry for each missing key */
};

/* What an entry of waits costs besides its bytes. */
#define SESSION_NOTE_COST ((size_t)768)

/* Makes a session, which then owns fd. NULL: no memory; the caller keeps fd. */
dscomm_priv_session_t *
dscomm_priv_session_new(int fd, const char *peer, GQueue *touched,
                        dscomm_priv_budget_t *under_way,
                        const dscomm_priv_handlers_t *handlers);
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

/* Reads what has arrived and executes it. FALSE: the connection must be closed;
 * *ret_problem is the reason, or NULL if the client has left. */
gboolean dscomm_priv_session_read(dscomm_priv_session_t *session,
                                  dscomm_priv_commands_t *commands,
                                  const char **ret_problem);
/* Sends as much as the socket takes, then executes requests that were held back
 * for room. */
gboolean dscomm_priv_session_write(dscomm_priv_session_t *session,
                                   dscomm_priv_commands_t *commands,
                                   const char **ret_problem);
/* TRUE if so much is to be sent that requests are held back. */
gboolean dscomm_priv_session_is_full(const dscomm_priv_session_t *session);

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

#endif
