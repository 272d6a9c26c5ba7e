/* SPDX-License-Identifier: BSD-3-Clause */
/* Dissemination: in round k every rank sends to the rank 2^k after it, and
 * receives from the rank 2^k before it.
 *
 * Cost: ceil(log2 p) rounds of one empty message; no extra memory. Source:
 * Hensgen, Finkel, Manber, "Two Algorithms for Barrier Synchronization",
 * International Journal of Parallel Programming 17(1), 1988. */
#include "config.h"
#include "lib/schedule/algorithms/algorithms.h"
#include "lib/schedule/algorithms/blocks.h"

void dscomm_priv_dissemination_barrier(dscomm_plan_t *plan)
{
    const dscomm_place_t nowhere = dscomm_priv_at(AT_SCRATCH, 0);

    for (int distance = 1; distance < plan->ranks; distance *= 2) {
        dscomm_priv_plan_recv(plan, wrap(plan->rank - distance, plan->ranks),
                              nowhere, 0);
        dscomm_priv_plan_send(plan, (plan->rank + distance) % plan->ranks,
                              nowhere, 0);
        dscomm_priv_plan_round(plan);
    }
}
