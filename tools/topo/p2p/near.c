/* SPDX-License-Identifier: BSD-3-Clause */
/* Nearness of processors, see near.h. */
#include "config.h"

#include "tools/topo/p2p/near.h"

static const struct {
    const char *word, *meaning;
} nears[] = {
    [TOPO_NEAR_SELF] = {"X", "itself"},
    [TOPO_NEAR_SMT] = {"SMT", "one core"},
    [TOPO_NEAR_L2] = {"L2", "a shared cache of the second level"},
    [TOPO_NEAR_L3] = {"L3", "a shared cache of the third level"},
    [TOPO_NEAR_NODE] = {"NODE", "the memory of one NUMA node"},
    [TOPO_NEAR_PACKAGE] = {"PKG", "the inside of one package"},
    [TOPO_NEAR_SYSTEM] = {"SYS", "the link between packages"},
    [TOPO_NEAR_HOST] = {"HOST", "one host, on any processors"},
    [TOPO_NEAR_NETWORK] = {"NET", "the network"},
};

/* Returns whether both are in one object of a type. */
static bool sets_share(const dscomm_topology_t *topology, hwloc_obj_type_t type,
                       hwloc_const_bitmap_t a, hwloc_const_bitmap_t b)
{
    hwloc_obj_t object = NULL;

    while ((object = hwloc_get_next_obj_by_type(topology->hwloc, type, object)))
        if (hwloc_bitmap_isincluded(a, object->cpuset) &&
            hwloc_bitmap_isincluded(b, object->cpuset))
            return true;
    return false;
}

topo_near_t topo_near(const dscomm_topology_t *topology, hwloc_const_bitmap_t a,
                      hwloc_const_bitmap_t b)
{
    static const struct {
        hwloc_obj_type_t type;
        topo_near_t near;
    } types[] = {
        {HWLOC_OBJ_CORE, TOPO_NEAR_SMT},
        {HWLOC_OBJ_L2CACHE, TOPO_NEAR_L2},
        {HWLOC_OBJ_L3CACHE, TOPO_NEAR_L3},
        {HWLOC_OBJ_NUMANODE, TOPO_NEAR_NODE},
        {HWLOC_OBJ_PACKAGE, TOPO_NEAR_PACKAGE},
    };

    if (hwloc_bitmap_isequal(a, b))
        return TOPO_NEAR_SELF;
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++)
        if (sets_share(topology, types[i].type, a, b))
            return types[i].near;
    return TOPO_NEAR_SYSTEM;
}

topo_path_t topo_near_path(topo_near_t near)
{
    topo_path_t path = {.distance = (int)near,
                        .meaning = nears[near].meaning,
                        .network = near == TOPO_NEAR_NETWORK};

    g_strlcpy(path.word, nears[near].word, sizeof path.word);
    return path;
}
