/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kinds of key-value store have in common. store.c checks arguments,
 * joins prefixes and dispatches; a kind sees whole keys only. */
#ifndef LIB_STORE_H
#define LIB_STORE_H

#include <dscomm/store.h>

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>

/* When a call gives up, of g_get_monotonic_time(), in us, and the time-out it
 * was given, for the sentence. Both times are fixed when the call begins: a
 * server that answers nothing costs one grace period a call, however many
 * requests the call makes. */
typedef struct {
    gint64 at; /* no key is waited for any longer */
    gint64 end; /* an answer that is due, or a lock, may take until then */
    int ms;
} dscomm_priv_deadline_t;

dscomm_priv_deadline_t dscomm_priv_deadline(int timeout_ms);
gboolean dscomm_priv_deadline_passed(dscomm_priv_deadline_t deadline);
/* For poll(): milliseconds left, rounded up; 0 where it has passed. */
int dscomm_priv_deadline_left(dscomm_priv_deadline_t deadline);

/* The deadline of what is due at once: an answer, or a lock that is held for
 * moments. */
dscomm_priv_deadline_t dscomm_priv_grace(dscomm_priv_deadline_t deadline);

/* Sleeps *pause_us or up to a half less, so that those who began together do
 * not stay so, but not beyond the deadline, and doubles *pause_us up to
 * most_us. */
void dscomm_priv_back_off(dscomm_priv_deadline_t deadline, gint64 *pause_us,
                          gint64 most_us);

/* The deadlines of a view's calls, in us of g_get_monotonic_time(). */
typedef struct {
    gint64 due; /* a server that has answered nothing so far is given up */
    gint64 end; /* no call ends later */
} dscomm_priv_limit_t;

/* The deadline of one call on a view. timeout_ms is its time-out, or that of
 * the store; waits: for keys that others set, else the answer is due at once.
 * silent: the last request had no answer in time. */
dscomm_priv_deadline_t dscomm_priv_deadline_within(dscomm_priv_limit_t limit,
                                                   int timeout_ms, bool waits,
                                                   bool silent);

typedef struct dscomm_priv_store dscomm_priv_store_t;

#define STORE_PEER_MAX 96

/* Where a TCP store's server is. */
typedef struct {
    char peer[STORE_PEER_MAX]; /* for messages */
    struct sockaddr_storage address; /* of family AF_UNSPEC: not known */
} dscomm_priv_store_place_t;

/* A key as the kinds see it, with torch's '/'. */
#define WHOLE_KEY_MAX (DSCOMM_STORE_KEY_MAX + 1)

/* Bytes of the caller's. */
typedef struct {
    const void *data;
    size_t size;
} dscomm_priv_data_t;

/* What a store is asked, and the parts of dscomm_priv_request_t that it uses.
 */
typedef enum {
    STORE_SET, /* value */
    STORE_APPEND, /* value */
    STORE_GET, /* waits for the keys; values and sizes, unless NULL */
    STORE_ADD, /* number: what to add, then the sum */
    STORE_COMPARE_SET, /* expected, value; values and sizes: what is stored */
    STORE_DELETE, /* number: 1 if the key was there, else 0 */
    STORE_LOOK, /* present: which of the keys are there */
    STORE_NUM_KEYS, /* number; no keys */
    STORE_COMMANDS
} dscomm_priv_command_t;

/* A request and, on success, its answer. All arguments are checked, and lengths
 * are within limits. Keys begin with '/', which is torch's own prefix and no
 * part of what the user sees: messages leave it out. */
typedef struct {
    dscomm_priv_command_t command;
    dscomm_priv_deadline_t deadline;
    const char *const *keys;
    size_t count;
    dscomm_priv_data_t value, expected;
    int64_t number;
    void **values; /* of dscomm_priv_value(); all NULL on failure */
    size_t *sizes;
    uint8_t *present;
} dscomm_priv_request_t;

/* Calls may come from several threads. */
typedef struct {
    void (*close)(dscomm_priv_store_t *self);
    int (*port)(const dscomm_priv_store_t *self); /* optional */
    int (*clients)(const dscomm_priv_store_t *self); /* optional */
    /* Whether the last request had no answer in time; fills *ret_place if so,
     * unless that is NULL; optional. */
    bool (*silent)(dscomm_priv_store_t *self,
                   dscomm_priv_store_place_t *ret_place);
    dscomm_status_t (*execute)(dscomm_priv_store_t *self,
                               dscomm_priv_request_t *request);
    dscomm_status_t (*will)(dscomm_priv_store_t *self, const char *key,
                            dscomm_priv_data_t value,
                            dscomm_priv_deadline_t deadline); /* optional */
    void (*withdraw)(dscomm_priv_store_t *self,
                     const char *key); /* with will */
} dscomm_priv_store_ops_t;

/* The head of every kind; all views of a store share it. */
struct dscomm_priv_store {
    const dscomm_priv_store_ops_t *ops;
    gatomicrefcount refs;
    unsigned generation; /* of the process that opened it */
    dscomm_priv_store_t *inherited; /* the next that a forked child closed */
};

/* What a process says of itself to the server of a store that it may not use,
 * or will not: texts, cut off, and zeros after them. A process that is no rank
 * gives its program's name as its world. */
typedef struct {
    char world[192]; /* equal for all ranks of a world, and no others' */
    char name[128]; /* "rank 1 of 2 (pid 77 on node)" */
} dscomm_priv_rank_t;

/* Whose a TCP store is. Its server tells, and a client whose name differs is
 * no client of it: it goes on to the next port, if it may. */
typedef struct {
    const char *name; /* or NULL: anyone's */
    int ports; /* where it may be: this many from the address's on */
    bool remote; /* some of its ranks are known to be on other machines */
    const char *secret; /* what clients must prove to know, or NULL */
    /* Without a secret: its server makes one, if MUNGE works there, and gives
     * clients the credential. */
    bool munge;
    const char *credential; /* the server's, or NULL */
    int ranks; /* of the world that meets there; 0: not known */
    /* What the server has from the start, before any client comes: a key, with
     * torch's '/', and its text; or NULL. */
    const char *key, *text;
    const dscomm_priv_rank_t *rank; /* of it, this process; or NULL */
} dscomm_priv_job_t;

/* dscomm_store_open(), for a job; NULL: anyone's. ERR_MISMATCH where a store of
 * another job answers, and no one else does in a moment, or at once where its
 * secret differs. */
dscomm_status_t dscomm_priv_store_open(const char *url,
                                       const dscomm_store_attr_t *attr,
                                       const dscomm_priv_job_t *job,
                                       dscomm_store_t **ret_store);

/* The kinds. attr has been checked, and its timeout_ms is never 0. */
dscomm_status_t dscomm_priv_store_memory(dscomm_priv_store_t **ret_store);
dscomm_status_t dscomm_priv_store_file(const char *path,
                                       const dscomm_store_attr_t *attr,
                                       dscomm_priv_store_t **ret_store);
/* address is what follows "tcp://"; job may be NULL. */
dscomm_status_t dscomm_priv_store_tcp(const char *address,
                                      const dscomm_store_attr_t *attr,
                                      const dscomm_priv_job_t *job,
                                      dscomm_priv_store_t **ret_store);

/* Gives this view, and views that are made of it from now on, the deadline of a
 * call that makes many requests (dscomm_priv_clock(); INT64_MAX: none). No
 * request ends later than at end, grace included. A server that does not answer
 * costs a tenth of a second after due: then each request fails at once, until
 * it answers again. While a limit is set one thread uses the view. */
void dscomm_priv_store_limit(dscomm_store_t *store, int64_t due, int64_t end);
/* The limit of a diagnosis, which begins now and asks a server that answers for
 * at most most_ms; one that has answered nothing lately gets a tenth of a
 * second. */
void dscomm_priv_store_limit_diagnosis(dscomm_store_t *store, int most_ms);

/* Whether the store's server has not answered the last request in time, and
 * none since: diagnosis need not ask it. *ret_place is filled if so, unless it
 * is NULL. */
bool dscomm_priv_store_silent(const dscomm_store_t *store,
                              dscomm_priv_store_place_t *ret_place);

/* A key of a view, and whether it was there. */
typedef struct {
    dscomm_store_t *store;
    const char *key;
    bool present;
} dscomm_priv_look_t;

/* Looks which of the keys are there, by one request if the store is reached
 * over TCP. They may be of several views of one store; the deadline is that of
 * the first. */
dscomm_status_t dscomm_priv_store_look(dscomm_priv_look_t *looks, size_t count);

/* How many clients that have left a last will are connected to the server in
 * this process, however many connections each has; -1 where it serves none. */
int dscomm_priv_store_clients(const dscomm_store_t *store);

/* Leaves a last will: if this process ends without withdrawing it, the server
 * appends value to key within half a second (lib/store/tcp/will.h). A store has
 * one will for a key: the first counts until it is withdrawn. A value that
 * others append to the same key ends with a line feed. A store that cannot keep
 * a will (memory, file, torch's server, one that this process serves) does
 * nothing. */
dscomm_status_t dscomm_priv_store_will(dscomm_store_t *store, const char *key,
                                       const char *value);
/* Withdraws the will for key; closing the store withdraws all. */
void dscomm_priv_store_withdraw(dscomm_store_t *store, const char *key);

/* A copy that dscomm_store_free() frees, with a 0 behind; NULL after
 * dscomm_fail(). data may be NULL: the copy is then left to be filled. */
void *dscomm_priv_value(const void *data, size_t size);

/* Frees the values that a get which fails has got so far, and sets all to
 * NULL. */
void dscomm_priv_values_drop(void **values, size_t count);

/* Fails with ERR_TIMEOUT and names the keys for which present[i] is 0; present
 * may be NULL where no one can tell. */
dscomm_status_t dscomm_priv_fail_missing(const dscomm_priv_request_t *request,
                                         const uint8_t *present);

/* A condition whose waits end at a deadline; FALSE where it has passed. With
 * pthreads, whose locks the thread sanitizer knows. */
void dscomm_priv_cond_init(pthread_cond_t *cond);
gboolean dscomm_priv_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                               dscomm_priv_deadline_t deadline);

/* One thread at a time, as a mutex, but waiting for it ends at a deadline. */
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    gboolean taken;
} dscomm_priv_gate_t;

void dscomm_priv_gate_init(dscomm_priv_gate_t *gate);
void dscomm_priv_gate_clear(dscomm_priv_gate_t *gate);
/* ERR_TIMEOUT where another thread keeps the gate beyond the deadline's
 * grace. */
dscomm_status_t dscomm_priv_gate_enter(dscomm_priv_gate_t *gate,
                                       dscomm_priv_deadline_t deadline);
void dscomm_priv_gate_leave(dscomm_priv_gate_t *gate);

#endif
