/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's tables of the TCP sockets of this machine, as far as this
 * process's network namespace goes: /proc/self/net/tcp and tcp6. */
#ifndef LIB_STORE_SOCKET_TABLE_H
#define LIB_STORE_SOCKET_TABLE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

/* One end of a connection. An IPv4 address is mapped: a socket for both kinds
 * has it so. */
typedef struct {
    struct in6_addr address;
    unsigned port;
} dscomm_priv_socket_end_t;

typedef struct {
    dscomm_priv_socket_end_t near, far;
    unsigned state; /* TCP_ESTABLISHED, TCP_LISTEN, ... of netinet/tcp.h */
    unsigned user;
    unsigned long inode; /* 0: a connection that nobody has accepted */
} dscomm_priv_socket_row_t;

/* False: no address of TCP. */
bool dscomm_priv_socket_end(const struct sockaddr_storage *address,
                            dscomm_priv_socket_end_t *ret_end);
bool dscomm_priv_socket_end_equal(const dscomm_priv_socket_end_t *a,
                                  const dscomm_priv_socket_end_t *b);

/* Calls visit with each socket, until it returns false. */
void dscomm_priv_socket_table(bool (*visit)(const dscomm_priv_socket_row_t *row,
                                            void *arg),
                              void *arg);

#endif
