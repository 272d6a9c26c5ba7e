/* SPDX-License-Identifier: BSD-3-Clause */
/* Which command line for which mpirun, machine and environment. The names of
 * parameters are those of each version's own documents, and ompi_info's. */
#include "config.h"

#include "tests/tools/machines.h"

#define WORDS 16

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
    {"4.1, variables that are a rank's, and that are not",
     OPENMPI_4,
     "small",
     0,
     2,
     1,
     {"LSB_JOBID=1", "LSB_MCPU_HOSTS=h1 4 h2 4", "DSCOMM_LAUNCHER=openmpi",
      "DSCOMM_HOST_ID=a", "DSCOMM_NODE_RANK=0", "LD_LIBRARY_PATH=/l",
      "UCX_LOG_LEVEL=warn", "BASH_FUNC_x%%=() { :; }"},
     {"-x", "LAUNCHER=y", "-x", "UCX_LOG_LEVEL"},
     "P -n 2 --map-by ppr:1:node:PE=2 --bind-to core --mca pml ob1 --mca btl "
     "self,vader,tcp --mca btl_tcp_if_include 10.1.0.0/22 --mca "
     "oob_tcp_if_include 10.1.0.0/22 -x MASTER_ADDR=h1 -x DSCOMM_LAUNCHER -x "
     "LD_LIBRARY_PATH -x LAUNCHER=y -x UCX_LOG_LEVEL PROGRAM"},
    {"4.1, nodes by Slurm, another network",
     OPENMPI_4,
     "plain",
     0,
     0,
     8,
     {"SLURM_JOB_ID=1", "SLURM_JOB_NUM_NODES=3", "DSCOMM_SOCKET_IFNAME=eth1",
      "SLURM_JOB_NODELIST=rack[1-2,4]-n[08,10-11],login"},
     {NULL},
     "P -n 24 --map-by ppr:4:numa:PE=1 --bind-to core --mca pml ob1 --mca btl "
     "self,vader,tcp --mca btl_tcp_if_include 192.168.7.0/24 --mca "
     "oob_tcp_if_include 192.168.7.0/24 -x MASTER_ADDR=rack1-n08 -x "
     "DSCOMM_SOCKET_IFNAME PROGRAM"},
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
    {"4.1, a device of libfabric's",
     OPENMPI_4,
     "efa",
     0,
     1,
     8,
     {NULL},
     {NULL},
     "P -n 8 --map-by ppr:4:numa:PE=1 --bind-to core --mca pml cm --mca mtl "
     "ofi PROGRAM"},
    {"the same, two nodes",
     OPENMPI_4,
     "efa",
     0,
     2,
     8,
     {NULL},
     {NULL},
     "P -n 16 --hostfile hosts --map-by ppr:4:numa:PE=1 --bind-to core --mca "
     "pml cm --mca mtl ofi --mca oob_tcp_if_include 10.1.0.0/22 PROGRAM"},
    {"two nodes, a device of PSM2's",
     OPENMPI_4,
     "opa",
     0,
     2,
     8,
     {NULL},
     {NULL},
     "P -n 16 --hostfile hosts --map-by ppr:4:numa:PE=1 --bind-to core --mca "
     "pml cm --mca mtl psm2 --mca oob_tcp_if_include 10.1.0.0/22 PROGRAM"},
    {"a device with a way of its own",
     OPENMPI_4,
     "usnic",
     0,
     2,
     8,
     {NULL},
     {NULL},
     "P -n 16 --hostfile hosts --map-by ppr:4:numa:PE=1 --bind-to core --mca "
     "oob_tcp_if_include 10.1.0.0/22 PROGRAM"},
    {"a device of iWARP",
     OPENMPI_4,
     "iwarp",
     0,
     2,
     8,
     {NULL},
     {NULL},
     "P -n 16 --hostfile hosts --map-by ppr:4:numa:PE=1 --bind-to core --mca "
     "pml ob1 --mca btl self,vader,tcp --mca btl_tcp_if_include 10.1.0.0/22 "
     "--mca oob_tcp_if_include 10.1.0.0/22 PROGRAM"},
    {"an mtl of one's own",
     OPENMPI_4,
     "plain",
     0,
     1,
     8,
     {NULL},
     {"--mca", "mtl", "ofi"},
     "P -n 8 --map-by ppr:4:numa:PE=1 --bind-to core --mca mtl ofi PROGRAM"},
    {"Intel MPI, a device of libfabric's",
     INTEL,
     "efa",
     0,
     2,
     4,
     {NULL},
     {NULL},
     "P -n 8 -f hosts -ppn 4 -genv I_MPI_PIN_DOMAIN auto:compact -iface eth0 "
     "PROGRAM"},
    {"Intel MPI, iWARP",
     INTEL,
     "iwarp",
     0,
     2,
     4,
     {NULL},
     {NULL},
     "P -n 8 -f hosts -ppn 4 -genv I_MPI_PIN_DOMAIN auto:compact -iface eth0 "
     "PROGRAM"},
    {"Intel MPI, a provider of one's own",
     INTEL,
     "efa",
     0,
     2,
     4,
     {NULL},
     {"-genv", "I_MPI_OFI_PROVIDER", "efa"},
     "P -n 8 -f hosts -ppn 4 -genv I_MPI_PIN_DOMAIN auto:compact -iface eth0 "
     "-genv I_MPI_OFI_PROVIDER efa PROGRAM"},
    {"4.1, no binding",
     OPENMPI_4,
     "plain",
     0,
     1,
     4,
     {NULL},
     {"--bind-to", "none"},
     "P -n 4 --map-by ppr:4:node --bind-to none --mca pml ob1 --mca btl "
     "self,vader PROGRAM"},
    {"5.0, no binding, in 4.x's words",
     OPENMPI_5,
     "plain",
     0,
     1,
     4,
     {NULL},
     {"--mca", "hwloc_base_binding_policy", "none"},
     "P -n 4 --map-by ppr:4:node --bind-to none --mca pml ob1 --mca btl "
     "self,sm PROGRAM"},
    {"MPICH, no binding",
     MPICH,
     "plain",
     0,
     1,
     4,
     {NULL},
     {"-bind-to", "none"},
     "P -n 4 -bind-to none PROGRAM"},
    {"Intel MPI, no pinning",
     INTEL,
     "plain",
     0,
     1,
     4,
     {NULL},
     {"-genv", "I_MPI_PIN", "0"},
     "P -n 4 -genv I_MPI_PIN 0 PROGRAM"},

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
     "prte_if_include eth0 PROGRAM"},
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
     "P -n 6 -f hosts -ppn 3 -bind-to core:2 -iface eth0 -genvall "
     "PROGRAM"},
    {"MPICH, several nodes, all of it given",
     MPICH,
     "small",
     0,
     2,
     1,
     {"DSCOMM_MASTER_ADDR=h"},
     {"-genv", "MASTER_PORT", "7", "-hosts", "a,b"},
     "P -n 2 -ppn 1 -bind-to core:2 -iface eth0 -genvall -genv MASTER_PORT 7 "
     "-hosts a,b PROGRAM"},

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
     {"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n1,n[2-3]"},
     {NULL},
     "I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=0 P -n 8 -ppn 4 -genv "
     "I_MPI_PIN_DOMAIN auto:compact -genv I_MPI_OFI_PROVIDER tcp -iface eth0 "
     "-genv MASTER_ADDR n1 PROGRAM"},

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
     "oob_tcp_if_include 10.1.0.0/22 --hostfile "
     "'my hosts' ./a.out -n 3"},
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
     "P -n 4 -ppn 2 -bind-to core:1 -iface eth0 -genv MASTER_ADDR h -genv A "
     "'b c' -hosts h,i prog"},
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
     "prte_if_include eth0 -x A=b --hostfile h prog"},
    {"4.1, this host is not the first",
     OPENMPI_4,
     "small",
     0,
     2,
     1,
     {NULL},
     {"--host", "n1:2,Small.site:2"},
     "P -n 2 --map-by ppr:1:node:PE=2 --bind-to core --mca pml ob1 --mca btl "
     "self,vader,tcp --mca btl_tcp_if_include 10.1.0.0/22 --mca "
     "oob_tcp_if_include 10.1.0.0/22 -x MASTER_ADDR=Small.site --host "
     "n1:2,Small.site:2 PROGRAM"},
    {"5.0, this host is not the first",
     OPENMPI_5,
     "small",
     0,
     2,
     1,
     {NULL},
     {"--host", "n1:2,small:2"},
     "P -n 2 --map-by ppr:1:node:PE=2 --bind-to core --mca pml ob1 --mca btl "
     "self,sm,tcp --mca btl_tcp_if_include 10.1.0.0/22 --prtemca "
     "prte_if_include eth0 -x MASTER_ADDR=n1 --host n1:2,small:2 PROGRAM"},
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
     "oob_tcp_if_include 10.9.0.0/16 -x MASTER_ADDR=a --host a,b PROGRAM"},
};

static void check_line(const line_t *v)
{
    char *problem = NULL, *line;
    const question_t question = {.version = v->version,
                                 .machine = v->machine,
                                 .superuser = v->superuser,
                                 .nodes = v->nodes,
                                 .each = v->each,
                                 .environment = v->environment,
                                 .old = v->old};
    tool_advice_t *advice = ask(&question, &problem);

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

/* Which network, of docker0 172.17.0.0/16, eth1 192.168.7.0/24 and eth0
 * 10.1.0.0/22, which has the default route. */
static const struct {
    const char *wanted, *subnet;
} networks[] = {
    {"", "10.1.0.0/22"},
    {"eth", "10.1.0.0/22"},
    {"eth1", "192.168.7.0/24"},
    {"=eth1", "192.168.7.0/24"},
    {"=eth", NULL},
    {"wlan0,eth1", "192.168.7.0/24"},
    {"^eth0", "192.168.7.0/24"},
    {"^eth", "172.17.0.0/16"},
    {"^=eth", "10.1.0.0/22"},
    {"docker0", "172.17.0.0/16"},
    {"192.168.0.0/16", "192.168.7.0/24"},
    {"^10.0.0.0/8", "192.168.7.0/24"},
    {"0.0.0.0/0", "10.1.0.0/22"},
    {"192.168.7.0/33", NULL},
    {"192.168.7/24", NULL},
    {"ib0", NULL},
};

static void check_network(const char *variable, const char *wanted,
                          const char *subnet)
{
    char *set = g_strdup_printf("%s=%s", variable, wanted);
    const char *const environment[] = {set, NULL};
    const question_t question = {.version = OPENMPI_4,
                                 .machine = "plain",
                                 .nodes = 2,
                                 .environment = environment};
    char *problem = NULL, *line, *want;
    tool_advice_t *advice = ask(&question, &problem);

    if (!advice)
        bail("no advice: %s", problem);
    line = tool_advice_line(advice);
    want = g_strdup_printf("btl_tcp_if_include %s ", subnet ? subnet : "");
    if (subnet)
        ok(strstr(line, want) != NULL, "%s is %s", set, subnet);
    else
        ok(!strstr(line, "if_include") && advice->notes->len == 3,
           "%s is none, which is said", set);
    g_free(want);
    g_free(line);
    g_free(set);
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
        const question_t question = {.version = strangers[i],
                                     .machine = "plain"};
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
        const question_t question = {.version = MPICH,
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

int main(void)
{
    machines_open();
    for (size_t i = 0; i < G_N_ELEMENTS(lines); i++)
        check_line(&lines[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(networks); i++) {
        check_network("DSCOMM_SOCKET_IFNAME", networks[i].wanted,
                      networks[i].subnet);
        check_network("NCCL_SOCKET_IFNAME", networks[i].wanted,
                      networks[i].subnet);
    }
    check_refused();
    check_counts();
    machines_close();
    return tap_done();
}
