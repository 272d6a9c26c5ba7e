/* SPDX-License-Identifier: BSD-3-Clause */
/* This machine's network interfaces, and which of them are to be used. */
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

/* What DSCOMM_SOCKET_IFNAME may say: items, comma separated, each the beginning
 * of a name or a network (10.0.0.0/8, fd00::/8, 10.1.2.3); before all of them
 * '^' leaves out instead of in, and '=' wants whole names. 1 where this
 * includes an interface; 0 for one that is left out, or where choice makes no
 * sense. */
int dscomm_priv_interface_matches(const char *choice, const char *name,
                                  const struct sockaddr *address);

/* ERR_ENVIRONMENT where choice, the value of variable, makes no sense. */
dscomm_status_t dscomm_priv_interface_check(const char *variable,
                                            const char *choice);

/* The choice of DSCOMM_SOCKET_IFNAME, else NCCL_SOCKET_IFNAME, and which of the
 * two it is; NULL where neither is set. */
const char *dscomm_priv_interface_choice(const char **ret_variable);

/* Addresses of interfaces that are up, as dscomm_interface_t, best first:
 * InfiniBand, others, bridges of containers, loopback. Without choice all.
 * ERR_ENVIRONMENT where it chooses none of them; the sentence names them. */
dscomm_status_t dscomm_priv_interfaces(const char *variable, const char *choice,
                                       GArray **ret_interfaces);

/* OK, or why the environment's choice is none. One of NCCL's is not ours to
 * refuse. */
dscomm_status_t dscomm_priv_interface_validate(void);

#endif
