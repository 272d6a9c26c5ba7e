/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP sockets of the store: names, connecting, listening, and transfers that
 * end at a deadline. All sockets are non-blocking and closed on exec. */
#ifndef LIB_STORE_SOCKET_H
#define LIB_STORE_SOCKET_H

#include "lib/store/store.h"

#include <stdbool.h>
#include <sys/socket.h>

/* Splits "HOST:PORT" or "[v6]:PORT"; *ret_host is freed with g_free(). */
dscomm_status_t dscomm_priv_address_split(const char *address, char **ret_host,
                                          int *ret_port);

/* "127.0.0.1:29500", "[::1]:29500"; returns buffer. */
#define SOCKET_NAME_MAX 72
const char *dscomm_priv_address_name(const struct sockaddr *address,
                                     socklen_t length, char *buffer);

void dscomm_priv_address_set_port(struct sockaddr *address, int port);
/* 1 where address is of the loopback network. */
gboolean dscomm_priv_address_is_loopback(const struct sockaddr *address);

/* What every connection of the protocol gets: no delay of small requests, and
 * notice of an end that vanished, after some minutes. */
void dscomm_priv_socket_tune(int fd);

/* The port of a bound socket, or 0. */
int dscomm_priv_socket_port(int fd);

/* The addresses of host, with port, for freeaddrinfo(). ERR_NOT_FOUND where it
 * has none, *ret_again telling whether that may change; ERR_TIMEOUT where no
 * name server answers. */
struct addrinfo;
dscomm_status_t dscomm_priv_resolve(const char *host, int port,
                                    dscomm_priv_deadline_t deadline,
                                    struct addrinfo **ret_list,
                                    gboolean *ret_again);

/* One attempt at each address of the list, at port, side by side. ERR_IO where
 * none answers, ERR_NO_MEMORY where this process has no means to ask;
 * *ret_again tells whether it may end better later. */
dscomm_status_t dscomm_priv_connect_list(const struct addrinfo *list, int port,
                                         dscomm_priv_deadline_t deadline,
                                         int *ret_fd, gboolean *ret_again);

/* Sends or receives all of size bytes. ERR_TIMEOUT at the deadline,
 * ERR_PEER_FAILED where the other end is gone, with sentences that name
 * peer. */
dscomm_status_t dscomm_priv_send_all(int fd, const char *peer, const void *data,
                                     size_t size,
                                     dscomm_priv_deadline_t deadline);
dscomm_status_t dscomm_priv_recv_all(int fd, const char *peer, void *data,
                                     size_t size,
                                     dscomm_priv_deadline_t deadline);

/* Listening sockets of one server, all on one port. */
#define LISTEN_MAX 8
typedef struct {
    int fds[LISTEN_MAX];
    int count;
    int port;
    gboolean adopted; /* someone else may go on with the socket */
} dscomm_priv_listen_t;

/* Where a server is to listen. */
typedef struct {
    const char *host;
    int port; /* 0: any */
    int ports; /* the first free one of so many, from port on */
    bool remote; /* some clients are known to be on other machines */
    bool guarded; /* nobody is served without the job's secret */
} dscomm_priv_place_t;

/* Binds to the addresses of host that are this machine's, the loopback only if
 * host is a loopback address or "localhost". "*" is all interfaces. A host
 * without an address here that others reach (a proxy's; the machine's own name
 * with a loopback address in /etc/hosts) is served on the interfaces of
 * DSCOMM_SOCKET_IFNAME and the loopback, else on all interfaces if guarded,
 * else on host's loopback address alone, which is ERR_ENVIRONMENT if remote.
 * DSCOMM_STORE_LISTEN adds interfaces in any case. */
dscomm_status_t dscomm_priv_listen(const dscomm_priv_place_t *place,
                                   dscomm_priv_deadline_t deadline,
                                   dscomm_priv_listen_t *ret_listen);
/* A duplicate of fd, a listening socket made elsewhere; port 0: whichever it
 * has. */
dscomm_status_t dscomm_priv_listen_adopt(int fd, int port,
                                         dscomm_priv_listen_t *ret_listen);
void dscomm_priv_listen_close(dscomm_priv_listen_t *listening);

/* An address of this machine at which the server answers, as text. */
#define LISTEN_HOST_MAX 64
const char *dscomm_priv_listen_host(const dscomm_priv_listen_t *listening,
                                    char *buffer);

/* Logs that every machine may use the server's store, which has no secret, if
 * other machines may reach it: one line a process, however many worlds it
 * makes. */
void dscomm_priv_listen_warn(const dscomm_priv_listen_t *listening);

#endif
