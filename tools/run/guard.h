/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard: a process that lives a little longer than this one. If this
 * process is killed and cannot clean up, the guard notifies the other nodes of
 * the job, kills the ranks' process groups and removes their error files. */
#ifndef TOOLS_GUARD_H
#define TOOLS_GUARD_H

#include <limits.h>
#include <sys/types.h>

#define TOOL_GUARD_TEXT 128

typedef struct {
    pid_t pid;
    int fd; /* write end; closed when this process ends */
    /* The following are shared with the guard. */
    /* PATH_MAX bytes: folder that is removed (tools/common/errors.h), or "" */
    char *folder;
    char *url; /* PATH_MAX bytes: URL of the nodes' store, or "" */
    /* TOOL_GUARD_TEXT bytes each: what is set there, unless it is set already,
     * if this process is killed */
    char *key, *text;
    pid_t *groups; /* process groups to kill; 0: none */
} tool_guard_t;

/* Starts the guard for count groups; 0, or an errno. Call it before a thread
 * exists. The guard is a child that waitpid() sees with __WCLONE only. */
int tool_guard_start(int count, tool_guard_t *ret_guard);

/* Lets the guard clean up and end, and waits for that. */
void tool_guard_end(const tool_guard_t *guard);

#endif
