/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of stores: TCPStore's protocol by hand, so that tests need no word
 * of the library on how it looks (numbers as in torch's sources: little
 * endian); a server and stores of one's own; and a server that plays a part. */
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

/* A server of one's own for job, or NULL; limits NULL, or 0 of one: the
 * default. */
dscomm_priv_server_t *start_server(const dscomm_priv_server_limits_t *limits,
                                   const dscomm_priv_job_t *job, int *ret_port);
/* Runs test beside a server at port, without a job; limits as above. */
void with_server(const dscomm_priv_server_limits_t *limits,
                 void (*test)(int port));
/* A connection to it that has said VALIDATE. */
int raw_client(int port);
/* Whether a client that connects now is served. */
int is_alive(int port);

/* "tcp://127.0.0.1:PORT", until the next call. */
const char *url_of(int port);
/* job NULL: none. */
dscomm_status_t open_store(const char *url, const dscomm_priv_job_t *job,
                           int serves, int timeout_ms,
                           dscomm_store_t **ret_store);
/* The same, and there must be one. */
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

/* A server that answers the handshake, then plays a part. */
typedef struct {
    const char *handshake; /* instead of the echo, or NULL */
    size_t handshake_size;
    const char *answers[3]; /* each after some bytes of a request */
    size_t sizes[3];
    int closes; /* at the end, else it stays silent */
    const char *names[3]; /* for each connection, instead of the usual one */
    int connections;
    int listening, port;
    pthread_t thread;
} fake_t;

void fake_start(fake_t *fake);
/* A store of that server, which fake_close() closes. */
dscomm_store_t *fake_open(fake_t *fake);
void fake_close(fake_t *fake, dscomm_store_t *store);

/* The last error has text in it. */
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
