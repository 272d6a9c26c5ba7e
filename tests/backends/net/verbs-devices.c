/* SPDX-License-Identifier: BSD-3-Clause */
/* The RDMA device, port and GID that the backend ibverbs chooses among several,
 * and what it lists of all (fake-verbs.h has the devices). */
#include "config.h"

#include "backends/net/ibverbs/ibverbs.h"
#include "tests/backends/net/fake-verbs.h"
#include "tests/tap.h"

#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const dscomm_wire_ops_t verbs_wire;

static GString *listed; /* a line for each item */

static void item_note(void *arg, const dscomm_backend_device_t *item)
{
    if (item->size != sizeof *item || arg != &listed)
        bail("an item of %zu bytes", item->size);
    g_string_append_printf(listed, "%*s%s %s%s", item->level, "", item->kind,
                           item->name, item->chosen ? " *" : "");
    for (size_t i = 0; i < item->fact_count; i++)
        if (item->facts[i].value)
            g_string_append_printf(
                listed, " %s=%s%s", item->facts[i].name, item->facts[i].value,
                item->facts[i].unit ? item->facts[i].unit : "");
    if (item->why)
        g_string_append_printf(listed, " (%s)", item->why);
    g_string_append_c(listed, '\n');
}

/* Lists the devices; nothing stays open. */
static dscomm_status_t devices_list(void)
{
    dscomm_status_t status;

    g_string_truncate(listed, 0);
    status = verbs_wire.devices(item_note, &listed);
    is_int(fake.objects, 0, "no device stays open");
    return status;
}

/* Returns "fake0:1:2" for the device, port and GID that a rank opens, or the
 * reason why it opens none. */
static const char *choice(void)
{
    static char text[1024];
    verbs_t verbs = {.context = NULL};

    if (verbs_device_open(&verbs) < 0) {
        g_strlcpy(text, dscomm_last_error(), sizeof text);
        return text;
    }
    g_snprintf(text, sizeof text, "%s:%d:%d",
               ibv_get_device_name(verbs.context->device), verbs.port_number,
               verbs.gid_index);
    ibv_close_device(verbs.context);
    return text;
}

/* Returns the same as choice(), of what is listed. */
static char *choice_listed(void)
{
    GString *text = g_string_new(NULL);
    char **lines = g_strsplit(listed->str, "\n", -1);

    for (char **line = lines; *line; line++) {
        char **words = g_strsplit(g_strstrip(*line), " ", 4);

        if (words[0] && words[1] && words[2] && !strcmp(words[2], "*"))
            g_string_append_printf(text, "%s%s", text->len ? ":" : "",
                                   words[1]);
        g_strfreev(words);
    }
    g_strfreev(lines);
    return g_string_free(text, FALSE);
}

static void devices_two(void)
{
    fake_reset();
    fake.devices = 2;
    fake.device[0].ports = fake.device[1].ports = 2;
}

static void test_list(void)
{
    devices_two();
    fake.device[0].down = 1 << 1;
    is_int(devices_list(), DSCOMM_OK, "two devices");
    is_str(listed->str,
           "device fake0 * transport=InfiniBand\n"
           " port 1 state=down link_layer=Ethernet mtu=4096bytes "
           "rate=100Gbit/s (it is not active but down; see ibv_devinfo)\n"
           "  gid 0 address=fe80:: type=RoCE v1\n"
           "  gid 1 address=fe80:: type=RoCE v2\n"
           "  gid 2 address=::ffff:10.0.0.0 type=RoCE v2\n"
           " port 2 * state=active link_layer=Ethernet mtu=4096bytes "
           "rate=100Gbit/s\n"
           "  gid 0 address=fe80:: type=RoCE v1\n"
           "  gid 1 address=fe80:: type=RoCE v2\n"
           "  gid 2 * address=::ffff:10.0.0.0 type=RoCE v2\n"
           "device fake1 transport=InfiniBand\n"
           " port 1 state=active link_layer=Ethernet mtu=4096bytes "
           "rate=100Gbit/s\n"
           "  gid 0 address=fe80:: type=RoCE v1\n"
           "  gid 1 address=fe80:: type=RoCE v2\n"
           "  gid 2 address=::ffff:10.0.0.0 type=RoCE v2\n"
           " port 2 state=active link_layer=Ethernet mtu=4096bytes "
           "rate=100Gbit/s\n"
           "  gid 0 address=fe80:: type=RoCE v1\n"
           "  gid 1 address=fe80:: type=RoCE v2\n"
           "  gid 2 address=::ffff:10.0.0.0 type=RoCE v2\n",
           "the list");
    fake_reset();
    fake.devices = 0;
    ok(devices_list() == DSCOMM_ERR_NO_BACKEND && !listed->len,
       "without a device: %s", dscomm_last_error());
}

#define IWARP                                                                  \
    {                                                                          \
        .transport = IBV_TRANSPORT_IWARP                                       \
    }
#define UNSPECIFIED                                                            \
    {                                                                          \
        .transport = IBV_TRANSPORT_UNSPECIFIED                                 \
    }
#define DOWN                                                                   \
    {                                                                          \
        .down = 1 << 1 | 1 << 2                                                \
    }
#define NO_GIDS                                                                \
    {                                                                          \
        .no_gids = true                                                        \
    }
#define FINE                                                                   \
    {                                                                          \
        .down = 0                                                              \
    }

#define EMULATED                                                               \
    {                                                                          \
        .emulated = true                                                       \
    }

/* Two devices with two ports each, and what is chosen of them; a part of the
 * list or, if nothing is chosen, of the reason. */
static const struct {
    fake_device_t devices[2];
    const char *settings[3]; /* of names */
    const char *chosen, *text;
} choices[] = {
    {{FINE, FINE}, {NULL}, "fake0:1:2", "device fake1 transport"},
    {{FINE, FINE},
     {"fake1"},
     "fake1:1:2",
     "(DSCOMM_IBV_NAME=fake1 names another device)"},
    {{FINE, FINE},
     {NULL, "2"},
     "fake0:2:2",
     "(DSCOMM_IBV_PORT=2 names another port)"},
    {{FINE, FINE}, {NULL, NULL, "1"}, "fake0:1:1", "gid 1 * "},
    {{FINE, FINE}, {"fake1", "2", "0"}, "fake1:2:0", "gid 0 * "},
    {{FINE, FINE}, {"fake7"}, NULL, "no such RDMA device"},
    {{FINE, FINE},
     {NULL, "3"},
     NULL,
     "fake1: it has ports 1 to 2, not DSCOMM_IBV_PORT=3"},
    {{FINE, FINE},
     {NULL, NULL, "9"},
     NULL,
     "port 2 of fake1: it has no GID 9, which DSCOMM_IBV_INDEX n"},
    {{FINE, FINE}, {NULL, "x"}, NULL, "DSCOMM_IBV_PORT"},
    {{DOWN, FINE}, {NULL}, "fake1:1:2", "not active but down"},
    {{DOWN, FINE}, {"fake0"}, NULL, "port 2 of fake0: it is not active but"},
    {{DOWN, DOWN}, {NULL}, NULL, "port 1 of fake1: it is not active but down"},
    {{NO_GIDS, FINE}, {NULL}, "fake1:1:2", "(it has no GID; give "},
    {{NO_GIDS, FINE},
     {NULL, NULL, "1"},
     "fake1:1:1",
     "(it has no GID 1, which"},
    {{NO_GIDS, FINE}, {"fake0"}, NULL, "port 1 of fake0: it has no GID; give"},
    {{IWARP, FINE}, {NULL}, "fake1:1:2", "iWARP (its transport is iWARP, nei"},
    {{IWARP, FINE}, {"fake0"}, NULL, "fake0: its transport is iWARP, neither"},
    {{IWARP, IWARP}, {NULL}, NULL, "fake1: its transport is iWARP, neither"},
    {{UNSPECIFIED, FINE},
     {NULL},
     "fake1:1:2",
     "(its transport is unspecified, neither"},
    {{EMULATED, FINE}, {NULL}, "fake1:1:2", " emulated=by software"},
    {{EMULATED, DOWN}, {NULL}, "fake0:1:2", "fake0 * transport=InfiniBand em"},
    {{EMULATED, FINE}, {"fake0"}, "fake0:1:2", "names another device"},
};

static const char *const names[] = {"DSCOMM_IBV_NAME", "DSCOMM_IBV_PORT",
                                    "DSCOMM_IBV_INDEX"};

/* Checks that a rank chooses what the list says, or has its reason for none. */
static void choice_check(const char *chosen, const char *text)
{
    const dscomm_status_t status = devices_list();
    char *same = choice_listed();

    is_str(same, chosen ? chosen : "", "the choice in the list");
    if (chosen) {
        is_int(status, DSCOMM_OK, "a device can be used");
        ok(strstr(listed->str, text) != NULL, "the list says '%s'", text);
        is_str(choice(), chosen, "the choice of a rank");
    } else {
        ok(status < 0 && strstr(dscomm_last_error(), text), "none: %s",
           dscomm_last_error());
        ok(strstr(choice(), text) != NULL, "a rank has the same reason");
    }
    is_int(fake.objects, 0, "nothing is left behind");
    g_free(same);
}

static void test_choices(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(choices); i++) {
        devices_two();
        for (int d = 0; d < 2; d++) {
            fake.device[d] = choices[i].devices[d];
            fake.device[d].ports = 2;
        }
        for (size_t s = 0; s < G_N_ELEMENTS(names); s++)
            if (choices[i].settings[s])
                g_setenv(names[s], choices[i].settings[s], TRUE);
        choice_check(choices[i].chosen, choices[i].text);
        for (size_t s = 0; s < G_N_ELEMENTS(names); s++)
            g_unsetenv(names[s]);
    }
}

/* A call that fails on the second device does not matter; one that always fails
 * is the reason. */
static void test_faults(void)
{
    static const struct {
        fake_call_t call;
        unsigned after; /* calls for the first device */
        const char *text;
    } cases[] = {
        {FAKE_OPEN_DEVICE, 1, "fake1: it cannot be opened: "},
        {FAKE_QUERY_DEVICE, 1, "fake1: it cannot be queried: "},
        {FAKE_QUERY_GIDS, 1, "fake1: its GIDs cannot be queried: "},
        {FAKE_QUERY_PORT, 2, "port 2 of fake1: it cannot be queried: "},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        devices_two();
        fake.fails[cases[i].call] = EACCES;
        fake.after[cases[i].call] = cases[i].after;
        is_int(devices_list(), DSCOMM_OK, "the first device is fine");
        ok(strstr(listed->str, strstr(cases[i].text, ": it") + 2) != NULL,
           "the reason for the second is listed");
        choice_check(NULL, cases[i].text);
    }
}

/* Reasons name the variable that was read. */
static void test_gloo(void)
{
    devices_two();
    g_setenv("TORCH_GLOO_IBV_NAME", "fake1", TRUE);
    g_setenv("TORCH_GLOO_IBV_PORT", "2", TRUE);
    g_setenv("TORCH_GLOO_IBV_INDEX", "0", TRUE);
    choice_check("fake1:2:0", "(TORCH_GLOO_IBV_NAME=fake1 names another dev");
    g_setenv("DSCOMM_IBV_PORT", "1", TRUE);
    choice_check("fake1:1:0", "(DSCOMM_IBV_PORT=1 names another port)");
    g_setenv("TORCH_GLOO_IBV_NAME", "fake7", TRUE);
    choice_check(NULL, "TORCH_GLOO_IBV_NAME='fake7': this host has no such");
    g_unsetenv("DSCOMM_IBV_PORT");
    g_unsetenv("TORCH_GLOO_IBV_NAME");
    g_unsetenv("TORCH_GLOO_IBV_PORT");
    g_unsetenv("TORCH_GLOO_IBV_INDEX");
}

#ifdef HAVE_IBV_REG_DMABUF_MR
static void test_dma_bufs(void)
{
    devices_two();
    fake.dma_bufs = true;
    devices_list();
    ok(strstr(listed->str,
              "device fake1 transport=InfiniBand dma_buf=registered\n") != NULL,
       "a device that registers memory of other devices");
    is_int(fake.objects, 0, "of which nothing is left");
}
#endif

static void test_infiniband(void)
{
    devices_two();
    fake.link_layer = IBV_LINK_LAYER_INFINIBAND;
    devices_list();
    ok(strstr(listed->str, "link_layer=InfiniBand") &&
           strstr(listed->str, "gid 0 address=fe80:: type=IB"),
       "InfiniBand");
    choice_check(NULL, "port 2 of fake1: it has no LID: no subnet manager");
}

/* A machine of three NUMA nodes, of which this thread runs on node 0, and its
 * distances; for each of two devices, its node. */
#define MACHINE                                                                \
    "<?xml version=\"1.0\"?>\n"                                                \
    "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"                              \
    "<topology version=\"2.0\">\n"                                             \
    "<object type=\"Machine\" os_index=\"0\" cpuset=\"%s\" "                   \
    "complete_cpuset=\"%s\" nodeset=\"0x7\" complete_nodeset=\"0x7\">\n"
#define NODE                                                                   \
    "<object type=\"Package\" os_index=\"%d\" cpuset=\"%s\" "                  \
    "complete_cpuset=\"%s\" nodeset=\"0x%x\" complete_nodeset=\"0x%x\">\n"     \
    "<object type=\"NUMANode\" os_index=\"%d\" cpuset=\"%s\" "                 \
    "complete_cpuset=\"%s\" nodeset=\"0x%x\" complete_nodeset=\"0x%x\" "       \
    "local_memory=\"1048576\"/>\n"                                             \
    "<object type=\"PU\" os_index=\"%d\" cpuset=\"%s\" "                       \
    "complete_cpuset=\"%s\" nodeset=\"0x%x\" complete_nodeset=\"0x%x\"/>\n"
#define DEVICE                                                                 \
    "<object type=\"Bridge\" bridge_type=\"0-1\" depth=\"0\" "                 \
    "bridge_pci=\"000%d:[00-00]\">\n"                                          \
    "<object type=\"PCIDev\" pci_busid=\"000%d:00:01.0\" pci_type=\"0207 "     \
    "[15b3:1017] [0000:0000] 00\" pci_link_speed=\"0\">\n"                     \
    "<object type=\"OSDev\" name=\"fake%d\" osdev_type=\"3\"/>\n"              \
    "</object>\n</object>\n"

static void machine_write(const char *path, int cpu, int first, int second)
{
    GString *xml = g_string_new(NULL);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    char *all, *one;

    hwloc_bitmap_set_range(set, (unsigned)cpu, cpu + 2);
    hwloc_bitmap_asprintf(&all, set);
    g_string_printf(xml, MACHINE, all, all);
    for (int n = 0; n < 3; n++) {
        const unsigned bit = 1U << n;

        hwloc_bitmap_only(set, (unsigned)(cpu + n));
        hwloc_bitmap_asprintf(&one, set);
        g_string_append_printf(xml, NODE, n, one, one, bit, bit, n, one, one,
                               bit, bit, cpu + n, one, one, bit, bit);
        if (first == n)
            g_string_append_printf(xml, DEVICE, 1, 1, 0);
        if (second == n)
            g_string_append_printf(xml, DEVICE, 2, 2, 1);
        g_string_append(xml, "</object>\n");
        free(one);
    }
    g_string_append(xml,
                    "</object>\n<distances2 type=\"NUMANode\" nbobjs=\"3\" "
                    "kind=\"5\" name=\"NUMALatency\" indexing=\"os\">\n"
                    "<indexes length=\"6\">0 1 2 </indexes>\n"
                    "<u64values length=\"27\">10 30 20 30 10 20 20 20 10 "
                    "</u64values>\n</distances2>\n</topology>\n");
    if (!g_file_set_contents(path, xml->str, -1, NULL))
        bail("%s cannot be written", path);
    g_string_free(xml, TRUE);
    hwloc_bitmap_free(set);
    free(all);
}

/* The device that is near to the processors of the rank. */
static void test_locality(void)
{
    static const struct {
        int first, second; /* nodes */
        const char *chosen, *text;
    } cases[] = {
        {0, 1, "fake0:1:2", "the first device is on the rank's node"},
        {1, 0, "fake1:1:2", "the second one is"},
        {0, 0, "fake0:1:2", "both are"},
        {1, 2, "fake1:1:2", "the node of the second one is nearer"},
        {2, 1, "fake0:1:2", "that of the first one is"},
        {-1, 2, "fake1:1:2", "the place of the first one is unknown"},
    };
    char *folder = g_dir_make_tmp("dscomm-XXXXXX", NULL);
    char *path = g_build_filename(folder, "machine.xml", NULL);
    cpu_set_t before, bound;
    int cpu = 0;

    if (sched_getaffinity(0, sizeof before, &before))
        bail("no processors: %s", strerror(errno));
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&bound);
    CPU_SET(cpu, &bound);
    sched_setaffinity(0, sizeof bound, &bound);
    g_setenv("HWLOC_XMLFILE", path, TRUE);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        machine_write(path, cpu, cases[i].first, cases[i].second);
        devices_two();
        is_str(choice(), cases[i].chosen, "%s", cases[i].text);
    }
    fake.device[0].emulated = true;
    is_str(choice(), "fake1:1:2", "hardware comes first, however far it is");
    g_setenv("DSCOMM_IBV_NAME", "fake0", TRUE);
    is_str(choice(), "fake0:1:2", "a name comes before that");
    g_unsetenv("DSCOMM_IBV_NAME");
    g_unsetenv("HWLOC_XMLFILE");
    sched_setaffinity(0, sizeof before, &before);
    unlink(path);
    rmdir(folder);
    g_free(path);
    g_free(folder);
}

/* Auto takes a device of hardware that can register memory. */
static void test_advice(void)
{
    devices_two();
    ok(!verbs_usable(NULL, 1) && !verbs_advisable(), "a device of hardware");
    fake.device[0].emulated = fake.device[1].emulated = true;
    ok(!verbs_usable(NULL, 1), "a device that software emulates can be used");
    is_str(verbs_advisable(),
           "device fake0 is emulated by software; DSCOMM_IBV_NAME=fake0 "
           "chooses it",
           "but auto does not choose it");
    g_setenv("DSCOMM_IBV_NAME", "fake1", TRUE);
    ok(!verbs_advisable(), "unless it is named");
    fake.fails[FAKE_REG_MR] = ENOMEM;
    ok(g_str_has_prefix(verbs_advisable(),
                        "device fake1 cannot register 16 MiB: "),
       "nor if memory cannot be registered: %s", dscomm_last_error());
    g_unsetenv("DSCOMM_IBV_NAME");
    fake.devices = 0;
    ok(verbs_usable(NULL, 1) && verbs_advisable(), "no device");
    ok(!verbs_usable(NULL, 2),
       "those of other ranks are not this one's matter");
    is_int(fake.objects, 0, "no device stays open");
}

/* A device whose folder in sysfs is like that of a PCI device. */
static void test_sysfs(void)
{
    char *root = g_dir_make_tmp("dscomm-XXXXXX", NULL);
    char *pci = g_build_filename(root, "0000:17:00.1", NULL);
    char *link = g_build_filename(root, "device", NULL);
    char *numa = g_build_filename(pci, "numa_node", NULL);
    char *child = g_build_filename(pci, "virtio1", NULL);

    fake_reset();
    fake.device[0].path = root;
    mkdir(pci, 0700);
    if (symlink(pci, link) < 0 || !g_file_set_contents(numa, "3\n", -1, NULL))
        bail("%s cannot be written", root);
    devices_list();
    ok(strstr(listed->str, " pci=0000:17:00.1 numa_node=3\n") != NULL,
       "PCI address and NUMA node");
    if (!g_file_set_contents(numa, "-1\n", -1, NULL))
        bail("%s cannot be written", numa);
    devices_list();
    ok(strstr(listed->str, " pci=0000:17:00.1\n") != NULL, "no NUMA node");
    unlink(link);
    mkdir(child, 0700);
    if (symlink(child, link) < 0)
        bail("%s cannot be written", link);
    devices_list();
    ok(strstr(listed->str, " pci=0000:17:00.1\n") != NULL,
       "a device below one of PCI");
    unlink(link);
    rmdir(child);
    if (symlink(root, link) < 0)
        bail("%s cannot be written", link);
    devices_list();
    ok(!strstr(listed->str, "pci="), "a device of no PCI bus");
    unlink(numa);
    unlink(link);
    rmdir(pci);
    rmdir(root);
    g_free(child);
    g_free(numa);
    g_free(link);
    g_free(pci);
    g_free(root);
}

int main(void)
{
    listed = g_string_new(NULL);
    test_list();
    test_choices();
    test_faults();
    test_gloo();
#ifdef HAVE_IBV_REG_DMABUF_MR
    test_dma_bufs();
#endif
    test_infiniband();
    test_advice();
    test_sysfs();
    test_locality();
    g_string_free(listed, TRUE);
    return tap_done();
}
