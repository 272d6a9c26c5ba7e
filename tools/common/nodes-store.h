/* SPDX-License-Identifier: BSD-3-Clause */
/* The store of a job on several nodes, for all commands that use it: how it is
 * opened, and the keys that several commands know. */
#ifndef TOOLS_NODES_STORE_H
#define TOOLS_NODES_STORE_H

#include <dscomm/store.h>

#define TOOL_NODES_MAX 4096

/* Prefix of all keys; ranks use another one. */
#define TOOL_NODES_PREFIX "dscomm-run"
/* Prefix of the keys of all nodes but node 0. Each node counts its heartbeats
 * there, and dscomm top adds TOOL_NODES_REQUEST to each when it asks for
 * samples. The node sees that with its next heartbeat, and node 0 when it reads
 * them, without further requests to the store. */
#define TOOL_NODES_BEAT "beat"
#define TOOL_NODES_REQUEST ((int64_t)1 << 32)
/* Prefix of the keys of each node's last samples. */
#define TOOL_NODES_SAMPLES "samples"

/* "tcp://HOST:PORT"; g_free(). */
char *tool_nodes_url(const char *host, int port);
/* Opens the nodes' view of the store, and the store, unless ret_base is NULL.
 */
dscomm_status_t tool_nodes_open(const char *url, int serve, int timeout_ms,
                                dscomm_store_t **ret_base,
                                dscomm_store_t **ret_store);

#endif
