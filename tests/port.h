/* SPDX-License-Identifier: BSD-3-Clause */
/* A port for a server that a test starts later. */
#ifndef TESTS_PORT_H
#define TESTS_PORT_H

#include "tests/tap.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static inline int port_is_free(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failed = bind(fd, (struct sockaddr *)&address, sizeof address);

    close(fd);
    return !failed;
}

/* Returns the first of so many consecutive ports that are free on 127.0.0.1.
 * They are below those that the kernel assigns: it may give one of these to
 * another test before the server has started. */
static inline int port_find_free(int ports)
{
    static unsigned next;

    for (int tries = 0; tries < 100; tries++) {
        int port = 10000 + (int)((getpid() * 37U + next++ * 101) % 20000);
        int count = 0;

        while (count < ports && port_is_free(port + count))
            count++;
        if (count == ports)
            return port;
    }
    bail("no port is free");
    return -1;
}

#endif
