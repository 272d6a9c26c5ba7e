/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between the ranks of a job, by messages of the library. */
#ifndef TOOLS_TOPO_RANKS_H
#define TOOLS_TOPO_RANKS_H

#include "tools/common/topology.h"
#include "tools/topo/p2p/pairs.h"

#include <dscomm/dscomm.h>

/* The outcome, on which all ranks agree. */
typedef enum {
    TOPO_MEASURED,
    TOPO_NO_MEMORY, /* a rank's host has not enough */
    TOPO_WRONG /* a rank has received other bytes than were sent */
} topo_outcome_t;

/* Measures the pairs of group's ranks; collective, with equal arguments.
 * topology may be NULL. *ret_outcome is set if no call fails; on rank 0
 * *ret_pairs is the result then if it is TOPO_MEASURED, else NULL. */
dscomm_status_t topo_ranks(dscomm_group_t *group,
                           const dscomm_topology_t *topology,
                           const topo_copies_t *copies,
                           topo_outcome_t *ret_outcome,
                           topo_pairs_t **ret_pairs);

#endif
