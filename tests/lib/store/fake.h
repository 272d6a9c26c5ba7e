/* SPDX-License-Identifier: BSD-3-Clause */
/* A server that greets as TCPStore does, and then plays a part. */
#ifndef TESTS_LIB_STORE_FAKE_H
#define TESTS_LIB_STORE_FAKE_H

#include "config.h"

#include <dscomm/store.h>

#include "tests/lib/store/raw.h"
#include "tests/lib/store/told.h"

#include <pthread.h>

/* Bytes of VALIDATE, PING, and COMPARE_SET of "dscomm/server" to 16 bytes. */
#define HELLO (5 + 5 + 1 + 8 + 13 + 8 + 8 + 16)
static const char server_name[] = "\20\0\0\0\0\0\0\0c has this name:";

static inline const char *address_of(int port)
{
    static char address[40];

    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    return address;
}

static inline dscomm_status_t open_at(const char *address, int timeout_ms,
                                      dscomm_store_t **ret_store)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;

    attr.timeout_ms = timeout_ms;
    return dscomm_store_open(address, &attr, ret_store);
}

static inline dscomm_store_t *serve(const char *address)
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
    const char *names[3]; /* for each connection, instead of server_name */
    int connections;
    int listening, port;
    pthread_t thread;
} fake_t;

static inline void play(fake_t *fake, int fd, int number)
{
    uint8_t bytes[4096];

    if (raw_recv(fd, bytes, HELLO, 3000) != HELLO)
        return;
    if (fake->greeting) {
        raw_send(fd, fake->greeting, fake->greeting_size);
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

        if (!fake->greeting && !fake->answers[0])
            poll(&entry, 1, 3000);
        return;
    }
    raw_closes(fd, 3000); /* until the client goes */
}

static inline void *fake_run(void *arg)
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

static inline void fake_start(fake_t *fake)
{
    fake->listening = raw_listen(&fake->port);
    if (fake->listening < 0)
        bail("cannot listen");
    if (!fake->connections)
        fake->connections = 1;
    pthread_create(&fake->thread, NULL, fake_run, fake);
}

enum { GET, CHECK, DELETE, NUM_KEYS, ADD, APPEND, COMPARE_SET, MULTI_GET };

static inline dscomm_status_t call(dscomm_store_t *store, int which)
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

#endif
