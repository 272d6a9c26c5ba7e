/* SPDX-License-Identifier: BSD-3-Clause */
/* See nodes-store.h. */
#include "config.h"

#include "tools/common/nodes-store.h"

#include <glib.h>
#include <string.h>

char *tool_nodes_url(const char *host, int port)
{
    return g_strdup_printf(strchr(host, ':') ? "tcp://[%s]:%d" : "tcp://%s:%d",
                           host, port);
}

dscomm_status_t tool_nodes_open(const char *url, int serve, int timeout_ms,
                                dscomm_store_t **ret_base,
                                dscomm_store_t **ret_store)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *base;
    dscomm_status_t status;

    attr.serve = serve;
    attr.timeout_ms = MAX(timeout_ms, 1);
    status = dscomm_store_open(url, &attr, &base);
    if (status < 0)
        return status;
    status = dscomm_store_prefix(base, TOOL_NODES_PREFIX, ret_store);
    if (status == DSCOMM_OK && ret_base)
        *ret_base = base;
    else
        dscomm_store_close(base);
    return status;
}
