/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP client with servers that send invalid answers, stall, end, or are not
 * there yet; and the ways to serve a store. */
#include "tests/lib/store/fixture.h"
#include "tests/port.h"

#include <fcntl.h>
#include <netdb.h>

#define CALL_MS 200 /* of a call that waits */

/* A call whose answers are invalid, or never end. */
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
        {"WAIT, GET in order", CALL_GET, BYTES("\0"), BYTES(RAW_SIZE("\1") "v"),
         0, DSCOMM_OK},
        {"WAIT answers 7", CALL_GET, BYTES("\7"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"WAIT answers canceled", CALL_GET, BYTES("\1"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"GET: a value beyond 8 MiB", CALL_GET, BYTES("\0"),
         BYTES(RAW_U64("\1", "\0", "\200")), 0, DSCOMM_ERR_PROTOCOL},
        {"GET: a size of 2^64 - 1", CALL_GET, BYTES("\0"),
         BYTES("\377\377\377\377\377\377\377\377"), 0, DSCOMM_ERR_PROTOCOL},
        {"GET: half a value", CALL_GET, BYTES("\0"), BYTES(RAW_SIZE("\4") "v"),
         0, DSCOMM_ERR_TIMEOUT},
        {"GET: half a value and the end", CALL_GET, BYTES("\0"),
         BYTES(RAW_SIZE("\4") "v"), 1, DSCOMM_ERR_PEER_FAILED},
        {"MULTI_GET: one of two", CALL_MULTI_GET, BYTES("\0"),
         BYTES(RAW_SIZE("\1") "v"), 1, DSCOMM_ERR_PEER_FAILED},
        {"the end instead of WAIT's answer", CALL_GET, NULL, 0, NULL, 0, 1,
         DSCOMM_ERR_PEER_FAILED},
        {"CHECK answers 2", CALL_CHECK, BYTES("\2\2"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"CHECK answers no", CALL_CHECK, BYTES("\1\1"), NULL, 0, 0, DSCOMM_OK},
        {"DELETE_KEY answers 2", CALL_DELETE, BYTES(RAW_SIZE("\2")), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"GETNUMKEYS answers -1", CALL_NUM_KEYS,
         BYTES("\377\377\377\377\377\377\377\377\1"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"GETNUMKEYS: 3, with init/", CALL_NUM_KEYS, BYTES(RAW_SIZE("\3") "\0"),
         NULL, 0, 0, DSCOMM_OK},
        {"APPEND and a wrong echo", CALL_APPEND, BYTES("abcd"), NULL, 0, 0,
         DSCOMM_ERR_PROTOCOL},
        {"ADD and the end", CALL_ADD, BYTES(""), NULL, 0, 1,
         DSCOMM_ERR_PEER_FAILED},
        {"COMPARE_SET: a huge value", CALL_COMPARE_SET,
         BYTES("\1\0\0\0\0\0\0\1"), NULL, 0, 0, DSCOMM_ERR_PROTOCOL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake_t fake = {.answers = {rows[i].first, rows[i].second},
                       .sizes = {rows[i].first_size, rows[i].second_size},
                       .closes = rows[i].closes};
        dscomm_store_t *store = fake_open(&fake);
        double start = raw_now_ms();

        status_is(call_store(store, rows[i].call, CALL_MS), rows[i].status,
                  rows[i].name);
        ok(raw_now_ms() - start < 5000, "%s: in time", rows[i].name);
        fake_close(&fake, store);
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
    error_says("1 of 2");
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

/* A store that this process serves, and another view of it by TCP. */
static dscomm_store_t *serve_and_open(dscomm_store_t **ret_store)
{
    dscomm_store_t *server = must_open_store("tcp://127.0.0.1:0", NULL, 1);

    *ret_store = must_open_store(url_of(dscomm_store_port(server)), NULL, 0);
    return server;
}

static void *close_later(void *arg)
{
    usleep(100000);
    dscomm_store_close(arg);
    return NULL;
}

static void test_server_dies(void)
{
    dscomm_store_t *store, *server = serve_and_open(&store);
    double start = raw_now_ms();
    pthread_t thread;
    void *value;
    size_t size;

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

/* Threads that wait for keys, and threads that set them, share a store. */
static void test_shared(void)
{
    dscomm_store_t *store, *server = serve_and_open(&store);
    waiter_t waiters[3] = {{.key = "a"}, {.key = "b"}, {.key = "c"}};
    pthread_t threads[3];

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

/* Connections */

static void test_handshakes(void)
{
    static const struct {
        const char *name, *handshake;
        size_t size;
        int closes, connections;
        dscomm_status_t status;
    } rows[] = {
        {"an SSH server", "SSH-2.0-OpenSSH_9.2\r\n", 21, 0, 1,
         DSCOMM_ERR_PROTOCOL},
        {"a silent server", "", 0, 0, 1, DSCOMM_ERR_TIMEOUT},
        {"half an echo", "ab", 2, 0, 1, DSCOMM_ERR_TIMEOUT},
        {"a server that closes", "", 0, 1, 12, DSCOMM_ERR_PROTOCOL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake_t fake = {.handshake = rows[i].handshake,
                       .handshake_size = rows[i].size,
                       .closes = rows[i].closes,
                       .connections = rows[i].connections};
        int wait_ms = rows[i].closes ? 20000 : 400;
        dscomm_store_t *store = NULL;
        double start = raw_now_ms();

        fake_start(&fake);
        status_is(open_store(url_of(fake.port), NULL, 0, wait_ms, &store),
                  rows[i].status, rows[i].name);
        ok(!store, "%s: no store", rows[i].name);
        ok(raw_now_ms() - start < 8000, "%s: in time", rows[i].name);
        pthread_join(fake.thread, NULL);
    }
}

/* The deadline passes: the answer to CANCEL_WAIT, and the bytes before it. */
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
        {"woken too late", "\0\1", RAW_SIZE("\1") "v", 2, 9, DSCOMM_OK, NULL},
        {"cancel answers 9", "\11", NULL, 1, 0, DSCOMM_ERR_PROTOCOL, NULL},
        {"wakes twice", "\0\0", NULL, 2, 0, DSCOMM_ERR_PROTOCOL, NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        /* it does not answer WAIT; its first answer is to CANCEL_WAIT */
        fake_t fake = {.answers = {"", rows[i].cancel, rows[i].then},
                       .sizes = {0, rows[i].cancel_size, rows[i].then_size}};
        dscomm_store_t *store = fake_open(&fake);

        status_is(call_store(store, CALL_GET, CALL_MS), rows[i].status,
                  rows[i].name);
        if (rows[i].sentence)
            error_says(rows[i].sentence);
        fake_close(&fake, store);
    }
}

/* After a late answer the connection is out of step: the next call makes a new
 * one. */
static void test_reconnect(void)
{
    fake_t fake = {.answers = {"\7\7"}, .sizes = {2}, .connections = 2};
    dscomm_store_t *store = fake_open(&fake);

    status_is(call_store(store, CALL_CHECK, CALL_MS), DSCOMM_ERR_PROTOCOL,
              "nonsense");
    status_is(call_store(store, CALL_CHECK, CALL_MS), DSCOMM_ERR_PROTOCOL,
              "nonsense again, on a new connection");
    status_is(call_store(store, CALL_CHECK, CALL_MS), DSCOMM_ERR_PEER_FAILED,
              "then nobody is there");
    fake_close(&fake, store);
}

static int port_of(int fd, int (*name)(int fd, struct sockaddr *address,
                                       socklen_t *length))
{
    struct sockaddr_in address = {.sin_port = 0};
    socklen_t length = sizeof address;

    name(fd, (struct sockaddr *)&address, &length);
    return ntohs(address.sin_port);
}

/* Ends the connections of this process's clients to a port, then sets the key
 * for which one of them waits. */
static void *lose_connections(void *arg)
{
    const int port = *(const int *)arg;
    dscomm_store_t *store;

    usleep(300000); /* usually the wait for the key has begun by then */
    for (int fd = 3; fd < 256; fd++)
        if (port_of(fd, getpeername) == port &&
            port_of(fd, getsockname) != port)
            shutdown(fd, SHUT_RDWR);
    store = must_open_store(url_of(port), NULL, 0);
    dscomm_store_set(store, "late", "x", 1);
    dscomm_store_close(store);
    return NULL;
}

/* A connection that is lost while a key is waited for is made again. */
static void test_lost(void)
{
    dscomm_store_t *store, *server = serve_and_open(&store);
    int port = dscomm_store_port(server);
    void *value = NULL;
    pthread_t thread;
    size_t size;

    pthread_create(&thread, NULL, lose_connections, &port);
    status_is(dscomm_store_get(store, "late", 20000, &value, &size), DSCOMM_OK,
              "a connection lost in a wait");
    pthread_join(thread, NULL);
    dscomm_store_free(value);
    dscomm_store_close(store);
    dscomm_store_close(server);
}

/* Another server that later uses the port is another store, even if it would
 * answer. */
static void test_replaced(void)
{
    fake_t fake = {.answers = {"\7\7"},
                   .sizes = {2},
                   .names = {NULL, RAW_SIZE("\20") "this is another."},
                   .connections = 2};
    dscomm_store_t *store = fake_open(&fake);

    status_is(call_store(store, CALL_CHECK, CALL_MS), DSCOMM_ERR_PROTOCOL,
              "nonsense");
    status_is(call_store(store, CALL_CHECK, CALL_MS), DSCOMM_ERR_PEER_FAILED,
              "the next connection meets another server");
    error_says("another");
    fake_close(&fake, store);
}

/* A server ends, and a new one is started at its port. */
static void test_restarted(void)
{
    dscomm_store_t *store, *server = serve_and_open(&store);
    int port = dscomm_store_port(server);
    int64_t sum = 0;

    status_is(dscomm_store_add(store, "n", 1, &sum), DSCOMM_OK, "count");
    dscomm_store_close(server);
    server = must_open_store(url_of(port), NULL, 1);
    status_is(dscomm_store_add(store, "n", 1, &sum), DSCOMM_ERR_PEER_FAILED,
              "nobody counts from the beginning unawares");
    status_is(dscomm_store_set(store, "k", "v", 1), DSCOMM_ERR_PEER_FAILED,
              "nor stores what others do not see");
    dscomm_store_close(store);
    status_is(open_store(url_of(port), NULL, 0, 2000, &store), DSCOMM_OK,
              "open anew");
    status_is(dscomm_store_add(store, "n", 1, &sum), DSCOMM_OK, "count");
    is_int(sum, 1, "from the beginning");
    dscomm_store_close(store);
    dscomm_store_close(server);
}

static void test_no_server(void)
{
    dscomm_store_t *store = NULL;
    double start = raw_now_ms(), took;
    const int port = port_find_free(1);
    char name[81] = "", url[120];

    status_is(open_store(url_of(port), NULL, 0, 300, &store),
              DSCOMM_ERR_TIMEOUT, "nobody listens");
    took = raw_now_ms() - start;
    ok(took >= 300 && took < 3000, "it tried for %.0f ms", took);
    error_says("refused");
    /* a label of more than 63 letters, for which no name server is queried */
    memset(name, 'x', sizeof name - 1);
    snprintf(url, sizeof url, "tcp://%s.invalid:1234", name);
    status_is(open_store(url, NULL, 0, 2000, &store), DSCOMM_ERR_NOT_FOUND,
              "a name without address");
}

static void *serve_later(void *arg)
{
    usleep(250000);
    return must_open_store(arg, NULL, 1);
}

static void test_late_server(void)
{
    dscomm_store_t *store = NULL;
    char address[40];
    pthread_t thread;
    void *server;

    snprintf(address, sizeof address, "%s", url_of(port_find_free(1)));
    pthread_create(&thread, NULL, serve_later, address);
    status_is(open_store(address, NULL, 0, 10000, &store), DSCOMM_OK,
              "a server that comes later");
    pthread_join(thread, &server);
    dscomm_store_close(store);
    dscomm_store_close(server);
}

/* Looking for keys takes one packet, whatever their number and views. */
static void test_look(void)
{
    fake_t fake = {.answers = {"\0\1\0"}, .sizes = {3}};
    dscomm_store_t *store = fake_open(&fake), *view = NULL;

    status_is(dscomm_store_prefix(store, "p", &view), DSCOMM_OK, "a view");
    {
        dscomm_priv_look_t looks[] = {
            {store, "a", false}, {view, "b", true}, {view, "c", false}};

        status_is(dscomm_priv_store_look(looks, 3), DSCOMM_OK,
                  "three keys are asked for at once");
        ok(looks[0].present && !looks[1].present && looks[2].present,
           "the first and the third are there");
    }
    dscomm_store_close(view);
    fake_close(&fake, store);
}

/* The same for deletions. The fake server answers once, so a second request
 * would find the connection out of step. */
static void test_delete(void)
{
    static const char *const keys[] = {"a", "b", "c"};
    const uint64_t deleted[] = {1, 0, 1}, bad[] = {1, 2, 1};
    fake_t fake = {.answers = {(const char *)deleted},
                   .sizes = {sizeof deleted}};
    fake_t wrong = {.answers = {(const char *)bad}, .sizes = {sizeof bad}};
    dscomm_store_t *store = fake_open(&fake);

    status_is(dscomm_priv_store_delete(store, keys, 3), DSCOMM_OK,
              "three keys are deleted at once");
    fake_close(&fake, store);
    store = fake_open(&wrong);
    status_is(dscomm_priv_store_delete(store, keys, 3), DSCOMM_ERR_PROTOCOL,
              "the second of three answers makes no sense");
    fake_close(&wrong, store);
}

#define KEYS 1500 /* more than one request has */

/* Of many keys, the first and the last are there, and one that stays. */
static void check_delete(dscomm_store_t *store, const char *url)
{
    static char names[KEYS][8];
    const char *keys[KEYS];
    int64_t count = -1;

    for (int i = 0; i < KEYS; i++) {
        snprintf(names[i], sizeof names[i], "x%d", i);
        keys[i] = names[i];
    }
    dscomm_store_set(store, keys[0], "v", 1);
    dscomm_store_set(store, keys[KEYS - 1], "v", 1);
    dscomm_store_num_keys(store, &count);
    is_int(count, 3, "%s: three keys", url);
    status_is(dscomm_priv_store_delete(store, keys, KEYS), DSCOMM_OK, url);
    dscomm_store_num_keys(store, &count);
    is_int(count, 1, "%s: two of them are deleted", url);
    status_is(dscomm_priv_store_delete(store, NULL, 0), DSCOMM_OK, "no keys");
}

static void test_kinds(void)
{
    char folder[] = "/tmp/dscomm-client-XXXXXX", file[64];
    const char *const urls[] = {"memory://", "tcp://127.0.0.1:0", file};

    if (!mkdtemp(folder))
        bail("mkdtemp failed");
    snprintf(file, sizeof file, "file://%s/store", folder);
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        dscomm_store_t *store = must_open_store(urls[i], NULL, 1);
        dscomm_priv_look_t looks[] = {{store, "a", true}, {store, "b", false}};

        status_is(dscomm_store_set(store, "b", "v", 1), DSCOMM_OK, urls[i]);
        status_is(dscomm_priv_store_look(looks, 2), DSCOMM_OK, urls[i]);
        ok(!looks[0].present && looks[1].present, "%s: b alone is there",
           urls[i]);
        check_delete(store, urls[i]);
        dscomm_store_close(store);
    }
    unlink(file + strlen("file://"));
    rmdir(folder);
}

/* A server with a secret refuses once: no second request is sent. This server
 * accepts only one connection, so a second one would find that it has ended. */
static void test_refused(void)
{
    const uint32_t refusal = ~((uint32_t)getpid() ^ UINT32_C(0x5CA1AB1E));
    fake_t fake = {.handshake = (const char *)&refusal,
                   .handshake_size = sizeof refusal};
    dscomm_store_t *store = NULL;

    fake_start(&fake);
    status_is(open_store(url_of(fake.port), NULL, 0, 1000, &store),
              DSCOMM_ERR_MISMATCH, "a server that refuses is not asked again");
    error_says("DSCOMM_JOB_SECRET");
    fake_close(&fake, store);
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
    test_handshakes();
    test_refused();
    test_cancel();
    test_reconnect();
    test_lost();
    test_replaced();
    test_restarted();
    test_no_server();
    test_late_server();
    test_look();
    test_delete();
    test_kinds();
    return tap_done();
}
