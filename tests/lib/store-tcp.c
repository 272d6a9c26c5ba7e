/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP client against servers that lie, stall and die, and the ways to
 * serve. */
#include "config.h"

#include <dscomm/store.h>

#include "tests/lib/store-raw.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>

#define HELLO 10 /* bytes of VALIDATE and PING */

static int status_is(dscomm_status_t got, dscomm_status_t want,
                     const char *what)
{
    int passed = is_int(got, want, "%s", what);

    if (!passed)
        tap_text("last error:", dscomm_last_error());
    return passed;
}

static const char *address_of(int port)
{
    static char address[40];

    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    return address;
}

static dscomm_status_t open_at(const char *address, int timeout_ms,
                               dscomm_store_t **ret_store)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;

    attr.timeout_ms = timeout_ms;
    return dscomm_store_open(address, &attr, ret_store);
}

static dscomm_store_t *serve(const char *address)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store;

    attr.serve = 1;
    if (dscomm_store_open(address, &attr, &store))
        bail("serve %s: %s", address, dscomm_last_error());
    return store;
}

/* A server that answers the greeting, then plays a part. */
typedef struct {
    const char *greeting; /* instead of the echo, or NULL */
    size_t greeting_size;
    const char *answers[3]; /* each after some bytes of a request */
    size_t sizes[3];
    int closes; /* at the end, else it stays silent */
    int connections;
    int listening, port;
    pthread_t thread;
} fake_t;

static void play(fake_t *fake, int fd)
{
    uint8_t bytes[4096];

    if (raw_recv(fd, bytes, HELLO, 3000) != HELLO)
        return;
    if (fake->greeting)
        raw_send(fd, fake->greeting, fake->greeting_size);
    else
        raw_send(fd, bytes + 6, 4);
    for (int i = 0; i < 3 && fake->answers[i]; i++) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};

        if (poll(&entry, 1, 3000) <= 0 || recv(fd, bytes, sizeof bytes, 0) <= 0)
            return;
        raw_send(fd, fake->answers[i], fake->sizes[i]);
    }
    if (fake->closes) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};

        if (!fake->greeting && !fake->answers[0])
            poll(&entry, 1, 3000);
        return;
    }
    raw_closes(fd, 3000); /* until the client goes */
}

static void *fake_run(void *arg)
{
    fake_t *fake = arg;

    for (int i = 0; i < fake->connections; i++) {
        struct pollfd entry = {.fd = fake->listening, .events = POLLIN};
        int fd;

        if (poll(&entry, 1, 3000) <= 0)
            break;
        fd = accept(fake->listening, NULL, NULL);
        play(fake, fd);
        close(fd);
    }
    close(fake->listening);
    return NULL;
}

static void fake_start(fake_t *fake)
{
    fake->listening = raw_listen(&fake->port);
    if (fake->listening < 0)
        bail("cannot listen");
    if (!fake->connections)
        fake->connections = 1;
    pthread_create(&fake->thread, NULL, fake_run, fake);
}

static void test_greetings(void)
{
    static const struct {
        const char *name, *greeting;
        size_t size;
        int closes, connections;
        dscomm_status_t status;
    } rows[] = {
        {"an SSH server", "SSH-2.0-OpenSSH_9.2\r\n", 21, 0, 1,
         DSCOMM_ERR_PROTOCOL},
        {"a silent server", "", 0, 0, 1, DSCOMM_ERR_TIMEOUT},
        {"half an echo", "ab", 2, 0, 1, DSCOMM_ERR_TIMEOUT},
        {"a server that closes", "", 0, 1, 8, DSCOMM_ERR_PROTOCOL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake_t fake = {.greeting = rows[i].greeting,
                       .greeting_size = rows[i].size,
                       .closes = rows[i].closes,
                       .connections = rows[i].connections};
        int wait_ms = rows[i].closes ? 20000 : 400;
        dscomm_store_t *store = NULL;
        double start = raw_now_ms();

        fake_start(&fake);
        status_is(open_at(address_of(fake.port), wait_ms, &store),
                  rows[i].status, rows[i].name);
        ok(!store, "%s: no store", rows[i].name);
        ok(raw_now_ms() - start < 8000, "%s: in time", rows[i].name);
        pthread_join(fake.thread, NULL);
    }
}

enum { GET, CHECK, DELETE, NUM_KEYS, ADD, APPEND, COMPARE_SET, MULTI_GET };

static dscomm_status_t call(dscomm_store_t *store, int which)
{
    const char *keys[] = {"a", "b"};
    void *values[2] = {NULL, NULL};
    size_t sizes[2];
    int64_t number;
    int flag;
    dscomm_status_t status;

    switch (which) {
    case GET:
        status = dscomm_store_get(store, "a", 200, values, sizes);
        break;
    case MULTI_GET:
        status = dscomm_store_multi_get(store, keys, 2, 200, values, sizes);
        break;
    case CHECK:
        return dscomm_store_check(store, keys, 2, &flag);
    case DELETE:
        return dscomm_store_delete(store, "a", &flag);
    case NUM_KEYS:
        return dscomm_store_num_keys(store, &number);
    case ADD:
        return dscomm_store_add(store, "a", 1, &number);
    case APPEND:
        return dscomm_store_append(store, "a", "x", 1);
    default:
        status =
            dscomm_store_compare_set(store, "a", "", 0, "x", 1, values, sizes);
        break;
    }
    dscomm_store_free(values[0]);
    dscomm_store_free(values[1]);
    return status;
}

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
        {"WAIT, GET in order", GET, BYTES("\0"), BYTES("\1\0\0\0\0\0\0\0v"), 0,
         DSCOMM_OK},
        {"WAIT answers 7", GET, BYTES("\7"), NULL, 0, 0, DSCOMM_ERR_PROTOCOL},
        {"WAIT answers canceled", GET, BYTES("\1"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"GET: a value beyond 8 MiB", GET, BYTES("\0"),
         BYTES("\1\0\200\0\0\0\0\0"), 0, DSCOMM_ERR_PROTOCOL},
        {"GET: a size of 2^64 - 1", GET, BYTES("\0"),
         BYTES("\377\377\377\377\377\377\377\377"), 0, DSCOMM_ERR_PROTOCOL},
        {"GET: half a value", GET, BYTES("\0"), BYTES("\4\0\0\0\0\0\0\0v"), 0,
         DSCOMM_ERR_TIMEOUT},
        {"GET: half a value and the end", GET, BYTES("\0"),
         BYTES("\4\0\0\0\0\0\0\0v"), 1, DSCOMM_ERR_PEER_FAILED},
        {"MULTI_GET: one of two", MULTI_GET, BYTES("\0"),
         BYTES("\1\0\0\0\0\0\0\0v"), 1, DSCOMM_ERR_PEER_FAILED},
        {"the end instead of WAIT's answer", GET, NULL, 0, NULL, 0, 1,
         DSCOMM_ERR_PEER_FAILED},
        {"CHECK answers 2", CHECK, BYTES("\2"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"CHECK answers no", CHECK, BYTES("\1"), NULL, 0, 0, DSCOMM_OK},
        {"DELETE_KEY answers 2", DELETE, BYTES("\2\0\0\0\0\0\0\0"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"GETNUMKEYS answers -1", NUM_KEYS,
         BYTES("\377\377\377\377\377\377\377\377\1"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"GETNUMKEYS: 3, with init/", NUM_KEYS, BYTES("\3\0\0\0\0\0\0\0\0"),
         NULL, 0, 0, DSCOMM_OK},
        {"APPEND and a wrong echo", APPEND, BYTES("abcd"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"ADD and the end", ADD, BYTES(""), NULL, 0, 1, DSCOMM_ERR_PEER_FAILED},
        {"COMPARE_SET: a huge value", COMPARE_SET, BYTES("\0\0\0\0\0\0\0\1"),
         NULL, 0, 0, DSCOMM_ERR_PROTOCOL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake_t fake = {.answers = {rows[i].first, rows[i].second},
                       .sizes = {rows[i].first_size, rows[i].second_size},
                       .closes = rows[i].closes};
        dscomm_store_t *store = NULL;
        double start;

        fake_start(&fake);
        if (status_is(open_at(address_of(fake.port), 2000, &store), DSCOMM_OK,
                      rows[i].name)) {
            start = raw_now_ms();
            status_is(call(store, rows[i].call), rows[i].status, rows[i].name);
            ok(raw_now_ms() - start < 5000, "%s: in time", rows[i].name);
        }
        dscomm_store_close(store);
        pthread_join(fake.thread, NULL);
    }
}

/* The deadline passes; CANCEL_WAIT's answer, and what comes before it. */
static void test_cancel(void)
{
    static const struct {
        const char *name;
        const char *cancel, *then;
        size_t cancel_size, then_size;
        dscomm_status_t status;
        const char *sentence;
    } rows[] = {
        {"canceled", "\1", "\1", 1, 1, DSCOMM_ERR_TIMEOUT, "'a'"},
        {"woken too late", "\0\1", "\1\0\0\0\0\0\0\0v", 2, 9, DSCOMM_OK, NULL},
        {"cancel answers 9", "\11", NULL, 1, 0, DSCOMM_ERR_PROTOCOL, NULL},
        {"wakes twice", "\0\0", NULL, 2, 0, DSCOMM_ERR_PROTOCOL, NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        /* to WAIT it says nothing; its first answer is to CANCEL_WAIT */
        fake_t fake = {.answers = {"", rows[i].cancel, rows[i].then},
                       .sizes = {0, rows[i].cancel_size, rows[i].then_size}};
        dscomm_store_t *store = NULL;

        fake_start(&fake);
        if (status_is(open_at(address_of(fake.port), 2000, &store), DSCOMM_OK,
                      rows[i].name)) {
            status_is(call(store, GET), rows[i].status, rows[i].name);
            if (rows[i].sentence)
                ok(strstr(dscomm_last_error(), rows[i].sentence) != NULL,
                   "%s: %s", rows[i].name, dscomm_last_error());
        }
        dscomm_store_close(store);
        pthread_join(fake.thread, NULL);
    }
}

/* After a late answer the connection is out of step: the next call makes
 * anew. */
static void test_reconnect(void)
{
    fake_t fake = {.answers = {"\7"}, .sizes = {1}, .connections = 2};
    dscomm_store_t *store = NULL;

    fake_start(&fake);
    status_is(open_at(address_of(fake.port), 2000, &store), DSCOMM_OK, "open");
    status_is(call(store, CHECK), DSCOMM_ERR_PROTOCOL, "nonsense");
    status_is(call(store, CHECK), DSCOMM_ERR_PROTOCOL,
              "nonsense again, on a new connection");
    status_is(call(store, CHECK), DSCOMM_ERR_PEER_FAILED,
              "then nobody is there");
    dscomm_store_close(store);
    pthread_join(fake.thread, NULL);
}

static void test_no_server(void)
{
    dscomm_store_t *store = NULL;
    double start = raw_now_ms(), took;
    int port, fd = raw_listen(&port);
    char host[100];

    close(fd);
    status_is(open_at(address_of(port), 300, &store), DSCOMM_ERR_TIMEOUT,
              "nobody listens");
    took = raw_now_ms() - start;
    ok(took >= 300 && took < 3000, "it tried for %.0f ms", took);
    ok(strstr(dscomm_last_error(), "refused") != NULL, "%s",
       dscomm_last_error());
    /* a label of more than 63 letters, which no name server is asked for */
    memset(host, 'x', 80);
    snprintf(host + 80, 20, ".invalid:1234");
    {
        char url[120];

        snprintf(url, sizeof url, "tcp://%s", host);
        status_is(open_at(url, 100, &store), DSCOMM_ERR_NOT_FOUND,
                  "a name without address");
    }
}

static void *serve_later(void *arg)
{
    usleep(250000);
    return serve(arg);
}

static void test_late_server(void)
{
    dscomm_store_t *store = NULL;
    char address[40];
    pthread_t thread;
    void *server;
    int port, fd = raw_listen(&port);

    close(fd);
    snprintf(address, sizeof address, "%s", address_of(port));
    pthread_create(&thread, NULL, serve_later, address);
    status_is(open_at(address, 10000, &store), DSCOMM_OK,
              "a server that comes later");
    pthread_join(thread, &server);
    dscomm_store_close(store);
    dscomm_store_close(server);
}

static void test_port_in_use(void)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store = NULL;
    int port, fd = raw_listen(&port);
    char text[16];

    attr.serve = 1;
    snprintf(text, sizeof text, "port %d", port);
    status_is(dscomm_store_open(address_of(port), &attr, &store), DSCOMM_ERR_IO,
              "a port in use");
    ok(strstr(dscomm_last_error(), text) && strstr(dscomm_last_error(), "use"),
       "%s", dscomm_last_error());
    close(fd);
    store = serve(address_of(port));
    is_int(dscomm_store_port(store), port, "the port is free again");
    dscomm_store_close(store);
    store = serve(address_of(port));
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
    status_is(dscomm_store_open(address_of(other), &attr, &store),
              DSCOMM_ERR_INVALID, "an inherited socket on another port");
    ok(fcntl(fd, F_GETFD) >= 0, "is still ours");
    status_is(dscomm_store_open(address_of(port), &attr, &store), DSCOMM_OK,
              "on the right port");
    is_int(dscomm_store_port(store), port, "which it serves");
    ok(fcntl(fd, F_GETFD) < 0, "and the socket is the store's");
    status_is(dscomm_store_set(store, "k", "v", 1), DSCOMM_OK, "and works");
    dscomm_store_close(store);
    file = open("/dev/null", O_RDWR | O_CLOEXEC);
    attr.listen_fd = file;
    status_is(dscomm_store_open(address_of(port), &attr, &store),
              DSCOMM_ERR_INVALID, "no socket");
    close(file);
    file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    attr.listen_fd = file;
    status_is(dscomm_store_open(address_of(port), &attr, &store),
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
    snprintf(address, sizeof address, "%s", address_of(port));
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
    dscomm_store_t *server = serve("tcp://127.0.0.1:0"), *store = NULL;
    double start = raw_now_ms();
    pthread_t thread;
    void *value;
    size_t size;

    status_is(open_at(address_of(dscomm_store_port(server)), 0, &store),
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

static void *wait_long(void *arg)
{
    void *value;
    size_t size;

    return (void *)(intptr_t)dscomm_store_get(arg, "never", 1000, &value,
                                              &size);
}

/* A wait delays the others on the connection, to their deadline at the most. */
static void test_shared(void)
{
    dscomm_store_t *store = serve("tcp://127.0.0.1:0");
    pthread_t thread;
    void *result;

    pthread_create(&thread, NULL, wait_long, store);
    usleep(100000);
    status_is(dscomm_store_set(store, "k", "v", 1), DSCOMM_OK,
              "set during another thread's wait");
    pthread_join(thread, &result);
    is_int((intptr_t)result, DSCOMM_ERR_TIMEOUT, "which ends as it should");
    dscomm_store_close(store);
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
        status_is(open_at(address, 5000, &other), DSCOMM_OK, address);
        dscomm_store_close(other);
        dscomm_store_close(store);
    }
}

int main(void)
{
    test_greetings();
    test_answers();
    test_cancel();
    test_reconnect();
    test_no_server();
    test_late_server();
    test_port_in_use();
    test_listen_fd();
    test_workers();
    test_server_dies();
    test_shared();
    test_addresses();
    return tap_done();
}
