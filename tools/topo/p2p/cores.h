/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between cores, and between NUMA nodes, of this machine. */
#ifndef TOOLS_TOPO_CORES_H
#define TOOLS_TOPO_CORES_H

#include "tools/common/topology.h"
#include "tools/topo/p2p/pairs.h"

typedef enum { TOPO_CORES, TOPO_NUMA_NODES } topo_cores_t;

/* Measures copies between cores that this process may use, at most so many,
 * evenly chosen; or between NUMA nodes, with all those cores. NULL and no
 * problem: there are fewer than two. NULL and a problem, to be freed: it
 * failed. */
topo_pairs_t *topo_cores(const dscomm_topology_t *topology, topo_cores_t kind,
                         const topo_copies_t *copies, guint most,
                         char **ret_problem);

#endif
