/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives of a group's ranks of this machine, as their flight recorders
 * have them. */
#ifndef LIB_RECORDED_H
#define LIB_RECORDED_H

#include "lib/group/group.h"
#include "lib/recorder/recorder.h"

typedef struct dscomm_recorded_group dscomm_recorded_group_t;

/* NULL: the ranks share no memory, group is NULL or in no world, or there is no
 * memory. */
dscomm_recorded_group_t *dscomm_priv_recorded_open(const dscomm_group_t *group);
void dscomm_priv_recorded_close(dscomm_recorded_group_t *seen);

/* Returns the slot of a rank of the world, and the group's number there; NULL:
 * the rank has none on this machine, or not that group. */
const dscomm_recorder_slot_t *
dscomm_priv_recorded_slot(const dscomm_recorded_group_t *seen, int world_rank,
                          uint32_t *ret_number);
/* Finds the collective with that number that a rank of the world has called;
 * false: none is known. */
bool dscomm_priv_recorded_call(const dscomm_recorded_group_t *seen,
                               int world_rank, uint64_t sequence,
                               dscomm_call_seen_t *ret_call);
/* The same, but the call as the slot has it; returns the slot, or NULL. */
const dscomm_recorder_slot_t *
dscomm_priv_recorded_find(const dscomm_recorded_group_t *seen, int world_rank,
                          uint64_t sequence, dscomm_recorded_t *ret_call);
/* True if a rank of the world, which has a slot, knows that the
 * group has failed. */
bool dscomm_priv_recorded_failed(const dscomm_recorded_group_t *seen,
                                 int world_rank);
/* False if a rank of the world is known not to have called the collective with
 * that number, or a later one. */
bool dscomm_priv_recorded_may_have_called(const dscomm_recorded_group_t *seen,
                                          int world_rank, uint64_t sequence);
/* Returns the process of a rank of the world; 0: it is not known. */
int64_t dscomm_priv_recorded_pid(const dscomm_recorded_group_t *seen,
                                 int world_rank);
/* Returns the oldest of the collectives up to `last`, 64 at most, in which two
 * ranks of the world differ; 0: none is known. */
uint64_t dscomm_priv_recorded_difference(const dscomm_recorded_group_t *seen,
                                         int one, int other, uint64_t last);

#endif
