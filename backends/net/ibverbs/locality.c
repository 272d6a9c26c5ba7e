/* SPDX-License-Identifier: BSD-3-Clause */
/* How far devices are from the processors of a rank. */
#include "config.h"

#include "backends/net/ibverbs/device.h"

#include <hwloc.h>
#include <hwloc/linux.h>
#include <string.h>

/* A distance that the machine does not tell; those that it tells are shorter.
 */
#define FAR 256

/* Parts of hwloc that are left out: they find devices of other kinds, read the
 * names of PCI devices, which libpciaccess never frees, or bind this thread to
 * each processor in turn. */
static const char *const unwanted[] = {"cuda",   "gl",  "levelzero", "nvml",
                                       "opencl", "pci", "rsmi",      "x86"};

/* Returns the machine with its devices; NULL: it cannot be examined. */
static hwloc_topology_t topology_new(void)
{
    hwloc_topology_t topology;

    if (hwloc_topology_init(&topology) < 0)
        return NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(unwanted); i++)
        hwloc_topology_set_components(
            topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, unwanted[i]);
    hwloc_topology_set_io_types_filter(topology,
                                       HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(topology) == 0)
        return topology;
    hwloc_topology_destroy(topology);
    return NULL;
}

/* Returns the NUMA nodes near a device; NULL: unknown. */
static hwloc_const_nodeset_t device_nodes(hwloc_topology_t topology,
                                          const char *name)
{
    hwloc_obj_t object = NULL;

    while ((object = hwloc_get_next_osdev(topology, object)))
        if (object->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS &&
            !strcmp(object->name, name))
            return hwloc_get_non_io_ancestor_obj(topology, object)->nodeset;
    return NULL;
}

/* Returns the NUMA nodes near the processors of this thread, for
 * hwloc_bitmap_free(). */
static hwloc_nodeset_t thread_nodes(hwloc_topology_t topology)
{
    hwloc_cpuset_t processors = hwloc_bitmap_alloc();
    hwloc_nodeset_t nodes = hwloc_bitmap_alloc();

    /* hwloc_get_cpubind() fails if a job manager names a file that describes
     * the machine. */
    if (hwloc_linux_get_tid_cpubind(topology, 0, processors) < 0)
        hwloc_bitmap_copy(processors,
                          hwloc_topology_get_topology_cpuset(topology));
    hwloc_cpuset_to_nodeset(topology, processors, nodes);
    hwloc_bitmap_free(processors);
    return nodes;
}

/* Returns the shortest latency between two sets of nodes, in the units of the
 * machine. */
static unsigned latency(hwloc_topology_t topology, hwloc_const_nodeset_t from,
                        hwloc_const_nodeset_t to)
{
    struct hwloc_distances_s *table = NULL;
    unsigned count = 1, least = FAR;

    hwloc_distances_get_by_name(topology, "NUMALatency", &count, &table, 0);
    if (!count || !table)
        return FAR;
    for (unsigned i = 0; i < table->nbobjs; i++)
        for (unsigned j = 0; j < table->nbobjs; j++)
            if (hwloc_bitmap_isset(from, table->objs[i]->os_index) &&
                hwloc_bitmap_isset(to, table->objs[j]->os_index))
                least =
                    (unsigned)MIN(least, table->values[i * table->nbobjs + j]);
    hwloc_distances_release(topology, table);
    return least;
}

void verbs_distances(struct ibv_device *const *devices, int count,
                     unsigned *ret_distances)
{
    hwloc_topology_t topology = topology_new();
    hwloc_nodeset_t own;

    if (!topology)
        return;
    own = thread_nodes(topology);
    for (int i = 0; i < count; i++) {
        hwloc_const_nodeset_t nodes =
            device_nodes(topology, ibv_get_device_name(devices[i]));

        ret_distances[i] = !nodes ? FAR
                           : hwloc_bitmap_intersects(nodes, own)
                               ? 0
                               : latency(topology, own, nodes);
    }
    hwloc_bitmap_free(own);
    hwloc_topology_destroy(topology);
}
