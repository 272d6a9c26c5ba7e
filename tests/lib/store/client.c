/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP client's calls against servers that lie, stall and die, and the ways
 * to serve. */
#include "tests/lib/store/fixture.h"

#include <fcntl.h>
#include <netdb.h>

#define BYTES(text) text, sizeof text - 1

/* One call against answers that make no sense, or never end. */
static void test_answers(void)
{
    static const struct {
        const char *name;
        int call;
        const char *first;
        size_t first_size;
        const char *second;
        size_t second_size;
        int closes;
        dscomm_status_t status;
    } rows[] = {
        {"WAIT, GET in order", CALL_GET, BYTES("\0"),
         BYTES("\1\0\0\0\0\0\0\0v"), 0, DSCOMM_OK},
        {"WAIT answers 7", CALL_GET, BYTES("\7"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"WAIT answers canceled", CALL_GET, BYTES("\1"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"GET: a value beyond 8 MiB", CALL_GET, BYTES("\0"),
         BYTES("\1\0\200\0\0\0\0\0"), 0, DSCOMM_ERR_PROTOCOL},
        {"GET: a size of 2^64 - 1", CALL_GET, BYTES("\0"),
         BYTES("\377\377\377\377\377\377\377\377"), 0, DSCOMM_ERR_PROTOCOL},
        {"GET: half a value", CALL_GET, BYTES("\0"), BYTES("\4\0\0\0\0\0\0\0v"),
         0, DSCOMM_ERR_TIMEOUT},
        {"GET: half a value and the end", CALL_GET, BYTES("\0"),
         BYTES("\4\0\0\0\0\0\0\0v"), 1, DSCOMM_ERR_PEER_FAILED},
        {"MULTI_GET: one of two", CALL_MULTI_GET, BYTES("\0"),
         BYTES("\1\0\0\0\0\0\0\0v"), 1, DSCOMM_ERR_PEER_FAILED},
        {"the end instead of WAIT's answer", CALL_GET, NULL, 0, NULL, 0, 1,
         DSCOMM_ERR_PEER_FAILED},
        {"CHECK answers 2", CALL_CHECK, BYTES("\2\2"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"CHECK answers no", CALL_CHECK, BYTES("\1\1"), NULL, 0, 0, DSCOMM_OK},
        {"DELETE_KEY answers 2", CALL_DELETE, BYTES("\2\0\0\0\0\0\0\0"), NULL,
         0, 0, DSCOMM_ERR_PROTOCOL},
        {"GETNUMKEYS answers -1", CALL_NUM_KEYS,
         BYTES("\377\377\377\377\377\377\377\377\1"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"GETNUMKEYS: 3, with init/", CALL_NUM_KEYS,
         BYTES("\3\0\0\0\0\0\0\0\0"), NULL, 0, 0, DSCOMM_OK},
        {"APPEND and a wrong echo", CALL_APPEND, BYTES("abcd"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"ADD and the end", CALL_ADD, BYTES(""), NULL, 0, 1,
         DSCOMM_ERR_PEER_FAILED},
        {"COMPARE_SET: a huge value", CALL_COMPARE_SET,
         BYTES("\0\0\0\0\0\0\0\1"), NULL, 0, 0, DSCOMM_ERR_PROTOCOL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake_t fake = {.answers = {rows[i].first, rows[i].second},
                       .sizes = {rows[i].first_size, rows[i].second_size},
                       .closes = rows[i].closes};
        dscomm_store_t *store = NULL;
        double start;

        fake_start(&fake);
        if (status_is(open_store(url_of(fake.port), NULL, 0, 2000, &store),
                      DSCOMM_OK, rows[i].name)) {
            start = raw_now_ms();
            status_is(call_store(store, rows[i].call), rows[i].status,
                      rows[i].name);
            ok(raw_now_ms() - start < 5000, "%s: in time", rows[i].name);
        }
        dscomm_store_close(store);
        pthread_join(fake.thread, NULL);
    }
}

static void test_port_in_use(void)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store = NULL;
    int port, fd = raw_listen(&port);
    char text[16];

    attr.serve = 1;
    snprintf(text, sizeof text, "port %d", port);
    status_is(dscomm_store_open(url_of(port), &attr, &store), DSCOMM_ERR_IO,
              "a port in use");
    ok(strstr(dscomm_last_error(), text) && strstr(dscomm_last_error(), "use"),
       "%s", dscomm_last_error());
    close(fd);
    store = must_open_store(url_of(port), NULL, 1);
    is_int(dscomm_store_port(store), port, "the port is free again");
    dscomm_store_close(store);
    store = must_open_store(url_of(port), NULL, 1);
    is_int(dscomm_store_port(store), port, "and once more, at once");
    dscomm_store_close(store);
}

static void test_listen_fd(void)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store = NULL;
    int port, other, fd = raw_listen(&port), file;

    attr.serve = 1;
    attr.listen_fd = fd;
    other = port == 65535 ? 1024 : port + 1;
    status_is(dscomm_store_open(url_of(other), &attr, &store),
              DSCOMM_ERR_INVALID, "an inherited socket on another port");
    ok(fcntl(fd, F_GETFD) >= 0, "is still ours");
    status_is(dscomm_store_open(url_of(port), &attr, &store), DSCOMM_OK,
              "on the right port");
    is_int(dscomm_store_port(store), port, "which it serves");
    ok(fcntl(fd, F_GETFD) < 0, "and the socket is the store's");
    status_is(dscomm_store_set(store, "k", "v", 1), DSCOMM_OK, "and works");
    dscomm_store_close(store);
    file = open("/dev/null", O_RDWR | O_CLOEXEC);
    attr.listen_fd = file;
    status_is(dscomm_store_open(url_of(port), &attr, &store),
              DSCOMM_ERR_INVALID, "no socket");
    close(file);
    file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    attr.listen_fd = file;
    status_is(dscomm_store_open(url_of(port), &attr, &store),
              DSCOMM_ERR_INVALID, "a socket that does not listen");
    close(file);
}

static void *join_workers(void *arg)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store = NULL;

    attr.world_size = 2;
    if (dscomm_store_open(arg, &attr, &store))
        return NULL;
    return store;
}

static void test_workers(void)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store = NULL;
    char address[40];
    pthread_t thread;
    void *worker;
    int64_t count = -1;
    int port, fd = raw_listen(&port);

    attr.serve = 1;
    attr.world_size = 2;
    attr.timeout_ms = 200;
    status_is(dscomm_store_open("tcp://127.0.0.1:0", &attr, &store),
              DSCOMM_ERR_TIMEOUT, "a worker is missing");
    ok(strstr(dscomm_last_error(), "1 of 2") != NULL, "%s",
       dscomm_last_error());
    attr.timeout_ms = 10000;
    attr.listen_fd = fd;
    snprintf(address, sizeof address, "%s", url_of(port));
    pthread_create(&thread, NULL, join_workers, address);
    status_is(dscomm_store_open(address, &attr, &store), DSCOMM_OK,
              "all workers are there");
    pthread_join(thread, &worker);
    ok(worker != NULL, "the worker's store is open");
    dscomm_store_num_keys(store, &count);
    is_int(count, 0, "their counter is no key");
    dscomm_store_close(worker);
    dscomm_store_close(store);
}

static void *close_later(void *arg)
{
    usleep(100000);
    dscomm_store_close(arg);
    return NULL;
}

static void test_server_dies(void)
{
    dscomm_store_t *server = must_open_store("tcp://127.0.0.1:0", NULL, 1),
                   *store = NULL;
    double start = raw_now_ms();
    pthread_t thread;
    void *value;
    size_t size;

    status_is(open_store(url_of(dscomm_store_port(server)), NULL, 0, 0, &store),
              DSCOMM_OK, "open");
    pthread_create(&thread, NULL, close_later, server);
    status_is(dscomm_store_get(store, "never", 60000, &value, &size),
              DSCOMM_ERR_PEER_FAILED, "the server ends during a wait");
    pthread_join(thread, NULL);
    status_is(dscomm_store_set(store, "k", "v", 1), DSCOMM_ERR_PEER_FAILED,
              "and is still gone");
    ok(raw_now_ms() - start < 5000, "which is known soon");
    dscomm_store_close(store);
}

typedef struct {
    dscomm_store_t *store;
    const char *key;
    dscomm_status_t status;
} waiter_t;

static void *wait_for_key(void *arg)
{
    waiter_t *waiter = arg;

    waiter->status = dscomm_store_wait(waiter->store, &waiter->key, 1, 20000);
    return NULL;
}

/* Threads that wait for keys, and others that set them, have one store. */
static void test_shared(void)
{
    dscomm_store_t *server = must_open_store("tcp://127.0.0.1:0", NULL, 1),
                   *store = NULL;
    waiter_t waiters[3] = {{.key = "a"}, {.key = "b"}, {.key = "c"}};
    pthread_t threads[3];

    status_is(open_store(url_of(dscomm_store_port(server)), NULL, 0, 0, &store),
              DSCOMM_OK, "open");
    for (int i = 0; i < 3; i++) {
        waiters[i].store = store;
        pthread_create(&threads[i], NULL, wait_for_key, &waiters[i]);
    }
    usleep(100000);
    for (int i = 2; i >= 0; i--) {
        status_is(dscomm_store_set(store, waiters[i].key, "v", 1), DSCOMM_OK,
                  "set while other threads wait");
        pthread_join(threads[i], NULL);
        status_is(waiters[i].status, DSCOMM_OK, "a key that was waited for");
    }
    dscomm_store_close(store);
    dscomm_store_close(server);
}

/* A bare system may have no /etc/hosts. */
static int has_localhost(void)
{
    struct addrinfo *found = NULL;
    int status = getaddrinfo("localhost", NULL, NULL, &found);

    if (!status)
        freeaddrinfo(found);
    return !status;
}

static void test_addresses(void)
{
    static const char *const hosts[] = {"localhost", "[::1]", "0.0.0.0",
                                        "[::]"};

    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
        dscomm_store_t *store = NULL, *other = NULL;
        char address[40];
        dscomm_status_t status;

        attr.serve = 1;
        snprintf(address, sizeof address, "tcp://%s:0", hosts[i]);
        status = dscomm_store_open(address, &attr, &store);
        if (status == DSCOMM_ERR_IO && strchr(hosts[i], '[')) {
            skip("no IPv6 here: %s", dscomm_last_error());
            continue;
        }
        if (status == DSCOMM_ERR_NOT_FOUND && i == 0 && !has_localhost()) {
            skip("localhost has no address here");
            continue;
        }
        status_is(status, DSCOMM_OK, hosts[i]);
        if (status)
            continue;
        snprintf(address, sizeof address, "tcp://%s:%d",
                 i == 1   ? "[::1]"
                 : i == 0 ? "localhost"
                          : "127.0.0.1",
                 dscomm_store_port(store));
        status_is(open_store(address, NULL, 0, 5000, &other), DSCOMM_OK,
                  address);
        dscomm_store_close(other);
        dscomm_store_close(store);
    }
}

int main(void)
{
    test_answers();
    test_port_in_use();
    test_listen_fd();
    test_workers();
    test_server_dies();
    test_shared();
    test_addresses();
    return tap_done();
}
