/* SPDX-License-Identifier: BSD-3-Clause */
/* The rate of a connection as its kernel has measured it. <linux/tcp.h> has it,
 * which cannot be included with <netinet/tcp.h>. */
#include "config.h"

#include "backends/net/tcp/tcp.h"

#include <linux/tcp.h>
#include <stddef.h>
#include <sys/socket.h>

/* A connection is slow if a frame behind a piece of 2 MiB waits for 16 ms or
 * more. One sample says little. */
#define SLOW_RATE (UINT64_C(1) << 27) /* bytes/s, of all connections */
#define SLOW_SAMPLES 8 /* in a row */
#define SAMPLE_NS 1000000 /* between two */

bool tcp_main_sample(pair_t *pair)
{
    const int64_t now = tcp_now();
    struct tcp_info info;
    socklen_t bytes = sizeof info;

    if (now - pair->sampled_ns < SAMPLE_NS)
        return false;
    pair->sampled_ns = now;
    if (pair->main->unix_socket ||
        getsockopt(pair->main->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) ||
        bytes < offsetof(struct tcp_info, tcpi_delivery_rate) +
                    sizeof info.tcpi_delivery_rate ||
        !info.tcpi_delivery_rate)
        return false;
    if (info.tcpi_delivery_rate < SLOW_RATE / pair->main->tcp->connections)
        pair->slow_samples++;
    else
        pair->slow_samples = 0;
    return pair->slow_samples == SLOW_SAMPLES;
}
