/* SPDX-License-Identifier: BSD-3-Clause */
/* Machines, and which processors a rank of theirs should have. Processors are
 * numbered as Linux does it on most: first threads of all cores, then the
 * second ones. */
#include "config.h"

#include "tests/tap.h"
#include "tools/env/placement.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

#define GPU "0000:1a:00.0"
#define GPU_2 "0000:9b:00.0"

typedef struct {
    int nodes, cores, threads; /* cores on each node */
    const char *mask; /* by the launcher, or NULL */
    int gpu_node, bridge_node; /* -1: not told; both of GPU */
    const char *gpu_list; /* local_cpulist of GPU */
} machine_t;

static const machine_t machines[] = {
#define BLIND 0
    {2, 4, 1, NULL, -1, -1, "0-7"},
#define MASKED 1
    {2, 8, 1, "0-7", 1, -1, "8-15"},
#define SMT 2
    {1, 16, 2, NULL, 0, -1, "0-31"},
#define ODD 3
    {1, 17, 2, NULL, 0, -1, "0-33"},
#define TWO 4
    {2, 4, 2, NULL, 1, -1, "4-7,12-15"},
#define BRIDGED 5
    {2, 4, 1, NULL, -1, 1, "0-7"},
#define LISTED 6
    {2, 4, 1, NULL, -1, -1, "2-3"},
};

static const struct {
    const char *name;
    int machine;
    const char *devices[3];
    int local_rank, local_size, force;
    const char *want; /* processors, or NULL: no binding */
    const char *why, *warns; /* a part of it; NULL: no warning */
} vectors[] = {
    {"T30 a machine that does not tell",
     BLIND,
     {GPU},
     0,
     2,
     0,
     NULL,
     "unknown: ",
     NULL},
    {"T30 a mask that excludes the device's node",
     MASKED,
     {GPU},
     0,
     2,
     0,
     NULL,
     "bound to 0-7 already",
     "0-7, has no processor of NUMA node 1, near " GPU},
    {"T30 the same, even where it is to be changed",
     MASKED,
     {GPU},
     0,
     2,
     1,
     NULL,
     "bound to 0-7 already",
     "it is kept"},
    {"T30 16 cores, the first of two ranks",
     SMT,
     {GPU},
     0,
     2,
     0,
     "0-7,16-23",
     "8 of the 16 cores of NUMA node 0",
     NULL},
    {"T30 16 cores, the second",
     SMT,
     {GPU},
     1,
     2,
     0,
     "8-15,24-31",
     "for 2 ranks",
     NULL},
    {"T30 17 cores, the first of two ranks",
     ODD,
     {GPU},
     0,
     2,
     0,
     "0-8,17-25",
     "9 of the 17 cores",
     NULL},
    {"T30 17 cores, the second",
     ODD,
     {GPU},
     1,
     2,
     0,
     "9-16,26-33",
     "8 of the 17 cores",
     NULL},
    {"no device: NUMA nodes in turn",
     TWO,
     {NULL},
     0,
     2,
     0,
     "0-3,8-11",
     "4 of the 4 cores of NUMA node 0",
     NULL},
    {"no device, the other node",
     TWO,
     {NULL},
     1,
     2,
     0,
     "4-7,12-15",
     "NUMA node 1, for 1 rank",
     NULL},
    {"no device, three ranks on two nodes",
     TWO,
     {NULL},
     1,
     3,
     0,
     "2-3,10-11",
     "2 of the 4 cores of NUMA node 0",
     NULL},
    {"no device, more ranks than cores",
     TWO,
     {NULL},
     0,
     16,
     0,
     NULL,
     "8 ranks, but 4 cores, of NUMA node 0",
     NULL},
    {"two devices of which one is unknown: the other's rank",
     TWO,
     {GPU, GPU_2},
     0,
     2,
     0,
     "4-7,12-15",
     "NUMA node 1, near " GPU,
     NULL},
    {"two devices of which one is unknown",
     TWO,
     {GPU, GPU_2},
     1,
     2,
     0,
     NULL,
     "unknown: ",
     "no PCI device " GPU_2},
    {"more ranks than devices",
     TWO,
     {GPU},
     3,
     4,
     0,
     "7,15",
     "1 of the 4 cores of NUMA node 1",
     NULL},
    {"a bridge tells what the device does not",
     BRIDGED,
     {GPU},
     0,
     1,
     0,
     "4-7",
     "NUMA node 1, near",
     NULL},
    {"processors are told, but no node",
     LISTED,
     {GPU},
     0,
     1,
     0,
     "2-3",
     "those near " GPU,
     NULL},
    {"as NVML writes an address",
     TWO,
     {"00000000:1A:00.0"},
     0,
     1,
     0,
     "4-7,12-15",
     "near " GPU,
     NULL},
    {"a mask is kept",
     MASKED,
     {NULL},
     0,
     1,
     0,
     NULL,
     "bound to 0-7 already",
     NULL},
    {"a mask, but it is to be changed",
     MASKED,
     {NULL},
     1,
     2,
     1,
     "4-7",
     "4 of the 8 cores of NUMA node 0",
     NULL},
    {"as many ranks as can be counted",
     TWO,
     {NULL},
     2147483646,
     2147483647,
     0,
     NULL,
     "1073741823 ranks, but 4 cores, of NUMA node 1: not bound",
     NULL},
    {"the same, near a device",
     TWO,
     {GPU},
     2147483646,
     2147483647,
     0,
     NULL,
     "2147483647 ranks, but 4 cores, of NUMA node 1",
     NULL},
    {"a device that is not there",
     TWO,
     {"0000:77:00.0"},
     0,
     1,
     0,
     NULL,
     "unknown: the device is not there",
     "no PCI device 0000:77:00.0"},
    {"an unknown local rank",
     TWO,
     {NULL},
     -1,
     -1,
     0,
     NULL,
     "unknown: which rank",
     NULL},
};

static char *folder;

static G_GNUC_PRINTF(3, 4) void put(const char *root, const char *path,
                                    const char *format, ...)
{
    char *name = g_build_filename(root, path, NULL);
    char *parent = g_path_get_dirname(name);
    va_list args;
    char *text;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    if (g_mkdir_with_parents(parent, 0700) < 0 ||
        !g_file_set_contents(name, text, -1, NULL))
        bail("cannot write %s", name);
    g_free(text);
    g_free(parent);
    g_free(name);
}

/* core, or a range of cores, with the threads of both. */
static char *threads_of(const machine_t *m, int first, int last)
{
    const int all = m->nodes * m->cores;

    if (m->threads == 1)
        return g_strdup_printf("%d-%d", first, last);
    return g_strdup_printf("%d-%d,%d-%d", first, last, first + all, last + all);
}

static void put_gpu(const machine_t *m, const char *root)
{
    static const char bridge[] = "sys/devices/pci0000:00/0000:00:01.0";
    char *path = g_strdup_printf("%s/" GPU, bridge);
    char *own = g_strdup_printf("%s/numa_node", path);
    char *above = g_strdup_printf("%s/numa_node", bridge);
    char *list = g_strdup_printf("%s/local_cpulist", path);
    char *link = g_strdup_printf("%s/sys/bus/pci/devices/" GPU, root);
    char *parent = g_path_get_dirname(link);
    char *target = g_strdup_printf("../../../../%s", path);

    put(root, own, "%d\n", m->gpu_node);
    put(root, above, "%d\n", m->bridge_node);
    put(root, list, "%s\n", m->gpu_list);
    if (g_mkdir_with_parents(parent, 0700) < 0 || symlink(target, link) < 0)
        bail("cannot make %s", link);
    g_free(target);
    g_free(parent);
    g_free(link);
    g_free(list);
    g_free(above);
    g_free(own);
    g_free(path);
}

static char *put_machine(size_t number)
{
    const machine_t *m = &machines[number];
    const int cores = m->nodes * m->cores;
    char *root = g_strdup_printf("%s/%zu", folder, number);

    put(root, "sys/devices/system/cpu/online", "0-%d\n",
        cores * m->threads - 1);
    for (int i = 0; i < cores * m->threads; i++) {
        char *path = g_strdup_printf(
            "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
        char *list = threads_of(m, i % cores, i % cores);

        put(root, path, "%s\n", list);
        g_free(list);
        g_free(path);
    }
    for (int i = 0; i < m->nodes; i++) {
        char *path =
            g_strdup_printf("sys/devices/system/node/node%d/cpulist", i);
        char *list = threads_of(m, i * m->cores, i * m->cores + m->cores - 1);

        put(root, path, "%s\n", list);
        g_free(list);
        g_free(path);
    }
    if (m->mask)
        put(root, "proc/self/status", "Name:\tx\nCpus_allowed_list:\t%s\n",
            m->mask);
    put_gpu(m, root);
    return root;
}

static void try(size_t i)
{
    char *root = g_strdup_printf("%s/%d", folder, vectors[i].machine);
    const tool_placement_question_t question = {
        .root = root,
        .devices = vectors[i].devices,
        .local_rank = vectors[i].local_rank,
        .local_size = vectors[i].local_size,
        .force = vectors[i].force,
    };
    tool_placement_t *got = tool_place(&question);
    char *list = tool_processors_text(&got->processors);

    is_int(got->bind, vectors[i].want != NULL, "%s: bound or not",
           vectors[i].name);
    is_str(list, vectors[i].want ? vectors[i].want : "", "%s", vectors[i].name);
    if (!ok(strstr(got->why, vectors[i].why) != NULL, "%s: says %s",
            vectors[i].name, vectors[i].why))
        tap_text("", got->why);
    if (!vectors[i].warns)
        ok(!got->warning, "%s: no warning", vectors[i].name);
    else
        ok(got->warning && strstr(got->warning, vectors[i].warns),
           "%s: warns of it", vectors[i].name);
    g_free(list);
    tool_placement_free(got);
    g_free(root);
}

static const struct {
    const char *text, *want;
} addresses[] = {
    {"0000:1a:00.0", "0000:1a:00.0"},
    {"00000000:1A:00.0", "0000:1a:00.0"},
    {"1a:00.0", "0000:1a:00.0"},
    {"10000:1a:1f.7", "10000:1a:1f.7"},
    {"", NULL},
    {"0", NULL},
    {"1a:00", NULL},
    {"1a:00.0 ", NULL},
    {" 1a:00.0", NULL},
    {"-1:00.0", NULL},
    {"0:00:-1.0", NULL},
    {"0000:1a: 0.0", NULL},
    {"0x1a:00.0", NULL},
    {"1a:20.0", NULL},
    {"1a:00.8", NULL},
    {"../../x", NULL},
    {"0000:1a:00.0/..", NULL},
};

static void test_addresses(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(addresses); i++) {
        char *got = tool_pci_address(addresses[i].text);

        is_str(got ? got : "none",
               addresses[i].want ? addresses[i].want : "none", "address '%s'",
               addresses[i].text);
        g_free(got);
    }
}

int main(void)
{
    char *remove[] = {(char *)"rm", (char *)"-r", NULL, NULL};

    folder = g_dir_make_tmp("dscomm-placement-XXXXXX", NULL);
    if (!folder)
        bail("cannot make a folder");
    for (size_t i = 0; i < G_N_ELEMENTS(machines); i++)
        g_free(put_machine(i));
    for (size_t i = 0; i < G_N_ELEMENTS(vectors); i++)
        try(i);
    test_addresses();
    remove[2] = folder;
    g_spawn_sync(NULL, remove, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL,
                 NULL, NULL, NULL);
    g_free(folder);
    return tap_done();
}
