/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes at the other ends of a store's connections: what the kernel
 * shows about them, and which of them were refused. */
#ifndef LIB_STORE_PEER_H
#define LIB_STORE_PEER_H

#include "lib/store/tcp/socket.h"

#include <netinet/in.h>

/* The kernel's tables of TCP sockets in this process's network namespace:
 * /proc/self/net/tcp and tcp6. */

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

/* Finds out why a TCP store does not answer: its server may be a stopped
 * process on this machine. Only the kernel is queried, never the store. */

/* Writes "the store at PEER does not answer" to text, of size bytes. If the
 * server at address is stopped on this machine, adds its pid, or "rank 0 (pid
 * 812), which serves it" if by_rank_0 is true. */
void dscomm_priv_stopped_server(const char *peer,
                                const struct sockaddr_storage *address,
                                bool by_rank_0, char *text, size_t size);

/* Reports of processes whose job secret differs from the server's; also if only
 * one of the two has a secret. Such a process sends a report on a separate
 * connection before it gives up, so that the members of its job need not wait
 * for it.
 *
 * The server keeps the reports under REFUSED_KEY, where waiting ranks read them
 * (dscomm_priv_roster_refused()). Anybody can send one. The kernel shows which
 * come from a process of the server's user on this machine: these can end a
 * start-up. All others only appear in the sentence of a start-up that has
 * failed because members are missing. */

/* The text: a line with the number of reports and, if the server has a secret,
 * 1, else 0; then a line for each kept report, of four fields separated by
 * tabs: 1 if the kernel has verified it, world, address, process. */
#define REFUSED_KEY "dscomm/refused"
#define REFUSED_LOOKUPS_MAX 16 /* reports that the server verifies at most */
#define REFUSED_KEPT_MAX 4 /* kept reports that are not verified */
#define REFUSED_TEXT_MAX                                                       \
    ((REFUSED_LOOKUPS_MAX + REFUSED_KEPT_MAX) *                                \
     (sizeof(dscomm_priv_rank_t) + SOCKET_NAME_MAX + 8))
#define REFUSED_VALUE_MAX (REFUSED_TEXT_MAX + 24) /* with the first line */

typedef struct {
    bool guarded, quiet; /* the server has a secret; logs no report */
    /* the server's world */
    char world[sizeof((dscomm_priv_rank_t *)NULL)->world];
    unsigned count, lookups, strangers; /* reports; lookups; strangers kept */
    char kept[REFUSED_TEXT_MAX]; /* their lines */
} dscomm_priv_refused_t;

/* world: the server's; "": not known. */
void dscomm_priv_refused_init(dscomm_priv_refused_t *refused, const char *world,
                              bool guarded, bool quiet);
/* Notes a report of rank on the connection fd, from peer. */
void dscomm_priv_refused_note(dscomm_priv_refused_t *refused, int fd,
                              const char *peer, const dscomm_priv_rank_t *rank);
/* Writes the value of REFUSED_KEY. */
void dscomm_priv_refused_text(const dscomm_priv_refused_t *refused,
                              char text[REFUSED_VALUE_MAX]);

#endif
