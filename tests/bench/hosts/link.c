/* SPDX-License-Identifier: BSD-3-Clause */
/* Joins network namespaces by links with a rate, a delay and loss, for kernels
 * that have no netem:
 *
 *   link MBIT DELAY_MS LOSS_PERCENT NAMESPACE...
 *
 * Each namespace gets a TUN device eth0. A packet waits for those that its host
 * has sent before, as long as the rate needs, and then for the delay. A queue
 * takes QUEUE_MOST packets, as that of netem does. Prints a line once the
 * devices are there, and ends by a signal. */
#include "config.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define HOSTS_MOST 16
#define PACKET_MOST 1500
#define QUEUE_MOST 1000
#define ETHERNET_BYTES 14 /* of a header, which TUN leaves out */
/* Place of the last byte of an IPv4 packet's destination: host i has address
 * i + 1. */
#define DESTINATION 19
#define SECOND INT64_C(1000000000)

typedef struct {
    int64_t due_ns;
    size_t bytes;
    unsigned char data[PACKET_MOST];
} packet_t;

typedef struct {
    int fd;
    size_t begin, end; /* of the packets under way, modulo QUEUE_MOST */
    int64_t idle_ns; /* when the last packet has left the host */
    packet_t packets[QUEUE_MOST];
} host_t;

static host_t hosts[HOSTS_MOST];
static int host_count;
static double ns_per_byte, loss;
static int64_t delay_ns;

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

/* Makes eth0 in a namespace; returns its descriptor, or -1. */
static int device_open(const char *name)
{
    struct ifreq request = {.ifr_name = "eth0",
                            .ifr_flags = IFF_TUN | IFF_NO_PI};
    char path[4096];
    int space, fd;

    snprintf(path, sizeof path, "/run/netns/%s", name);
    space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET))
        return -1;
    close(space);
    fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && ioctl(fd, TUNSETIFF, &request))
        return -1;
    return fd;
}

/* Takes what a host has sent. */
static void packets_take(host_t *host, int64_t now)
{
    packet_t lost, *packet;
    ssize_t got;

    for (;;) {
        const bool full = host->end - host->begin == QUEUE_MOST;

        packet = full ? &lost : &host->packets[host->end % QUEUE_MOST];
        got = read(host->fd, packet->data, sizeof packet->data);
        if (got <= 0)
            return;
        if (full || drand48() < loss)
            continue;
        packet->bytes = (size_t)got;
        if (host->idle_ns < now)
            host->idle_ns = now;
        host->idle_ns +=
            (int64_t)((double)(packet->bytes + ETHERNET_BYTES) * ns_per_byte);
        packet->due_ns = host->idle_ns + delay_ns;
        host->end++;
    }
}

/* Delivers packets that are due; returns when the next one is. */
static int64_t packets_deliver(host_t *host, int64_t now, int64_t next)
{
    for (; host->begin != host->end; host->begin++) {
        const packet_t *packet = &host->packets[host->begin % QUEUE_MOST];
        const int to = packet->data[DESTINATION] - 1;

        if (packet->due_ns > now)
            return packet->due_ns < next ? packet->due_ns : next;
        if (packet->bytes > DESTINATION && to >= 0 && to < host_count &&
            write(hosts[to].fd, packet->data, packet->bytes) < 0)
            continue; /* a device that is full or down loses it */
    }
    return next;
}

static void run(void)
{
    struct pollfd polls[HOSTS_MOST];

    for (int i = 0; i < host_count; i++)
        polls[i] = (struct pollfd){.fd = hosts[i].fd, .events = POLLIN};
    for (;;) {
        const int64_t now = now_ns();
        int64_t next = now + SECOND / 10;
        struct timespec pause = {0};

        for (int i = 0; i < host_count; i++) {
            packets_take(&hosts[i], now);
            next = packets_deliver(&hosts[i], now, next);
        }
        pause.tv_nsec = next - now;
        ppoll(polls, (nfds_t)host_count, &pause, NULL);
    }
}

int main(int argc, char **argv)
{
    host_count = argc - 4;
    if (host_count < 2 || host_count > HOSTS_MOST || atof(argv[1]) <= 0)
        return 2;
    ns_per_byte = 8e3 / atof(argv[1]);
    delay_ns = (int64_t)(atof(argv[2]) * 1e6);
    loss = atof(argv[3]) / 100;
    for (int i = 0; i < host_count; i++) {
        hosts[i].fd = device_open(argv[4 + i]);
        if (hosts[i].fd < 0) {
            perror(argv[4 + i]);
            return 1;
        }
    }
    puts("ready");
    fflush(stdout);
    run();
}
