/* SPDX-License-Identifier: BSD-3-Clause */
/* The hot path: steps, lines, flags and rings, as shm.h explains them. */
#ifndef SHM_STEPS_H
#define SHM_STEPS_H

#include <string.h>

#include "backends/shm/copy.h"
#include "backends/shm/request.h"

/* Pointer offset bytes into a buffer, which may be NULL if it is not used. */
static inline unsigned char *shm_at(const void *buffer, size_t offset)
{
    return (unsigned char *)((uintptr_t)buffer + offset);
}

static inline shm_line_t *shm_line(const shm_t *shm, int rank, uint64_t step)
{
    return &shm_control(shm, rank)->line[step % SHM_LINES];
}

static inline uint64_t shm_flag(const shm_t *shm, uint64_t step)
{
    return step << 32 | shm->chain;
}

/* Whether rank has raised its flag of a step of the current operation. */
static inline bool shm_raised(const shm_t *shm, int rank, uint64_t step)
{
    return atomic_load_explicit(&shm_line(shm, rank, step)->flag,
                                memory_order_acquire) == shm_flag(shm, step);
}

static inline void shm_raise(shm_t *shm, uint64_t step)
{
    atomic_store_explicit(&shm_line(shm, shm->rank, step)->flag,
                          shm_flag(shm, step), memory_order_release);
    shm_wake(shm);
}

/* Publishes that this rank has read all it needs of the steps below. */
static inline void shm_done(shm_t *shm, uint64_t step)
{
    atomic_store_explicit(&shm->own->done, step, memory_order_release);
    shm_wake(shm);
}

/* Takes the next step, and size bytes of every ring for it. The same sequence
 * of calls gives the same positions on all ranks. */
static inline uint64_t shm_take(shm_t *shm, size_t size)
{
    uint64_t ring = shm->layout.ring_size;
    uint64_t at = shm->place % ring;

    size = (size + SHM_LINE - 1) & ~(size_t)(SHM_LINE - 1);
    if (at + size > ring)
        shm->place += ring - at;
    shm->start[shm->step % SHM_LINES] = shm->place;
    shm->place += size;
    return shm->step++;
}

/* The place of a rank's bytes of a step. */
static inline unsigned char *shm_region(const shm_t *shm, int rank,
                                        uint64_t step)
{
    return shm_ring(shm, rank) +
           shm->start[step % SHM_LINES] % shm->layout.ring_size;
}

bool shm_floor_reached(shm_t *shm, uint64_t need);

/* Whether this rank may write its line and its bytes of step, the last one
 * taken: whether all ranks have read what was there before. */
static inline bool shm_writable(shm_t *shm, uint64_t step)
{
    uint64_t need = step >= SHM_LINES ? step - SHM_LINES + 1 : 0;

    if (shm->tail < need)
        shm->tail = need;
    while (shm->tail < step &&
           shm->start[shm->tail % SHM_LINES] + shm->layout.ring_size <
               shm->place)
        shm->tail++;
    need = shm->tail > need ? shm->tail : need;
    return shm->floor >= need || shm_floor_reached(shm, need);
}

/* Notes that all ranks have raised a flag of the operation that begins with
 * step, so that all have finished the operations before. */
static inline void shm_all_arrived(shm_t *shm, uint64_t step)
{
    if (shm->floor < step)
        shm->floor = step;
}

/* Begins the next collective of the group. */
static inline void shm_begin(shm_t *shm, const dscomm_coll_args_t *args)
{
    shm_record_t *record = &shm->own->record[args->sequence % SHM_RECORDS];
    const dscomm_coll_args_t *call = args->of ? args->of : args;

    record->count = call->count;
    record->root = call->root;
    record->fingerprint = args->fingerprint;
    record->coll = (int8_t)call->coll;
    record->dtype = (int8_t)call->dtype;
    record->op = (int8_t)call->op;
    record->number = (uint32_t)call->sequence;
    atomic_store_explicit(&record->sequence, args->sequence,
                          memory_order_release);
    shm->chain = (shm->chain ^ args->fingerprint) * 0x9e3779b1u + 1;
    shm->chain ^= shm->chain >> 15;
    shm->op_chain = shm->chain;
    shm->op_step = shm->step;
    shm->op_args = args;
}

static inline void shm_end(shm_t *shm)
{
    shm_done(shm, shm->step);
    shm->op_step = 0;
    shm->moves++;
}

/* Reserves this rank's ring before its first use. */
dscomm_status_t shm_ring_reserve(shm_t *shm);

static inline dscomm_status_t shm_ring_ready(shm_t *shm)
{
    return shm->ring_reserved ? DSCOMM_OK : shm_ring_reserve(shm);
}

/* Copies a payload to a place that other ranks will read. */
static inline void shm_hand_over(const shm_t *shm, void *dest,
                                 const void *source, size_t size)
{
    shm_store_copy((shm_store_t)shm->store, dest, source, size);
}

#endif
