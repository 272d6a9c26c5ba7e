/* SPDX-License-Identifier: BSD-3-Clause */
/* The rate of a connection as its kernel has measured it. <linux/tcp.h> has it,
 * which cannot be included with <netinet/tcp.h>. */
#include "config.h"

#include "backends/net/tcp/tcp.h"

#include <linux/tcp.h>
#include <stddef.h>
#include <sys/socket.h>

/* A link is slow if a frame behind a piece of 1 MiB waits for 8 ms or more. The
 * rate of one moment says little: it must have been so several times. */
#define SLOW_RATE (UINT64_C(1) << 27) /* bytes/s */
#define SLOW_LOOKS 8
#define LOOK_NS 1000000

bool tcp_main_is_slow(pair_t *pair)
{
    const int64_t now = tcp_now();
    struct tcp_info info;
    socklen_t bytes = sizeof info;

    if (now - pair->looked_ns < LOOK_NS)
        return false;
    pair->looked_ns = now;
    if (pair->main->unix_socket ||
        getsockopt(pair->main->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) ||
        bytes < offsetof(struct tcp_info, tcpi_delivery_rate) +
                    sizeof info.tcpi_delivery_rate)
        return false;
    if (info.tcpi_delivery_rate < SLOW_RATE)
        pair->slow_looks++;
    else
        pair->slow_looks = 0;
    return pair->slow_looks == SLOW_LOOKS;
}
