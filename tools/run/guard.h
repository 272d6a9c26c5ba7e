/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that outlives this one by a moment. If this process is killed and
 * cannot clean up, the guard notifies the other nodes of the job, kills the
 * ranks' process groups and removes their error files. */
#ifndef TOOLS_GUARD_H
#define TOOLS_GUARD_H

#include <limits.h>
#include <sys/types.h>

typedef struct {
    pid_t pid;
    int fd; /* write end; closed when this process ends */
    /* Shared with the guard: */
    char *folder; /* PATH_MAX bytes: what to remove (tools/common/errors.h), or
                     "" */
    char *url; /* PATH_MAX bytes: of the nodes' store, or "" */
    pid_t *groups; /* those that are not 0 are killed */
} tool_guard_t;

/* Starts the guard for count groups of node; 0, or an errno. Call it before a
 * thread exists. The guard is a child that waitpid() sees with __WCLONE only.
 */
int tool_guard_start(int count, int node, tool_guard_t *ret_guard);

/* Lets it clean up and end, and waits for that. */
void tool_guard_end(const tool_guard_t *guard);

#endif
