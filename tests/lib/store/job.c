/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores of jobs: found at one of several ports, and closed to clients of other
 * jobs, which get a reason. */
#include "config.h"

#include "lib/store/store.h"
#include "tests/lib/store/fixture.h"
#include "tests/port.h"
#include "tests/tap.h"

#include <dscomm/log.h>
#include <glib.h>
#include <pthread.h>
#include <stdlib.h>

#define PORTS 8

static dscomm_status_t open_at(int port, int ports, const char *job, int serves,
                               int timeout_ms, dscomm_store_t **ret_store)
{
    const dscomm_priv_job_t whose = {.name = job, .ports = ports};

    return open_store(url_of(port), &whose, serves, timeout_ms, ret_store);
}

static dscomm_store_t *must_open(int port, int ports, const char *job,
                                 int serves)
{
    const dscomm_priv_job_t whose = {.name = job, .ports = ports};

    return must_open_store(url_of(port), &whose, serves);
}

/* Returns whether both are the same store: one sees what the other sets. */
static int are_together(dscomm_store_t *a, dscomm_store_t *b)
{
    const char *key = "together";
    int present = 0;

    return !dscomm_store_set(a, key, "", 0) &&
           !dscomm_store_check(b, &key, 1, &present) && present;
}

/* Two jobs to which the user gave one port. */
static void test_one_port(void)
{
    const int port = port_find_free(PORTS);
    dscomm_store_t *server = must_open(port, 1, "one", 1), *client, *other;
    double begin;
    int64_t count = -1;

    client = must_open(port, 1, "one", 0);
    ok(are_together(client, server), "a client of the job is served");
    is_int(dscomm_store_num_keys(server, &count), 0, "keys are counted");
    is_int(count, 1, "without those of the protocol");
    begin = raw_now_ms();
    is_int(open_at(port, 1, "two", 0, 60000, &other), DSCOMM_ERR_MISMATCH,
           "one of another job is told");
    ok(strstr(dscomm_last_error(), "'one'") &&
           strstr(dscomm_last_error(), "'two'"),
       "  %s", dscomm_last_error());
    ok(raw_now_ms() - begin < 15000, "long before its deadline");
    is_int(open_at(port, 1, "two", 1, 1000, &other), DSCOMM_ERR_IO,
           "the port is in use for the other job's server");
    dscomm_store_close(client);
    client = must_open(port, 1, NULL, 0);
    ok(are_together(client, server), "a client that has no job is served");
    dscomm_store_close(client);
    dscomm_store_close(server);
    server = must_open(port, 1, NULL, 1);
    client = must_open(port, 1, "one", 0);
    ok(are_together(client, server), "a server that has none takes the first");
    is_int(dscomm_store_num_keys(client, &count), 0, "keys are counted");
    is_int(count, 1, "without that");
    is_int(open_at(port, 1, "two", 0, 100, &other), DSCOMM_ERR_MISMATCH,
           "and no other one");
    dscomm_store_close(client);
    dscomm_store_close(server);
}

/* A job that has ended, but whose store stays for ranks that may not have left,
 * as long as rank 0 stays in dscomm_finalize(); and the next job. */
typedef struct {
    dscomm_store_t *first, *next;
    int port, stay_ms;
} succession_t;

static void *succeed(void *arg)
{
    succession_t *s = arg;

    usleep((useconds_t)s->stay_ms * 1000);
    dscomm_store_close(s->first);
    s->next = must_open(s->port, 1, "two", 1);
    return NULL;
}

static void test_successor(int stay_ms)
{
    const int port = port_find_free(PORTS);
    succession_t s = {must_open(port, 1, "one", 1), NULL, port, stay_ms};
    dscomm_store_t *client = NULL;
    pthread_t thread;

    pthread_create(&thread, NULL, succeed, &s);
    is_int(open_at(port, 1, "two", 0, 20000, &client), 0,
           "the next job's server comes to the same port after %d ms", stay_ms);
    pthread_join(thread, NULL);
    ok(are_together(client, s.next), "and serves its client");
    dscomm_store_close(client);
    dscomm_store_close(s.next);
}

/* Three jobs whose names led to the same port, beside a silent service and one
 * with another protocol. */
static void test_many_ports(void)
{
    static const char *const jobs[] = {"one", "two", "three"};
    const int port = port_find_free(PORTS);
    dscomm_store_t *servers[3], *clients[3];
    struct sockaddr_in address = raw_loopback(port + 1);
    int on = 1, silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    double begin = raw_now_ms();

    setsockopt(silent, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(silent, (struct sockaddr *)&address, sizeof address) ||
        listen(silent, 16))
        bail("port %d: %s", port + 1, strerror(errno));
    for (int i = 0; i < 3; i++)
        servers[i] = must_open(port, PORTS, jobs[i], 1);
    is_int(dscomm_store_port(servers[0]), port, "the first has the first port");
    is_int(dscomm_store_port(servers[1]), port + 2, "the second passes it by");
    is_int(dscomm_store_port(servers[2]), port + 3, "and so does the third");
    for (int i = 2; i >= 0; i--) {
        clients[i] = must_open(port, PORTS, jobs[i], 0);
        ok(are_together(clients[i], servers[i]), "job %s finds its store",
           jobs[i]);
        is_int(dscomm_store_port(clients[i]), dscomm_store_port(servers[i]),
               "  at its port");
    }
    ok(raw_now_ms() - begin < 15000, "a silent service is not waited for");
    for (int i = 0; i < 3; i++) {
        dscomm_store_close(clients[i]);
        dscomm_store_close(servers[i]);
    }
    is_int(open_at(port, PORTS, "four", 0, 500, &clients[0]),
           DSCOMM_ERR_TIMEOUT, "a job that nobody serves");
    error_says("four");
    close(silent);
}

/* A store without a job is found first, and is not taken for the job's. */
static void test_nameless(void)
{
    const int port = port_find_free(PORTS);
    dscomm_store_t *nameless = must_open(port, 1, NULL, 1);
    dscomm_store_t *server = must_open(port, PORTS, "one", 1), *client, *other;
    int64_t count = -1;

    is_int(dscomm_store_port(server), port + 1, "the job passes it by");
    client = must_open(port, PORTS, "one", 0);
    ok(are_together(client, server), "and so does its client");
    is_int(dscomm_store_num_keys(nameless, &count), 0, "its keys are counted");
    is_int(count, 0, "and are none");
    other = must_open(port, 1, "two", 0);
    ok(are_together(other, nameless), "it is still for whom it is");
    dscomm_store_close(other);
    dscomm_store_close(client);
    dscomm_store_close(server);
    dscomm_store_close(nameless);
}

/* All ports are in use. */
static void test_no_port(void)
{
    const int port = port_find_free(PORTS);
    dscomm_store_t *servers[2], *more;

    servers[0] = must_open(port, 2, "one", 1);
    servers[1] = must_open(port, 2, "two", 1);
    is_int(open_at(port, 2, "three", 1, 1000, &more), DSCOMM_ERR_IO,
           "a server finds no port");
    error_says("MASTER_PORT");
    dscomm_store_close(servers[0]);
    dscomm_store_close(servers[1]);
}

/* Several addresses: of the right store, of another one, of none. */
static void test_hosts(void)
{
    const int port = port_find_free(PORTS);
    const dscomm_priv_job_t mine = {.name = "one", .ports = 1};
    const dscomm_priv_job_t other = {.name = "two", .ports = 1};
    dscomm_store_t *stranger = must_open_store(url_of(port), &other, 1);
    dscomm_store_t *server, *client = NULL;
    char url[80];

    snprintf(url, sizeof url, "tcp://127.0.0.2:%d", port);
    server = must_open_store(url, &mine, 1);
    snprintf(url, sizeof url, "tcp://[127.0.0.3,127.0.0.1,127.0.0.2]:%d", port);
    if (is_int(open_store(url, &mine, 0, 20000, &client), 0,
               "a store is found among three addresses"))
        ok(are_together(client, server), "  and is the one that was meant");
    dscomm_store_close(client);
    dscomm_store_close(server);
    is_int(open_store(url, &mine, 0, 300, &client), DSCOMM_ERR_TIMEOUT,
           "where it is at none of them, time passes");
    error_says("127.0.0.3,127.0.0.1");
    dscomm_store_close(stranger);
}

/* The right store has a secret that this process does not know. An attempt that
 * is cut off by the deadline may not find that out. */
static void test_secret_hosts(void)
{
    const int port = port_find_free(PORTS);
    const dscomm_priv_job_t guarded = {
        .name = "one", .ports = 1, .secret = "sixteen letters."};
    const dscomm_priv_job_t mine = {.name = "one", .ports = 1};
    dscomm_store_t *server, *client = NULL;
    char url[80];
    bool says = false;

    snprintf(url, sizeof url, "tcp://127.0.0.2:%d", port);
    server = must_open_store(url, &guarded, 1);
    snprintf(url, sizeof url, "tcp://[127.0.0.2,127.0.0.1]:%d", port);
    for (int i = 0; i < 5 && !says; i++) {
        open_store(url, &mine, 0, 500, &client);
        says = strstr(dscomm_last_error(), "DSCOMM_JOB_SECRET") != NULL;
    }
    ok(says, "  %s", dscomm_last_error());
    dscomm_store_close(client);
    dscomm_store_close(server);
}

static void test_all_interfaces(void)
{
    dscomm_store_t *server = must_open_store("tcp://*:0", NULL, 1), *client;

    client = must_open(dscomm_store_port(server), 1, NULL, 0);
    ok(are_together(client, server),
       "a store on all interfaces, at any port, is found");
    dscomm_store_close(client);
    dscomm_store_close(server);
}

int main(void)
{
    dscomm_log_set_levels("error");
    test_one_port();
    test_successor(300);
    test_successor(3000);
    test_many_ports();
    test_nameless();
    test_no_port();
    test_hosts();
    test_secret_hosts();
    test_all_interfaces();
    return tap_done();
}
