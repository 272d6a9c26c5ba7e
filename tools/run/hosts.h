/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts of a file: the command of each one's dscomm run, printed or started
 * by ssh or a program like it. */
#ifndef TOOLS_HOSTS_H
#define TOOLS_HOSTS_H

#include <glib.h>
#include <stdbool.h>

typedef struct {
    char *name; /* an IPv6 address has brackets */
    int ranks; /* 0: not given */
} tool_host_t;

typedef struct {
    char *path; /* of the file */
    char *rsh; /* program and options that start a command; NULL: print */
    GArray *list; /* of tool_host_t; NULL: not read */
} tool_hosts_t;

/* The job, as far as the hosts' commands tell it. */
typedef struct {
    const char *nodes; /* value of --nnodes */
    int least; /* nodes of an elastic job, else 0 */
    const char *master; /* value of --master */
    const GPtrArray *options; /* further words for all hosts */
    char *const *argv; /* the program, NULL at the end */
    bool no_secret;
    bool tagged; /* the hosts' output has tags: its lines are written whole */
    gint64 grace_us; /* time for the ranks to end */
    gint64 timeout_us; /* of the job; 0: none */
} tool_hosts_job_t;

/* Reads the file: a host a line, "HOST", "HOST slots=N" or "HOST:N", and
 * comments from '#' on. A host in several lines has the sum of their slots.
 * Other than TOOL_OK: a sentence went to stderr. */
int tool_hosts_read(tool_hosts_t *hosts);
/* Keeps so many of the first hosts. */
void tool_hosts_keep(tool_hosts_t *hosts, guint count);
/* The host's name without the user before it; g_free(). */
char *tool_hosts_address(const tool_host_t *host);
void tool_hosts_free(tool_hosts_t *hosts);

/* Prints the command of each host, or starts all and waits for their end.
 * Returns the exit status; ends by a signal that ended the job. */
int tool_hosts_run(const tool_hosts_t *hosts, const tool_hosts_job_t *job);

#endif
