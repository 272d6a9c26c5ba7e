/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses between plain and streaming stores for messages. The sender of a
 * message cannot time it, because the message is read later (trial.c times
 * collectives). If sender and receiver share no cache, plain stores on most
 * processors wait until each line has been transferred, and cost several times
 * as much as stores to memory; if they share a cache, plain stores are faster.
 * Ranks move between processors while they run (virtual processors do, too), so
 * one measurement is not enough: from time to time this rank reads a line that
 * the other rank has written since the last measurement, and the time of that
 * read shows how far away the other rank is. */
#include "config.h"

#include "backends/shm/copy.h"

/* measurements that are made in a row at the beginning */
#define FIRST_SAMPLES 4
#define PERIOD 32 /* copies between two measurements */
#define HIT_NS 12 /* a shorter time means that the line was in this cache */
#define MOST_NS 200 /* a longer time is an interruption */
#define FAR_NS 70 /* 20 to 30 if a cache is shared, else 110 to 200 */

void shm_path_init(shm_path_t *path, int store)
{
    *path = (shm_path_t){.store = store == SHM_STREAM ? SHM_STREAM : SHM_PLAIN,
                         .left = store < 0};
}

void shm_path_learn(shm_path_t *path, uint64_t late)
{
    unsigned ns = late < MOST_NS ? (unsigned)late : MOST_NS;

    if (!path->line_ns || ns < path->line_ns)
        path->line_ns = ns;
    else
        path->line_ns += (ns - path->line_ns) / 4;
    path->store = shm_path_is_far(path) ? SHM_STREAM : SHM_PLAIN;
    if (path->samples < FIRST_SAMPLES)
        path->samples++;
}

bool shm_path_is_far(const shm_path_t *path)
{
    return path->line_ns > FAR_NS;
}

void shm_path_look(shm_path_t *path, const _Atomic uint64_t *word)
{
    int64_t start = shm_now_ns(), half, end, ns;
    uint64_t value, again;

    value = atomic_load_explicit(word, memory_order_acquire);
    half = shm_now_ns();
    again = atomic_load_explicit(word, memory_order_acquire);
    end = shm_now_ns();
    ns = half - start > end - half ? half - start - (end - half) : 0;
    if (value != path->seen && value == again && ns >= HIT_NS)
        shm_path_learn(path, (uint64_t)ns);
    path->seen = value;
    path->left = path->samples < FIRST_SAMPLES ? 1 : PERIOD;
}
