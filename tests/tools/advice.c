/* SPDX-License-Identifier: BSD-3-Clause */
/* Which command line for which mpirun, machine and environment, and what
 * becomes of old arguments. The names of parameters are those of each
 * version's own documents, and ompi_info's. */
#include "config.h"

#include "tests/tap.h"
#include "tools/advice.h"

#include <arpa/inet.h>
#include <glib/gstdio.h>

#define WORDS 16

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
static void put(const char *machine, const char *path, const char *text)
{
    char *name = g_build_filename(folder, machine, path, NULL);
    char *parent = g_path_get_dirname(name);

    if (g_mkdir_with_parents(parent, 0700) < 0 ||
        !g_file_set_contents(name, text, -1, NULL))
        bail("cannot write %s", name);
    g_free(parent);
    g_free(name);
}

/* So many NUMA nodes of so many cores, with two processors each. */
static void put_processors(const char *machine, int nodes, int each)
{
    int cores = nodes * each;
    char text[64];

    snprintf(text, sizeof text, "0-%d\n", 2 * cores - 1);
    put(machine, "sys/devices/system/cpu/online", text);
    for (int i = 0; i < 2 * cores; i++) {
        char *path = g_strdup_printf(
            "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);

        snprintf(text, sizeof text, "%d,%d\n", i % cores, i % cores + cores);
        put(machine, path, text);
        g_free(path);
    }
    for (int i = 0; i < nodes; i++) {
        char *path =
            g_strdup_printf("sys/devices/system/node/node%d/cpulist", i);

        snprintf(text, sizeof text, "%d-%d,%d-%d\n", i * each,
                 i * each + each - 1, cores + i * each,
                 cores + i * each + each - 1);
        put(machine, path, text);
        g_free(path);
    }
}

/* As the kernel prints it: addresses as this machine reads them. */
static void add_route(GString *text, const char *interface, const char *network,
                      const char *gateway, const char *mask)
{
    g_string_append_printf(
        text, "%s\t%08X\t%08X\t0003\t0\t0\t0\t%08X\t0\t0\t0\n", interface,
        inet_addr(network), inet_addr(gateway), inet_addr(mask));
}

static void put_routes(const char *machine)
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

static void put_device(const char *machine, const char *device,
                       const char *state)
{
    char *path =
        g_strdup_printf("sys/class/infiniband/%s/ports/1/state", device);

    put(machine, path, state);
    g_free(path);
}

/* plain: 8 cores, two NUMA nodes. small: 2 cores. bare: nothing is known.
 * rdma, down and efa: plain with a device. masked: plain, but a launcher leaves
 * one core. */
static void put_machines(void)
{
    static const char *const likes[] = {"plain", "rdma", "down", "efa",
                                        "masked"};

    for (size_t i = 0; i < G_N_ELEMENTS(likes); i++) {
        put_processors(likes[i], 2, 4);
        put_routes(likes[i]);
    }
    put_processors("small", 1, 2);
    put_routes("small");
    put_device("rdma", "mlx5_0", "4: ACTIVE\n");
    put_device("down", "mlx5_0", "1: DOWN\n");
    put_device("efa", "efa_0", "4: ACTIVE\n");
    put("masked", "proc/self/status",
        "Name:\tx\nCpus_allowed:\t202\nCpus_allowed_list:\t1,9\nMems:\t1\n");
}

typedef struct {
    const char *name, *version, *machine;
    int superuser, nodes, each;
    const char *environment[WORDS];
    const char *old[WORDS];
    const char *want; /* the line */
} line_t;

static const line_t lines[] = {
    /* Open MPI 4 */
    {"4.1, one node",
     OPENMPI_4,
     "plain",
     0,
     0,
     4,
     {NULL},
     {NULL},
     "P -n 4 --map-by ppr:2:numa:PE=2 --bind-to core --mca pml ob1 --mca btl "
     "self,vader PROGRAM"},
    {"4.1 of Debian, as many ranks as cores",
     DEBIAN_4,
     "plain",
     0,
     0,
     0,
     {NULL},
     {NULL},
     "P -n 8 --map-by ppr:4:numa:PE=1 --bind-to core --mca pml ob1 --mca btl "
     "self,vader PROGRAM"},
    {"4.1, ranks that do not divide",
     OPENMPI_4,
     "plain",
     0,
     1,
     3,
     {NULL},
     {NULL},
     "P -n 3 --map-by ppr:3:node:PE=2 --bind-to core --mca pml ob1 --mca btl "
     "self,vader PROGRAM"},
    {"4.1, more ranks than cores, as root",
     OPENMPI_4,
     "small",
     1,
     1,
     4,
     {NULL},
     {NULL},
     "P --allow-run-as-root -n 4 --map-by ppr:4:node:oversubscribe --bind-to "
     "none --mca pml ob1 --mca btl self,vader PROGRAM"},
    {"4.1, root may",
     OPENMPI_4,
     "small",
     1,
     1,
     1,
     {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"},
     {NULL},
     "P -n 1 --map-by ppr:1:node:PE=2 --bind-to core --mca pml ob1 --mca btl "
     "self,vader PROGRAM"},
    {"4.1, a mask",
     OPENMPI_4,
     "masked",
     0,
     1,
     0,
     {NULL},
     {NULL},
     "P -n 1 --map-by ppr:1:node:PE=1 --bind-to core --mca pml ob1 --mca btl "
     "self,vader PROGRAM"},
    {"4.1, an unknown machine",
     OPENMPI_4,
     "bare",
     0,
     1,
     2,
     {NULL},
     {NULL},
     "P -n 2 --map-by ppr:2:node --bind-to none --mca pml ob1 --mca btl "
     "self,vader PROGRAM"},
    {"4.1, several nodes",
     OPENMPI_4,
     "plain",
     0,
     2,
     8,
     {"DSCOMM_LOG=info", "DSCOMM_RANK=3", "HOME=/h", "MASTER_ADDR=n0",
      "CUDA_VISIBLE_DEVICES=0", "OMP_NUM_THREADS="},
     {NULL},
     "P -n 16 --hostfile hosts --map-by ppr:4:numa:PE=1 --bind-to core --mca "
     "pml ob1 --mca btl self,vader,tcp --mca btl_tcp_if_include 10.1.0.0/22 "
     "--mca oob_tcp_if_include 10.1.0.0/22 -x DSCOMM_LOG -x MASTER_ADDR "
     "PROGRAM"},
    {"4.1, nodes by Slurm, another network",
     OPENMPI_4,
     "plain",
     0,
     0,
     8,
     {"SLURM_JOB_ID=1", "SLURM_JOB_NUM_NODES=3", "DSCOMM_SOCKET_IFNAME=eth1"},
     {NULL},
     "P -n 24 --map-by ppr:4:numa:PE=1 --bind-to core --mca pml ob1 --mca btl "
     "self,vader,tcp --mca btl_tcp_if_include 192.168.7.0/24 --mca "
     "oob_tcp_if_include 192.168.7.0/24 -x DSCOMM_SOCKET_IFNAME PROGRAM"},
    {"4.1, RDMA",
     OPENMPI_4,
     "rdma",
     0,
     2,
     8,
     {"PBS_JOBID=1"},
     {NULL},
     "P -n 16 --map-by ppr:4:numa:PE=1 --bind-to core --mca pml ucx --mca "
     "oob_tcp_if_include 10.1.0.0/22 PROGRAM"},
    {"4.1, a port that is down",
     OPENMPI_4,
     "down",
     0,
     1,
     8,
     {NULL},
     {NULL},
     "P -n 8 --map-by ppr:4:numa:PE=1 --bind-to core --mca pml ob1 --mca btl "
     "self,vader PROGRAM"},
    {"4.1, a device that is not UCX's",
     OPENMPI_4,
     "efa",
     0,
     1,
     8,
     {NULL},
     {NULL},
     "P -n 8 --map-by ppr:4:numa:PE=1 --bind-to core --mca pml ob1 --mca btl "
     "self,vader PROGRAM"},

    /* Open MPI 5 */
    {"5.0, one node",
     OPENMPI_5,
     "plain",
     0,
     0,
     4,
     {NULL},
     {NULL},
     "P -n 4 --map-by ppr:2:numa:PE=2 --bind-to core --mca pml ob1 --mca btl "
     "self,sm PROGRAM"},
    {"5.0, several nodes",
     OPENMPI_5,
     "plain",
     0,
     2,
     8,
     {"LSB_JOBID=1"},
     {NULL},
     "P -n 16 --map-by ppr:4:numa:PE=1 --bind-to core --mca pml ob1 --mca btl "
     "self,sm,tcp --mca btl_tcp_if_include 10.1.0.0/22 --prtemca "
     "prte_if_include 10.1.0.0/22 PROGRAM"},
    {"5.0, RDMA",
     OPENMPI_5,
     "rdma",
     0,
     1,
     8,
     {NULL},
     {NULL},
     "P -n 8 --map-by ppr:4:numa:PE=1 --bind-to core --mca pml ucx PROGRAM"},

    /* MPICH */
    {"MPICH, one node",
     MPICH,
     "plain",
     1,
     0,
     4,
     {NULL},
     {NULL},
     "P -n 4 -bind-to core:2 -map-by numa PROGRAM"},
    {"MPICH, more ranks than cores",
     MPICH,
     "small",
     0,
     0,
     3,
     {NULL},
     {NULL},
     "P -n 3 PROGRAM"},
    {"MPICH, several nodes",
     MPICH,
     "plain",
     0,
     2,
     3,
     {"DSCOMM_LOG=info"},
     {NULL},
     "P -n 6 -f hosts -ppn 3 -bind-to core:2 -iface eth0 -genvall PROGRAM"},

    /* Intel MPI */
    {"Intel MPI, one node",
     INTEL,
     "plain",
     0,
     0,
     4,
     {NULL},
     {NULL},
     "P -n 4 -genv I_MPI_PIN_DOMAIN auto:compact PROGRAM"},
    {"Intel MPI, more ranks than cores",
     INTEL,
     "small",
     0,
     0,
     3,
     {NULL},
     {NULL},
     "P -n 3 -genv I_MPI_PIN 0 PROGRAM"},
    {"Intel MPI, nodes by Slurm",
     INTEL,
     "plain",
     0,
     2,
     4,
     {"SLURM_JOB_ID=1"},
     {NULL},
     "I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=0 P -n 8 -ppn 4 -genv "
     "I_MPI_PIN_DOMAIN auto:compact -genv I_MPI_OFI_PROVIDER tcp -iface eth0 "
     "PROGRAM"},

    /* Counts, and what is kept of old arguments */
    {"the old count",
     OPENMPI_4,
     "plain",
     0,
     2,
     0,
     {NULL},
     {"-np", "7", "--hostfile", "my hosts", "./a.out", "-n", "3"},
     "P -n 7 --map-by ppr:2:numa:PE=2 --bind-to core --mca pml ob1 --mca btl "
     "self,vader,tcp --mca btl_tcp_if_include 10.1.0.0/22 --mca "
     "oob_tcp_if_include 10.1.0.0/22 --hostfile 'my hosts' ./a.out -n 3"},
    {"an old mpirun, and what is not known",
     MPICH,
     "small",
     0,
     0,
     2,
     {NULL},
     {"/usr/bin/mpiexec", "-l", "--foo", "1", "-x", "A", "prog"},
     "P -n 2 -bind-to core:1 -l --foo 1 -x A prog"},
    {"a variable in others' words",
     MPICH,
     "small",
     0,
     0,
     2,
     {NULL},
     {"-x", "A=b c", "--host", "h,i", "--", "prog"},
     "P -n 2 -bind-to core:1 -genv A 'b c' -hosts h,i prog"},
    {"and the other way",
     OPENMPI_5,
     "small",
     0,
     2,
     1,
     {NULL},
     {"-genv", "A", "b", "-f", "h", "prog"},
     "P -n 2 --map-by ppr:1:node:PE=2 --bind-to core --mca pml ob1 --mca btl "
     "self,sm,tcp --mca btl_tcp_if_include 10.1.0.0/22 --prtemca "
     "prte_if_include 10.1.0.0/22 -x A=b --hostfile h prog"},
    {"a network of one's own",
     OPENMPI_4,
     "small",
     0,
     2,
     1,
     {NULL},
     {"--mca", "btl_tcp_if_include", "10.9.0.0/16", "--host", "a,b"},
     "P -n 2 --map-by ppr:1:node:PE=2 --bind-to core --mca pml ob1 --mca btl "
     "self,vader,tcp --mca btl_tcp_if_include 10.9.0.0/16 --mca "
     "oob_tcp_if_include 10.9.0.0/16 --host a,b PROGRAM"},
};

static tool_advice_t *ask(const line_t *v, char **ret_problem)
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
    tool_advice_t *advice = tool_advise(&question, ret_problem);

    g_free(root);
    return advice;
}

static void check_line(const line_t *v)
{
    char *problem = NULL, *line;
    tool_advice_t *advice = ask(v, &problem);

    if (!ok(advice != NULL, "%s: there is advice", v->name)) {
        g_free(problem);
        return;
    }
    line = tool_advice_line(advice);
    is_str(line, v->want, "%s", v->name);
    for (guint i = 0; i < advice->parts->len; i++) {
        const tool_advice_part_t *part = g_ptr_array_index(advice->parts, i);

        if (!*part->why || strchr(part->why, '{'))
            ok(0, "%s: '%s' has a reason", v->name, part->words[0]);
    }
    g_free(line);
    tool_advice_free(advice);
}

typedef struct {
    const char *version, *machine;
    int nodes;
    const char *old[4];
    const char *verdict;
    const char *says; /* in the reason, or in what to write instead */
} old_t;

#define MCA(name, value)                                                       \
    {                                                                          \
        "--mca", name, value                                                   \
    }

static const old_t olds[] = {
    {OPENMPI_4, "plain", 1, MCA("btl_sm_use_knem", "1"), "dropped",
     "btl_vader_single_copy_mechanism"},
    {OPENMPI_5, "plain", 1, MCA("btl_sm_use_knem", "1"), "dropped", "smsc"},
    {OPENMPI_4, "plain", 1, MCA("coll", "tuned"), "dropped", "MPI_Init fails"},
    {OPENMPI_5, "plain", 1, MCA("coll", "tuned"), "dropped", "coll ^han"},
    {OPENMPI_5, "plain", 1, MCA("coll", "^han"), "kept", "right"},
    {OPENMPI_4, "plain", 1, MCA("coll", "tuned,basic,libnbc,self"), "kept",
     "right"},
    {OPENMPI_4, "plain", 1, MCA("hwloc_base_binding_policy", "core"),
     "replaced", "--bind-to core"},
    {OPENMPI_5, "plain", 1, MCA("hwloc_base_binding_policy", "core"),
     "replaced", "silently ignored by 5.x"},
    {OPENMPI_5, "plain", 1, MCA("rmaps_base_oversubscribe", "1"), "replaced",
     "--map-by ppr"},
    {OPENMPI_4, "plain", 1, MCA("btl", "openib,self,vader"), "replaced",
     "--mca btl self,vader"},
    {OPENMPI_5, "plain", 1, MCA("btl", "openib,self"), "replaced",
     "5.x has no openib"},
    {OPENMPI_5, "plain", 1, MCA("btl_openib_allow_ib", "1"), "dropped",
     "no openib"},
    {OPENMPI_4, "plain", 1, MCA("btl", "sm,self"), "replaced", "vader"},
    {OPENMPI_5, "plain", 1, MCA("btl", "sm,self"), "replaced",
     "the line has its own"},
    {OPENMPI_5, "plain", 1, MCA("btl", "self,sm"), "kept", "says the same"},
    {OPENMPI_5, "plain", 1, MCA("btl", "vader,self"), "replaced", "called sm"},
    {OPENMPI_4, "plain", 1, MCA("btl", "vader"), "replaced", "self"},
    {OPENMPI_4, "plain", 1, MCA("btl_sm_eager_limit", "1"), "dropped", "5.x"},
    {OPENMPI_5, "plain", 1, MCA("btl_sm_eager_limit", "1"), "kept", "right"},
    {OPENMPI_4, "plain", 1, MCA("btl_vader_eager_limit", "1"), "kept", "right"},
    {OPENMPI_5, "plain", 1, MCA("btl_vader_eager_limit", "1"), "dropped",
     "btl_sm_"},
    {OPENMPI_4, "plain", 1, MCA("pml", "ucx"), "replaced", "--mca pml ob1"},
    {OPENMPI_4, "rdma", 1, MCA("pml", "ucx"), "kept", "says the same"},
    {OPENMPI_4, "rdma", 1, MCA("pml", "ob1"), "replaced", "mlx5_0"},
    {OPENMPI_4, "plain", 1, MCA("pml", "cm"), "unknown", "ompi_info"},
    {OPENMPI_4, "plain", 2, MCA("btl_tcp_if_include", "eth0"), "replaced",
     "btl_tcp_if_include 10.1.0.0/22"},
    {OPENMPI_4, "plain", 1, MCA("btl_tcp_if_include", "eth0"), "dropped",
     "one node"},
    {OPENMPI_4, "rdma", 2, MCA("btl_tcp_if_include", "eth0"), "dropped",
     "UCX_NET_DEVICES"},
    {OPENMPI_4, "bare", 2, MCA("btl_tcp_if_include", "eth0"), "dropped",
     "NETWORK/BITS"},
    {OPENMPI_5, "plain", 2, MCA("oob_tcp_if_include", "eth0"), "dropped",
     "--prtemca prte_if_include 10.1.0.0/22"},
    {OPENMPI_5, "plain", 2, MCA("orte_default_hostfile", "/h"), "replaced",
     "--hostfile /h"},
    {OPENMPI_4, "plain", 1, MCA("nothing_like_it", "1"), "unknown",
     "silently ignored"},
    {OPENMPI_4, "plain", 1, {"--map-by", "package"}, "replaced", "socket"},
    {OPENMPI_5, "plain", 1, {"--rank-by", "core"}, "dropped", "refuses"},
    {OPENMPI_4, "plain", 1, {"--rank-by", "core"}, "kept", "right"},
    {OPENMPI_4, "plain", 1, {"-npernode", "2"}, "replaced", "--map-by ppr"},
    {OPENMPI_4, "plain", 1, {"--oversubscribe"}, "dropped", "cores enough"},
    {OPENMPI_4, "small", 1, {"--oversubscribe"}, "replaced", "oversubscribe"},
    {OPENMPI_4, "plain", 1, {"--allow-run-as-root"}, "dropped", "not needed"},
    {OPENMPI_4, "plain", 1, {"-ppn", "2"}, "replaced", "--map-by ppr"},
    {OPENMPI_4, "rdma", 1, {"-x", "UCX_TLS=tcp"}, "dropped", "mlx5_0"},
    {OPENMPI_4,
     "plain",
     2,
     {"-x", "NCCL_SOCKET_IFNAME=eth0"},
     "kept",
     "otherwise"},
    {OPENMPI_4, "plain", 1, {"-x", "RANK=0"}, "dropped", "each of which"},
    {OPENMPI_4, "plain", 1, {"--mca", "pml"}, "unknown", "not in this table"},
    {MPICH, "plain", 1, MCA("btl", "self"), "dropped", "of Open MPI"},
    {MPICH, "plain", 1, {"--oversubscribe"}, "dropped", "does not need"},
    {MPICH, "plain", 1, {"-x", "A"}, "dropped", "all variables"},
    {MPICH, "plain", 2, {"-ppn", "4"}, "kept", "says the same"},
    {MPICH, "plain", 1, {"-bind-to", "none"}, "replaced", "-bind-to core:2"},
    {INTEL,
     "plain",
     1,
     {"-genv", "I_MPI_FABRICS", "shm:dapl"},
     "dropped",
     "shm:ofi"},
    {INTEL,
     "plain",
     1,
     {"-genv", "I_MPI_PIN", "0"},
     "replaced",
     "I_MPI_PIN_DOMAIN auto:compact"},
};

static void check_old(const old_t *v)
{
    line_t question = {.version = v->version,
                       .machine = v->machine,
                       .nodes = v->nodes,
                       .each = 4};
    const tool_advice_judgement_t *judgement;
    tool_advice_t *advice;
    char *problem = NULL, *all;

    memcpy(question.old, v->old, sizeof v->old);
    advice = ask(&question, &problem);
    if (!ok(advice && advice->judgements->len == 1, "%.20s: %s %s is judged",
            v->version, v->old[0], v->old[1] ? v->old[1] : ""))
        return;
    judgement = g_ptr_array_index(advice->judgements, 0);
    is_str(tool_advice_verdicts[judgement->verdict], v->verdict, "%.20s: %s",
           v->version, judgement->text);
    all = g_strconcat(judgement->why, "|",
                      judgement->instead ? judgement->instead : "", NULL);
    if (!ok(strstr(all, v->says) != NULL, "and says '%s'", v->says))
        tap_text("says", all);
    g_free(all);
    tool_advice_free(advice);
}

static const char *const strangers[] = {
    "",
    "prterun (PRRTE) 3.0.8\n",
    "mpirun (Open MPI) 3.1.6\n",
    "mpirun (Open MPI) \n",
    "(Open MPI) x4",
    "HYDRA build details:\n",
    "Intel(R) MPI Library for Linux* OS, Version 5.1.3 Build 1\n",
    "(Open MPI) 99999999999999999999",
};

static void check_refused(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(strangers); i++) {
        line_t question = {.version = strangers[i], .machine = "plain"};
        char *problem = NULL;
        tool_advice_t *advice = ask(&question, &problem);

        ok(!advice && problem && strstr(problem, "names neither"),
           "no mpirun that is known: '%.30s'", strangers[i]);
        tool_advice_free(advice);
        g_free(problem);
    }
}

static void check_counts(void)
{
    static const int counts[][2] = {{-1, 1}, {1, -1}, {100001, 1}, {1, 4097}};

    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++) {
        line_t question = {.version = MPICH,
                           .machine = "plain",
                           .nodes = counts[i][0],
                           .each = counts[i][1]};
        char *problem = NULL;
        tool_advice_t *advice = ask(&question, &problem);

        ok(!advice && problem, "%d nodes of %d are refused", counts[i][0],
           counts[i][1]);
        tool_advice_free(advice);
        g_free(problem);
    }
}

/* What is in the environment cannot be left out of a line. */
static void check_ambient(void)
{
    const line_t question = {
        .version = OPENMPI_5,
        .machine = "down",
        .each = 4,
        .environment = {"OMPI_MCA_hwloc_base_binding_policy=core", "RANK=0",
                        "OMPI_MCA_coll_tuned_priority=9"},
    };
    char *problem = NULL;
    tool_advice_t *advice = ask(&question, &problem);
    const tool_advice_judgement_t *judgement;

    if (!is_int(advice ? (int)advice->judgements->len : -1, 1,
                "a variable is judged, and one that is right is not"))
        return;
    judgement = g_ptr_array_index(advice->judgements, 0);
    is_str(judgement->text, "OMPI_MCA_hwloc_base_binding_policy=core",
           "which one");
    is_int((int)advice->notes->len, 2, "notes");
    ok(strstr(g_ptr_array_index(advice->notes, 0), "no active port") != NULL,
       "about the device");
    ok(strstr(g_ptr_array_index(advice->notes, 1), "RANK is set") != NULL,
       "about a rank");
    tool_advice_free(advice);
}

static void remove_tree(const char *path)
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

int main(void)
{
    folder = g_dir_make_tmp("advice-XXXXXX", NULL);
    if (!folder)
        bail("cannot make a folder");
    put_machines();
    for (size_t i = 0; i < G_N_ELEMENTS(lines); i++)
        check_line(&lines[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(olds); i++)
        check_old(&olds[i]);
    check_refused();
    check_counts();
    check_ambient();
    remove_tree(folder);
    g_free(folder);
    return tap_done();
}
