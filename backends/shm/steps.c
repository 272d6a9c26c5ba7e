/* SPDX-License-Identifier: BSD-3-Clause */
/* The rare parts of a step: reading the progress of all ranks, and the ring's
 * first use. */
#include "config.h"

#include "backends/shm/steps.h"

bool shm_floor_reached(shm_t *shm, uint64_t need)
{
    uint64_t lowest = UINT64_MAX;

    for (int r = 0; r < shm->ranks; r++) {
        uint64_t done = atomic_load_explicit(&shm_control(shm, r)->done,
                                             memory_order_acquire);

        if (r != shm->rank && done < lowest)
            lowest = done;
    }
    if (shm->floor < lowest)
        shm->floor = lowest;
    return shm->floor >= need;
}

dscomm_status_t shm_ring_reserve(shm_t *shm)
{
    uint64_t size = shm->layout.ring_size;
    dscomm_status_t status = shm_segment_reserve(
        shm, shm_ring(shm, shm->rank),
        shm->layout.ring + (uint64_t)shm->rank * size, size, "ring");

    if (status)
        return shm_revoke_last(shm, status);
    shm->ring_reserved = true;
    return DSCOMM_OK;
}
