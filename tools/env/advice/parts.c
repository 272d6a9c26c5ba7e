/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of what belongs on a command line, when, and why. */
#include "config.h"

#include "tools/env/advice/state.h"

#include <string.h>

/* A part that is there where all facts of needs hold and none of without. */
typedef struct {
    unsigned masks, needs, without;
    const char *words; /* with single blanks between */
    const char *why;
} row_t;

static const row_t in_front[] = {
    {ADVICE_INTEL, FACT_SEVERAL | FACT_SCHEDULER, 0,
     "I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=0",
     "otherwise the scheduler's ranks per node are taken, and -ppn is not"},
};

#define MAP_NUMA "ppr:{per_numa}:numa:PE={pe}"
#define MAP_NODE "ppr:{per_node}:node"
#define WHY_MASTER "rank 0 is there, which mpirun tells no rank"
#define NO_OB1 (FACT_RDMA | FACT_MTL | FACT_OWN_PML)
#define UNBOUND (FACT_CROWDED | FACT_BLIND | FACT_FREE)

static const row_t rows[] = {
    {ADVICE_OPENMPI, FACT_SUPERUSER, 0, "--allow-run-as-root",
     "you are root, and mpirun would refuse"},
    {ADVICE_ALL, 0, 0, "-n {ranks}",
     "ranks in all: nodes {nodes}, ranks on each {per_node}"},
    {ADVICE_OPENMPI, FACT_NO_HOSTS, 0, "--hostfile hosts",
     "no scheduler gives the nodes: a file of {nodes} lines \"NAME "
     "slots={per_node}\""},
    {ADVICE_HYDRA, FACT_NO_HOSTS, 0, "-f hosts",
     "no scheduler gives the nodes: a file of {nodes} lines with a name each"},
    {ADVICE_HYDRA, FACT_SEVERAL, 0, "-ppn {per_node}",
     "so many ranks on each node"},

    /* Placement */
    {ADVICE_OPENMPI, FACT_NUMA, 0, "--map-by " MAP_NUMA,
     "{per_numa} ranks on each of {numa} NUMA nodes, {pe} of the cores for "
     "each rank; without PE a rank's threads share one core"},
    {ADVICE_OPENMPI, 0, FACT_NUMA | UNBOUND, "--map-by " MAP_NODE ":PE={pe}",
     "{pe} of {cores} cores for each rank; without PE a rank's threads share "
     "one core"},
    {ADVICE_OPENMPI, FACT_CROWDED, 0, "--map-by " MAP_NODE ":oversubscribe",
     "{cores} cores are fewer than ranks, and mpirun would refuse"},
    {ADVICE_OPENMPI, FACT_BLIND, 0, "--map-by " MAP_NODE,
     "so many ranks on each node"},
    {ADVICE_OPENMPI, FACT_FREE, 0, "--map-by " MAP_NODE,
     "so many ranks on each node; PE would bind them"},
    {ADVICE_OPENMPI, 0, UNBOUND, "--bind-to core",
     "a rank stays on its cores, and its memory near them"},
    {ADVICE_OPENMPI, FACT_CROWDED, 0, "--bind-to none",
     "ranks that share cores must be free to move"},
    {ADVICE_OPENMPI, FACT_BLIND, 0, "--bind-to none",
     "which cores there are is unknown"},
    {ADVICE_OPENMPI, FACT_FREE, 0, "--bind-to none",
     "as it was asked for: ranks bind themselves, or are free to move"},
    {ADVICE_MPICH, FACT_FREE, 0, "-bind-to none",
     "as it was asked for: ranks bind themselves, or are free to move"},
    {ADVICE_MPICH, 0, UNBOUND, "-bind-to core:{pe}",
     "{pe} of the cores for each rank; mpiexec binds nothing by itself"},
    {ADVICE_MPICH, FACT_NUMA, 0, "-map-by numa",
     "ranks are dealt out to {numa} NUMA nodes"},
    {ADVICE_INTEL, 0, UNBOUND, "-genv I_MPI_PIN_DOMAIN auto:compact",
     "all cores divided among the ranks, neighbours together"},
    {ADVICE_INTEL, FACT_CROWDED, 0, "-genv I_MPI_PIN 0",
     "{cores} cores are fewer than ranks, which must be free to move"},

    {ADVICE_INTEL, FACT_FREE, 0, "-genv I_MPI_PIN 0",
     "as it was asked for: ranks bind themselves, or are free to move"},

    /* Transport */
    {ADVICE_OPENMPI, FACT_RDMA, FACT_OWN_PML, "--mca pml ucx",
     "{rdma} is active, and UCX drives it; Debian turns UCX off unless asked. "
     "Leave it out where ompi_info lists no pml ucx"},
    {ADVICE_OPENMPI, FACT_MTL, FACT_RDMA | FACT_OWN_PML, "--mca pml cm",
     "{fabric} is active, for which there is {mtl}: pml cm uses it, and ob1 "
     "does not"},
    {ADVICE_OPENMPI, FACT_MTL, FACT_RDMA | FACT_OWN_PML, "--mca mtl {mtl}",
     "it drives {fabric}; Debian turns ofi off unless asked. Leave both out "
     "where ompi_info lists no mtl {mtl}"},
    {ADVICE_OPENMPI, 0, NO_OB1, "--mca pml ob1",
     "no device that UCX drives: it would fail in MPI_Init"},
    {ADVICE_OPENMPI_4, 0, NO_OB1 | FACT_SEVERAL, "--mca btl self,vader",
     "shared memory, which 4.x calls vader"},
    {ADVICE_OPENMPI_4, FACT_SEVERAL, NO_OB1, "--mca btl self,vader,tcp",
     "shared memory, which 4.x calls vader, and TCP between nodes"},
    {ADVICE_OPENMPI_5, 0, NO_OB1 | FACT_SEVERAL, "--mca btl self,sm",
     "shared memory, which 5.x calls sm"},
    {ADVICE_OPENMPI_5, FACT_SEVERAL, NO_OB1, "--mca btl self,sm,tcp",
     "shared memory, which 5.x calls sm, and TCP between nodes"},
    {ADVICE_OPENMPI, FACT_SEVERAL | FACT_SUBNET, NO_OB1,
     "--mca btl_tcp_if_include {subnet}",
     "{interface}: a network is the same on all nodes, names are not; and "
     "bridges of containers are left out"},
    {ADVICE_OPENMPI_4, FACT_SEVERAL | FACT_SUBNET, 0,
     "--mca oob_tcp_if_include {subnet}",
     "the same for what mpirun's own daemons say"},
    /* By name, since PRRTE 3 does not find the network of an interface that has
     * an IPv6 address as well (openpmix#4031; seen with Open MPI 5.0.11). */
    {ADVICE_OPENMPI_5, FACT_SEVERAL | FACT_SUBNET | FACT_CHOICE, 0,
     "--prtemca prte_if_include {interface}",
     "the same for what mpirun's own daemons say; by name, which must be the "
     "same on all nodes, since PRRTE may not find a network"},
    {ADVICE_INTEL, FACT_SEVERAL, FACT_DEVICE, "-genv I_MPI_OFI_PROVIDER tcp",
     "no RDMA device for libfabric to find"},
    {ADVICE_HYDRA, FACT_SEVERAL | FACT_SUBNET | FACT_CHOICE, 0,
     "-iface {interface}",
     "of several networks the one to use; must have this name on all nodes"},
    {ADVICE_HYDRA, FACT_SEVERAL | FACT_FORWARD, 0, "-genvall",
     "other nodes need {forward}; this is the default"},

    /* Where ranks of several nodes meet */
    {ADVICE_OPENMPI, FACT_MASTER, 0, "-x MASTER_ADDR={master}", WHY_MASTER},
    {ADVICE_HYDRA, FACT_MASTER, 0, "-genv MASTER_ADDR {master}", WHY_MASTER},
};

static void add_rows(advice_state_t *state, const row_t *table, size_t count,
                     GPtrArray *parts)
{
    for (size_t i = 0; i < count; i++) {
        const row_t *row = &table[i];
        char *why;

        if (!(row->masks & state->advice->mask) ||
            (row->needs & state->facts) != row->needs ||
            (row->without & state->facts))
            continue;
        why = tool_advice_expand(state, row->why);
        tool_advice_part_add(parts, tool_advice_words(state, row->words), why);
        g_free(why);
    }
}

/* Variables that mean the same on all nodes; a "*" stands for any. What means
 * something else elsewhere, as CUDA_VISIBLE_DEVICES, is not among them. */
static const struct {
    const char *pattern, *why;
} shared[] = {
    {"DSCOMM_*", "dscomm's settings"},
    {"MASTER_ADDR", "where the ranks meet"},
    {"MASTER_PORT", "where the ranks meet"},
    {"NCCL_*", "NCCL's settings"},
    {"UCX_*", "UCX's settings"},
    {"FI_*", "libfabric's settings"},
    {"OMP_*", "threads of OpenMP"},
    {"MKL_*", "threads of MKL"},
    {"LD_LIBRARY_PATH", "where libraries are, on all nodes alike"},
    {"PYTHONPATH", "where Python's modules are, on all nodes alike"},
    {"VIRTUAL_ENV", "Python's environment"},
};

gboolean tool_advice_is_of_rank(const char *name)
{
    static const char *const names[] = {
        "RANK",       "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
        "LOCAL_SIZE", "NODE_RANK",  "GROUP_RANK", "DSCOMM_HOST_ID"};
    const char *rest = name;

    if (g_str_has_prefix(name, "DSCOMM_"))
        rest += strlen("DSCOMM_");
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (strcmp(name, names[i]) == 0 || strcmp(rest, names[i]) == 0)
            return TRUE;
    }
    return FALSE;
}

static const char *why_forward(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(shared); i++) {
        if (g_pattern_match_simple(shared[i].pattern, name))
            return tool_advice_is_of_rank(name) ? NULL : shared[i].why;
    }
    return NULL;
}

static gboolean is_name(const char *name)
{
    for (const char *c = name; *c; c++) {
        if (!g_ascii_isalnum(*c) && *c != '_')
            return FALSE;
    }
    return *name != 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names, sorted, of variables that other nodes lack; g_ptr_array_unref(). */
static GPtrArray *forwarded(const advice_state_t *state)
{
    char *const *entry = state->question->environment;
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);

    for (; entry && *entry; entry++) {
        char *name = g_strndup(*entry, strcspn(*entry, "="));

        if (is_name(name) && why_forward(name) &&
            tool_advice_variable(state->question, name) &&
            !tool_advice_old_find(state, OLD_VARIABLE, name))
            g_ptr_array_add(list, name);
        else
            g_free(name);
    }
    g_ptr_array_sort(list, compare);
    return list;
}

static void add_forwarded(advice_state_t *state, const GPtrArray *list)
{
    for (guint i = 0; i < list->len; i++) {
        const char *name = g_ptr_array_index(list, i);
        char **words = g_new0(char *, 3);

        words[0] = g_strdup("-x");
        words[1] = g_strdup(name);
        tool_advice_part_add(state->advice->parts, words, why_forward(name));
    }
}

void tool_advice_parts(advice_state_t *state)
{
    tool_advice_t *advice = state->advice;
    GPtrArray *list = forwarded(state);
    char *names;

    if (list->len)
        state->facts |= FACT_FORWARD;
    g_ptr_array_add(list, NULL);
    names = g_strjoinv(", ", (char **)list->pdata);
    g_ptr_array_set_size(list, (gint)list->len - 1);
    g_hash_table_insert(state->values, g_strdup("forward"), names);
    add_rows(state, in_front, G_N_ELEMENTS(in_front), advice->variables);
    add_rows(state, rows, G_N_ELEMENTS(rows), advice->parts);
    if ((advice->mask & ADVICE_OPENMPI) && (state->facts & FACT_SEVERAL))
        add_forwarded(state, list);
    g_ptr_array_unref(list);
}
