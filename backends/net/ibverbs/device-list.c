/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of the RDMA devices of this host, for `dscomm info --devices`. */
#include "config.h"

#include "backends/net/ibverbs/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bus address of a PCI device, "0000:17:00.0". */
#define PCI_PATTERN "*:??:??.?"

typedef struct {
    void (*visit)(void *arg, const dscomm_backend_device_t *item);
    void *arg;
} list_t;

/* A name for a number. */
typedef struct {
    int number;
    const char *name;
} name_t;

static const char *name_find(const name_t *names, int number)
{
    while (names->name && names->number != number)
        names++;
    return names->name ? names->name : "unknown";
}

const char *verbs_port_state(const struct ibv_port_attr *port)
{
    static const name_t names[] = {{IBV_PORT_DOWN, "down"},
                                   {IBV_PORT_INIT, "initializing"},
                                   {IBV_PORT_ARMED, "armed"},
                                   {IBV_PORT_ACTIVE, "active"},
                                   {IBV_PORT_ACTIVE_DEFER, "deferred"},
                                   {0, NULL}};

    return name_find(names, (int)port->state);
}

const char *verbs_transport(const struct ibv_device *device)
{
    static const name_t names[] = {{IBV_TRANSPORT_IB, "InfiniBand"},
                                   {IBV_TRANSPORT_IWARP, "iWARP"},
                                   {IBV_TRANSPORT_USNIC, "usNIC"},
                                   {IBV_TRANSPORT_USNIC_UDP, "usNIC UDP"},
                                   {IBV_TRANSPORT_UNSPECIFIED, "unspecified"},
                                   {0, NULL}};

    return name_find(names, (int)device->transport_type);
}

static const char *link_layer_name(const struct ibv_port_attr *port)
{
    static const name_t names[] = {{IBV_LINK_LAYER_INFINIBAND, "InfiniBand"},
                                   {IBV_LINK_LAYER_ETHERNET, "Ethernet"},
                                   {0, NULL}};

    return name_find(names, port->link_layer);
}

static const char *gid_type_name(const struct ibv_gid_entry *entry)
{
    static const name_t names[] = {{IBV_GID_TYPE_IB, "IB"},
                                   {IBV_GID_TYPE_ROCE_V1, "RoCE v1"},
                                   {IBV_GID_TYPE_ROCE_V2, "RoCE v2"},
                                   {0, NULL}};

    return name_find(names, (int)entry->gid_type);
}

/* The rate of a port in Gbit/s; 0: unknown. */
static double port_rate(const struct ibv_port_attr *port)
{
    /* By the bits of active_width, and the rate of a lane by those of
     * active_speed. */
    static const int lanes[] = {1, 4, 8, 12, 2};
    static const double rates[] = {2.5, 5, 10, 10, 14, 25, 50, 100};
    const int width = g_bit_nth_lsf(port->active_width, -1);
    const int speed = g_bit_nth_lsf(port->active_speed, -1);

    if (width < 0 || width >= (int)G_N_ELEMENTS(lanes) || speed < 0 ||
        speed >= (int)G_N_ELEMENTS(rates))
        return 0;
    return lanes[width] * rates[speed];
}

/* Returns the folder in sysfs of the PCI device to which a device belongs (to
 * be freed); NULL: there is none. */
static char *pci_folder(const struct ibv_device *device)
{
    char *link = g_build_filename(device->ibdev_path, "device", NULL);
    char *real = realpath(link, NULL);
    char *path = g_strdup(real ? real : "/");

    g_free(link);
    free(real);
    while (strcmp(path, "/")) {
        char *name = g_path_get_basename(path), *parent;
        const bool found = g_pattern_match_simple(PCI_PATTERN, name);

        g_free(name);
        if (found)
            return path;
        parent = g_path_get_dirname(path);
        g_free(path);
        path = parent;
    }
    g_free(path);
    return NULL;
}

/* Returns the number of a PCI device's NUMA node as text (to be freed); NULL:
 * unknown. */
static char *numa_node(const char *folder)
{
    char *path = g_build_filename(folder, "numa_node", NULL);
    char *text = NULL;
    gint64 node;

    if (g_file_get_contents(path, &text, NULL, NULL) &&
        !g_ascii_string_to_signed(g_strstrip(text), 10, 0, G_MAXINT, &node,
                                  NULL))
        g_clear_pointer(&text, g_free);
    g_free(path);
    return text;
}

static void item_visit(const list_t *list, dscomm_backend_device_t item,
                       const refusal_t *refusal)
{
    item.size = sizeof item;
    if (refusal && refusal->kind != REFUSED_NOT)
        item.why = refusal->why;
    list->visit(list->arg, &item);
}

static void device_list(const list_t *list, const candidate_t *candidate)
{
    char *folder = pci_folder(candidate->device);
    char *pci = folder ? g_path_get_basename(folder) : NULL;
    char *numa = folder ? numa_node(folder) : NULL;
    const bool emulated =
        candidate->port_count && verbs_is_emulated(&candidate->attr);
    const bool dma_bufs =
        candidate->context && verbs_dma_bufs(candidate->context);
    const dscomm_backend_fact_t facts[] = {
        {"transport", verbs_transport(candidate->device), NULL},
        {"emulated", emulated ? "by software" : NULL, NULL},
        {"dma_buf", dma_bufs ? "registered" : NULL, NULL},
        {"pci", pci, NULL},
        {"numa_node", numa, ""},
    };
    const dscomm_backend_device_t item = {
        .level = 0,
        .kind = "device",
        .name = ibv_get_device_name(candidate->device),
        .chosen = candidate->chosen != NULL,
        .facts = facts,
        .fact_count = G_N_ELEMENTS(facts)};

    item_visit(list, item, &candidate->refusal);
    g_free(folder);
    g_free(pci);
    g_free(numa);
}

static void port_list(const list_t *list, const port_t *port, bool chosen)
{
    const struct ibv_port_attr *attr = &port->attr;
    const bool mtu_known =
        attr->active_mtu >= IBV_MTU_256 && attr->active_mtu <= IBV_MTU_4096;
    char number[8], mtu[16], rate[G_ASCII_DTOSTR_BUF_SIZE];
    const dscomm_backend_fact_t facts[] = {
        {"state", verbs_port_state(attr), NULL},
        {"link_layer", link_layer_name(attr), NULL},
        {"mtu", mtu_known ? mtu : NULL, "bytes"},
        {"rate", port_rate(attr) > 0 ? rate : NULL, "Gbit/s"},
    };
    const dscomm_backend_device_t item = {
        .level = 1,
        .kind = "port",
        .name = number,
        .chosen = chosen,
        .facts = facts,
        .fact_count = port->known ? G_N_ELEMENTS(facts) : 0};

    snprintf(number, sizeof number, "%d", port->number);
    snprintf(mtu, sizeof mtu, "%u", mtu_known ? 128U << attr->active_mtu : 0);
    g_ascii_formatd(rate, sizeof rate, "%g", port_rate(attr));
    item_visit(list, item, &port->refusal);
}

static void gid_list(const list_t *list, const struct ibv_gid_entry *entry,
                     bool chosen)
{
    char index[16], text[GID_TEXT];
    const dscomm_backend_fact_t facts[] = {
        {"address", verbs_gid_text(&entry->gid, text), NULL},
        {"type", gid_type_name(entry), NULL},
    };
    const dscomm_backend_device_t item = {.level = 2,
                                          .kind = "gid",
                                          .name = index,
                                          .chosen = chosen,
                                          .facts = facts,
                                          .fact_count = G_N_ELEMENTS(facts)};

    snprintf(index, sizeof index, "%u", entry->gid_index);
    item_visit(list, item, NULL);
}

static void candidate_list(void *arg, candidate_t *candidate)
{
    const list_t *list = arg;

    device_list(list, candidate);
    for (int p = 0; p < candidate->port_count; p++) {
        const port_t *port = &candidate->ports[p];
        const bool chosen = port == candidate->chosen;

        port_list(list, port, chosen);
        for (size_t i = 0; i < candidate->gid_count; i++)
            if (candidate->gids[i].port_num == port->number)
                gid_list(list, &candidate->gids[i],
                         chosen && port->gid == &candidate->gids[i]);
    }
}

dscomm_status_t
verbs_devices(void (*visit)(void *arg, const dscomm_backend_device_t *item),
              void *arg)
{
    list_t list = {visit, arg};
    walk_t walk = {.all = true, .visit = candidate_list, .arg = &list};

    return verbs_devices_walk(&walk);
}
