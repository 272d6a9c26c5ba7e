/* SPDX-License-Identifier: BSD-3-Clause */
/* A secret that MUNGE carries: which clients get it from the server, and how a
 * client treats other credentials. libmunge is tests/lib/munge/fake.c. */
#include "config.h"

#include "tests/lib/store/fixture.h"
#include "tests/port.h"

#include "lib/store/store.h"
#include "lib/store/tcp/secret.h"

#include <dlfcn.h>
#include <dscomm/log.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SERVED_MS 10000
#define REFUSED_MS 1000
#define PATIENT_MS 60000
#define SECRET "sixteen letters."
#define EXPIRED "15"
#define REPLAYED "17"
#define INVALID "14"
#define SOCKET_FAILED "6"
#define TIMED_OUT "7"

static const dscomm_priv_job_t by_munge = {.ports = 1, .munge = true};

static dscomm_store_t *serve_store(const dscomm_priv_job_t *job)
{
    return must_open_store("tcp://127.0.0.1:0", job, 1);
}

/* The result of a client of job at port; says: part of the sentence, or
 * NULL. */
static void client_is(const dscomm_priv_job_t *job, int port,
                      dscomm_status_t want, const char *says, const char *about)
{
    dscomm_store_t *store = NULL;

    status_is(
        open_store(url_of(port), job, 0, want ? REFUSED_MS : SERVED_MS, &store),
        want, about);
    if (!want)
        status_is(dscomm_store_set(store, "key", "value", 5), DSCOMM_OK,
                  "  and has the keys");
    if (says)
        error_says(says);
    dscomm_store_close(store);
}

/* Among several ports the store is identified by its job's name; the sentence
 * names a store with another secret. */
static void test_ports(void)
{
    const dscomm_priv_job_t job = {.name = "7", .ports = 2, .munge = true};
    dscomm_store_t *store = serve_store(&job);
    int port = dscomm_store_port(store);

    client_is(&job, port, DSCOMM_OK, NULL, "a client of several ports");
    setenv("FAKE_MUNGE_DECODE", INVALID, 1);
    client_is(&job, port, DSCOMM_ERR_TIMEOUT, "munge: error 14",
              "and one that does not get the secret");
    unsetenv("FAKE_MUNGE_DECODE");
    dscomm_store_close(store);
}

static void test_job(void)
{
    dscomm_store_t *store = serve_store(&by_munge);
    int port = dscomm_store_port(store);

    client_is(&by_munge, port, DSCOMM_OK, NULL, "a client with MUNGE");
    client_is(NULL, port, DSCOMM_ERR_MISMATCH, "serves only processes",
              "a client without");
    setenv("FAKE_MUNGE_DECODE", REPLAYED, 1);
    client_is(&by_munge, port, DSCOMM_OK, NULL, "a second one on a machine");
    setenv("FAKE_MUNGE_DECODE", EXPIRED, 1);
    client_is(&by_munge, port, DSCOMM_OK, NULL, "one that is late");
    setenv("FAKE_MUNGE_DECODE", INVALID, 1);
    client_is(&by_munge, port, DSCOMM_ERR_MISMATCH, "munge: error 14",
              "a credential that MUNGE refuses");
    unsetenv("FAKE_MUNGE_DECODE");
    setenv("FAKE_MUNGE_USER", "4242", 1);
    client_is(&by_munge, port, DSCOMM_ERR_MISMATCH, "user 4242 has made",
              "another user's server");
    unsetenv("FAKE_MUNGE_USER");
    dscomm_store_close(store);
}

static int warnings;

static void count_warning(dscomm_log_level_t level, const char *domain,
                          const char *text, void *arg)
{
    (void)arg;
    warnings += level == DSCOMM_LOG_WARN && !strcmp(domain, "store") &&
                strstr(text, "no secret by MUNGE: munge: error 6") &&
                strstr(text, "DSCOMM_JOB_SECRET");
}

/* A daemon that answers, but fails: the job does not start without the secret,
 * because its other machines may have it. */
static void test_failing(void)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store = NULL;

    setenv("FAKE_MUNGE_ENCODE", TIMED_OUT, 1);
    attr.serve = 1;
    status_is(
        dscomm_priv_store_open("tcp://127.0.0.1:0", &attr, &by_munge, &store),
        DSCOMM_ERR_ENVIRONMENT, "a server whose MUNGE fails");
    ok(strstr(dscomm_last_error(), "munge: error 7") &&
           strstr(dscomm_last_error(), "DSCOMM_JOB_SECRET"),
       "  %s", dscomm_last_error());
    unsetenv("FAKE_MUNGE_ENCODE");
    dscomm_store_close(store);
}

/* MUNGE must work on all machines of a job, or on none. */
static void test_partly(void)
{
    dscomm_store_t *store;

    setenv("FAKE_MUNGE_ENCODE", SOCKET_FAILED, 1);
    dscomm_log_set_handler(count_warning, NULL);
    store = serve_store(&by_munge);
    dscomm_log_set_handler(NULL, NULL);
    is_int(warnings, 1, "a server without a daemon warns");
    client_is(&by_munge, dscomm_store_port(store), DSCOMM_OK, NULL,
              "no MUNGE anywhere");
    client_is(NULL, dscomm_store_port(store), DSCOMM_OK, NULL,
              "strangers are served then");
    setenv("FAKE_MUNGE_ENCODE", TIMED_OUT, 1);
    client_is(&by_munge, dscomm_store_port(store), DSCOMM_ERR_MISMATCH,
              "gives no credential", "a daemon that fails is MUNGE, too");
    unsetenv("FAKE_MUNGE_ENCODE");
    client_is(&by_munge, dscomm_store_port(store), DSCOMM_ERR_MISMATCH,
              "gives no credential", "a server without MUNGE");
    dscomm_store_close(store);
}

/* Starts rank 0 of three of job "7", whose MUNGE fails, as a process. */
static pid_t start_failing(int port, int ports)
{
    const dscomm_priv_rank_t rank = {"3 1 0 7", "rank 0"};
    const dscomm_priv_job_t job = {
        .name = "7", .ports = ports, .munge = true, .ranks = 3, .rank = &rank};
    const pid_t pid = fork();
    dscomm_store_t *store;

    if (pid)
        return pid;
    setenv("FAKE_MUNGE_ENCODE", TIMED_OUT, 1);
    if (open_store(url_of(port), &job, 1, PATIENT_MS, &store) !=
        DSCOMM_ERR_ENVIRONMENT)
        _exit(1);
    _exit(strstr(dscomm_last_error(), "munge: error 7") ? 0 : 2);
}

/* The other ranks learn at once that rank 0's MUNGE fails, and rank 0 ends when
 * all know. Ranks of another job that look for their store at its port are not
 * affected, and do not count. */
static void test_announced(int ports)
{
    const dscomm_priv_rank_t ranks[] = {
        {"3 1 0 7", "rank 1"}, {"3 1 0 7", "rank 2"}, {"3 1 0 8", "rank 1"}};
    const int port = port_find_free(1);
    const double start = raw_now_ms();
    const pid_t pid = start_failing(port, ports);
    int status;

    for (int i = 2; i >= 0; i--) {
        const bool other = i == 2;
        const dscomm_priv_job_t job = {.name = other ? "8" : "7",
                                       .ports = other ? 2 : ports,
                                       .munge = true,
                                       .rank = &ranks[i]};
        dscomm_store_t *store = NULL;

        status_is(open_store(url_of(port), &job, 0,
                             other ? REFUSED_MS : PATIENT_MS, &store),
                  other ? DSCOMM_ERR_TIMEOUT : DSCOMM_ERR_ENVIRONMENT,
                  other ? "a rank of another job" : "a rank of the job");
        ok(strstr(dscomm_last_error(),
                  other ? "no store of job '8'" : "munge: error 7") != NULL,
           "  %s", dscomm_last_error());
    }
    waitpid(pid, &status, 0);
    is_int(status, 0, "rank 0 fails for the same reason");
    ok(raw_now_ms() - start < PATIENT_MS / 3,
       "and stays no longer than needed");
}

static char *credential_of(const char *secret)
{
    char *credential;

    if (dscomm_priv_munge_encode(secret, &credential))
        bail("%s", dscomm_last_error());
    return credential;
}

/* A stranger that uses the port gives a credential that it got elsewhere. */
static void test_replayed(void)
{
    char *old = credential_of(
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    char *other = credential_of(SECRET);
    const dscomm_priv_job_t rows[] = {
        {.ports = 1, .secret = SECRET, .credential = old},
        {.ports = 1, .secret = SECRET, .credential = other},
        {.ports = 1, .secret = SECRET, .credential = "FAKE:4242:x"},
        {.ports = 1, .secret = SECRET, .credential = "nonsense"},
        {.ports = 1, .credential = old},
    };
    const char *const says[] = {"another secret", "holds no secret",
                                "munge: error 18", "munge: error 8",
                                "has no secret"};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dscomm_store_t *store = serve_store(&rows[i]);

        client_is(&by_munge, dscomm_store_port(store), DSCOMM_ERR_MISMATCH,
                  says[i], "another credential");
        dscomm_store_close(store);
    }
    free(other);
    free(old);
}

/* The user's own secret takes precedence. */
static void test_own(void)
{
    dscomm_store_t *store;

    setenv("DSCOMM_JOB_SECRET", SECRET, 1);
    store = serve_store(&by_munge);
    client_is(NULL, dscomm_store_port(store), DSCOMM_OK, NULL,
              "a client with the secret of the environment");
    client_is(&by_munge, dscomm_store_port(store), DSCOMM_OK, NULL,
              "also one that has MUNGE");
    unsetenv("DSCOMM_JOB_SECRET");
    dscomm_store_close(store);
}

int main(void)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/tests/lib/munge/.libs/libmunge.so.2",
             getenv("abs_top_builddir") ? getenv("abs_top_builddir") : ".");
    if (!dlopen(path, RTLD_NOW | RTLD_LOCAL))
        bail("%s", dlerror());
    if (!dlopen("libmunge.so.2", RTLD_NOW | RTLD_NOLOAD))
        skip_all("libc does not find a loaded library by its SONAME");
    test_job();
    test_ports();
    test_failing();
    test_partly();
    test_announced(1);
    test_announced(2);
    test_replayed();
    test_own();
    return tap_done();
}
