/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by joining and watching. */
#ifndef TOOLS_NODES_COMMON_H
#define TOOLS_NODES_COMMON_H

#include "tools/run/nodes.h"

#include <dscomm/store.h>

/* Prefix of all keys; ranks use another one. */
#define TOOL_NODES_PREFIX "dscomm-run"
/* Key of the run's id, by which ranks of other jobs find that this is not
 * their store. */
#define TOOL_NODES_RUN "run"
/* Key of the number of nodes that have read how the job ended, or why it did
 * not begin. */
#define TOOL_NODES_READ "bye"

/* Times between looks at the store, and between heartbeats. They are longer
 * with hundreds of nodes, because node 0 serves all of them, but several fit
 * into the silence after which a node is lost. */
static inline gint64 tool_nodes_tick_us(int nodes)
{
    return CLAMP(nodes * (gint64)1000, G_USEC_PER_SEC / 10, G_USEC_PER_SEC);
}

static inline gint64 tool_nodes_beat_us(int nodes, gint64 silence_us)
{
    return MAX(MIN(nodes * (gint64)1000, silence_us / 4), G_USEC_PER_SEC / 2);
}

/* The plan of all nodes, and the store, which the new object takes over. hosts
 * has one entry a node, and is copied. */
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
/* Sets key to text, unless it is set already: the first value stays. */
dscomm_status_t tool_nodes_set_once(dscomm_store_t *store, const char *key,
                                    const char *text);

#endif
