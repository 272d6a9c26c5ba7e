/* SPDX-License-Identifier: BSD-3-Clause */
/* One client of the server: its socket, the request that arrives, the answers
 * that leave. */
#ifndef LIB_STORE_SESSION_H
#define LIB_STORE_SESSION_H

#include "lib/store/table.h"
#include "lib/store/tcp/socket.h"
#include "lib/store/tcp/wire.h"

#include <stdbool.h>

typedef struct dscomm_priv_session dscomm_priv_session_t;
typedef struct dscomm_priv_commands dscomm_priv_commands_t;

/* What executes the requests of sessions: the command handlers. */
typedef struct {
    /* Executes the request that session->scan has found in data. FALSE: the
     * connection is to be closed, *ret_problem says why. */
    gboolean (*execute)(dscomm_priv_commands_t *commands,
                        dscomm_priv_session_t *session, const uint8_t *data,
                        const char **ret_problem);
    /* Tells the log, once, that a client does not know the job's secret. */
    void (*refuse)(dscomm_priv_commands_t *commands,
                   dscomm_priv_session_t *session);
} dscomm_priv_handlers_t;

struct dscomm_priv_session {
    const dscomm_priv_handlers_t *handlers;
    int fd;
    char peer[SOCKET_NAME_MAX];
    GQueue *touched; /* sessions with new answers; the server's */
    gboolean queued; /* in touched */
    gboolean dead; /* closed; freed when the server gets to it */
    /* Links of the server's lists; data: the session. */
    GList link; /* of all or the dead */
    GList touch; /* of touched, if queued */
    GList silent; /* of the silent; data is NULL when it is not there */
    unsigned events; /* what the server's epoll watches */
    gint64 accepted, request_began, answer_moved; /* us; 0 = not now */

    dscomm_priv_budget_t *under_way; /* bytes of all sessions; the server's */
    size_t held; /* of them, by in */

    bool validate_received; /* has sent VALIDATE */
    bool validated; /* may use the keys: validate_received, and knows the job's
                       secret */
    bool refused; /* does not: what it sends is dropped */
    bool challenged;
    uint8_t nonces[2 * SECRET_NONCE_SIZE]; /* its own and ours, if challenged */
    dscomm_priv_buffer_t in;
    dscomm_priv_scan_t scan;

    GQueue out; /* bytes that were not sent yet (dscomm_priv_queue_push()) */
    size_t out_sent; /* bytes of the first that were */
    size_t out_bytes; /* bytes of out and tail that are to be sent */
    dscomm_priv_buffer_t tail; /* small answers, not yet in out */

    dscomm_priv_bytes_t *client; /* whose last will it holds, or NULL */

    /* WAIT or BARRIER under way */
    gboolean waiting;
    GQueue waits; /* one for each key that is missing */
};

/* Of each in waits, besides its bytes. */
#define SESSION_NOTE_COST ((size_t)768)

/* Takes over fd. NULL: no memory, and fd is still the caller's. */
dscomm_priv_session_t *
dscomm_priv_session_new(int fd, const char *peer, GQueue *touched,
                        dscomm_priv_budget_t *under_way,
                        const dscomm_priv_handlers_t *handlers);
/* Closes the socket. dscomm_priv_commands_part() comes before. */
void dscomm_priv_session_free(dscomm_priv_session_t *session);

/* Answers own their bytes, because they are sent after the request's memory is
 * freed. These two copy: bytes as they are, and the same after their size. */
void dscomm_priv_session_answer(dscomm_priv_session_t *session,
                                const void *data, size_t size);
void dscomm_priv_session_answer_copy(dscomm_priv_session_t *session,
                                     const void *data, size_t size);
/* The size of value and its bytes; a large one is referenced, so value must own
 * them: a key or value that is or was stored. NULL: an empty value. */
void dscomm_priv_session_answer_value(dscomm_priv_session_t *session,
                                      dscomm_priv_bytes_t *value);

/* Reads what has arrived and has it executed. FALSE: the connection
 * is to be closed; *ret_problem says why, or is NULL where the client left. */
gboolean dscomm_priv_session_read(dscomm_priv_session_t *session,
                                  dscomm_priv_commands_t *commands,
                                  const char **ret_problem);
/* Sends what the socket takes, then goes on with requests that waited for
 * room. */
gboolean dscomm_priv_session_write(dscomm_priv_session_t *session,
                                   dscomm_priv_commands_t *commands,
                                   const char **ret_problem);
/* So much is to be sent that no further request is looked at. */
gboolean dscomm_priv_session_is_full(const dscomm_priv_session_t *session);

/* The sessions that wait: in WAIT for keys, in BARRIER for the others. */

typedef enum { WAITERS_KEY, WAITERS_BARRIER, WAITERS_KINDS } waiters_kind_t;

typedef struct {
    dscomm_priv_map_t of[WAITERS_KINDS]; /* lists by key */
} dscomm_priv_waiters_t; /* all zero: empty */

/* No session must wait. */
void dscomm_priv_waiters_clear(dscomm_priv_waiters_t *waiters);

/* Makes session wait for one more key; nothing if it waits for that already.
 * The wait itself begins when the caller sets session->waiting. False: there is
 * no memory. */
bool dscomm_priv_waiters_add(dscomm_priv_waiters_t *waiters,
                             waiters_kind_t kind, dscomm_priv_data_t key,
                             dscomm_priv_session_t *session);
/* Ends what session waits for, without an answer. */
void dscomm_priv_waiters_remove(dscomm_priv_session_t *session);
/* The key has come: all sessions that wait for it have one key less to wait
 * for, and get an answer after the last. */
void dscomm_priv_waiters_wake(dscomm_priv_waiters_t *waiters,
                              waiters_kind_t kind, dscomm_priv_data_t key);
/* The same for one session in WAIT. */
void dscomm_priv_waiters_wake_one(dscomm_priv_waiters_t *waiters,
                                  dscomm_priv_data_t key);
/* Tells session that all that it has waited for has come. */
void dscomm_priv_waiters_answer(dscomm_priv_session_t *session);

#endif
