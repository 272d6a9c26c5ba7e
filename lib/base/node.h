/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine of this process, and its name. */
#ifndef LIB_NODE_H
#define LIB_NODE_H

#include <stddef.h>

/* Bytes of a host name, including its final 0. */
#define DSCOMM_NODE_MAX 65

/* The host name of this machine, or "unknown"; for messages. */
void dscomm_priv_node_name(char node[DSCOMM_NODE_MAX]);

/* Writes an identifier of this machine, which is the same for all its
 * processes, in every container, until it is restarted: the kernel's boot
 * identifier, or the host name if there is none. It has no blanks at its ends
 * and is cut off if size is too small. Returns 0; or an errno if the identifier
 * cannot be read now: text is then the host name, and other processes of the
 * machine may have the identifier. */
int dscomm_priv_node_machine(char *text, size_t size);

#endif
