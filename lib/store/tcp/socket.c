/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses as text, and transfers with a deadline. */
#include "config.h"

#include "lib/store/tcp/socket.h"

#include "lib/base/status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static dscomm_status_t bad_address(const char *address, const char *problem)
{
    char shown[80];

    return dscomm_fail(DSCOMM_ERR_INVALID,
                       "store address '%s': %s; give HOST:PORT or [v6]:PORT",
                       dscomm_priv_quote(address, shown, sizeof shown),
                       problem);
}

/* Without GLib's function, which allocates at its first call. */
static bool read_port(const char *text, int *ret_port)
{
    const size_t digits = strspn(text, "0123456789");

    if (!digits || digits > 9 || text[digits])
        return false;
    *ret_port = atoi(text);
    return *ret_port <= 65535;
}

dscomm_status_t dscomm_priv_address_split(const char *address, char **ret_host,
                                          int *ret_port)
{
    const char *host = address, *end, *colon;

    if (*address == '[') {
        host = address + 1;
        end = strchr(host, ']');
        if (!end || end[1] != ':')
            return bad_address(address, "there is no ']:' and port");
        colon = end + 1;
    } else {
        colon = end = strrchr(address, ':');
        if (!colon)
            return bad_address(address, "there is no port");
        if (strchr(address, ':') != colon)
            return bad_address(address, "an IPv6 address needs brackets");
    }
    if (end == host)
        return bad_address(address, "there is no host");
    if (!read_port(colon + 1, ret_port))
        return bad_address(address, "the port is no number from 0 to 65535");
    *ret_host = strndup(host, (size_t)(end - host));
    if (!*ret_host)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no memory for a store's host");
    return DSCOMM_OK;
}

const char *dscomm_priv_address_name(const struct sockaddr *address,
                                     socklen_t length, char *buffer)
{
    char host[SOCKET_NAME_MAX - 9], port[6]; /* "[fe80::1%eth0]:29500" */

    if (getnameinfo(address, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        g_strlcpy(buffer, "(unknown address)", SOCKET_NAME_MAX);
    else
        snprintf(buffer, SOCKET_NAME_MAX,
                 address->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
                 port);
    return buffer;
}

gboolean dscomm_priv_address_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)address;

        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)address;

        return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    }
    return FALSE;
}

void dscomm_priv_socket_tune(int fd)
{
    int on = 1, idle = 60, interval = 15;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
}

int dscomm_priv_socket_port(int fd)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;

    if (getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return 0;
    if (address.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&address)->sin_port);
    if (address.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return 0;
}

/* Waits until fd is ready for events. FALSE: the deadline came first. */
static gboolean wait_for(int fd, short events, dscomm_priv_deadline_t deadline)
{
    struct pollfd entry = {.fd = fd, .events = events};

    for (;;) {
        int left = dscomm_priv_deadline_left(deadline);
        int ready = poll(&entry, 1, left);

        if (ready > 0)
            return TRUE;
        if (left == 0)
            return FALSE;
    }
}

static dscomm_status_t gone(const char *peer, int problem)
{
    return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                       "the store at %s is gone: %s; the process that serves "
                       "it, most often rank 0, has ended",
                       peer, problem ? strerror(problem) : "connection closed");
}

static dscomm_status_t late(const char *peer, dscomm_priv_deadline_t deadline)
{
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "the store at %s did not answer within %d ms", peer,
                       deadline.ms);
}

dscomm_status_t dscomm_priv_send_all(int fd, const char *peer, const void *data,
                                     size_t size,
                                     dscomm_priv_deadline_t deadline)
{
    const uint8_t *next = data;

    while (size) {
        ssize_t sent = send(fd, next, size, MSG_NOSIGNAL);

        if (sent >= 0) {
            next += sent;
            size -= (size_t)sent;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for(fd, POLLOUT, deadline))
                return late(peer, deadline);
        } else if (errno != EINTR) {
            return gone(peer, errno);
        }
    }
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_recv_all(int fd, const char *peer, void *data,
                                     size_t size,
                                     dscomm_priv_deadline_t deadline)
{
    uint8_t *next = data;

    while (size) {
        ssize_t got = recv(fd, next, size, 0);

        if (got > 0) {
            next += got;
            size -= (size_t)got;
        } else if (got == 0) {
            return gone(peer, 0);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for(fd, POLLIN, deadline))
                return late(peer, deadline);
        } else if (errno != EINTR) {
            return gone(peer, errno);
        }
    }
    return DSCOMM_OK;
}
