/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that the device of the wire reads and writes for other ranks. */
#include "config.h"

#include "backends/net/engine.h"

/* Longest part of an access that a device makes at once: the end of each is
 * progress. */
#define PART_MOST ((size_t)16 << 20)
/* A part that it refuses, because it is beyond what it can do or register, is
 * tried by halves down to this, which needs no registration. */
#define PART_LEAST ((size_t)8 << 10)
#define EVERY_PEER (-1)

G_STATIC_ASSERT(DSCOMM_WIRE_KEY <= DSCOMM_BACKEND_KEY);

dscomm_status_t net_mem_register(void *impl, void *address, size_t bytes,
                                 void *key, void **ret_registered)
{
    const engine_t *engine = impl;
    domain_t *domain = engine->domain;

    if (!domain->ops.expose)
        return DSCOMM_ERR_UNSUPPORTED;
    net_enter(domain);
    *ret_registered =
        domain->ops.expose(domain->wire, EVERY_PEER, address, bytes, key);
    net_leave(domain);
    return *ret_registered ? DSCOMM_OK : DSCOMM_ERR_UNSUPPORTED;
}

dscomm_status_t net_mem_register_device(void *impl,
                                        const dscomm_dma_buf_t *memory,
                                        void *key, void **ret_registered)
{
    const engine_t *engine = impl;
    domain_t *domain = engine->domain;

    if (!domain->ops.expose_device) {
        dscomm_log(DSCOMM_LOG_INFO, "net",
                   "group '%s': the network reaches no memory of devices",
                   engine->name);
        return DSCOMM_ERR_UNSUPPORTED;
    }
    net_enter(domain);
    *ret_registered = domain->ops.expose_device(domain->wire, memory, key);
    net_leave(domain);
    return *ret_registered ? DSCOMM_OK : DSCOMM_ERR_UNSUPPORTED;
}

dscomm_status_t net_mem_deregister(void *impl, void *registered)
{
    const engine_t *engine = impl;
    domain_t *domain = engine->domain;

    net_enter(domain);
    domain->ops.conceal(domain->wire, EVERY_PEER, registered, 0);
    net_leave(domain);
    return DSCOMM_OK;
}

/* Gives all parts to the wire. An access of which it has taken a part, but not
 * all, cannot be taken back. */
static dscomm_status_t parts_post(request_t *request,
                                  const dscomm_access_t *access, bool reads)
{
    size_t offset = 0, most = PART_MOST;

    request->state = REQUEST_SENDING;
    request->wanted = access->bytes;
    while (offset < access->bytes) {
        const size_t bytes = MIN(access->bytes - offset, most);

        if (net_post_access(request, access, reads, offset, bytes))
            offset += bytes;
        else if (bytes > PART_LEAST)
            most = MAX(bytes / 2, PART_LEAST);
        else
            break;
    }
    if (!offset)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "group '%s': the device cannot make a %s of %zu "
                           "bytes: allow more locked memory (ulimit -l), and "
                           "see whether the key is damaged",
                           request->engine->name, reads ? "get" : "put",
                           access->bytes);
    if (offset < access->bytes)
        net_engine_lack(request->engine, "its device cannot reach the memory "
                                         "of a long access: allow more locked "
                                         "memory (ulimit -l)");
    return DSCOMM_OK;
}

static dscomm_status_t access_begin(engine_t *engine,
                                    const dscomm_access_t *access, bool reads,
                                    request_t *request)
{
    const dscomm_message_t message = {.peer = access->peer,
                                      .bytes = access->bytes};
    dscomm_status_t status;

    net_engine_resolve(engine);
    net_enter(engine->domain);
    net_request_init(engine, &message, request, access->peer);
    net_link_open(engine->domain, request->peer);
    status = net_peer_check(engine, request->peer);
    if (status == DSCOMM_OK)
        status = parts_post(request, access, reads);
    net_leave(engine->domain);
    return status;
}

dscomm_status_t net_put(void *impl, const dscomm_access_t *access,
                        dscomm_request_t *head)
{
    return access_begin(impl, access, false, (request_t *)head);
}

dscomm_status_t net_get(void *impl, const dscomm_access_t *access,
                        dscomm_request_t *head)
{
    return access_begin(impl, access, true, (request_t *)head);
}
