/* SPDX-License-Identifier: BSD-3-Clause */
/* This machine's network interfaces, the choice among them, and the sockets on
 * which a server listens. */
#ifndef LIB_STORE_LISTEN_H
#define LIB_STORE_LISTEN_H

#include "lib/store/tcp/socket.h"

#include <stdbool.h>

typedef struct {
    char name[32];
    struct sockaddr_storage address;
    socklen_t length;
} dscomm_interface_t;

/* Syntax of DSCOMM_SOCKET_IFNAME: items separated by commas. Each is the
 * beginning of a name, or a network (10.0.0.0/8, fd00::/8, 10.1.2.3). A leading
 * '^' excludes the items; a leading '=' requires whole names. Returns 1 if
 * choice includes the interface; 0 if it does not, or is malformed. */
int dscomm_priv_interface_matches(const char *choice, const char *name,
                                  const struct sockaddr *address);

/* ERR_ENVIRONMENT if choice, the value of variable, is malformed. */
dscomm_status_t dscomm_priv_interface_check(const char *variable,
                                            const char *choice);

/* Returns the value of DSCOMM_SOCKET_IFNAME, else of NCCL_SOCKET_IFNAME, and
 * the name of that variable; NULL if neither is set. */
const char *dscomm_priv_interface_choice(const char **ret_variable);

/* Addresses of the interfaces that are up, as dscomm_interface_t, best first:
 * InfiniBand, others, bridges of containers, loopback. choice NULL: all of
 * them. ERR_ENVIRONMENT if choice selects none; the sentence names the
 * interfaces. */
dscomm_status_t dscomm_priv_interfaces(const char *variable, const char *choice,
                                       GArray **ret_interfaces);

/* The interfaces of DSCOMM_SOCKET_IFNAME, else of NCCL_SOCKET_IFNAME, else all
 * of them. If NCCL's variable chooses none, there is a warning. *ret_chosen: a
 * variable has chosen them. */
dscomm_status_t dscomm_priv_interfaces_chosen(GArray **ret_interfaces,
                                              bool *ret_chosen);

/* Fails if the environment's choice is malformed. A value of NCCL's variable is
 * not refused, because it was not written for dscomm. */
dscomm_status_t dscomm_priv_interface_validate(void);

/* Listening sockets of one server, all on one port. */
#define LISTEN_MAX 8
typedef struct {
    int fds[LISTEN_MAX];
    int count;
    int port;
    bool adopted; /* other processes may go on using the socket */
} dscomm_priv_listen_t;

/* The address and ports at which a server listens. */
typedef struct {
    const char *host;
    int port; /* 0: any */
    int ports; /* tries this many ports, from port on */
    bool remote; /* some clients are known to be on other machines */
    bool guarded; /* clients must prove the job's secret */
} dscomm_priv_place_t;

/* Binds the addresses of host that this machine has; the loopback only if host
 * is a loopback address or "localhost". "*" means all interfaces. Host may have
 * no address here that other machines reach: a proxy, or this machine's name
 * with a loopback address in /etc/hosts. Then the server binds the interfaces
 * of DSCOMM_SOCKET_IFNAME and the loopback; without that setting, all
 * interfaces if guarded, else host's loopback address alone, which is
 * ERR_ENVIRONMENT if remote. DSCOMM_STORE_LISTEN adds interfaces in any case.
 */
dscomm_status_t dscomm_priv_listen(const dscomm_priv_place_t *place,
                                   dscomm_priv_deadline_t deadline,
                                   dscomm_priv_listen_t *ret_listen);
/* Uses a duplicate of fd, a listening socket of the caller; port 0: whichever
 * port it has. */
dscomm_status_t dscomm_priv_listen_adopt(int fd, int port,
                                         dscomm_priv_listen_t *ret_listen);
void dscomm_priv_listen_close(dscomm_priv_listen_t *listening);

/* Returns, as text, an address of this machine at which the server answers. */
#define LISTEN_HOST_MAX 64
const char *dscomm_priv_listen_host(const dscomm_priv_listen_t *listening,
                                    char *buffer);

/* If the store has no secret and other machines can reach its server, logs that
 * any machine may use it: one line a process, however many worlds it makes. */
void dscomm_priv_listen_warn(const dscomm_priv_listen_t *listening);

#endif
