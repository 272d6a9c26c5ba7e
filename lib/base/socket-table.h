/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's tables of TCP sockets in this process's network namespace:
 * /proc/self/net/tcp and tcp6. */
#ifndef LIB_BASE_SOCKET_TABLE_H
#define LIB_BASE_SOCKET_TABLE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* One end of a connection. IPv4 addresses are in mapped form, as sockets of
 * both families show them. */
typedef struct {
    struct in6_addr address;
    unsigned port;
} dscomm_priv_socket_end_t;

typedef struct {
    dscomm_priv_socket_end_t near, far;
    unsigned state; /* TCP_ESTABLISHED, TCP_LISTEN, ... of netinet/tcp.h */
    unsigned user;
    unsigned long inode; /* 0: not accepted yet */
} dscomm_priv_socket_row_t;

/* False if address is not of TCP. */
bool dscomm_priv_socket_end(const struct sockaddr_storage *address,
                            dscomm_priv_socket_end_t *ret_end);
bool dscomm_priv_socket_end_equal(const dscomm_priv_socket_end_t *a,
                                  const dscomm_priv_socket_end_t *b);

/* Calls visit for each socket, until it returns false. */
void dscomm_priv_socket_table(bool (*visit)(const dscomm_priv_socket_row_t *row,
                                            void *arg),
                              void *arg);

/* Finds the stopped process of this machine that has the server's socket at
 * address open; 0: there is none, or it is not known. *ret_how: as
 * dscomm_priv_process_stopped() returns it. */
long dscomm_priv_socket_stopped(const struct sockaddr_storage *address,
                                const char **ret_how);

#endif
