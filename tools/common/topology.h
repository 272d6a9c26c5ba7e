/* SPDX-License-Identifier: BSD-3-Clause */
/* The processors, cores and NUMA nodes of this machine, by hwloc. Sets of
 * processors hold the system's numbers. */
#ifndef TOOLS_TOPOLOGY_H
#define TOOLS_TOPOLOGY_H

#include <glib.h>
#include <hwloc.h>
#include <stdbool.h>

typedef struct tool_topology {
    hwloc_topology_t hwloc; /* all processors that are online */
    /* processors that this thread may use; never empty */
    hwloc_bitmap_t allowed;
} tool_topology_t;

/* Returns NULL if hwloc fails. PCI devices are included only if devices is set,
 * because finding them takes longer. The process must have no other thread,
 * because the environment changes during the call. */
tool_topology_t *tool_topology_new(bool devices);
/* Does the same for another machine, whose topology is a file of hwloc's XML;
 * allowed are its processors. NULL: it cannot be read. NULL for path: this
 * machine. */
tool_topology_t *tool_topology_open(const char *path, bool devices);
void tool_topology_free(tool_topology_t *topology);

/* Returns the first core after prev, or the first of all if prev is NULL, that
 * has a processor in set; NULL: none. If the system does not tell which
 * processors share a core, each counts as a core. */
hwloc_obj_t tool_topology_next_core(const tool_topology_t *topology,
                                    hwloc_const_bitmap_t set, hwloc_obj_t prev);
int tool_topology_count_cores(const tool_topology_t *topology,
                              hwloc_const_bitmap_t set);

/* Does the same for NUMA nodes. Nodes without processors of their own, such as
 * high-bandwidth memory, are left out. */
hwloc_obj_t tool_topology_next_node(const tool_topology_t *topology,
                                    hwloc_const_bitmap_t set, hwloc_obj_t prev);

/* Counts the cores with a processor in allowed. If several NUMA nodes have
 * equally many of them, also returns the number of nodes and of cores of each;
 * else 0 and 0. */
void tool_topology_count(const tool_topology_t *topology, int *ret_cores,
                         int *ret_nodes, int *ret_cores_per_node);

/* "0-3,8"; g_free(). */
char *tool_topology_text(hwloc_const_bitmap_t set);

#endif
