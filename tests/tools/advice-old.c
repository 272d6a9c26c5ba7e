/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of old arguments of mpirun. The names of parameters are those
 * of each version's own documents, and ompi_info's. */
#include "config.h"

#include "tests/tools/machines.h"

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
    {OPENMPI_4, "plain", 1, MCA("btl_sm_eager_limit", "1"), "replaced",
     "by 4.x|--mca btl_vader_eager_limit 1"},
    {OPENMPI_5, "plain", 1, MCA("btl_sm_eager_limit", "1"), "kept", "right"},
    {OPENMPI_4, "plain", 1, MCA("btl_vader_eager_limit", "1"), "kept", "right"},
    {OPENMPI_5, "plain", 1, MCA("btl_vader_eager_limit", "1"), "replaced",
     "will go|--mca btl_sm_eager_limit 1"},
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
     "--prtemca prte_if_include eth0"},
    {OPENMPI_5, "plain", 2, MCA("orte_default_hostfile", "/h"), "replaced",
     "--hostfile /h"},
    {OPENMPI_4, "plain", 1, MCA("nothing_like_it", "1"), "unknown",
     "silently ignored"},
    {OPENMPI_4, "plain", 1, {"--map-by", "package"}, "replaced", "socket"},
    {OPENMPI_5, "plain", 1, {"--rank-by", "core"}, "dropped", "refuses"},
    {OPENMPI_4, "plain", 1, {"--rank-by", "core"}, "kept", "right"},
    {OPENMPI_4, "plain", 1, {"--prtemca", "a", "b"}, "dropped", "4.x refuses"},
    {OPENMPI_4, "plain", 1, {"--display", "map"}, "dropped", "4.x refuses"},
    {OPENMPI_5, "plain", 1, {"--prtemca", "a", "b"}, "kept", "right"},
    {MPICH, "plain", 1, {"--pmixmca", "a", "b"}, "dropped", "mpiexec refuses"},
    {OPENMPI_4, "plain", 1, {"-npernode", "2"}, "replaced", "--map-by ppr"},
    {OPENMPI_4, "plain", 1, {"-npernode", "x"}, "replaced", "no number that"},
    {OPENMPI_4, "plain", 1, {"-N", "4097"}, "replaced", "no number that"},
    {OPENMPI_4, "plain", 1, {"-np"}, "replaced", "it lacks its value"},
    {OPENMPI_4, "plain", 1, {"-np", "abc"}, "replaced", "not taken|-n 4"},
    {OPENMPI_4, "plain", 1, {"-np", "0"}, "replaced", "no number that"},
    {MPICH,
     "plain",
     1,
     {"-n", "99999999999999999999"},
     "replaced",
     "no number that"},
    {MPICH, "plain", 2, {"-ppn", "-1"}, "replaced", "no number that"},
    {OPENMPI_4, "plain", 1, {"-np", "4"}, "kept", "says the same"},
    {OPENMPI_4, "plain", 0, {"--host", "a,b"}, "replaced", "--host a:4,b:4"},
    {OPENMPI_4, "plain", 0, {"-H", "a:8,b:8"}, "kept", "right"},
    {OPENMPI_4, "plain", 0, {"-hosts", "a,b"}, "replaced", "--host a:4,b:4"},
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
    {MPICH, "plain", 1, {"-bind-to", "none"}, "kept", "says the same"},
    {OPENMPI_4, "plain", 1, {"--bind-to", "none"}, "kept", "says the same"},
    {OPENMPI_4, "plain", 1, MCA("hwloc_base_binding_policy", "none"),
     "replaced", "the same in 4.x and 5.x|--bind-to none"},
    {OPENMPI_4, "plain", 1, MCA("hwloc_base_binding_policy", "socket"),
     "replaced", "the line says how"},
    {OPENMPI_4, "efa", 2, MCA("pml", "ob1"), "replaced", "--mca pml cm"},
    {OPENMPI_4, "efa", 2, MCA("pml", "cm"), "kept", "right"},
    {OPENMPI_5, "cxi", 2, MCA("pml", "ob1"), "replaced",
     "cxi0 unused|--mca pml cm"},
    {OPENMPI_4, "efa", 2, MCA("mtl", "ofi"), "unknown", "ompi_info"},
    {INTEL,
     "plain",
     1,
     {"-genv", "I_MPI_FABRICS", "shm:dapl"},
     "dropped",
     "shm:ofi"},
    {INTEL, "plain", 1, {"-genv", "I_MPI_PIN", "0"}, "kept", "says the same"},
};

static void check_old(const old_t *v)
{
    const question_t question = {.version = v->version,
                                 .machine = v->machine,
                                 .nodes = v->nodes,
                                 .each = 4,
                                 .old = v->old};
    const tool_advice_judgement_t *judgement;
    tool_advice_t *advice;
    char *problem = NULL, *all;

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

/* What is in the environment cannot be left out of a line. */
static void check_ambient(void)
{
    static const char *const environment[] = {
        "OMPI_MCA_hwloc_base_binding_policy=core", "RANK=0",
        "OMPI_MCA_coll_tuned_priority=9", NULL};
    const question_t question = {.version = OPENMPI_5,
                                 .machine = "down",
                                 .each = 4,
                                 .environment = environment};
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

/* An option without its words, beside a variable that is about none of the
 * line's. */
static void check_lone(void)
{
    static const char *const old[] = {"--mca", NULL};
    static const char *const environment[] = {
        "OMPI_MCA_btl_base_verbose=1", "OMPI_MCA_pml_base_verbose=1", NULL};
    const question_t question = {.version = OPENMPI_4,
                                 .machine = "plain",
                                 .nodes = 1,
                                 .each = 4,
                                 .old = old,
                                 .environment = environment};
    char *problem = NULL;
    tool_advice_t *advice = ask(&question, &problem);
    const tool_advice_judgement_t *judgement;

    if (!is_int(advice ? (int)advice->judgements->len : -1, 1,
                "an option without words is judged"))
        return;
    judgement = g_ptr_array_index(advice->judgements, 0);
    is_str(judgement->text, "--mca", "as it was given");
    tool_advice_free(advice);
}

/* A fabric that is none of infiniband's class. */
static void check_slingshot(void)
{
    const question_t question = {
        .version = OPENMPI_4, .machine = "cxi", .nodes = 2, .each = 8};
    char *problem = NULL, *line;
    tool_advice_t *advice = ask(&question, &problem);

    if (!ok(advice != NULL, "advice for Slingshot"))
        return;
    line = tool_advice_line(advice);
    is_str(line,
           "P -n 16 --hostfile hosts --map-by ppr:4:numa:PE=1 --bind-to core "
           "--mca pml cm --mca mtl ofi --mca oob_tcp_if_include 10.1.0.0/22 "
           "PROGRAM",
           "which is libfabric's");
    g_free(line);
    tool_advice_free(advice);
}

int main(void)
{
    machines_open();
    for (size_t i = 0; i < G_N_ELEMENTS(olds); i++)
        check_old(&olds[i]);
    check_ambient();
    check_lone();
    check_slingshot();
    machines_close();
    return tap_done();
}
