/* SPDX-License-Identifier: BSD-3-Clause */
/* Cores, NUMA nodes and RDMA devices, from Linux's files. */
#include "config.h"

#include "tools/env/advice/machine.h"
#include "tools/common/processors.h"

#include <string.h>

/* Several NUMA nodes with as many cores each; those without any do not
 * count. */
static void read_numa(const char *root, const tool_processors_t *cores,
                      tool_advice_machine_t *machine)
{
    static const char folder[] = "sys/devices/system/node";
    GPtrArray *list = tool_root_names(root, folder);
    tool_processors_t set;
    int nodes = 0, each = 0;
    gboolean equal = TRUE;

    for (guint i = 0; i < list->len; i++) {
        const char *name = g_ptr_array_index(list, i);
        char *path = g_strdup_printf("%s/%s/cpulist", folder, name);
        int here = 0;

        if (g_str_has_prefix(name, "node") &&
            tool_processors_read(root, path, &set)) {
            tool_processors_intersect(&set, cores);
            here = tool_processors_count(&set);
        }
        equal = equal && (!here || !each || here == each);
        if (here) {
            each = here;
            nodes++;
        }
        g_free(path);
    }
    g_ptr_array_unref(list);
    if (equal && nodes > 1) {
        machine->numa_nodes = nodes;
        machine->cores_per_numa = each;
    }
}

static void read_cores(const char *root, tool_advice_machine_t *machine)
{
    tool_processors_t *set = g_new0(tool_processors_t, 1);

    if (tool_processors_allowed(root, set)) {
        tool_processors_keep_cores(root, set);
        machine->cores = tool_processors_count(set);
        read_numa(root, set, machine);
    }
    g_free(set);
}

static gboolean is_active(const char *root, const char *device)
{
    char *folder = g_strdup_printf("sys/class/infiniband/%s/ports", device);
    GPtrArray *ports = tool_root_names(root, folder);
    gboolean active = FALSE;

    for (guint i = 0; i < ports->len; i++) {
        char *path = g_strdup_printf("%s/%s/state", folder,
                                     (const char *)g_ptr_array_index(ports, i));
        char *state = tool_root_file(root, path);

        active = active || (state && strstr(state, "ACTIVE"));
        g_free(state);
        g_free(path);
    }
    g_ptr_array_unref(ports);
    g_free(folder);
    return active;
}

/* The kernel's name for what drives device; g_free(). */
static char *driver(const char *root, const char *device)
{
    char *path = g_strdup_printf("%s/sys/class/infiniband/%s/device/driver",
                                 root, device);
    char *target = g_file_read_link(path, NULL);
    char *name = target ? g_path_get_basename(target) : g_strdup(device);

    g_free(target);
    g_free(path);
    return name;
}

/* Devices whose own library is not UCX, and what of Open MPI uses that. */
static const struct {
    const char *driver, *why, *mtl;
} others[] = {
    {"efa", "is Amazon's, which libfabric drives and UCX does not", "ofi"},
    {"hfi1", "is Omni-Path, which PSM2 drives", "psm2"},
    {"usnic", "is Cisco's, which libfabric drives", NULL},
};

/* The row of a device, or -1. */
static int find_other(const char *root, const char *device)
{
    char *name = driver(root, device);
    int row = (int)G_N_ELEMENTS(others) - 1;

    while (row >= 0 && !g_str_has_prefix(name, others[row].driver))
        row--;
    g_free(name);
    return row;
}

static gboolean is_iwarp(const char *root, const char *device)
{
    char *path = g_strdup_printf("sys/class/infiniband/%s/node_type", device);
    char *type = tool_root_file(root, path);
    gboolean is = type && strstr(type, "RNIC");

    g_free(type);
    g_free(path);
    return is;
}

/* Why UCX does not drive it, or NULL. */
static const char *look_at(const char *root, const char *device,
                           tool_advice_machine_t *machine)
{
    int other = find_other(root, device);

    if (!is_active(root, device))
        return "has no active port";
    machine->device = TRUE;
    if (is_iwarp(root, device))
        return "is iWARP, which UCX does not drive";
    if (other < 0)
        return NULL;
    if (!machine->fabric) {
        machine->fabric = g_strdup(device);
        machine->mtl = others[other].mtl;
    }
    return others[other].why;
}

static void read_rdma(const char *root, tool_advice_machine_t *machine)
{
    GPtrArray *devices = tool_root_names(root, "sys/class/infiniband");

    for (guint i = 0; i < devices->len && !machine->rdma; i++) {
        const char *name = g_ptr_array_index(devices, i);
        const char *why = look_at(root, name, machine);

        if (!why)
            machine->rdma = g_strdup(name);
        else if (!machine->no_rdma)
            machine->no_rdma = g_strdup_printf("%s %s", name, why);
    }
    g_ptr_array_unref(devices);
}

/* HPE's Slingshot has a class of its own. */
static void read_slingshot(const char *root, tool_advice_machine_t *machine)
{
    GPtrArray *devices = tool_root_names(root, "sys/class/cxi");

    if (devices->len && !machine->fabric) {
        machine->device = TRUE;
        machine->fabric = g_strdup(g_ptr_array_index(devices, 0));
        machine->mtl = "ofi";
    }
    if (devices->len && !machine->no_rdma)
        machine->no_rdma = g_strdup_printf(
            "%s is Slingshot, which libfabric drives and UCX does not",
            (const char *)g_ptr_array_index(devices, 0));
    g_ptr_array_unref(devices);
}

void tool_advice_machine_read(const char *root, const char *wanted,
                              tool_advice_machine_t *ret_machine)
{
    memset(ret_machine, 0, sizeof *ret_machine);
    read_cores(root, ret_machine);
    read_rdma(root, ret_machine);
    read_slingshot(root, ret_machine);
    tool_advice_machine_network(root, wanted, ret_machine);
}

void tool_advice_machine_clear(tool_advice_machine_t *machine)
{
    g_free(machine->rdma);
    g_free(machine->no_rdma);
    g_free(machine->fabric);
    g_free(machine->interface);
    g_free(machine->subnet);
}
