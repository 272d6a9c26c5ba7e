/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's tables of the TCP sockets of this machine, as far as this
 * process's network namespace goes: /proc/self/net/tcp and tcp6. */
#ifndef LIB_STORE_SOCKET_OWNER_H
#define LIB_STORE_SOCKET_OWNER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
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

/* Why a TCP store does not answer: its server is a process of this machine that
 * is stopped, whoever has started it. Asks the kernel, and never the store. */

/* Writes "the store at PEER does not answer" to text, which has size bytes; and
 * if its server, whose address is given, is stopped on this machine,
 * ": its server (pid 812) is stopped by a signal". by_rank_0: rank 0 is the
 * server, and called so. */
void dscomm_priv_stopped_server(const char *peer,
                                const struct sockaddr_storage *address,
                                bool by_rank_0, char *text, size_t size);

#endif
