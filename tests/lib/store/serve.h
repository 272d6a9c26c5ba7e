/* SPDX-License-Identifier: BSD-3-Clause */
/* A server of one's own, and clients of it that speak by hand. */
#ifndef TESTS_LIB_STORE_SERVE_H
#define TESTS_LIB_STORE_SERVE_H

#include "config.h"

#include "lib/store/tcp/server.h"

#include "tests/lib/store/raw.h"
#include "tests/tap.h"

#define WAIT_MS 5000

static inline dscomm_priv_server_t *
serve(const dscomm_priv_server_limits_t *limits, int *ret_port)
{
    dscomm_priv_listen_t listening;
    dscomm_priv_server_t *server;

    const dscomm_priv_place_t place = {"127.0.0.1", 0, 1, false, false};

    if (dscomm_priv_listen(&place, dscomm_priv_deadline(WAIT_MS), &listening) ||
        dscomm_priv_server_open(&listening, limits, NULL, &server))
        bail("server: %s", dscomm_last_error());
    *ret_port = listening.port;
    return server;
}

/* A connection that has said VALIDATE. */
static inline int client(int port)
{
    raw_t raw = {.size = 0};
    int fd = raw_connect(port);

    raw_hello(&raw);
    if (fd < 0 || !raw_send(fd, raw.data, raw.size))
        bail("cannot connect");
    return fd;
}

/* Whether a client that connects now is served. */
static inline int is_alive(int port)
{
    raw_t raw = {.size = 0};
    int fd = client(port);
    uint32_t echo = 0;

    raw_ping(&raw, 0x12345678);
    raw_send(fd, raw.data, raw.size);
    raw_recv(fd, &echo, 4, WAIT_MS);
    close(fd);
    return echo == 0x12345678;
}

#endif
