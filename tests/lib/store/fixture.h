/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of stores: TCPStore's protocol by hand, independent of the library
 * (numbers as in torch's sources, in the host's byte order); servers and stores
 * for a test; and a server with given answers. */
#ifndef TESTS_LIB_STORE_FIXTURE_H
#define TESTS_LIB_STORE_FIXTURE_H

#include "config.h"

#include "lib/store/store.h"
#include "lib/store/tcp/server.h"
#include "tests/lib/store/raw.h"
#include "tests/tap.h"

#include <dscomm/store.h>
#include <pthread.h>

#define WAIT_MS 5000
#define BYTES(text) text, sizeof text - 1

/* Starts a server for job, or NULL; limits NULL, or 0 in it: the default. */
dscomm_priv_server_t *start_server(const dscomm_priv_server_limits_t *limits,
                                   const dscomm_priv_job_t *job, int *ret_port);
/* Runs test beside a server at port, without a job; limits as above. */
void with_server(const dscomm_priv_server_limits_t *limits,
                 void (*test)(int port));
/* Connects to it and sends VALIDATE. */
int raw_client(int port);
/* Returns whether a new client is served. */
int is_alive(int port);

/* Returns "tcp://127.0.0.1:PORT"; valid until the next call. */
const char *url_of(int port);
/* job NULL: none. */
dscomm_status_t open_store(const char *url, const dscomm_priv_job_t *job,
                           int serves, int timeout_ms,
                           dscomm_store_t **ret_store);
/* Opens a store like open_store(), and fails the test if it cannot. */
dscomm_store_t *must_open_store(const char *url, const dscomm_priv_job_t *job,
                                int serves);

/* A call of store with keys "a" and "b", or "n" for a number; ms is for those
 * that wait. */
enum {
    CALL_SET,
    CALL_GET,
    CALL_CHECK,
    CALL_DELETE,
    CALL_NUM_KEYS,
    CALL_ADD,
    CALL_APPEND,
    CALL_COMPARE_SET,
    CALL_MULTI_GET,
    CALL_WILL
};
dscomm_status_t call_store(dscomm_store_t *store, int which, int ms);

/* A server that answers the handshake, then gives these answers. */
typedef struct {
    const char *handshake; /* sent instead of the echo; or NULL */
    size_t handshake_size;
    const char *answers[3]; /* each is sent after some bytes of a request */
    size_t sizes[3];
    int closes; /* closes at the end; else it stays silent */
    const char *names[3]; /* for each connection, instead of the usual name */
    int connections;
    int listening, port;
    pthread_t thread;
} fake_t;

void fake_start(fake_t *fake);
/* Opens a store at that server; fake_close() closes it. */
dscomm_store_t *fake_open(fake_t *fake);
void fake_close(fake_t *fake, dscomm_store_t *store);

/* Returns whether the last error contains text. */
static inline int error_says(const char *text)
{
    return ok(strstr(dscomm_last_error(), text) != NULL, "  %s",
              dscomm_last_error());
}

static inline int status_is(dscomm_status_t got, dscomm_status_t want,
                            const char *what)
{
    int passed = is_int(got, want, "%s", what);

    if (!passed)
        tap_text("last error:", dscomm_last_error());
    return passed;
}

#endif
