/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding: the processors on which each rank of this node may run. */
#ifndef TOOLS_BIND_H
#define TOOLS_BIND_H

#include <stddef.h>

/* The processors of each rank: all processors that dscomm run may use, or those
 * of them in one core, NUMA node or socket. */
typedef enum {
    TOOL_BIND_NONE,
    TOOL_BIND_CORE,
    TOOL_BIND_NUMA,
    TOOL_BIND_SOCKET
} tool_bind_t;

/* For each rank a mask for sched_setaffinity(2). */
typedef struct {
    unsigned long *masks; /* NULL: no rank is bound */
    size_t words; /* of each mask */
} tool_binding_t;

/* Chooses the processors of so many ranks. A sentence goes to stderr if they
 * are not bound because there are more ranks than cores, or because hwloc
 * fails. No other thread may exist. */
tool_binding_t tool_bind_choose(const char *command, tool_bind_t bind,
                                int ranks);
void tool_bind_free(tool_binding_t *binding);

/* Binds this process as rank; only a system call. 0, or an errno. */
int tool_bind_apply(const tool_binding_t *binding, int rank);

#endif
