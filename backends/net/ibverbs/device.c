/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of device, port and GID. */
#include "config.h"

#include "backends/net/ibverbs/ibverbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GIDS_MOST 256

const char *verbs_gid_text(const union ibv_gid *gid, char text[GID_TEXT])
{
    if (!inet_ntop(AF_INET6, gid->raw, text, GID_TEXT))
        *text = '\0';
    return text;
}

/* A setting, or else the variable of Gloo's transport; NULL: neither is set. */
static const char *chosen(unsigned setting, const char *gloo)
{
    const char *value = getenv(verbs_settings[setting].name);

    if (value && *value)
        return value;
    value = getenv(gloo);
    return value && *value ? value : NULL;
}

/* The number that a user has chosen; absent: if none was. */
static dscomm_status_t chosen_number(unsigned setting, const char *gloo,
                                     int64_t absent, int64_t *ret_number)
{
    const dscomm_setting_t *row = &verbs_settings[setting];
    const char *value = chosen(setting, gloo);
    gint64 number;

    *ret_number = absent;
    if (!value)
        return DSCOMM_OK;
    if (getenv(row->name) && *getenv(row->name))
        return dscomm_setting_number(row, ret_number);
    if (!g_ascii_string_to_signed(value, 10, row->min, row->max, &number, NULL))
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "%s='%s' is no number from %" G_GINT64_FORMAT
                           " to %" G_GINT64_FORMAT,
                           gloo, value, row->min, row->max);
    *ret_number = number;
    return DSCOMM_OK;
}

static gint device_compare(gconstpointer a, gconstpointer b)
{
    struct ibv_device *const *one = a, *const *other = b;

    return strcmp(ibv_get_device_name(*one), ibv_get_device_name(*other));
}

/* Why a port cannot be used, or NULL. */
static const char *port_refused(const struct ibv_port_attr *port)
{
    if (port->state != IBV_PORT_ACTIVE)
        return "is not active; see ibv_devinfo";
    if (port->link_layer == IBV_LINK_LAYER_INFINIBAND && !port->lid)
        return "has no LID: no subnet manager runs";
    return NULL;
}

/* Opens a device if one of its ports, or the one that was chosen, can be used;
 * else writes why not. */
static bool device_try(verbs_t *verbs, struct ibv_device *device, int64_t port,
                       GString *why)
{
    const char *name = ibv_get_device_name(device), *refused;
    struct ibv_context *context = ibv_open_device(device);

    if (!context) {
        g_string_append_printf(why, "; %s cannot be opened: %s%s", name,
                               strerror(errno), verbs_remedy(errno));
        return false;
    }
    if (ibv_query_device(context, &verbs->device)) {
        g_string_append_printf(why, "; %s cannot be queried: %s", name,
                               strerror(errno));
    } else if (port > verbs->device.phys_port_cnt) {
        g_string_append_printf(why, "; %s has ports 1 to %d", name,
                               verbs->device.phys_port_cnt);
    } else {
        const int last = port ? (int)port : verbs->device.phys_port_cnt;

        for (int p = port ? (int)port : 1; p <= last; p++) {
            refused = ibv_query_port(context, (uint8_t)p, &verbs->port)
                          ? strerror(errno)
                          : port_refused(&verbs->port);
            if (!refused) {
                verbs->context = context;
                verbs->port_number = (uint8_t)p;
                return true;
            }
            g_string_append_printf(why, "; port %d of %s %s", p, name, refused);
        }
    }
    ibv_close_device(context);
    return false;
}

/* How well a GID suits: RoCE v2 is routed, and an address of IPv4 is one that
 * an administrator has given; 0: not at all. */
static int gid_rank(const struct ibv_gid_entry *entry)
{
    const struct in6_addr *address = (const void *)entry->gid.raw;
    int rank = 1;

    if (entry->gid_type == IBV_GID_TYPE_ROCE_V2)
        rank += 4;
    if (IN6_IS_ADDR_V4MAPPED(address))
        rank += 2;
    else if (!IN6_IS_ADDR_LINKLOCAL(address))
        rank += 1;
    return rank;
}

static dscomm_status_t gid_choose(verbs_t *verbs, int64_t index)
{
    struct ibv_gid_entry entries[GIDS_MOST];
    const char *name = ibv_get_device_name(verbs->context->device);
    const ssize_t count =
        ibv_query_gid_table(verbs->context, entries, GIDS_MOST, 0);
    int best = 0;

    verbs->gid_index = -1;
    for (ssize_t i = 0; i < count; i++) {
        const struct ibv_gid_entry *entry = &entries[i];
        const bool infiniband = entry->gid_type == IBV_GID_TYPE_IB;
        const int rank = infiniband && !entry->gid_index ? 8 : gid_rank(entry);

        if (entry->port_num != verbs->port_number ||
            (index >= 0 ? entry->gid_index != index : rank <= best))
            continue;
        best = rank;
        verbs->gid_index = (int)entry->gid_index;
        verbs->own.gid = entry->gid;
    }
    if (verbs->gid_index >= 0)
        return DSCOMM_OK;
    if (index >= 0)
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "%s=%" PRId64 ": port %d of %s has no such GID; see "
                           "ibv_devinfo -v",
                           verbs_settings[SETTING_INDEX].name, index,
                           verbs->port_number, name);
    return dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                       "port %d of %s has no GID; give its network interface "
                       "an address",
                       verbs->port_number, name);
}

/* Opens the first device, by name, that can be used. */
static dscomm_status_t device_choose(verbs_t *verbs, const char *name,
                                     int64_t port)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    GString *why = g_string_new(NULL);
    dscomm_status_t status = DSCOMM_OK;
    bool found = false;

    if (list)
        qsort(list, (size_t)count, sizeof *list, device_compare);
    for (int i = 0; list && i < count && !verbs->context; i++) {
        if (name && strcmp(ibv_get_device_name(list[i]), name))
            continue;
        found = true;
        device_try(verbs, list[i], port, why);
    }
    if (!count)
        status = dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                             "this host has no RDMA device; see ibv_devices");
    else if (!found)
        status = dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                             "%s='%s': this host has no such RDMA device; see "
                             "ibv_devices",
                             verbs_settings[SETTING_NAME].name, name);
    else if (!verbs->context)
        status = dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                             "no RDMA device can be used%s", why->str);
    if (list)
        ibv_free_device_list(list);
    g_string_free(why, TRUE);
    return status;
}

/* The path, of settings. */
static dscomm_status_t path_read(verbs_t *verbs)
{
    int64_t level = 0, class = 0, timeout = 0, retries = 0, pkey = 0;
    dscomm_status_t status = DSCOMM_OK;
    const struct {
        unsigned setting;
        int64_t *to;
    } numbers[] = {
        {SETTING_SERVICE_LEVEL, &level}, {SETTING_TRAFFIC_CLASS, &class},
        {SETTING_TIMEOUT, &timeout},     {SETTING_RETRIES, &retries},
        {SETTING_PKEY, &pkey},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(numbers) && status == DSCOMM_OK; i++)
        status = dscomm_setting_number(&verbs_settings[numbers[i].setting],
                                       numbers[i].to);
    verbs->path = (path_t){.service_level = (uint8_t)level,
                           .traffic_class = (uint8_t) class,
                           .timeout = (uint8_t)timeout,
                           .retries = (uint8_t)retries,
                           .hop_limit = 64,
                           .pkey_index = (uint16_t)pkey};
    return status;
}

dscomm_status_t verbs_device_open(verbs_t *verbs)
{
    const char *name = chosen(SETTING_NAME, "TORCH_GLOO_IBV_NAME");
    int64_t port = 0, index = -1;
    dscomm_status_t status = path_read(verbs);

    if (status == DSCOMM_OK)
        status = chosen_number(SETTING_PORT, "TORCH_GLOO_IBV_PORT", 0, &port);
    if (status == DSCOMM_OK)
        status =
            chosen_number(SETTING_INDEX, "TORCH_GLOO_IBV_INDEX", -1, &index);
    if (status == DSCOMM_OK)
        status = device_choose(verbs, name, port);
    if (status == DSCOMM_OK)
        status = gid_choose(verbs, index);
    if (status < 0)
        return status;
    verbs->own.lid = verbs->port.lid;
    verbs->own.mtu = (uint8_t)verbs->port.active_mtu;
    verbs->own.link_layer = verbs->port.link_layer;
    return DSCOMM_OK;
}
