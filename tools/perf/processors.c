/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding to processors, see processors.h. */
#include "config.h"

#include "tools/perf/processors.h"

int perf_processor_count(const tool_topology_t *topology)
{
    return topology ? hwloc_bitmap_weight(topology->allowed) : 0;
}

int perf_processor_bound(const tool_topology_t *topology)
{
    return perf_processor_count(topology) == 1
               ? hwloc_bitmap_first(topology->allowed)
               : -1;
}

static int nth(hwloc_const_bitmap_t set, int n)
{
    int processor = hwloc_bitmap_first(set);

    while (n-- > 0)
        processor = hwloc_bitmap_next(set, processor);
    return processor;
}

/* One processor of each core before all others. */
static int pick(const tool_topology_t *topology, int index)
{
    hwloc_bitmap_t set = hwloc_bitmap_dup(topology->allowed);
    int cores, processor;

    hwloc_bitmap_singlify_per_core(topology->hwloc, set, 0);
    cores = hwloc_bitmap_weight(set);
    if (index >= cores) {
        hwloc_bitmap_andnot(set, topology->allowed, set);
        index -= cores;
    }
    processor = nth(set, index);
    hwloc_bitmap_free(set);
    return processor;
}

int perf_processor_bind(const tool_topology_t *topology, int local, int locals)
{
    const int count = perf_processor_count(topology);
    hwloc_bitmap_t one;
    int processor, result;

    if (count <= 1 || count < locals)
        return perf_processor_bound(topology);
    processor = pick(topology, local);
    one = hwloc_bitmap_alloc();
    hwloc_bitmap_only(one, (unsigned)processor);
    result = hwloc_set_cpubind(topology->hwloc, one, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(one);
    return result == 0 ? processor : -1;
}
