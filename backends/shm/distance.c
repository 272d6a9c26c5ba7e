/* SPDX-License-Identifier: BSD-3-Clause */
/* How far away is each rank's processor? Measured once, when the processes
 * meet: a flag goes to and fro between two ranks at a time. Between caches that
 * are not shared, bytes handed over by plain stores cost several times what
 * they cost by way of memory. */
#include "config.h"

#include "backends/shm/shm.h"

#include <time.h>
#include <unistd.h>

#define BATCHES 6
#define TRIPS 8 /* round trips in a batch */
#define PATIENCE 1024 /* looks, some ten us */
#define SLEEP_US 20
#define LONGEST_NS 10000000 /* then the partner is late, and counts as near */
#define FAR_NS 120 /* one way; 50 to 80 in one cache, else 160 to 280 */
#define LOST_NS 1000 /* the two share a processor: nothing was measured */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Processes that have just met often share a processor, although another is
 * idle: one that sleeps is woken there. */
static bool await(_Atomic uint64_t *flag, uint64_t value, uint64_t deadline)
{
    for (unsigned i = 1;
         atomic_load_explicit(flag, memory_order_acquire) != value; i++) {
        shm_pause();
        if (i % 64 == 0 && now_ns() > deadline)
            return false;
        if (i % PATIENCE == 0)
            usleep(SLEEP_US);
    }
    return true;
}

/* One way from this rank to partner in ns, the best of some batches; 0 =
 * unknown. round tells pairs apart that one rank goes through. */
static uint64_t one_way(shm_t *shm, int partner, uint64_t round)
{
    _Atomic uint64_t *mine = &shm->own->probe;
    _Atomic uint64_t *theirs = &shm_control(shm, partner)->probe;
    uint64_t deadline = now_ns() + LONGEST_NS, best = UINT64_MAX;
    uint64_t value = round << 32;

    for (int b = 0; b < BATCHES; b++) {
        uint64_t start = now_ns(), took;

        for (int i = 0; i < TRIPS; i++) {
            value++;
            if (shm->rank < partner)
                atomic_store_explicit(mine, value, memory_order_release);
            if (!await(theirs, value, deadline))
                return 0;
            if (shm->rank > partner)
                atomic_store_explicit(mine, value, memory_order_release);
        }
        took = now_ns() - start;
        /* The first batch counts the partner's delay. */
        if (b && took < best)
            best = took;
    }
    return best / (2 * TRIPS);
}

void shm_distance(shm_t *shm)
{
    unsigned rounds = 1;

    while (rounds < (unsigned)shm->ranks)
        rounds *= 2;
    for (unsigned round = 1; round < rounds; round++) {
        int partner = shm->rank ^ (int)round;
        uint64_t ns;

        if (partner >= shm->ranks)
            continue;
        ns = one_way(shm, partner, round);
        shm->store[partner] =
            ns > FAR_NS && ns < LOST_NS ? SHM_STREAM : SHM_PLAIN;
        dscomm_log(DSCOMM_LOG_DEBUG, "shm",
                   "group '%s': rank %d to %d takes %u ns one way: %s stores",
                   shm->name, shm->rank, partner, (unsigned)ns,
                   shm->store[partner] == SHM_STREAM ? "streaming" : "plain");
    }
}
