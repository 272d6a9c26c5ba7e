/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement on machines that hwloc describes by XML. The expected processors
 * follow from the description of each machine. */
#include "config.h"

#include "env/placement.h"
#include "tests/tap.h"

#include <glib.h>

/* Two sockets of two NUMA nodes of eight cores; core c has processors c and
 * 32 + c. On nodes 0 and 2 one switch has two GPUs and two NICs: 11 and 12 with
 * mlx5_0 and 1, 51 and 52 with mlx5_4 and 5. On nodes 1 and 3 each of two
 * switches has a GPU and a NIC: 33 with mlx5_2, 37 with 3, 73 with 6, 77 with
 * 7. */
#define EIGHT "eight-gpus"
/* Two nodes of four cores; the machine does not tell which one its devices, 05
 * and 06, are near. */
#define VIRTUAL "virtual"
/* One node of 16 cores with one thread each, and a GPU. */
#define SMT_OFF "smt-off"
/* Two nodes of eight cores, of which a cgroup allows 0-2,5,7 and 9,11-13. */
#define HOLES "holes"
/* Two sockets of six cores, with a GPU and a NIC each; the memory of the GPUs
 * is NUMA nodes 2 and 3, without processors of their own. */
#define GRACE "grace"

static const struct {
    const char *machine, *rule;
    const char *mask; /* processors allowed by the launcher; NULL: all */
    const char *visible; /* CUDA_VISIBLE_DEVICES, or NULL */
    int local_rank, local_size;
    const char *want; /* processors; "": no binding */
    int node; /* whose memory is preferred */
    const char *nic; /* or "none" */
    const char *says; /* part of the reason, or of the warning */
} vectors[] = {
    {EIGHT, "gpu", NULL, NULL, 0, 8, "0-3,32-35", 0, "mlx5_0",
     "4 of the 8 cores of NUMA node 0, near 0000:11:00.0, for 2 ranks"},
    {EIGHT, "gpu", NULL, NULL, 1, 8, "4-7,36-39", 0, "mlx5_1", "0000:12:00.0"},
    {EIGHT, "gpu", NULL, NULL, 3, 8, "12-15,44-47", 1, "mlx5_3",
     "0000:37:00.0"},
    {EIGHT, "gpu", NULL, NULL, 6, 8, "24-27,56-59", 3, "mlx5_6",
     "0000:73:00.0"},
    {EIGHT, "gpu", NULL, "7,0", 0, 2, "24-31,56-63", 3, "mlx5_7",
     "0000:77:00.0, for 1 rank"},
    {EIGHT, "gpu", NULL, "7,0", 1, 2, "0-7,32-39", 0, "mlx5_1", "0000:11:00.0"},
    {EIGHT, "gpu", NULL, "2,9,0", 1, 2, "12-15,44-47", 1, "mlx5_2",
     "0000:33:00.0, for 2 ranks"},
    {EIGHT, "gpu", NULL, "", 0, 2, "", -1, "none",
     "CUDA_VISIBLE_DEVICES shows no GPU"},
    {EIGHT, "gpu", NULL, "-1,0", 0, 2, "", -1, "none",
     "CUDA_VISIBLE_DEVICES shows no GPU"},
    {EIGHT, "gpu", NULL, "99999999999,0", 0, 2, "", -1, "none",
     "CUDA_VISIBLE_DEVICES shows no GPU"},
    {EIGHT, "gpu", NULL, "7,99999999999999999999", 1, 2, "28-31,60-63", 3,
     "mlx5_7", "0000:77:00.0, for 2 ranks"},
    {EIGHT, "gpu", NULL, "GPU-8932f937", 0, 2, "", -1, "none",
     "names in place of numbers"},
    {EIGHT, "gpu", "0-15", NULL, 4, 8, "", -1, "mlx5_4",
     "0-15, has no processor of NUMA node 2, near 0000:51:00.0; it is kept"},
    {EIGHT, "force:gpu", "0-9", NULL, 2, 8, "8", 1, "mlx5_2",
     "1 of the 2 cores of NUMA node 1"},
    {EIGHT, "numa", NULL, NULL, 1, 3, "8-15,40-47", 1, "mlx5_3",
     "NUMA node 1, for 1 rank"},
    {EIGHT, "socket", NULL, NULL, 1, 2, "16-31,48-63", -1, "mlx5_5",
     "16 of the 16 cores of socket 1"},
    {EIGHT, "socket", NULL, NULL, 1, 4, "8-15,40-47", 1, "mlx5_3",
     "8 of the 16 cores of socket 0"},
    {EIGHT, "core", NULL, NULL, 3, 4, "3,35", 0, "mlx5_1",
     "1 of the 32 cores of the machine, for 4 ranks"},
    {EIGHT, "core", NULL, NULL, 0, 33, "", -1, "none",
     "33 ranks are more than the 32 cores of the machine"},
    {EIGHT, "0-3,32-35", NULL, NULL, 1, 2, "2-3,34-35", 0, "mlx5_1",
     "2 of the 4 cores of the list"},
    {EIGHT, "0-2", NULL, NULL, 0, 2, "0-1", 0, "mlx5_0", "2 of the 3 cores"},
    {EIGHT, "0-2", NULL, NULL, 1, 2, "2", 0, "mlx5_1", "1 of the 3 cores"},
    {EIGHT, "60-70", NULL, NULL, 0, 1, "60-63", 3, "mlx5_6",
     "the list has processors that may not be used"},
    {EIGHT, "100", NULL, NULL, 0, 1, "", -1, "none",
     "has no processor of the list"},
    {EIGHT, "none", NULL, NULL, 0, 1, "", -1, "none", "nothing is to be"},
    {VIRTUAL, "gpu", NULL, NULL, 0, 2, "", -1, "mlx5_0",
     "the machine does not tell"},
    {VIRTUAL, "numa", NULL, NULL, 1, 2, "4-7", 1, "mlx5_0", "NUMA node 1"},
    {SMT_OFF, "gpu", NULL, NULL, 0, 2, "0-7", 0, "mlx5_0", "8 of the 16"},
    {SMT_OFF, "gpu", NULL, NULL, 1, 2, "8-15", 0, "mlx5_0", "8 of the 16"},
    {SMT_OFF, "numa", NULL, NULL, 0, 3, "0-5", 0, "mlx5_0", "6 of the 16"},
    {SMT_OFF, "numa", NULL, NULL, 1, 3, "6-10", 0, "mlx5_0", "5 of the 16"},
    {SMT_OFF, "numa", NULL, NULL, 2, 3, "11-15", 0, "mlx5_0", "5 of the 16"},
    {HOLES, "numa", NULL, NULL, 0, 2, "0-2,5,7", 0, "none", "5 of the 5"},
    {HOLES, "numa", NULL, NULL, 1, 2, "9,11-13", 1, "none", "4 of the 4"},
    {HOLES, "numa", NULL, NULL, 0, 4, "0-2", 0, "none", "3 of the 5"},
    {HOLES, "numa", NULL, NULL, 1, 4, "5,7", 0, "none", "2 of the 5"},
    {HOLES, "core", NULL, NULL, 8, 9, "13", 1, "none", "1 of the 9"},
    {HOLES, "gpu", NULL, NULL, 0, 2, "", -1, "none", "hwloc finds no GPU"},
    {HOLES, "numa", "0-2", NULL, 1, 2, "", -1, "none",
     "bound to 0-2 already, by the launcher"},
    {HOLES, "force:numa", "0-2", NULL, 1, 2, "2", 0, "none", "1 of the 3"},
    {GRACE, "numa", NULL, NULL, 0, 2, "0-5", 0, "mlx5_0", "6 of the 6"},
    {GRACE, "numa", NULL, NULL, 1, 2, "6-11", 1, "mlx5_1", "6 of the 6"},
    {GRACE, "gpu", NULL, NULL, 1, 2, "6-11", 1, "mlx5_1",
     "NUMA node 1, near 0009:01:00.0"},
};

static dscomm_topology_t *machine_load(const char *name, const char *mask)
{
    const char *source = g_getenv("abs_top_srcdir");
    char *path = g_strdup_printf("%s/tests/env/machines/%s.xml",
                                 source ? source : ".", name);
    dscomm_topology_t *topology = dscomm_priv_topology_new(path, true);

    if (!topology)
        bail("%s cannot be read", path);
    if (mask)
        hwloc_bitmap_list_sscanf(topology->allowed, mask);
    g_free(path);
    return topology;
}

static void check(size_t i, const dscomm_placement_t *got)
{
    char *list = dscomm_priv_topology_text(got->processors);
    char *said = g_strdup_printf("%s; %s", got->why,
                                 got->warning ? got->warning : "no warning");
    char *name = g_strdup_printf("%s, %s, rank %d of %d", vectors[i].machine,
                                 vectors[i].rule, vectors[i].local_rank,
                                 vectors[i].local_size);

    is_str(list, vectors[i].want, "%s: processors", name);
    is_int(got->bind, *vectors[i].want != '\0', "%s: bound or not", name);
    is_int(got->node, vectors[i].node, "%s: memory", name);
    is_str(got->nic ? got->nic : "none", vectors[i].nic, "%s: NIC", name);
    if (!ok(strstr(said, vectors[i].says) != NULL, "%s: says %s", name,
            vectors[i].says))
        tap_text("", said);
    g_free(list);
    g_free(said);
    g_free(name);
}

static void try(size_t i)
{
    dscomm_topology_t *topology =
        machine_load(vectors[i].machine, vectors[i].mask);
    dscomm_place_rule_t rule;
    char *problem;
    dscomm_placement_t *got;

    if (!dscomm_priv_place_rule_read(vectors[i].rule, &rule, &problem))
        bail("%s: %s", vectors[i].rule, problem);
    got = dscomm_priv_place(&(dscomm_place_question_t){
        .topology = topology,
        .rule = &rule,
        .visible = vectors[i].visible,
        .local_rank = vectors[i].local_rank,
        .local_size = vectors[i].local_size,
    });
    check(i, got);
    dscomm_priv_placement_free(got);
    dscomm_priv_place_rule_clear(&rule);
    dscomm_priv_topology_free(topology);
}

/* The machine keeps all processors but those of unbound for itself. */
static void test_reserved(const char *unbound, const char *mask,
                          const char *want)
{
    dscomm_topology_t *topology = machine_load(EIGHT, mask);
    const dscomm_place_rule_t rule = {.kind = DSCOMM_PLACE_CORE};
    dscomm_placement_t *got;
    char *list;

    topology->unbound = hwloc_bitmap_alloc();
    hwloc_bitmap_list_sscanf(topology->unbound, unbound);
    got = dscomm_priv_place(&(dscomm_place_question_t){
        .topology = topology, .rule = &rule, .local_rank = 1, .local_size = 2});
    list = dscomm_priv_topology_text(got->processors);
    is_str(list, want, "%s of %s that are not reserved", mask, unbound);
    is_int(got->kept, *want == '\0', "a launcher's mask, or none");
    g_free(list);
    dscomm_priv_placement_free(got);
    dscomm_priv_topology_free(topology);
}

int main(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(vectors); i++)
        try(i);
    test_reserved("0-7", "0-7", "1");
    test_reserved("0-7", "0-8", "1");
    test_reserved("0-7", "0-6", "");
    test_reserved("0-7", "8-15", "");
    ok(!dscomm_priv_topology_new("/nonexistent/machine.xml", true),
       "a file that is not there");
    return tap_done();
}
