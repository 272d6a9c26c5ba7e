/* SPDX-License-Identifier: BSD-3-Clause */
/* How near two sets of processors of this machine are. */
#ifndef TOOLS_TOPO_NEAR_H
#define TOOLS_TOPO_NEAR_H

#include "tools/common/topology.h"
#include "tools/topo/p2p/pairs.h"

/* Nearest first. */
typedef enum {
    TOPO_NEAR_SELF,
    TOPO_NEAR_SMT, /* one core */
    TOPO_NEAR_L2, /* a cache, of the second level at most */
    TOPO_NEAR_L3,
    TOPO_NEAR_NODE, /* one NUMA node */
    TOPO_NEAR_PACKAGE, /* one package */
    TOPO_NEAR_SYSTEM, /* one machine */
    TOPO_NEAR_HOST, /* the same, if the processors are not known */
    TOPO_NEAR_NETWORK
} topo_near_t;

topo_near_t topo_near(const dscomm_topology_t *topology, hwloc_const_bitmap_t a,
                      hwloc_const_bitmap_t b);
topo_path_t topo_near_path(topo_near_t near);

#endif
