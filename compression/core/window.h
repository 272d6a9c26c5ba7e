/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows: memory of a device that the other ranks of a node have mapped. A
 * group's ranks make them together, when a compressor is made, and each has as
 * many as the others, of the same sizes. What a call's rows need is taken of
 * one where there is room, and its place told to the others; which read it, say
 * so, and only then is it taken again. A window goes when the last compressor
 * of its group does and nobody has it mapped any more; what a process that died
 * had does not count. */
#ifndef COMPRESSION_WINDOW_H
#define COMPRESSION_WINDOW_H

#include "compression/core/compressor.h"
#include "compression/device/ops.h"

/* Taken of a window, or of none. */
typedef struct dscomm_berth {
    dscomm_window_t *window;
    size_t at, bytes;
    struct dscomm_berth *next; /* behind it */
} dscomm_berth_t;

/* What a call of c alone would take, with so many ranks; 0: its rows are never
 * a device's. */
size_t dscomm_priv_window_need(const dscomm_compressor_t *c, int ranks);
/* What this rank says before c is made: the bytes of the new window that it
 * needs, 0 where there is enough, less where there can be none. */
int64_t dscomm_priv_window_wish(const dscomm_compressor_t *c,
                                dscomm_group_t *group);
/* The first page of all that this rank has now, or of the next window. */
uint32_t dscomm_priv_window_oldest(dscomm_group_t *group);
/* Collective: a new window where a rank wishes one and none is against it. Of
 * all ranks' wishes: the least, whose it is, and the most; and the highest of
 * their first pages: what is before that some have no longer. Not to get one is
 * no failure; why tells then. */
dscomm_status_t dscomm_priv_window_agree(dscomm_channel_t *channel,
                                         int64_t least, int rank, int64_t most,
                                         uint32_t from);
/* Nothing uses the channel any more. */
void dscomm_priv_window_leave(dscomm_channel_t *channel);
/* Releases what others still had mapped when it was left, and have no longer;
 * waits so long for a device that is at work. */
void dscomm_priv_window_reap(int most_ms);

/* For tests: this table serves devices from here on, or none. No call is
 * outstanding, and no compressor has been at a device. */
void dscomm_priv_device_use(const dscomm_device_ops_t *ops);

/* Room in a window of the queue's device, or NULL. */
char *dscomm_priv_window_take(dscomm_channel_t *channel,
                              const dscomm_device_queue_t *queue, size_t bytes,
                              dscomm_berth_t *ret_berth);
void dscomm_priv_window_give(dscomm_channel_t *channel, dscomm_berth_t *berth);
/* Where that is, as the others find it, */
uint32_t dscomm_priv_window_page(const dscomm_berth_t *berth);
#define DSCOMM_WINDOW_PAGES ((uint32_t)1 << 30)
/* and so many bytes of rank's there; NULL: it has no such window. */
char *dscomm_priv_window_find(dscomm_channel_t *channel, int rank,
                              uint32_t page, size_t bytes);

#endif
