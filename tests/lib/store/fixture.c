/* SPDX-License-Identifier: BSD-3-Clause */
/* See fixture.h. */
#include "tests/lib/store/fixture.h"

/* Bytes of VALIDATE, PING, and COMPARE_SET of "dscomm/server" to 16 bytes. */
#define HELLO (5 + 5 + 1 + 8 + 13 + 8 + 8 + 16)

static const char server_name[] = RAW_SIZE("\20") "c has this name:";

dscomm_priv_server_t *start_server(const dscomm_priv_server_limits_t *limits,
                                   const dscomm_priv_job_t *job, int *ret_port)
{
    const dscomm_priv_place_t place = {"127.0.0.1", 0, 1, false, false};
    dscomm_priv_server_limits_t all = SERVER_LIMITS_INIT;
    dscomm_priv_listen_t listening;
    dscomm_priv_server_t *server;

    if (limits) {
        all.connections = limits->connections ?: all.connections;
        all.validate_ms = limits->validate_ms ?: all.validate_ms;
        all.stall_ms = limits->stall_ms ?: all.stall_ms;
        all.kept = limits->kept ?: all.kept;
        all.under_way = limits->under_way ?: all.under_way;
    }
    if (dscomm_priv_listen(&place, dscomm_priv_deadline(WAIT_MS), &listening) ||
        dscomm_priv_server_open(&listening, &all, job, &server))
        bail("server: %s", dscomm_last_error());
    *ret_port = listening.port;
    return server;
}

void with_server(const dscomm_priv_server_limits_t *limits,
                 void (*test)(int port))
{
    int port;
    dscomm_priv_server_t *server = start_server(limits, NULL, &port);

    test(port);
    dscomm_priv_server_close(server);
}

int raw_client(int port)
{
    raw_t raw = {.size = 0};
    int fd = raw_connect(port);

    raw_hello(&raw);
    if (fd < 0 || !raw_send(fd, raw.data, raw.size))
        bail("cannot connect");
    return fd;
}

int is_alive(int port)
{
    raw_t raw = {.size = 0};
    int fd = raw_client(port);
    const uint32_t echo = raw_echo(fd, &raw, 0x12345678);

    close(fd);
    return echo == 0x12345678;
}

const char *url_of(int port)
{
    static char url[40];

    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port);
    return url;
}

dscomm_status_t open_store(const char *url, const dscomm_priv_job_t *job,
                           int serves, int timeout_ms,
                           dscomm_store_t **ret_store)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;

    attr.serve = serves;
    attr.timeout_ms = timeout_ms;
    return dscomm_priv_store_open(url, &attr, job, ret_store);
}

dscomm_store_t *must_open_store(const char *url, const dscomm_priv_job_t *job,
                                int serves)
{
    dscomm_store_t *store = NULL;

    if (open_store(url, job, serves, 20000, &store))
        bail("%s %s: %s", serves ? "serve" : "open", url, dscomm_last_error());
    return store;
}

static void play(fake_t *fake, int fd, int number)
{
    uint8_t bytes[4096];

    if (raw_recv(fd, bytes, HELLO, 3000) != HELLO)
        return;
    if (fake->handshake) {
        raw_send(fd, fake->handshake, fake->handshake_size);
    } else {
        raw_send(fd, bytes + 6, 4);
        raw_send(fd,
                 number < 3 && fake->names[number] ? fake->names[number]
                                                   : server_name,
                 sizeof server_name - 1);
    }
    for (int i = 0; i < 3 && fake->answers[i]; i++) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};

        if (poll(&entry, 1, 3000) <= 0 || recv(fd, bytes, sizeof bytes, 0) <= 0)
            return;
        raw_send(fd, fake->answers[i], fake->sizes[i]);
    }
    if (fake->closes) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};

        if (!fake->handshake && !fake->answers[0])
            poll(&entry, 1, 3000);
        return;
    }
    raw_closes(fd, 3000); /* waits until the client leaves */
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
        play(fake, fd, i);
        close(fd);
    }
    close(fake->listening);
    return NULL;
}

void fake_start(fake_t *fake)
{
    fake->listening = raw_listen(&fake->port);
    if (fake->listening < 0)
        bail("cannot listen");
    if (!fake->connections)
        fake->connections = 1;
    pthread_create(&fake->thread, NULL, fake_run, fake);
}

dscomm_store_t *fake_open(fake_t *fake)
{
    dscomm_store_t *store = NULL;

    fake_start(fake);
    if (open_store(url_of(fake->port), NULL, 0, 2000, &store))
        bail("open %s: %s", url_of(fake->port), dscomm_last_error());
    return store;
}

void fake_close(fake_t *fake, dscomm_store_t *store)
{
    dscomm_store_close(store);
    pthread_join(fake->thread, NULL);
}

dscomm_status_t call_store(dscomm_store_t *store, int which, int ms)
{
    const char *keys[] = {"a", "b"};
    void *values[2] = {NULL, NULL};
    size_t sizes[2];
    int64_t number;
    int flag;
    dscomm_status_t status;

    switch (which) {
    case CALL_SET:
        return dscomm_store_set(store, "a", "x", 1);
    case CALL_GET:
        status = dscomm_store_get(store, "a", ms, values, sizes);
        break;
    case CALL_MULTI_GET:
        status = dscomm_store_multi_get(store, keys, 2, ms, values, sizes);
        break;
    case CALL_CHECK:
        return dscomm_store_check(store, keys, 2, &flag);
    case CALL_DELETE:
        return dscomm_store_delete(store, "a", &flag);
    case CALL_NUM_KEYS:
        return dscomm_store_num_keys(store, &number);
    case CALL_ADD:
        return dscomm_store_add(store, "n", 1, &number);
    case CALL_APPEND:
        return dscomm_store_append(store, "a", "x", 1);
    case CALL_WILL:
        dscomm_priv_store_withdraw(store, "died");
        return dscomm_priv_store_will(store, "died", "1");
    default:
        status =
            dscomm_store_compare_set(store, "a", "x", 1, "y", 1, values, sizes);
        break;
    }
    dscomm_store_free(values[0]);
    dscomm_store_free(values[1]);
    return status;
}
