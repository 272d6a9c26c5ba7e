/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between the ranks of a job, by messages of the library. */
#ifndef TOOLS_TOPO_RANKS_H
#define TOOLS_TOPO_RANKS_H

#include "tools/common/topology.h"
#include "tools/topo/p2p/pairs.h"

#include <dscomm/dscomm.h>

/* Measures the pairs of group's ranks; collective, with equal arguments.
 * topology may be NULL. On rank 0 *ret_pairs is the result, else NULL.
 * ERR_NO_MEMORY on all ranks if there is not enough on one. */
dscomm_status_t topo_ranks(dscomm_group_t *group,
                           const dscomm_topology_t *topology,
                           const topo_copies_t *copies,
                           topo_pairs_t **ret_pairs);

#endif
