/* SPDX-License-Identifier: BSD-3-Clause */
/* Machines, and the processors that a rank on them should have. Processors are
 * numbered as Linux usually does: the first threads of all cores, then the
 * second ones. */
#include "config.h"

#include "env/devices.h"
#include "env/placement.h"
#include "tests/tap.h"
#include "tools/common/topology.h"

#include <errno.h>
#include <glib.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GPU "0000:1a:00.0"
#define GPU_2 "0000:9b:00.0"

typedef struct {
    const char *synthetic; /* in hwloc's notation */
    const char *mask; /* processors allowed by the launcher, or NULL */
    /* type of the object that has the GPU; NULL: there is none */
    const char *type;
    int number; /* number of that object, in the order of XML */
} machine_t;

static const machine_t machines[] = {
#define BLIND 0
    {"NUMANode:2 Core:4 PU:1", NULL, "Machine", 0},
#define MASKED 1
    {"NUMANode:2 Core:8 PU:1", "0-7", "Group", 1},
#define SMT 2
    {"NUMANode:1 Core:16 PU:2(indexes=2*16:1*2)", NULL, "Machine", 0},
#define ODD 3
    {"NUMANode:1 Core:17 PU:2(indexes=2*17:1*2)", NULL, "Machine", 0},
#define TWO 4
    {"NUMANode:2 Core:4 PU:2(indexes=2*8:1*2)", NULL, "Group", 1},
/* The GPU is near the second half of node 0. */
#define LISTED 5
    {"NUMANode:2 Group:2 Core:2 PU:1", NULL, "Group", 2},
/* Each package also has a node of memory only. */
#define MEMORY 6
    {"Package:2 [NUMANode] [NUMANode] Core:4 PU:1", NULL, "Package", 1},
/* It is not known which processors share a core. */
#define FLAT 7
    {"NUMANode:1 PU:4", NULL, NULL, 0},
#define ONE_CORE 8
    {"NUMANode:2 Core:4 PU:2(indexes=2*8:1*2)", "1,9", NULL, 0},
#define UNEQUAL 9
    {"NUMANode:2 Core:4 PU:1", "0-4", NULL, 0},
};

static const struct {
    const char *name;
    int machine;
    const char *devices; /* with commas between, or NULL: none */
    int local_rank, local_size;
    bool force;
    const char *want; /* processors; NULL: no binding */
    /* expected part of the reason; and of the warning, NULL: no warning */
    const char *why, *warns;
} vectors[] = {
    {"T30 a machine that does not tell", BLIND, GPU, 0, 2, false, NULL,
     "the machine does not tell", NULL},
    {"T30 a mask that excludes the device's node", MASKED, GPU, 0, 2, false,
     NULL, "bound to 0-7 already",
     "0-7, has no processor of NUMA node 1, near " GPU},
    {"T30 the same, even where it is to be changed", MASKED, GPU, 0, 2, true,
     NULL, "bound to 0-7 already", "it is kept"},
    {"T30 16 cores, the first of two ranks", SMT, GPU, 0, 2, false, "0-7,16-23",
     "8 of the 16 cores of NUMA node 0", NULL},
    {"T30 16 cores, the second", SMT, GPU, 1, 2, false, "8-15,24-31",
     "for 2 ranks", NULL},
    {"T30 17 cores, the first of two ranks", ODD, GPU, 0, 2, false, "0-8,17-25",
     "9 of the 17 cores", NULL},
    {"T30 17 cores, the second", ODD, GPU, 1, 2, false, "9-16,26-33",
     "8 of the 17 cores", NULL},
    {"no device: NUMA nodes in turn", TWO, NULL, 0, 2, false, "0-3,8-11",
     "4 of the 4 cores of NUMA node 0", NULL},
    {"no device, the other node", TWO, NULL, 1, 2, false, "4-7,12-15",
     "NUMA node 1, for 1 rank", NULL},
    {"no device, three ranks on two nodes", TWO, NULL, 1, 3, false, "2-3,10-11",
     "2 of the 4 cores of NUMA node 0", NULL},
    {"no device, more ranks than cores", TWO, NULL, 0, 16, false, NULL,
     "8 ranks are more than the 4 cores of NUMA node 0", NULL},
    {"two devices of which one is unknown: the other's rank", TWO,
     GPU "," GPU_2, 0, 2, false, "4-7,12-15", "NUMA node 1, near " GPU, NULL},
    {"two devices of which one is unknown", TWO, GPU "," GPU_2, 1, 2, false,
     NULL, "the device is not there", "no PCI device " GPU_2},
    {"more ranks than devices", TWO, GPU, 3, 4, false, "7,15",
     "1 of the 4 cores of NUMA node 1", NULL},
    {"processors are told, but no node", LISTED, GPU, 0, 1, false, "2-3",
     "those near " GPU, NULL},
    {"as NVML writes an address", TWO, "00000000:1A:00.0", 0, 1, false,
     "4-7,12-15", "near " GPU, NULL},
    {"a mask is kept", MASKED, NULL, 0, 1, false, NULL, "bound to 0-7 already",
     NULL},
    {"a mask, but it is to be changed", MASKED, NULL, 1, 2, true, "4-7",
     "4 of the 8 cores of NUMA node 0", NULL},
    {"as many ranks as can be counted", TWO, NULL, 2147483646, 2147483647,
     false, NULL, "1073741823 ranks are more than the 4 cores of NUMA node 1",
     NULL},
    {"the same, near a device", TWO, GPU, 2147483646, 2147483647, false, NULL,
     "2147483647 ranks are more than the 4 cores of NUMA node 1", NULL},
    {"a device of a machine with one node", SMT, GPU, 0, 1, false, "0-31",
     "NUMA node 0, near " GPU, NULL},
    {"a node of memory only gets no ranks", MEMORY, NULL, 1, 4, false, "2-3",
     "2 of the 4 cores of NUMA node 0, for 2 ranks", NULL},
    {"and no device", MEMORY, GPU, 0, 1, false, "4-7", "NUMA node 2, near " GPU,
     NULL},
    {"processors without cores", FLAT, NULL, 1, 2, false, "2-3",
     "2 of the 4 cores of NUMA node 0", NULL},
    {"a device that is not there", TWO, "0000:77:00.0", 0, 1, false, NULL,
     "the device is not there", "no PCI device 0000:77:00.0"},
    {"an unknown local rank", TWO, NULL, -1, -1, false, NULL,
     "the environment does not tell which rank of this node this is", NULL},
};

static const char device[] =
    "<object type=\"Bridge\" gp_index=\"1001\" bridge_type=\"0-1\" depth=\"0\" "
    "bridge_pci=\"0000:[00-1a]\"><object type=\"PCIDev\" gp_index=\"1002\" "
    "pci_busid=\"" GPU "\" pci_type=\"0302 [10de:20b0] [10de:1463] a1\" "
    "pci_link_speed=\"0.000000\"/></object>\n";

/* Returns the end of the object that has the GPU; it has the same indentation
 * as its beginning. */
static gssize find_end(const machine_t *m, const char *xml)
{
    char *begin = g_strdup_printf("<object type=\"%s\"", m->type);
    const char *at = strstr(xml, begin), *line;
    char *end;

    for (int i = 0; i < m->number && at; i++)
        at = strstr(at + 1, begin);
    if (!at)
        bail("no %s %d", m->type, m->number);
    for (line = at; line[-1] != '\n'; line--)
        continue;
    end = g_strdup_printf("\n%.*s</object>", (int)(at - line), line);
    at = strstr(at, end);
    g_free(begin);
    g_free(end);
    return at + 1 - xml;
}

static void load(hwloc_topology_t *hwloc, const char *synthetic,
                 const GString *xml)
{
    hwloc_topology_init(hwloc);
    hwloc_topology_set_io_types_filter(*hwloc, HWLOC_TYPE_FILTER_KEEP_ALL);
    if ((synthetic && hwloc_topology_set_synthetic(*hwloc, synthetic) < 0) ||
        (xml && hwloc_topology_set_xmlbuffer(*hwloc, xml->str,
                                             (int)xml->len + 1) < 0) ||
        hwloc_topology_load(*hwloc) < 0)
        bail("hwloc does not load a machine");
}

static void add_device(const machine_t *m, hwloc_topology_t *hwloc)
{
    GString *xml;
    char *buffer;
    int length;

    if (hwloc_topology_export_xmlbuffer(*hwloc, &buffer, &length, 0) < 0)
        bail("hwloc does not export %s", m->synthetic);
    xml = g_string_new(buffer);
    g_string_insert(xml, find_end(m, buffer), device);
    hwloc_free_xmlbuffer(*hwloc, buffer);
    hwloc_topology_destroy(*hwloc);
    load(hwloc, NULL, xml);
    g_string_free(xml, TRUE);
}

static dscomm_topology_t *topology_of(const machine_t *m)
{
    dscomm_topology_t *topology = g_new0(dscomm_topology_t, 1);

    load(&topology->hwloc, m->synthetic, NULL);
    if (m->type)
        add_device(m, &topology->hwloc);
    topology->allowed =
        hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology->hwloc));
    if (m->mask)
        hwloc_bitmap_list_sscanf(topology->allowed, m->mask);
    return topology;
}

static void try(size_t i)
{
    const char *named = vectors[i].devices;
    char **devices = g_strsplit(named ? named : "", ",", -1);
    dscomm_topology_t *topology = topology_of(&machines[vectors[i].machine]);
    const dscomm_place_rule_t rule = {
        .kind = named ? DSCOMM_PLACE_GPU : DSCOMM_PLACE_NUMA,
        .force = vectors[i].force,
    };
    const dscomm_place_question_t question = {
        .topology = topology,
        .rule = &rule,
        .devices = (const char *const *)devices,
        .local_rank = vectors[i].local_rank,
        .local_size = vectors[i].local_size,
    };
    dscomm_placement_t *got = dscomm_priv_place(&question);
    char *list = dscomm_priv_topology_text(got->processors);

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
    g_strfreev(devices);
    dscomm_priv_placement_free(got);
    dscomm_priv_topology_free(topology);
}

static const struct {
    int machine, cores, nodes, each;
} counts[] = {
    {BLIND, 8, 2, 4},    {MASKED, 8, 0, 0},  {SMT, 16, 0, 0},   {ODD, 17, 0, 0},
    {TWO, 8, 2, 4},      {LISTED, 8, 2, 4},  {MEMORY, 8, 2, 4}, {FLAT, 4, 0, 0},
    {ONE_CORE, 1, 0, 0}, {UNEQUAL, 5, 0, 0},
};

static void test_counts(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++) {
        const machine_t *m = &machines[counts[i].machine];
        dscomm_topology_t *topology = topology_of(m);
        int cores, nodes, each;

        dscomm_priv_topology_count(topology, &cores, &nodes, &each);
        is_int(cores, counts[i].cores, "%s: cores", m->synthetic);
        is_int(nodes, counts[i].nodes, "%s: NUMA nodes", m->synthetic);
        is_int(each, counts[i].each, "%s: cores of each", m->synthetic);
        dscomm_priv_topology_free(topology);
    }
}

/* The placement uses as many processors as this thread may use, whatever
 * topology is described. */
static void test_new(const char *synthetic)
{
    dscomm_topology_t *topology;
    cpu_set_t sets[64];

    if (sched_getaffinity(0, sizeof sets, sets) < 0)
        bail("sched_getaffinity: %s", strerror(errno));
    if (synthetic)
        setenv("HWLOC_SYNTHETIC", synthetic, 1);
    topology = tool_topology_new(TRUE);
    unsetenv("HWLOC_SYNTHETIC");
    is_int(topology ? hwloc_bitmap_weight(topology->allowed) : -1,
           CPU_COUNT_S(sizeof sets, sets), "this machine, by %s",
           synthetic ? synthetic : "itself");
    ok(!g_getenv("HWLOC_HIDE_ERRORS") && !g_getenv("HWLOC_THISSYSTEM"),
       "the environment is as before");
    dscomm_priv_topology_free(topology);
}

static void test_unknown(void)
{
    const dscomm_place_rule_t rule = {.kind = DSCOMM_PLACE_NUMA};
    const dscomm_place_question_t question = {.rule = &rule, .local_size = 1};
    dscomm_placement_t *got = dscomm_priv_place(&question);

    is_int(got->bind, FALSE, "nothing is known: not bound");
    is_str(got->why, "the machine does not tell its processors",
           "nothing is known: why");
    dscomm_priv_placement_free(got);
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
        char *got = dscomm_priv_pci_address(addresses[i].text);

        is_str(got ? got : "none",
               addresses[i].want ? addresses[i].want : "none", "address '%s'",
               addresses[i].text);
        g_free(got);
    }
}

int main(void)
{
    unsetenv("HWLOC_HIDE_ERRORS");
    unsetenv("HWLOC_THISSYSTEM");
    setenv("HWLOC_PLUGINS_PATH", "", 1);
    for (size_t i = 0; i < G_N_ELEMENTS(vectors); i++)
        try(i);
    test_counts();
    test_new(NULL);
    test_new("NUMANode:2 Core:1024 PU:2");
    dscomm_priv_topology_free(NULL);
    test_unknown();
    test_addresses();
    return tap_done();
}
