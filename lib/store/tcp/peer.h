/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes at the other ends of a store's connections: what the kernel
 * knows about them, and which of them were refused. */
#ifndef LIB_STORE_PEER_H
#define LIB_STORE_PEER_H

#include "lib/store/tcp/socket.h"

#include <netinet/in.h>

/* The kernel's tables of the TCP sockets of this machine, as far as this
 * process's network namespace goes: /proc/self/net/tcp and tcp6. */

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

/* Processes that this server has not served, because their job secret is
 * another than the server's, or only one of both has one. Such a process
 * reports that before it gives up, on a connection of its own, so that the
 * members of its job do not wait for it.
 *
 * The server keeps the reports under REFUSED_KEY, where whoever waits looks for
 * them (dscomm_priv_roster_refused()). Everyone can report. The kernel tells
 * which reports are from a process of the server's user on this machine: such a
 * report can end a start-up. All others are part of the sentence after the
 * start-up has failed for want of members. */

/* Text: a line with the number of reports, and with 1 if the server has a
 * secret; then one with four fields, tabs between them, for each report that is
 * kept: 1 if the kernel vouches for it, its world, the address, the process. */
#define REFUSED_KEY "dscomm/refused"
#define REFUSED_LOOKUPS_MAX 16 /* reports whose user a server looks for */
#define REFUSED_KEPT_MAX 4 /* kept reports that are not verified */
#define REFUSED_TEXT_MAX                                                       \
    ((REFUSED_LOOKUPS_MAX + REFUSED_KEPT_MAX) *                                \
     (sizeof(dscomm_priv_rank_t) + SOCKET_NAME_MAX + 8))
#define REFUSED_VALUE_MAX (REFUSED_TEXT_MAX + 24) /* with the first line */

typedef struct {
    bool guarded, quiet; /* the server has a secret; logs no report */
    char world[sizeof((dscomm_priv_rank_t *)NULL)->world]; /* the server's */
    unsigned count, lookups, strangers; /* reports; lookups; strangers kept */
    char kept[REFUSED_TEXT_MAX]; /* their lines */
} dscomm_priv_refused_t;

/* world: of the job that the server serves; "": not known. */
void dscomm_priv_refused_init(dscomm_priv_refused_t *refused, const char *world,
                              bool guarded, bool quiet);
/* rank reports on the connection fd, from peer. */
void dscomm_priv_refused_note(dscomm_priv_refused_t *refused, int fd,
                              const char *peer, const dscomm_priv_rank_t *rank);
/* The value of REFUSED_KEY. */
void dscomm_priv_refused_text(const dscomm_priv_refused_t *refused,
                              char text[REFUSED_VALUE_MAX]);

#endif
