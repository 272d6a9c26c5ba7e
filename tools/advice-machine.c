/* SPDX-License-Identifier: BSD-3-Clause */
/* Cores, NUMA nodes and RDMA devices, from Linux's files. */
#include "config.h"

#include "tools/advice-machine.h"

#include <stdlib.h>
#include <string.h>

#define PROCESSORS 8192

typedef struct {
    guint8 has[PROCESSORS];
} processors_t;

char *tool_advice_machine_file(const char *root, const char *path)
{
    char *name = g_strconcat(root, "/", path, NULL);
    char *text;

    if (!g_file_get_contents(name, &text, NULL, NULL))
        text = NULL;
    g_free(name);
    return text;
}

/* "0-3,8"; FALSE where it is none. */
static gboolean parse(const char *text, processors_t *set)
{
    memset(set, 0, sizeof *set);
    while (g_ascii_isdigit(*text)) {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;

        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (first > last || last >= PROCESSORS)
            return FALSE;
        memset(set->has + first, 1, last - first + 1);
        text = end + (*end == ',');
    }
    return *text == 0 || g_ascii_isspace(*text);
}

static gboolean read_list(const char *root, const char *path, processors_t *set)
{
    char *text = tool_advice_machine_file(root, path);
    gboolean good = text && parse(text, set);

    g_free(text);
    return good;
}

/* The processors that this process may use. */
static gboolean read_allowed(const char *root, processors_t *set)
{
    static const char mark[] = "\nCpus_allowed_list:";
    char *status = tool_advice_machine_file(root, "proc/self/status");
    const char *line = status ? strstr(status, mark) : NULL;
    processors_t mask;

    if (!read_list(root, "sys/devices/system/cpu/online", set)) {
        g_free(status);
        return FALSE;
    }
    if (line) {
        line += strlen(mark);
        line += strspn(line, " \t");
        if (parse(line, &mask)) {
            for (int i = 0; i < PROCESSORS; i++)
                set->has[i] &= mask.has[i];
        }
    }
    g_free(status);
    return TRUE;
}

/* Leaves of each core in set its first processor. */
static void keep_cores(const char *root, processors_t *set)
{
    processors_t siblings;

    for (int i = 0; i < PROCESSORS; i++) {
        char *path;

        if (!set->has[i])
            continue;
        path = g_strdup_printf(
            "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
        if (read_list(root, path, &siblings)) {
            for (int j = i + 1; j < PROCESSORS; j++)
                set->has[j] &= !siblings.has[j];
        }
        g_free(path);
    }
}

static int count(const processors_t *cores, const processors_t *among)
{
    int number = 0;

    for (int i = 0; i < PROCESSORS; i++)
        number += cores->has[i] && (!among || among->has[i]);
    return number;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names in a folder, sorted; g_ptr_array_unref(). */
static GPtrArray *names(const char *root, const char *path)
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

/* Several NUMA nodes with as many cores each; those without any do not
 * count. */
static void read_numa(const char *root, const processors_t *cores,
                      tool_advice_machine_t *machine)
{
    static const char folder[] = "sys/devices/system/node";
    GPtrArray *list = names(root, folder);
    processors_t set;
    int nodes = 0, each = 0;
    gboolean equal = TRUE;

    for (guint i = 0; i < list->len; i++) {
        const char *name = g_ptr_array_index(list, i);
        char *path = g_strdup_printf("%s/%s/cpulist", folder, name);
        int here = 0;

        if (g_str_has_prefix(name, "node") && read_list(root, path, &set))
            here = count(cores, &set);
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
    processors_t *set = g_new0(processors_t, 1);

    if (read_allowed(root, set)) {
        keep_cores(root, set);
        machine->cores = count(set, NULL);
        read_numa(root, set, machine);
    }
    g_free(set);
}

static gboolean is_active(const char *root, const char *device)
{
    char *folder = g_strdup_printf("sys/class/infiniband/%s/ports", device);
    GPtrArray *ports = names(root, folder);
    gboolean active = FALSE;

    for (guint i = 0; i < ports->len; i++) {
        char *path = g_strdup_printf("%s/%s/state", folder,
                                     (const char *)g_ptr_array_index(ports, i));
        char *state = tool_advice_machine_file(root, path);

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

/* Devices whose own library is not UCX. */
static const struct {
    const char *driver, *why;
} others[] = {
    {"efa", "is Amazon's, which libfabric drives and UCX does not"},
    {"hfi1", "is Omni-Path, which PSM2 drives"},
    {"usnic", "is Cisco's, which libfabric drives"},
};

static const char *no_use(const char *root, const char *device)
{
    const char *why = NULL;
    char *name;

    if (!is_active(root, device))
        return "has no active port";
    name = driver(root, device);
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
        if (g_str_has_prefix(name, others[i].driver))
            why = others[i].why;
    }
    g_free(name);
    return why;
}

static void read_rdma(const char *root, tool_advice_machine_t *machine)
{
    GPtrArray *devices = names(root, "sys/class/infiniband");

    for (guint i = 0; i < devices->len && !machine->rdma; i++) {
        const char *name = g_ptr_array_index(devices, i);
        const char *why = no_use(root, name);

        if (!why)
            machine->rdma = g_strdup(name);
        else if (!machine->no_rdma)
            machine->no_rdma = g_strdup_printf("%s %s", name, why);
    }
    g_ptr_array_unref(devices);
}

void tool_advice_machine_read(const char *root, const char *wanted,
                              tool_advice_machine_t *ret_machine)
{
    memset(ret_machine, 0, sizeof *ret_machine);
    read_cores(root, ret_machine);
    read_rdma(root, ret_machine);
    tool_advice_machine_network(root, wanted, ret_machine);
}

void tool_advice_machine_clear(tool_advice_machine_t *machine)
{
    g_free(machine->rdma);
    g_free(machine->no_rdma);
    g_free(machine->interface);
    g_free(machine->subnet);
}
