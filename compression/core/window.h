/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows: device memory that the other ranks of a node have mapped. All ranks
 * of a group make a window together, when a compressor is created; all have the
 * same number of windows, of the same sizes. A call takes a slot of a window
 * for its rows, if there is room, and sends its place to the other ranks, which
 * read the rows and acknowledge that. Only then is the slot free again. A
 * window is released after the last compressor of its group is freed and no
 * other process has it mapped; a process that died does not count. */
#ifndef COMPRESSION_WINDOW_H
#define COMPRESSION_WINDOW_H

#include "compression/core/compressor.h"
#include "compression/device/ops.h"

/* A part of a window; window NULL: none. */
typedef struct dscomm_window_slot {
    dscomm_window_t *window;
    size_t at, bytes;
    struct dscomm_window_slot *next; /* by at */
} dscomm_window_slot_t;

/* Bytes that a call of c alone needs with so many ranks; 0: its rows are never
 * in device memory. */
size_t dscomm_priv_window_need(const dscomm_compressor_t *c, int ranks);
/* Bytes of the new window that this rank needs for c; 0: the present windows
 * are enough; negative: this rank can have no window. */
int64_t dscomm_priv_window_wish(const dscomm_compressor_t *c,
                                dscomm_group_t *group);
/* The first page of this rank's oldest window, or of the next one. */
uint32_t dscomm_priv_window_oldest(dscomm_group_t *group);
/* The wishes of all ranks. */
typedef struct {
    int64_t least, most;
    int rank; /* that with the least */
    uint32_t from; /* the highest of their first pages; some ranks no longer
                      have the pages before it */
} dscomm_window_wishes_t;
/* Collective: makes a new window if a rank needs one and all can have one.
 * Without a window the status is OK, and why has the reason. */
dscomm_status_t dscomm_priv_window_agree(dscomm_channel_t *channel,
                                         const dscomm_window_wishes_t *wishes);
/* Called when the last compressor of the channel is freed. */
void dscomm_priv_window_leave(dscomm_channel_t *channel);

/* For tests: replaces the table of devices; NULL: the module's. No call may be
 * outstanding, and no compressor may have used a device. */
void dscomm_priv_device_use(const dscomm_device_ops_t *ops);

/* Takes a slot in a window of the queue's device; NULL: there is no room. */
char *dscomm_priv_window_take(dscomm_channel_t *channel,
                              const dscomm_device_queue_t *queue, size_t bytes,
                              dscomm_window_slot_t *ret_slot);
void dscomm_priv_window_give(dscomm_channel_t *channel,
                             dscomm_window_slot_t *slot);
/* The first page of a slot, by which the other ranks find it. */
uint32_t dscomm_priv_window_page(const dscomm_window_slot_t *slot);
#define DSCOMM_WINDOW_PAGES ((uint32_t)1 << 30)
/* The address at which a slot of rank, with so many bytes, is mapped in this
 * process; NULL if it is not. */
char *dscomm_priv_window_find(dscomm_channel_t *channel, int rank,
                              uint32_t page, size_t bytes);

#endif
