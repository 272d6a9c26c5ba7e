/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of a node: what its dscomm run says of itself in the store. */
#ifndef TOOLS_NODES_RECORD_H
#define TOOLS_NODES_RECORD_H

#include "tools/run/nodes.h"

typedef struct {
    /* least nodes of an elastic job, else 0; nodes of the job, or most nodes;
     * ranks on this node; most restarts */
    int64_t least, nodes, ranks, restarts;
    int64_t pid; /* of this process */
    const char *id; /* run id of the job, "" if none was given */
    const char *host; /* this node's name */
} tool_record_t;

/* The record of this process. It keeps host, and place's id. */
tool_record_t tool_record_own(const tool_job_t *job, const tool_place_t *place,
                              const char *host);

/* Returns the text of the store, for g_free(); NULL without memory. */
char *tool_record_write(tool_record_t *record);
/* Reads the record of node; *ret_memory has its texts, for g_free(). */
dscomm_status_t tool_record_read(int node, const char *text, size_t size,
                                 tool_record_t *record, char **ret_memory);

/* NULL, or how own, the record of node, contradicts that of node 0; g_free().
 * node: -1 if it has no number. */
char *tool_record_compare(const tool_record_t *first, int node,
                          const tool_record_t *own);

/* Fails on this node only, because it is none of the job's nodes; leaves a note
 * for node 0. */
int tool_record_refuse(dscomm_store_t *store, const char *command,
                       const char *why);
/* Prints the first such note, once; *note is NULL before, and then the note,
 * for g_free(). */
void tool_record_quote_stranger(dscomm_store_t *store, const char *command,
                                char **note);

/* Sets the program's name, which the library reports at node 0's store if that
 * refuses this node because of its secret. The name is equal for all nodes of a
 * job, and holds what tool_record_compare() compares. */
void tool_record_name_program(const tool_record_t *own);

/* Whether host is a loopback address, or a name that /etc/hosts gives to one:
 * Debian's gives a machine's own name to 127.0.1.1, where no other machine can
 * reach a server. Name servers are not asked: they may not answer. */
bool tool_host_is_loopback(const char *host);

#endif
