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

/* Writes "127.0.0.1:29500" or "[::1]:29500"; returns buffer. */
#define SOCKET_NAME_MAX 72
const char *dscomm_priv_address_name(const struct sockaddr *address,
                                     socklen_t length, char *buffer);

void dscomm_priv_address_set_port(struct sockaddr *address, int port);
/* 1 if address is of the loopback network. */
bool dscomm_priv_address_is_loopback(const struct sockaddr *address);

/* Sets the options of a connection: no delay of small packets, and keepalive,
 * which detects a vanished peer after some minutes. */
void dscomm_priv_socket_tune(int fd);

/* The port of a bound socket, or 0. */
int dscomm_priv_socket_port(int fd);

/* Resolves host; the list is for freeaddrinfo(). ERR_NOT_FOUND: it has no
 * address; *ret_again: that may change. ERR_TIMEOUT: no name server answers. */
struct addrinfo;
dscomm_status_t dscomm_priv_resolve(const char *host, int port,
                                    dscomm_priv_deadline_t deadline,
                                    struct addrinfo **ret_list,
                                    bool *ret_again);

/* Attempts each address of the list once, at port, side by side. ERR_IO: none
 * answers; ERR_NO_MEMORY: this process lacks memory or file descriptors.
 * *ret_again: a later attempt may succeed. */
dscomm_status_t dscomm_priv_connect_list(const struct addrinfo *list, int port,
                                         dscomm_priv_deadline_t deadline,
                                         int *ret_fd, bool *ret_again);

/* Sends or receives all of size bytes. ERR_TIMEOUT at the deadline,
 * ERR_PEER_FAILED if the peer is gone; the sentences name peer. */
dscomm_status_t dscomm_priv_send_all(int fd, const char *peer, const void *data,
                                     size_t size,
                                     dscomm_priv_deadline_t deadline);
dscomm_status_t dscomm_priv_recv_all(int fd, const char *peer, void *data,
                                     size_t size,
                                     dscomm_priv_deadline_t deadline);

#endif
