/* SPDX-License-Identifier: BSD-3-Clause */
/* TCPStore's protocol by hand, so that tests need no word of the library on how
 * it looks. Numbers as in torch's sources: little endian. */
#ifndef TESTS_LIB_STORE_RAW_H
#define TESTS_LIB_STORE_RAW_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RAW_MAX (256 << 10)

/* Bytes to send. */
typedef struct {
    uint8_t data[RAW_MAX];
    size_t size;
} raw_t;

static inline void raw_put(raw_t *raw, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        raw->data[raw->size++] = (uint8_t)(value >> 8 * i);
}

static inline void raw_hello(raw_t *raw)
{
    raw_put(raw, 0, 1);
    raw_put(raw, 0x3C85F7CE, 4);
}

static inline void raw_text(raw_t *raw, const char *text)
{
    raw_put(raw, strlen(text), 8);
    memcpy(raw->data + raw->size, text, strlen(text));
    raw->size += strlen(text);
}

/* A command with up to three texts. */
static inline void raw_command(raw_t *raw, int command, const char *a,
                               const char *b, const char *c)
{
    raw_put(raw, (uint64_t)command, 1);
    if (a)
        raw_text(raw, a);
    if (b)
        raw_text(raw, b);
    if (c)
        raw_text(raw, c);
}

/* CHECK, WAIT or MULTI_GET of up to two keys. */
static inline void raw_keys(raw_t *raw, int command, const char *a,
                            const char *b)
{
    raw_put(raw, (uint64_t)command, 1);
    raw_put(raw, (uint64_t)((a != NULL) + (b != NULL)), 8);
    if (a)
        raw_text(raw, a);
    if (b)
        raw_text(raw, b);
}

static inline void raw_ping(raw_t *raw, uint32_t nonce)
{
    raw_put(raw, 13, 1);
    raw_put(raw, nonce, 4);
}

static inline double raw_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* A blocking connection to 127.0.0.1, or -1. */
static inline int raw_connect(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 &&
        connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* A listening socket on 127.0.0.1 and its port. */
static inline int raw_listen(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, 16) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return -1;
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* 1, or 0 where the other end does not take it. */
static inline int raw_send(int fd, const void *data, size_t size)
{
    const uint8_t *next = data;

    while (size) {
        ssize_t sent = send(fd, next, size, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            return 0;
        if (sent > 0) {
            next += sent;
            size -= (size_t)sent;
        }
    }
    return 1;
}

/* How many of size bytes came within ms; -1 where the end or a reset comes
 * first. */
static inline long raw_recv(int fd, void *data, size_t size, int ms)
{
    double end = raw_now_ms() + ms;
    size_t have = 0;

    while (have < size) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        int left = (int)(end - raw_now_ms());
        ssize_t got;

        if (poll(&entry, 1, left > 0 ? left : 0) <= 0)
            break;
        got = recv(fd, (uint8_t *)data + have, size - have, 0);
        if (got <= 0)
            return -1;
        have += (size_t)got;
    }
    return (long)have;
}

/* 1 if the other end closes within ms; what it sends before is dropped. */
static inline int raw_closes(int fd, int ms)
{
    double end = raw_now_ms() + ms;
    uint8_t byte;

    while (raw_now_ms() < end) {
        if (raw_recv(fd, &byte, 1, (int)(end - raw_now_ms())) < 0)
            return 1;
    }
    return 0;
}

#endif
