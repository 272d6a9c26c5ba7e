/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node of a job tells the others of itself. */
#ifndef TOOLS_NODES_RECORD_H
#define TOOLS_NODES_RECORD_H

#include <glib.h>

typedef struct {
    int nodes, ranks, restarts; /* of the job, here, and at most */
    char *id; /* of the job, "" where none was given */
    char *host; /* this node's name */
} tool_nodes_record_t;

/* As text, g_free(); and back, FALSE where text is no record. */
char *tool_nodes_record_write(const tool_nodes_record_t *record);
gboolean tool_nodes_record_read(const char *text, size_t size,
                                tool_nodes_record_t *ret_record);
void tool_nodes_record_clear(tool_nodes_record_t *record);

/* NULL, or how node, in words for both, is of another job than node 0;
 * g_free(). */
char *tool_nodes_record_compare(const tool_nodes_record_t *first, int node,
                                const tool_nodes_record_t *own);

#endif
