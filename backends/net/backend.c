/* SPDX-License-Identifier: BSD-3-Clause */
/* The public functions: a backend is made of a wire. */
#include "config.h"

#include "backends/net/engine.h"

#include <string.h>

/* The size of a valid table is below this. */
#define TABLE_MAX ((size_t)4096)
/* Longest sleep between polls of a wire without wait, in us. */
#define PAUSE_US 50U
/* Pieces at a time, of a wire without depth. */
#define DEPTH 2
/* The required members of a wire's table. */
#define WIRE_LEAST offsetof(dscomm_wire_ops_t, wait)

static const dscomm_backend_ops_t engine_slots = {
    .request_size = sizeof(request_t),
    .close = net_close,
    .isend = net_isend,
    .irecv = net_irecv,
    .cancel = net_cancel,
    .progress = net_progress,
    .revoke = net_engine_revoke,
    .status = net_status,
    .capabilities = net_capabilities,
    .wait = net_wait,
    .explain = net_explain,
    .quiesce = net_quiesce,
    .leave = net_leave_group,
    .withdraw = net_withdraw,
    .probe = net_probe,
    .matched = net_matched,
    .expect = net_expect,
    .send_now = net_send_now,
    .recv_now = net_recv_now,
    .mem_register = net_mem_register,
    .mem_deregister = net_mem_deregister,
    .put = net_put,
    .get = net_get,
    .mem_register_device = net_mem_register_device,
};

/* The required function that a table lacks, or NULL. */
static const char *wire_lacks(const dscomm_wire_ops_t *wire)
{
    const struct {
        const char *name;
        bool given;
    } functions[] = {
        {"open", wire->open != NULL},       {"close", wire->close != NULL},
        {"address", wire->address != NULL}, {"connect", wire->connect != NULL},
        {"post", wire->post != NULL},       {"poll", wire->poll != NULL},
        {"unsent", wire->unsent != NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(functions); i++)
        if (!functions[i].given)
            return functions[i].name;
    return NULL;
}

static dscomm_status_t wire_check(const dscomm_wire_ops_t *wire)
{
    const char *lacks;

    if (!wire)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "the backend gives no dscomm_wire_ops_t");
    if (wire->size < WIRE_LEAST || wire->size > TABLE_MAX)
        return dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                           "the table of the backend's wire has %zu bytes, but "
                           "libdscomm-net needs %zu; set its member size, and "
                           "compile the module with this version's "
                           "dscomm/wire.h",
                           wire->size, WIRE_LEAST);
    if (!wire->name)
        return dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                           "the backend's wire has no name; set the member "
                           "name of its dscomm_wire_ops_t");
    lacks = wire_lacks(wire);
    if (lacks)
        return dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                           "the wire '%s' has no function '%s', which a "
                           "dscomm_wire_ops_t must have",
                           wire->name, lacks);
    return DSCOMM_OK;
}

static void no_wait(void *wire, unsigned timeout_us)
{
    (void)wire;
    g_usleep(MIN(timeout_us, PAUSE_US));
}

static void no_wake(void *wire)
{
    (void)wire;
}

static unsigned no_depth(void *wire)
{
    (void)wire;
    return DEPTH;
}

static size_t no_eager(void *wire, int peer)
{
    (void)wire;
    (void)peer;
    return EAGER_MAX;
}

dscomm_status_t dscomm_wire_open(const dscomm_wire_ops_t *wire,
                                 const dscomm_backend_args_t *args,
                                 void **ret_impl)
{
    dscomm_status_t status = wire_check(wire);
    dscomm_wire_ops_t all = {.size = 0};

    if (status == DSCOMM_OK && (!args || !ret_impl))
        status = dscomm_fail(DSCOMM_ERR_INVALID,
                             "dscomm_wire_open: args or ret_impl is NULL");
    if (status < 0)
        return status;
    memcpy(&all, wire, MIN(wire->size, sizeof all));
    if (!all.wait)
        all.wait = no_wait;
    if (!all.wake)
        all.wake = no_wake;
    if (!all.depth)
        all.depth = no_depth;
    if (!all.eager)
        all.eager = no_eager;
    if (!all.expose || !all.conceal || !all.put || !all.stop) {
        all.expose = NULL;
        all.conceal = NULL;
        all.put = NULL;
        all.stop = NULL;
        all.expose_device = NULL;
    }
    return net_open(&all, args, ret_impl);
}

void dscomm_wire_slots(
    dscomm_backend_ops_t *slots, size_t size,
    dscomm_status_t (*open)(const dscomm_backend_args_t *args, void **ret_impl))
{
    dscomm_backend_ops_t all = engine_slots;

    all.size = MIN(size, sizeof all);
    all.open = open;
    memcpy(slots, &all, all.size);
}
