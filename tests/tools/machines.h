/* SPDX-License-Identifier: BSD-3-Clause */
/* mpiruns by what their --version prints, machines as trees of Linux's files,
 * and questions about both. */
#ifndef TESTS_TOOLS_MACHINES_H
#define TESTS_TOOLS_MACHINES_H

#include "tests/tap.h"
#include "tools/env/advice/advice.h"

#include <arpa/inet.h>
#include <glib/gstdio.h>

#define OPENMPI_4 "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://x/\n"
#define DEBIAN_4 "mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs to http://x/\n"
#define OPENMPI_5 "mpirun (Open MPI) 5.0.7\n\nReport bugs to x\n"
#define MPICH                                                                  \
    "HYDRA build details:\n    Version:                                 "      \
    "4.0.2\n    Release Date:            Thu Apr  7 12:34:45 CDT 2022\n"
#define INTEL                                                                  \
    "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 2026 (id: "   \
    "b4)\nCopyright 2003-2026, Intel Corporation.\n"

static char *folder;

/* One of the machines below; folder/NAME is its root. */
static inline void put(const char *machine, const char *path, const char *text)
{
    char *name = g_build_filename(folder, machine, path, NULL);
    char *parent = g_path_get_dirname(name);

    if (g_mkdir_with_parents(parent, 0700) < 0 ||
        !g_file_set_contents(name, text, -1, NULL))
        bail("cannot write %s", name);
    g_free(parent);
    g_free(name);
}

/* As the kernel prints it: addresses as this machine reads them. */
static inline void add_route(GString *text, const char *interface,
                             const char *network, const char *gateway,
                             const char *mask)
{
    g_string_append_printf(
        text, "%s\t%08X\t%08X\t0003\t0\t0\t0\t%08X\t0\t0\t0\n", interface,
        inet_addr(network), inet_addr(gateway), inet_addr(mask));
}

static inline void put_routes(const char *machine)
{
    GString *text = g_string_new("Iface\tDestination\tGateway \tFlags\tRefCnt\t"
                                 "Use\tMetric\tMask\t\tMTU\tWindow\tIRTT\n");

    add_route(text, "docker0", "172.17.0.0", "0.0.0.0", "255.255.0.0");
    add_route(text, "eth1", "192.168.7.0", "0.0.0.0", "255.255.255.0");
    add_route(text, "eth0", "0.0.0.0", "10.1.0.1", "0.0.0.0");
    add_route(text, "eth0", "10.1.0.0", "0.0.0.0", "255.255.252.0");
    put(machine, "proc/net/route", text->str);
    g_string_free(text, TRUE);
}

static inline void put_device(const char *machine, const char *device,
                              const char *state)
{
    char *path =
        g_strdup_printf("sys/class/infiniband/%s/ports/1/state", device);

    put(machine, path, state);
    g_free(path);
}

/* rdma, down, efa, opa, usnic, iwarp and cxi: plain with a device. */
static inline void put_machines(void)
{
    static const char *const likes[] = {"plain", "rdma", "down",
                                        "efa",   "opa",  "usnic",
                                        "iwarp", "cxi",  "masked"};

    for (size_t i = 0; i < G_N_ELEMENTS(likes); i++)
        put_routes(likes[i]);
    put("small", "proc/sys/kernel/hostname", "small.local\n");
    put_routes("small");
    put_device("rdma", "mlx5_0", "4: ACTIVE\n");
    put_device("down", "mlx5_0", "1: DOWN\n");
    put_device("efa", "efa_0", "4: ACTIVE\n");
    put_device("opa", "hfi1_0", "4: ACTIVE\n");
    put_device("usnic", "usnic_0", "4: ACTIVE\n");
    put_device("iwarp", "siw_eth0", "4: ACTIVE\n");
    put("iwarp", "sys/class/infiniband/siw_eth0/node_type", "4: RNIC\n");
    put("cxi", "sys/class/cxi/cxi0/uevent", "");
}

typedef struct {
    const char *version, *machine;
    int superuser, nodes, each;
    const char *const *environment, *const *old; /* NULL at the end, or NULL */
} question_t;

/* small: 2 cores. bare: nothing is known. masked: a launcher leaves one core.
 * All others: 8 cores, two NUMA nodes. */
static inline void count_cores(tool_advice_question_t *question,
                               const char *machine)
{
    const gboolean small = strcmp(machine, "small") == 0;
    const gboolean masked = strcmp(machine, "masked") == 0;

    if (strcmp(machine, "bare") == 0)
        return;
    question->cores = small ? 2 : masked ? 1 : 8;
    question->numa_nodes = small || masked ? 0 : 2;
    question->cores_per_numa = small || masked ? 0 : 4;
}

static inline tool_advice_t *ask(const question_t *v, char **ret_problem)
{
    char *root = g_build_filename(folder, v->machine, NULL);
    tool_advice_question_t question = {
        .program = "P",
        .version = v->version,
        .root = root,
        .environment = (char *const *)v->environment,
        .superuser = v->superuser,
        .nodes = v->nodes,
        .ranks_per_node = v->each,
        .old = (char *const *)v->old,
    };
    tool_advice_t *advice;

    count_cores(&question, v->machine);
    advice = tool_advise(&question, ret_problem);
    g_free(root);
    return advice;
}

static inline void remove_tree(const char *path)
{
    GDir *dir = g_dir_open(path, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        char *entry = g_build_filename(path, name, NULL);

        remove_tree(entry);
        g_free(entry);
    }
    if (dir)
        g_dir_close(dir);
    g_remove(path);
}

static inline void machines_open(void)
{
    folder = g_dir_make_tmp("advice-XXXXXX", NULL);
    if (!folder)
        bail("cannot make a folder");
    put_machines();
}

static inline void machines_close(void)
{
    remove_tree(folder);
    g_free(folder);
}

#endif
