/* SPDX-License-Identifier: BSD-3-Clause */
/* The facts of machines, of folders that look like those of real ones, and that
 * they do not depend on where this process may run. */
#include "config.h"

#include "lib/base/machine.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

#define CACHE "/sys/devices/system/cpu/cpu0/cache/index"

/* Files of a machine, and the facts: processor, processors, cache, NUMA nodes.
 * The texts of /proc/cpuinfo are those of Linux on these processors. */
static const struct {
    const char *what;
    const char *files[20]; /* path and text, in turn */
    const char *want[DSCOMM_MACHINE_FACTS];
} machines[] = {
    {"x86",
     {"/proc/cpuinfo",
      "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
      "model\t\t: 143\nmodel name\t: Intel(R) Xeon(R)   Platinum 8480C\n"
      "cpu MHz\t\t: 2000.000\n\nprocessor\t: 1\nmodel name\t: other\n",
      "/sys/devices/system/cpu/online", "0-111,224-335\n",
      "/sys/devices/system/node/online", "0-1\n", CACHE "0/level", "1\n",
      CACHE "0/size", "48K\n", CACHE "1/level", "2\n", CACHE "1/size",
      "2048K\n", CACHE "2/level", "3\n", CACHE "2/size", "107520K\n"},
     {"family 6, model 143, Intel(R) Xeon(R) Platinum 8480C", "224",
      "110100480", "2"}},
    {"Arm",
     {"/proc/cpuinfo",
      "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\n"
      "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n"
      "CPU part\t: 0xd0c\nCPU revision\t: 1\n\nprocessor\t: 1\n",
      "/sys/devices/system/cpu/online", "0\n"},
     {"implementer 0x41, variant 0x3, part 0xd0c", "1", "unknown", "unknown"}},
    {"POWER",
     {"/proc/cpuinfo",
      "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n"
      "clock\t\t: 3800.000000MHz\n\n",
      "/sys/devices/system/cpu/online", "0,4,8-11", CACHE "0/level", "3",
      CACHE "0/size", "10M", CACHE "1/level", "2", CACHE "1/size", "512K"},
     {"POWER9, altivec supported", "6", "10485760", "unknown"}},
    {"malformed lists",
     {"/proc/cpuinfo", "\n\nnothing\n", "/sys/devices/system/cpu/online",
      "0-x\n", "/sys/devices/system/node/online", "3-1\n", CACHE "0/level", "1",
      CACHE "0/size", "big"},
     {"unknown", "unknown", "unknown", "unknown"}},
    {"nothing", {NULL}, {"unknown", "unknown", "unknown", "unknown"}},
};

static void file_make(const char *root, const char *path, const char *text)
{
    char *full = g_strconcat(root, path, NULL);
    char *folder = g_path_get_dirname(full);

    if (g_mkdir_with_parents(folder, 0700) ||
        !g_file_set_contents(full, text, -1, NULL))
        bail("cannot write %s", full);
    g_free(folder);
    g_free(full);
}

static void test_machines(void)
{
    dscomm_machine_fact_t facts[DSCOMM_MACHINE_FACTS];

    for (size_t i = 0; i < G_N_ELEMENTS(machines); i++) {
        char root[] = "/tmp/machine.XXXXXX";
        char *remove;

        if (!mkdtemp(root))
            bail("no folder");
        for (const char *const *f = machines[i].files; *f; f += 2)
            file_make(root, f[0], f[1]);
        dscomm_priv_machine_read(root, facts);
        for (int k = 0; k < DSCOMM_MACHINE_FACTS; k++)
            is_str(facts[k].value, machines[i].want[k], "%s: %s",
                   machines[i].what, facts[k].name);
        remove = g_strdup_printf("rm -rf %s", root);
        if (system(remove))
            bail("cannot remove %s", root);
        g_free(remove);
    }
}

/* A model of any length, and bytes that are no text. */
static void test_long(void)
{
    char root[] = "/tmp/machine.XXXXXX", text[900] = "model name\t: \x01\xff";
    char *path;
    dscomm_machine_fact_t facts[DSCOMM_MACHINE_FACTS];

    if (!mkdtemp(root))
        bail("no folder");
    memset(text + 15, 'x', sizeof text - 16);
    file_make(root, "/proc/cpuinfo", text);
    dscomm_priv_machine_read(root, facts);
    is_int((int)strlen(facts[0].value), DSCOMM_MACHINE_FACT_MAX - 1,
           "a long model is cut off");
    is_int((int)strspn(facts[0].value, "x"), DSCOMM_MACHINE_FACT_MAX - 1,
           "and has no other bytes");
    path = g_strconcat(root, "/proc/cpuinfo", NULL);
    g_unlink(path);
    g_free(path);
    path = g_strconcat(root, "/proc", NULL);
    g_rmdir(path);
    g_free(path);
    g_rmdir(root);
}

static void test_bound(void)
{
    dscomm_machine_fact_t before[DSCOMM_MACHINE_FACTS];
    dscomm_machine_fact_t after[DSCOMM_MACHINE_FACTS];
    cpu_set_t all, one;

    dscomm_priv_machine_read("", before);
    if (sched_getaffinity(0, sizeof all, &all)) {
        skip("no affinity");
        return;
    }
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    sched_setaffinity(0, sizeof one, &one);
    dscomm_priv_machine_read("", after);
    sched_setaffinity(0, sizeof all, &all);
    for (int i = 0; i < DSCOMM_MACHINE_FACTS; i++)
        is_str(after[i].value, before[i].value, "%s of a bound process",
               before[i].name);
}

int main(void)
{
    test_machines();
    test_long();
    test_bound();
    return tap_done();
}
