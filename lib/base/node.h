/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine of this process, and what it is called. */
#ifndef LIB_NODE_H
#define LIB_NODE_H

#include <stddef.h>

/* Bytes of a host name and its 0. */
#define DSCOMM_NODE_MAX 65

/* The host name of this machine, or "unknown"; for messages. */
void dscomm_priv_node_name(char node[DSCOMM_NODE_MAX]);

/* What names this machine, from its start to its end, to all processes on it,
 * whatever container they are in: the kernel's boot identifier, or the host
 * name if there is none. No blanks at its ends; cut off if size is too small.
 * Returns 0, or why the identifier cannot be read now, an errno: others on the
 * machine may have it then, and text is the host name. */
int dscomm_priv_node_machine(char *text, size_t size);

#endif
