/* SPDX-License-Identifier: BSD-3-Clause */
/* A module that lists devices, and opens no group. Its last item skips a level,
 * as none should. FAKE_LISTER=none: it has no device. */
#include <dscomm/backend.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static dscomm_status_t lister_open(const dscomm_backend_args_t *args,
                                   void **ret_impl)
{
    (void)args;
    (void)ret_impl;
    return dscomm_fail(DSCOMM_ERR_UNSUPPORTED, "this module opens no group");
}

static void lister_trim(void *impl, dscomm_backend_ops_t *ops)
{
    (void)impl;
    (void)ops;
}

static dscomm_status_t
lister_devices(void (*visit)(void *arg, const dscomm_backend_device_t *item),
               void *arg)
{
    static const dscomm_backend_fact_t device[] = {
        {"pci", "0000:17:00.0", NULL}, {"numa_node", NULL, ""}};
    static const dscomm_backend_fact_t port[] = {
        {"link_layer", "Ethernet", NULL},
        {"mtu", "4096", "bytes"},
        {"rate", "2.5", "Gbit/s"}};
    static const dscomm_backend_fact_t gid[] = {{"type", "RoCE v2", NULL}};
    static const dscomm_backend_device_t items[] = {
        {0, 0, "device", "one", 1, NULL, device, COUNT(device)},
        {0, 1, "port", "1", 0, "it is down", port, COUNT(port)},
        {0, 2, "gid", "0", 0, NULL, gid, COUNT(gid)},
        {0, 2, "gid", "3", 0, NULL, gid, COUNT(gid)},
        {0, 1, "port", "2", 1, NULL, port, COUNT(port)},
        {0, 2, "gid", "0", 1, NULL, gid, COUNT(gid)},
        {0, 0, "device", "two", 0, "it cannot be opened", NULL, 0},
        {0, 2, "gid", "7", 0, NULL, NULL, 0},
    };
    const char *how = getenv("FAKE_LISTER");

    if (how && !strcmp(how, "none"))
        return dscomm_fail(DSCOMM_ERR_NO_BACKEND, "there is no device");
    for (size_t i = 0; i < COUNT(items); i++) {
        dscomm_backend_device_t item = items[i];

        item.size = sizeof item;
        visit(arg, &item);
    }
    if (how)
        return dscomm_fail(DSCOMM_ERR_NO_BACKEND, "no device can be used");
    return DSCOMM_OK;
}

static const dscomm_backend_ops_t ops = {
    .size = sizeof ops,
    .request_size = sizeof(dscomm_request_t),
    .open = lister_open,
    .trim = lister_trim,
    .devices = lister_devices,
};

DSCOMM_BACKEND_EXPORT const dscomm_backend_t dscomm_backend_lister = {
    .abi = DSCOMM_BACKEND_ABI,
    .name = "lister",
    .ops = &ops,
};
