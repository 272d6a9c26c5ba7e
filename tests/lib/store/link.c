/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP client's connection: greetings, time-outs in the middle, connections
 * made anew, servers that are not there, or not there yet. */
#include "tests/lib/store/fixture.h"

#include "lib/store/store.h"

static void test_greetings(void)
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
        if (status_is(open_store(url_of(fake.port), NULL, 0, 2000, &store),
                      DSCOMM_OK, rows[i].name)) {
            status_is(call_store(store, CALL_GET), rows[i].status,
                      rows[i].name);
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
    fake_t fake = {.answers = {"\7\7"}, .sizes = {2}, .connections = 2};
    dscomm_store_t *store = NULL;

    fake_start(&fake);
    status_is(open_store(url_of(fake.port), NULL, 0, 2000, &store), DSCOMM_OK,
              "open");
    status_is(call_store(store, CALL_CHECK), DSCOMM_ERR_PROTOCOL, "nonsense");
    status_is(call_store(store, CALL_CHECK), DSCOMM_ERR_PROTOCOL,
              "nonsense again, on a new connection");
    status_is(call_store(store, CALL_CHECK), DSCOMM_ERR_PEER_FAILED,
              "then nobody is there");
    dscomm_store_close(store);
    pthread_join(fake.thread, NULL);
}

static int port_of(int fd, int (*name)(int fd, struct sockaddr *address,
                                       socklen_t *length))
{
    struct sockaddr_in address = {.sin_port = 0};
    socklen_t length = sizeof address;

    name(fd, (struct sockaddr *)&address, &length);
    return ntohs(address.sin_port);
}

/* Ends the connections of this process's clients to a port, and then sets the
 * key for which one of them waits. */
static void *lose_connections(void *arg)
{
    const int port = *(const int *)arg;
    dscomm_store_t *store;

    usleep(300000); /* most often the key is waited for by then */
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
    dscomm_store_t *server = must_open_store("tcp://127.0.0.1:0", NULL, 1);
    int port = dscomm_store_port(server);
    dscomm_store_t *store = must_open_store(url_of(port), NULL, 0);
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

/* What has the port later is another store, even if it would answer. */
static void test_replaced(void)
{
    fake_t fake = {.answers = {"\7\7"},
                   .sizes = {2},
                   .names = {NULL, "\20\0\0\0\0\0\0\0this is another."},
                   .connections = 2};
    dscomm_store_t *store = NULL;

    fake_start(&fake);
    status_is(open_store(url_of(fake.port), NULL, 0, 2000, &store), DSCOMM_OK,
              "open");
    status_is(call_store(store, CALL_CHECK), DSCOMM_ERR_PROTOCOL, "nonsense");
    status_is(call_store(store, CALL_CHECK), DSCOMM_ERR_PEER_FAILED,
              "the next connection meets another server");
    ok(strstr(dscomm_last_error(), "another") != NULL, "%s",
       dscomm_last_error());
    dscomm_store_close(store);
    pthread_join(fake.thread, NULL);
}

/* A server that ends and is served anew on its port. */
static void test_restarted(void)
{
    dscomm_store_t *server = must_open_store("tcp://127.0.0.1:0", NULL, 1),
                   *store = NULL;
    int port = dscomm_store_port(server);
    int64_t sum = 0;

    status_is(open_store(url_of(port), NULL, 0, 2000, &store), DSCOMM_OK,
              "open");
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
    int port, fd = raw_listen(&port);
    char host[100];

    close(fd);
    status_is(open_store(url_of(port), NULL, 0, 300, &store),
              DSCOMM_ERR_TIMEOUT, "nobody listens");
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
        status_is(open_store(url, NULL, 0, 2000, &store), DSCOMM_ERR_NOT_FOUND,
                  "a name without address");
    }
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
    int port, fd = raw_listen(&port);

    close(fd);
    snprintf(address, sizeof address, "%s", url_of(port));
    pthread_create(&thread, NULL, serve_later, address);
    status_is(open_store(address, NULL, 0, 10000, &store), DSCOMM_OK,
              "a server that comes later");
    pthread_join(thread, &server);
    dscomm_store_close(store);
    dscomm_store_close(server);
}

/* Which keys are there costs one packet, whatever their number and views. */
static void test_look(void)
{
    fake_t fake = {.answers = {"\0\1\0"}, .sizes = {3}};
    dscomm_store_t *store = NULL, *view = NULL;

    fake_start(&fake);
    status_is(open_store(url_of(fake.port), NULL, 0, 2000, &store), DSCOMM_OK,
              "open");
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
    dscomm_store_close(store);
    pthread_join(fake.thread, NULL);
}

static void test_look_kinds(void)
{
    static const char *const urls[] = {"memory://", "tcp://127.0.0.1:0"};

    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        dscomm_store_t *store = must_open_store(urls[i], NULL, 1);
        dscomm_priv_look_t looks[] = {{store, "a", true}, {store, "b", false}};

        status_is(dscomm_store_set(store, "b", "v", 1), DSCOMM_OK, urls[i]);
        status_is(dscomm_priv_store_look(looks, 2), DSCOMM_OK, urls[i]);
        ok(!looks[0].present && looks[1].present, "%s: b alone is there",
           urls[i]);
        dscomm_store_close(store);
    }
}

/* A server with a secret says so once: it is not asked again. If it were, this
 * one, which takes one connection, would be gone. */
static void test_refused(void)
{
    const uint32_t refusal = ~((uint32_t)getpid() ^ UINT32_C(0x5CA1AB1E));
    fake_t fake = {.handshake = (const char *)&refusal,
                   .handshake_size = sizeof refusal};
    dscomm_store_t *store = NULL;

    fake_start(&fake);
    status_is(open_store(url_of(fake.port), NULL, 0, 1000, &store),
              DSCOMM_ERR_MISMATCH, "a server that refuses is not asked again");
    ok(strstr(dscomm_last_error(), "DSCOMM_JOB_SECRET") != NULL, "  %s",
       dscomm_last_error());
    dscomm_store_close(store);
    pthread_join(fake.thread, NULL);
}

int main(void)
{
    test_greetings();
    test_refused();
    test_cancel();
    test_reconnect();
    test_lost();
    test_replaced();
    test_restarted();
    test_no_server();
    test_late_server();
    test_look();
    test_look_kinds();
    return tap_done();
}
