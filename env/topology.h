/* SPDX-License-Identifier: BSD-3-Clause */
/* The processors, cores and NUMA nodes of a machine, by hwloc. Sets of
 * processors hold the system's numbers. */
#ifndef ENV_TOPOLOGY_H
#define ENV_TOPOLOGY_H

#include <glib.h>
#include <hwloc.h>
#include <stdbool.h>

typedef struct dscomm_topology {
    hwloc_topology_t hwloc; /* all processors that are online */
    /* processors that this thread may use; never empty */
    hwloc_bitmap_t allowed;
    /* processors of a process that nobody has bound; NULL: those that its
     * container (cgroup) allows */
    hwloc_bitmap_t unbound;
    bool is_other; /* it is that of another machine */
} dscomm_topology_t;

/* Loads the topology of this machine, or that of another one, a file of hwloc's
 * XML, of which all processors that it allows are allowed. NULL: hwloc fails,
 * or the file cannot be read. PCI devices are included only if devices is set,
 * because finding them takes longer. */
dscomm_topology_t *dscomm_priv_topology_new(const char *path, bool devices);
void dscomm_priv_topology_free(dscomm_topology_t *topology);

/* Whether this thread may use only a part of the processors of a process that
 * nobody has bound: a launcher, or a user, has bound it. */
bool dscomm_priv_topology_is_bound(const dscomm_topology_t *topology);

/* Returns the first core after prev, or the first of all if prev is NULL, that
 * has a processor in set; NULL: none. If the system does not tell which
 * processors share a core, each counts as a core. */
hwloc_obj_t dscomm_priv_topology_next_core(const dscomm_topology_t *topology,
                                           hwloc_const_bitmap_t set,
                                           hwloc_obj_t prev);
int dscomm_priv_topology_count_cores(const dscomm_topology_t *topology,
                                     hwloc_const_bitmap_t set);

/* Does the same for NUMA nodes. Nodes without processors of their own, such as
 * high-bandwidth memory, are left out. */
hwloc_obj_t dscomm_priv_topology_next_node(const dscomm_topology_t *topology,
                                           hwloc_const_bitmap_t set,
                                           hwloc_obj_t prev);

/* Counts the cores with a processor in allowed. If several NUMA nodes have
 * equally many of them, also returns the number of nodes and of cores of each;
 * else 0 and 0. */
void dscomm_priv_topology_count(const dscomm_topology_t *topology,
                                int *ret_cores, int *ret_nodes,
                                int *ret_cores_per_node);

/* "0-3,8"; g_free(). */
char *dscomm_priv_topology_text(hwloc_const_bitmap_t set);

#endif
