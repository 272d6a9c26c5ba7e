/* SPDX-License-Identifier: BSD-3-Clause */
/* How large a job is by old arguments of mpirun, on machines of 8 cores in two
 * NUMA nodes ("plain") or 2 cores ("small"). */
#include "config.h"

#include "tests/tools/machines.h"

typedef struct {
    const char *version, *machine;
    int nodes, each; /* that are asked for */
    const char *old[8];
    int want[3]; /* nodes, ranks on each, ranks */
    const char *says; /* in the line */
} size_row_t;

static const size_row_t sizes[] = {
    {OPENMPI_4, "plain", 0, 0, {NULL}, {1, 8, 8}, "P -n 8 "},
    {OPENMPI_4, "plain", 0, 0, {"-np", "6"}, {1, 6, 6}, "ppr:3:numa:PE=1"},
    /* hosts, which need a slot for each rank */
    {OPENMPI_5,
     "plain",
     0,
     0,
     {"--host", "a,b,c", "-np", "6"},
     {3, 2, 6},
     "self,sm,tcp"},
    {OPENMPI_5,
     "plain",
     0,
     0,
     {"--host", "a,b,c", "-np", "6"},
     {3, 2, 6},
     "--host a:2,b:2,c:2"},
    {OPENMPI_4,
     "plain",
     0,
     0,
     {"-H", "a,b", "-np", "7"},
     {2, 4, 7},
     "--host a:4,b:4"},
    {OPENMPI_4,
     "plain",
     0,
     0,
     {"-hosts", "a,b", "-np", "4"},
     {2, 2, 4},
     "--host a:2,b:2"},
    {OPENMPI_4,
     "plain",
     0,
     0,
     {"--host", "a,b", "-np", "2"},
     {2, 1, 2},
     "--host a,b"},
    {OPENMPI_4,
     "small",
     0,
     0,
     {"--host", "a,b", "-np", "8"},
     {2, 4, 8},
     "oversubscribe"},
    {OPENMPI_4,
     "plain",
     0,
     0,
     {"--host", "a,a", "-np", "2"},
     {1, 2, 2},
     "--host a,a"},
    /* as many as there are slots */
    {OPENMPI_4,
     "plain",
     0,
     0,
     {"--host", "a:4,b:4"},
     {2, 4, 8},
     "ppr:2:numa:PE=2"},
    {OPENMPI_4,
     "plain",
     0,
     0,
     {"--host", "a:4,b:2"},
     {2, 4, 6},
     "--host a:4,b:4"},
    {OPENMPI_4,
     "plain",
     0,
     0,
     {"--host", "a,b,a,b"},
     {2, 2, 4},
     "--host a,b,a,b"},
    {OPENMPI_4, "plain", 0, 0, {"--host", "a,b"}, {2, 8, 16}, "--host a:8,b:8"},
    /* ranks on each node, in everybody's words */
    {OPENMPI_4,
     "plain",
     0,
     0,
     {"-npernode", "4", "--host", "a:4,b:4"},
     {2, 4, 8},
     "--host a:4,b:4"},
    {OPENMPI_4,
     "plain",
     0,
     0,
     {"-npernode", "4", "--host", "a,b"},
     {2, 4, 8},
     "--host a:4,b:4"},
    {OPENMPI_4,
     "plain",
     0,
     0,
     {"-npernode", "4", "-np", "8", "--host", "a,b"},
     {2, 4, 8},
     "self,vader,tcp"},
    {OPENMPI_5,
     "plain",
     0,
     0,
     {"-N", "4", "-np", "8", "--hostfile", "h"},
     {2, 4, 8},
     "--hostfile h"},
    {OPENMPI_4,
     "plain",
     0,
     0,
     {"-pernode", "--host", "a,b"},
     {2, 1, 2},
     "ppr:1:node"},
    {OPENMPI_4,
     "plain",
     0,
     0,
     {"--map-by", "ppr:2:node:PE=1", "--host", "a,b"},
     {2, 2, 4},
     "ppr:1:numa:PE=4"},
    {OPENMPI_4, "plain", 0, 0, {"--map-by", "ppr:2:numa"}, {1, 8, 8}, "-n 8 "},
    {MPICH,
     "plain",
     0,
     0,
     {"-ppn", "4", "-hosts", "a,b"},
     {2, 4, 8},
     "-n 8 -ppn 4 "},
    {MPICH,
     "plain",
     0,
     0,
     {"-perhost", "2", "-n", "6", "-f", "h"},
     {3, 2, 6},
     "-n 6 -ppn 2 "},
    {INTEL,
     "plain",
     0,
     0,
     {"-ppn", "3", "-hosts", "a,b"},
     {2, 3, 6},
     "-n 6 -ppn 3 "},
    /* arguments that contradict each other */
    {OPENMPI_4,
     "small",
     0,
     0,
     {"-npernode", "1", "-np", "6", "--host", "a,b"},
     {2, 3, 6},
     "oversubscribe"},
    /* what is asked for comes first */
    {OPENMPI_4,
     "plain",
     3,
     0,
     {"--host", "a:4,b:4", "-np", "6"},
     {3, 2, 6},
     "-n 6 "},
    {OPENMPI_4,
     "plain",
     0,
     2,
     {"--host", "a:4,b:4", "-np", "6"},
     {2, 2, 4},
     "-n 4 "},
    {OPENMPI_4, "plain", 4, 0, {"-npernode", "2"}, {4, 2, 8}, "-n 8 "},
    /* what is no number, or no name, does not count */
    {OPENMPI_4, "plain", 0, 0, {"-np", "abc"}, {1, 8, 8}, "-n 8 "},
    {OPENMPI_4,
     "plain",
     0,
     0,
     {"-np", "99999999999999999999"},
     {1, 8, 8},
     "-n 8 "},
    {OPENMPI_4, "plain", 0, 0, {"-np", "0x4"}, {1, 8, 8}, "-n 8 "},
    {OPENMPI_4, "plain", 0, 0, {"-np", "04"}, {1, 4, 4}, "-n 4 "},
    {OPENMPI_4, "plain", 0, 0, {"-npernode", "-1"}, {1, 8, 8}, "-n 8 "},
    {OPENMPI_4, "plain", 0, 0, {"--host", "+n0,a"}, {1, 8, 8}, "+n0,a"},
    {OPENMPI_4, "plain", 0, 0, {"--host", "a,,b"}, {1, 8, 8}, "a,,b"},
    {OPENMPI_4, "plain", 0, 0, {"--host", "a:x,b"}, {1, 8, 8}, "a:x,b"},
    {OPENMPI_4, "plain", 0, 0, {"--host", "[::1]:2,b"}, {1, 8, 8}, "b"},
    {OPENMPI_4, "plain", 0, 0, {"--host"}, {1, 8, 8}, "-n 8 "},
};

static void check_size(const size_row_t *v)
{
    const question_t question = {.version = v->version,
                                 .machine = v->machine,
                                 .nodes = v->nodes,
                                 .each = v->each,
                                 .old = v->old};
    char *problem = NULL, *name = g_strjoinv(" ", (char **)v->old), *line;
    tool_advice_t *advice = ask(&question, &problem);

    if (!advice)
        bail("no advice: %s", problem);
    is_int(advice->nodes, v->want[0], "%s: nodes", name);
    is_int(advice->ranks_per_node, v->want[1], "%s: ranks on each", name);
    is_int(advice->ranks, v->want[2], "%s: ranks", name);
    line = tool_advice_line(advice);
    if (!ok(strstr(line, v->says) != NULL, "%s: the line has %s", name,
            v->says))
        tap_text("", line);
    g_free(line);
    g_free(name);
    tool_advice_free(advice);
}

int main(void)
{
    machines_open();
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++)
        check_size(&sizes[i]);
    machines_close();
    return tap_done();
}
