/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA devices, from Linux's files. */
#include "config.h"

#include "tools/env/advice/machine.h"

#include <string.h>

char *tool_root_file(const char *root, const char *path)
{
    char *name = g_strconcat(root, "/", path, NULL);
    char *text = NULL;

    g_file_get_contents(name, &text, NULL, NULL);
    g_free(name);
    return text;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names in a folder below root, sorted; g_ptr_array_unref(). */
static GPtrArray *root_names(const char *root, const char *path)
{
    char *name = g_strconcat(root, "/", path, NULL);
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    GDir *dir = g_dir_open(name, 0, NULL);
    const char *entry;

    while (dir && (entry = g_dir_read_name(dir)))
        g_ptr_array_add(list, g_strdup(entry));
    if (dir)
        g_dir_close(dir);
    g_free(name);
    g_ptr_array_sort(list, compare);
    return list;
}

static gboolean is_active(const char *root, const char *device)
{
    char *folder = g_strdup_printf("sys/class/infiniband/%s/ports", device);
    GPtrArray *ports = root_names(root, folder);
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
    GPtrArray *devices = root_names(root, "sys/class/infiniband");

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
    GPtrArray *devices = root_names(root, "sys/class/cxi");

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
