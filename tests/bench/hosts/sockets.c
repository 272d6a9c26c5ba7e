/* SPDX-License-Identifier: BSD-3-Clause */
/* exchange.h by one connection, which is polled and has nothing but the data:
 * what a transport over TCP can reach. Two ranks, by RANK, MASTER_ADDR and
 * MASTER_PORT. */
#include "config.h"

#include "tests/bench/hosts/exchange.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int fd;

static void check(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

static int connect_to(const struct sockaddr_in *address)
{
    for (int tries = 0; tries < 1000; tries++) {
        const int to = socket(AF_INET, SOCK_STREAM, 0);

        if (!connect(to, (const struct sockaddr *)address, sizeof *address))
            return to;
        close(to);
        usleep(10000);
    }
    return -1;
}

static int accept_at(const struct sockaddr_in *address)
{
    const int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);

    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    check(!bind(listener, (const struct sockaddr *)address, sizeof *address),
          "bind");
    check(!listen(listener, 1), "listen");
    return accept(listener, NULL, NULL);
}

void peer_open(int *ret_rank, int *ret_ranks)
{
    const char *rank = getenv("RANK"), *host = getenv("MASTER_ADDR"),
               *port = getenv("MASTER_PORT");
    struct sockaddr_in address = {.sin_family = AF_INET};
    const int on = 1;

    check(rank && host && port && inet_pton(AF_INET, host, &address.sin_addr),
          "RANK, MASTER_ADDR, MASTER_PORT");
    address.sin_port = htons((uint16_t)atoi(port));
    *ret_rank = atoi(rank);
    *ret_ranks = 2;
    fd = *ret_rank ? connect_to(&address) : accept_at(&address);
    check(fd >= 0, "connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void peer_close(void)
{
    close(fd);
}

void peer_send(const char *data, size_t bytes)
{
    while (bytes) {
        const ssize_t sent = send(fd, data, bytes, MSG_NOSIGNAL);

        check(sent > 0, "send");
        data += sent;
        bytes -= (size_t)sent;
    }
}

void peer_recv(char *data, size_t bytes)
{
    while (bytes) {
        const ssize_t got = recv(fd, data, bytes, MSG_DONTWAIT);

        if (got < 0 && errno == EAGAIN)
            continue;
        check(got > 0, "recv");
        data += got;
        bytes -= (size_t)got;
    }
}

void peer_stream(int rank, char *data, size_t bytes, int times)
{
    for (int i = 0; i < times; i++)
        if (rank)
            peer_recv(data, bytes);
        else
            peer_send(data, bytes);
}

void peer_all_reduce(const float *in, float *out, size_t count)
{
    (void)in;
    (void)out;
    (void)count;
    check(0, "all_reduce");
}
