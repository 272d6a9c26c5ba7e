/* SPDX-License-Identifier: BSD-3-Clause */
/* What joining and watching have in common. */
#ifndef TOOLS_NODES_COMMON_H
#define TOOLS_NODES_COMMON_H

#include "tools/run/nodes.h"

#include <dscomm/store.h>

/* Before all keys; ranks have others. */
#define TOOL_NODES_PREFIX "dscomm-run"
/* Key of the run's id, by which ranks of other jobs find that they are. */
#define TOOL_NODES_RUN "run"
/* Key of the number of nodes that have read how the job ended, or why it did
 * not begin. */
#define TOOL_NODES_READ "bye"

/* Between looks at the store, and between signs of life: with hundreds of nodes
 * rarer, since node 0 serves all of them, but several within the silence after
 * which a node is lost. */
static inline gint64 tool_nodes_tick_us(int nodes)
{
    return CLAMP(nodes * (gint64)1000, G_USEC_PER_SEC / 10, G_USEC_PER_SEC);
}

static inline gint64 tool_nodes_beat_us(int nodes, gint64 silence_us)
{
    return MAX(MIN(nodes * (gint64)1000, silence_us / 4), G_USEC_PER_SEC / 2);
}

/* What all nodes have agreed upon, and the store they did it in, which is moved
 * to the new object. hosts = one for each node, is copied. */
tool_nodes_t *tool_nodes_new(const tool_job_t *job, const tool_place_t *place,
                             char *const *hosts, const char *url,
                             dscomm_store_t *store);

/* "tcp://HOST:PORT"; g_free(). */
char *tool_nodes_url(const char *host, int port);
/* Opens the nodes' view of the store, and the store, unless ret_base is NULL.
 */
dscomm_status_t tool_nodes_open(const char *url, int serve, int timeout_ms,
                                dscomm_store_t **ret_base,
                                dscomm_store_t **ret_store);
/* Sets key to text, unless it is set already: the first one counts. */
dscomm_status_t tool_nodes_set_once(dscomm_store_t *store, const char *key,
                                    const char *text);

#endif
