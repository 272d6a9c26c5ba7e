/* SPDX-License-Identifier: BSD-3-Clause */
/* The store of a job on several nodes, for all commands that use it: how it is
 * opened, and the keys that several commands know. */
#ifndef TOOLS_NODES_STORE_H
#define TOOLS_NODES_STORE_H

#include <dscomm/store.h>

#define TOOL_NODES_MAX 4096

/* Prefix of all keys; ranks use another one. */
#define TOOL_NODES_PREFIX "dscomm-run"
/* Key of the number of samples that dscomm top has asked for, and prefix of the
 * keys of each node's last one. */
#define TOOL_NODES_SAMPLES "samples"

/* "tcp://HOST:PORT"; g_free(). */
char *tool_nodes_url(const char *host, int port);
/* Opens the nodes' view of the store, and the store, unless ret_base is NULL.
 */
dscomm_status_t tool_nodes_open(const char *url, int serve, int timeout_ms,
                                dscomm_store_t **ret_base,
                                dscomm_store_t **ret_store);

#endif
