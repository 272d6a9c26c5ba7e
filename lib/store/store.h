/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts that all kinds of key-value store have. store.c checks arguments,
 * adds prefixes and dispatches; a kind gets complete keys only. */
#ifndef LIB_STORE_H
#define LIB_STORE_H

#include "lib/base/clock.h"

#include <dscomm/store.h>

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>

/* The deadline of a call, in dscomm_priv_clock(). Both times are fixed when the
 * call begins, so a server that does not answer costs one grace period a call,
 * however many requests the call makes. ms is the time-out, for messages. */
typedef struct {
    int64_t at; /* waiting for keys ends */
    int64_t end; /* waiting for an answer or a lock ends */
    int ms;
} dscomm_priv_deadline_t;

/* Time for an answer after a call's deadline. */
#define STORE_GRACE_MS 1000

dscomm_priv_deadline_t dscomm_priv_deadline(int timeout_ms);

/* The deadline, with grace period, for an answer or for a lock that is held
 * only briefly. */
dscomm_priv_deadline_t dscomm_priv_grace(dscomm_priv_deadline_t deadline);

/* Sleeps between half of *pause_ns and all of it, but not beyond the deadline,
 * and doubles *pause_ns up to most_ns. The length is random so that processes
 * that began together spread out. */
void dscomm_priv_back_off(dscomm_priv_deadline_t deadline, int64_t *pause_ns,
                          int64_t most_ns);

/* Limits of all calls on a view, in dscomm_priv_clock(); INT64_MAX: none. */
typedef struct {
    int64_t due; /* requests to a silent server end */
    int64_t end; /* all calls end */
} dscomm_priv_limit_t;

/* The deadline of one call on a view. timeout_ms is the call's time-out, or the
 * store's. waits: the call waits for keys that others set; otherwise the answer
 * is due at once. silent: the server has not answered the last request in time.
 */
dscomm_priv_deadline_t dscomm_priv_deadline_within(dscomm_priv_limit_t limit,
                                                   int timeout_ms, bool waits,
                                                   bool silent);

typedef struct dscomm_priv_store dscomm_priv_store_t;

#define STORE_PEER_MAX 96 /* a host, cut off, its ports and punctuation */

/* The place of a TCP store's server. */
typedef struct {
    char peer[STORE_PEER_MAX]; /* for messages */
    struct sockaddr_storage address; /* family AF_UNSPEC: not known */
} dscomm_priv_store_place_t;

/* The longest key in the form that the kinds get, with torch's '/'. */
#define WHOLE_KEY_MAX (DSCOMM_STORE_KEY_MAX + 1)

/* Bytes that the caller owns. */
typedef struct {
    const void *data;
    size_t size;
} dscomm_priv_data_t;

/* The commands of a store, and which members of dscomm_priv_request_t each
 * uses. */
typedef enum {
    STORE_SET, /* value */
    STORE_APPEND, /* value */
    STORE_GET, /* waits for the keys; values and sizes, unless NULL */
    STORE_ADD, /* number: the addend, then the sum */
    STORE_COMPARE_SET, /* expected, value; values and sizes: what is stored */
    STORE_DELETE, /* number: how many of the keys were there */
    STORE_LOOK, /* present: which of the keys are there */
    STORE_NUM_KEYS, /* number; no keys */
    STORE_COMMANDS
} dscomm_priv_command_t;

/* A request and, on success, its answer. All arguments have been checked. Keys
 * begin with torch's '/', which the user has not given and messages leave out.
 */
typedef struct {
    dscomm_priv_command_t command;
    dscomm_priv_deadline_t deadline;
    const char *const *keys;
    size_t count;
    dscomm_priv_data_t value, expected;
    int64_t number;
    void **values; /* made by dscomm_priv_value(); all NULL on failure */
    size_t *sizes;
    uint8_t *present;
} dscomm_priv_request_t;

/* The operations of a kind of store. Threads may call them at the same time. */
typedef struct {
    void (*close)(dscomm_priv_store_t *self);
    int (*port)(const dscomm_priv_store_t *self); /* optional */
    int (*clients)(const dscomm_priv_store_t *self); /* optional */
    /* True if the server has not answered the last request in time; fills
     * *ret_place then, unless it is NULL. Optional. */
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

/* The first member of every kind's structure; all views of a store share it. */
struct dscomm_priv_store {
    const dscomm_priv_store_ops_t *ops;
    gatomicrefcount refs;
    unsigned generation; /* of the process that opened it */
    dscomm_priv_store_t *inherited; /* next store that a forked child closed */
};

/* The name of a process for the server of a store that it does not use.
 * Texts are cut off and padded with zeros. A process that is no rank gives its
 * program's name as its world. */
typedef struct {
    char world[192]; /* the same on all ranks of one world only */
    char name[128]; /* "rank 1 of 2 (pid 77 on node)" */
} dscomm_priv_rank_t;

/* The job that a TCP store belongs to. The server states the job's name. A
 * client of another job leaves that server and tries the next port, if it has
 * several. */
typedef struct {
    const char *name; /* NULL: any job */
    int ports; /* number of ports to try, from the address's on */
    bool remote; /* some of its ranks are known to be on other machines */
    const char *secret; /* what clients must prove to know, or NULL */
    /* Without a secret: if MUNGE works on the server's machine, the server
     * makes a secret and gives clients its credential. */
    bool munge;
    const char *credential; /* the server's, or NULL */
    int ranks; /* of the world that uses the store; 0: not known */
    /* A key, with torch's '/', and its text, which the server has from the
     * start; or NULL. */
    const char *key, *text;
    /* this process, as a rank of the job; or NULL */
    const dscomm_priv_rank_t *rank;
} dscomm_priv_job_t;

/* dscomm_store_open() for a job; NULL: any job. ERR_MISMATCH if only a store of
 * another job answers, for about six seconds, or if the store has another
 * secret. */
dscomm_status_t dscomm_priv_store_open(const char *url,
                                       const dscomm_store_attr_t *attr,
                                       const dscomm_priv_job_t *job,
                                       dscomm_store_t **ret_store);

/* Opens a store in fd, an anonymous file (memfd_create(2)) that each of its
 * users has opened for itself. The store survives the death of any user, also
 * while that writes. It owns fd, unless the call fails before it is open:
 * ERR_NO_MEMORY, or the process cannot be watched for forks. */
dscomm_status_t dscomm_priv_store_open_anonymous(int fd,
                                                 dscomm_store_t **ret_store);

/* The constructors of the kinds. attr has been checked, and its timeout_ms is
 * not 0. */
dscomm_status_t dscomm_priv_store_memory(dscomm_priv_store_t **ret_store);
dscomm_status_t dscomm_priv_store_file(const char *path,
                                       const dscomm_store_attr_t *attr,
                                       dscomm_priv_store_t **ret_store);
/* fd: see dscomm_priv_store_open_anonymous(). */
dscomm_status_t dscomm_priv_store_anonymous(int fd,
                                            dscomm_priv_store_t **ret_store);
dscomm_status_t dscomm_priv_store_custom(const dscomm_store_custom_t *custom,
                                         dscomm_priv_store_t **ret_store);
/* Has such a store call close when it is closed. */
void dscomm_priv_store_custom_owns(dscomm_priv_store_t *store,
                                   void (*close)(void *arg));
/* address is the part after "tcp://"; job may be NULL. */
dscomm_status_t dscomm_priv_store_tcp(const char *address,
                                      const dscomm_store_attr_t *attr,
                                      const dscomm_priv_job_t *job,
                                      dscomm_priv_store_t **ret_store);

/* Sets the limits of a call that makes many requests, on this view and on views
 * that are made of it later. No request ends later than end, grace period
 * included. If the server does not answer, requests end 100 ms after due; from
 * then on each fails at once until the server answers again. While a limit is
 * set, only one thread uses the view. */
void dscomm_priv_store_limit(dscomm_store_t *store, int64_t due, int64_t end);
/* Sets the limits of a diagnosis, which begins now: most_ms, or about 120 ms if
 * the server has not answered lately. */
void dscomm_priv_store_limit_diagnosis(dscomm_store_t *store, int most_ms);

/* True if the server has not answered the last request in time, and none since;
 * a diagnosis then need not query it. Fills *ret_place then, unless it is NULL.
 */
bool dscomm_priv_store_silent(const dscomm_store_t *store,
                              dscomm_priv_store_place_t *ret_place);

/* A key of a view, and whether it is there. */
typedef struct {
    dscomm_store_t *store;
    const char *key;
    bool present;
} dscomm_priv_look_t;

/* Finds which of the keys are there, in one request if the store is reached
 * over TCP. The keys may belong to several views of one store; the deadline is
 * that of the first view. */
dscomm_status_t dscomm_priv_store_look(dscomm_priv_look_t *looks, size_t count);

/* Deletes keys in their order, those that are there. A TCP store gets all the
 * deletions before it answers the first one. */
dscomm_status_t dscomm_priv_store_delete(dscomm_store_t *store,
                                         const char *const *keys, size_t count);

/* How many clients with a last will are connected to the server of this
 * process; several connections of a client count once. -1: this process has no
 * server. */
int dscomm_priv_store_clients(const dscomm_store_t *store);

/* Gives the server a last will: if this process ends without withdrawing it,
 * the server appends value to key within half a second
 * (lib/store/tcp/session.h). A store has one will for a key: a second one is
 * ignored until the first is withdrawn. If others append to the same key, value
 * must end with a line feed. A store without wills (memory, file, torch's
 * server, a server in this process) does nothing. */
dscomm_status_t dscomm_priv_store_will(dscomm_store_t *store, const char *key,
                                       const char *value);
/* Withdraws the will for key. Closing the store withdraws all wills. */
void dscomm_priv_store_withdraw(dscomm_store_t *store, const char *key);

/* Returns a copy with a 0 byte after it, for dscomm_store_free(); NULL after
 * dscomm_fail(). data may be NULL: the caller then fills the copy. */
void *dscomm_priv_value(const void *data, size_t size);

/* Frees the values that a failed get has received, and sets all to NULL. */
void dscomm_priv_values_drop(void **values, size_t count);

/* Fails with ERR_TIMEOUT and names the keys for which present[i] is 0; present
 * is NULL if that is not known. */
dscomm_status_t dscomm_priv_fail_missing(const dscomm_priv_request_t *request,
                                         const uint8_t *present);

/* A mutex whose waits end at a deadline. */
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool taken;
} dscomm_priv_gate_t;

void dscomm_priv_gate_init(dscomm_priv_gate_t *gate);
void dscomm_priv_gate_clear(dscomm_priv_gate_t *gate);
/* ERR_TIMEOUT if another thread keeps the gate until the deadline's grace
 * period has ended. */
dscomm_status_t dscomm_priv_gate_enter(dscomm_priv_gate_t *gate,
                                       dscomm_priv_deadline_t deadline);
void dscomm_priv_gate_leave(dscomm_priv_gate_t *gate);

#endif
