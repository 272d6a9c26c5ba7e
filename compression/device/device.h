/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers in the memory of a device: their arithmetic is done there, and rows
 * alone come to the host. What a device cannot do is done here, on a copy. */
#ifndef COMPRESSION_DEVICE_H
#define COMPRESSION_DEVICE_H

#include "compression/exchange/exchange.h"

/* A device that goes on has ended by then what a call that failed has begun;
 * one that stands keeps the memory. */
#define DSCOMM_SETTLE_MS 1000

/* In module.c: the table of cuda.so, which is loaded when first asked
 * for, or NULL. */
const dscomm_device_ops_t *dscomm_priv_device_table(void);
/* Why there is no table; static. */
const char *dscomm_priv_device_why(void);
/* Ends all queues; this table serves from here on, or none. See
 * dscomm_priv_device_use(). */
void dscomm_priv_device_replace(const dscomm_device_ops_t *ops);
/* 1 where the host must not touch what is at buffer; *ret_device: its device,
 * or -1 where there is no table. */
int dscomm_priv_device_holds(const void *buffer, int *ret_device);
/* The device that this thread works with; -1: none, or none of the table's. */
int dscomm_priv_device_current(void);
/* The one queue of a device. */
dscomm_status_t dscomm_priv_device_queue(int device,
                                         dscomm_device_queue_t **ret_queue);
/* OK, or the sentence for a code of the table. */
dscomm_status_t dscomm_priv_device_result(int code, const char *what);

/* In part.c: looks where the buffers of a call are. A part gets a side,
 * or a copy of its buffer, or what is on a device comes back to the host. */
dscomm_status_t dscomm_priv_device_begin(dscomm_exchange_t *x);
/* Gives the copy back; finish() before it puts the result where it belongs. */
void dscomm_priv_device_end(part_t *part);
dscomm_status_t dscomm_priv_device_finish(const dscomm_exchange_t *x,
                                          part_t *part);

/* In work.c, for the parts of a call with a side; what they say is done
 * is put on the device's queue. Encodes them for all ranks, */
dscomm_status_t dscomm_priv_device_encode(dscomm_exchange_t *x);
/* and takes note once that is done. Of those in [first, end), reduces what
 * ranks have sent (rows as in dscomm_priv_reduce()) and encodes that, */
void dscomm_priv_device_encoded(const dscomm_exchange_t *x, part_t *part);
dscomm_status_t dscomm_priv_device_reduce(dscomm_exchange_t *x, size_t first,
                                          size_t end, char *const *rows);
/* and takes note. Decodes the results in a packet, and sees to it that they
 * are there when the program looks. */
dscomm_status_t dscomm_priv_device_reduced(const dscomm_exchange_t *x,
                                           part_t *part);
dscomm_status_t dscomm_priv_device_decode(dscomm_exchange_t *x, size_t p);
dscomm_status_t dscomm_priv_device_complete(dscomm_exchange_t *x);

/* In rows.c: whether the queue has come to the mark for a packet's
 * stage; OK where there is none. STAGES: the call's, MARK_*. */
dscomm_status_t dscomm_priv_device_reached(dscomm_exchange_t *x, stage_t stage,
                                           size_t p);
/* Gives back the regions at a device; they are not in use. */
void dscomm_priv_device_leave(dscomm_exchange_t *x);
/* Waits so long for what a device may still do with the memory of x. */
dscomm_status_t dscomm_priv_device_settle(dscomm_exchange_t *x, int most_ms);

/* In drain.c: waits so long for all that the queue has. event: a place for a
 * mark that stays, or NULL; */
dscomm_status_t dscomm_priv_device_drain(dscomm_device_queue_t *queue,
                                         void **event, int most_ms);
/* the same in a call, as long as x's groups go on; */
dscomm_status_t dscomm_priv_exchange_drain(const dscomm_exchange_t *x,
                                           dscomm_device_queue_t *queue);
/* the same without a sentence. 1: it has none left. */
int dscomm_priv_device_is_idle(dscomm_device_queue_t *queue, int most_ms);
/* Releases memory after that; where it fails the memory is parked. */
dscomm_status_t dscomm_priv_device_release(dscomm_device_queue_t *queue,
                                           int on_host, void *memory,
                                           int most_ms);

/* Keeps memory until the process ends, which may be in use. */
void dscomm_priv_park(void *memory);

/* 1 where a device is not to be asked for so many bytes, which it did not have
 * a few calls ago; these are more each time. What it said: a code of the table.
 */
int dscomm_priv_device_is_short(dscomm_shortage_t *shortage, size_t bytes);
void dscomm_priv_device_asked(dscomm_shortage_t *shortage, size_t bytes,
                              int code);

/* In side.c, all of which wait as long as the group does at most.
 * Brings the errors to the host. changes: they will be others there. */
dscomm_status_t dscomm_priv_device_home(const dscomm_compressor_t *c,
                                        int changes);
/* The errors are those of the host from here on, which has or will have others;
 * zero: zeros, without a copy where the device can. */
dscomm_status_t dscomm_priv_device_discard(const dscomm_compressor_t *c,
                                           int zero);
/* Frees what there is of c at a device. What that may still use by then is
 * parked, the errors on the host too, which c has no longer. */
void dscomm_priv_device_free(dscomm_compressor_t *c);

#endif
