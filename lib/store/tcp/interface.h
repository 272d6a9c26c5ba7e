/* SPDX-License-Identifier: BSD-3-Clause */
/* This machine's network interfaces, and the choice among them. */
#ifndef LIB_INTERFACE_H
#define LIB_INTERFACE_H

#include <dscomm/status.h>

#include <glib.h>
#include <sys/socket.h>

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

/* Fails if the environment's choice is malformed. A value of NCCL's variable is
 * not refused, because it was not written for dscomm. */
dscomm_status_t dscomm_priv_interface_validate(void);

#endif
