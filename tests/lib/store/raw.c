/* SPDX-License-Identifier: BSD-3-Clause */
/* See raw.h. */
#include "tests/lib/store/raw.h"

#include "tests/tap.h"

void raw_put(raw_t *raw, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        const size_t shift = 8 * (bytes - 1 - i);
#else
        const size_t shift = 8 * i;
#endif

        raw->data[raw->size++] = (uint8_t)(value >> shift);
    }
}

void raw_hello(raw_t *raw)
{
    raw_put(raw, 0, 1);
    raw_put(raw, 0x3C85F7CE, 4);
}

void raw_text(raw_t *raw, const char *text)
{
    raw_put(raw, strlen(text), 8);
    memcpy(raw->data + raw->size, text, strlen(text));
    raw->size += strlen(text);
}

void raw_command(raw_t *raw, int command, const char *a, const char *b,
                 const char *c)
{
    raw_put(raw, (uint64_t)command, 1);
    if (a)
        raw_text(raw, a);
    if (b)
        raw_text(raw, b);
    if (c)
        raw_text(raw, c);
}

void raw_keys(raw_t *raw, int command, const char *a, const char *b)
{
    raw_put(raw, (uint64_t)command, 1);
    raw_put(raw, (uint64_t)((a != NULL) + (b != NULL)), 8);
    if (a)
        raw_text(raw, a);
    if (b)
        raw_text(raw, b);
}

void raw_ping(raw_t *raw, uint32_t nonce)
{
    raw_put(raw, 13, 1);
    raw_put(raw, nonce, 4);
}

double raw_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct sockaddr_in raw_loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

int raw_connect(int port)
{
    struct sockaddr_in address = raw_loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 &&
        connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int raw_listen(int *ret_port)
{
    struct sockaddr_in address = raw_loopback(0);
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, 16) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return -1;
    *ret_port = ntohs(address.sin_port);
    return fd;
}

int raw_send(int fd, const void *data, size_t size)
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

void raw_flush(int fd, raw_t *raw)
{
    raw_send(fd, raw->data, raw->size);
    raw->size = 0;
}

uint32_t raw_echo(int fd, raw_t *raw, uint32_t nonce)
{
    uint32_t echo = 0;

    raw_ping(raw, nonce);
    raw_flush(fd, raw);
    raw_recv(fd, &echo, sizeof echo, 5000);
    return echo;
}

long raw_recv(int fd, void *data, size_t size, int ms)
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

int raw_closes(int fd, int ms)
{
    double end = raw_now_ms() + ms;
    uint8_t byte;

    while (raw_now_ms() < end) {
        if (raw_recv(fd, &byte, 1, (int)(end - raw_now_ms())) < 0)
            return 1;
    }
    return 0;
}
