/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers in device memory: the device computes, and only rows come to the
 * host. What a device cannot compute is done by the host, on a copy. */
#ifndef COMPRESSION_DEVICE_H
#define COMPRESSION_DEVICE_H

#include "compression/exchange/exchange.h"

/* How long a failed call waits for its device, in ms. A working device has
 * ended its work by then; for one that hangs, the memory is never freed. */
#define DSCOMM_SETTLE_MS 1000

/* In module.c: the table of cuda.so, or NULL. The first call loads the
 * module. */
const dscomm_device_ops_t *dscomm_priv_device_table(void);
static inline const dscomm_device_ops_t *device_ops(void)
{
    return dscomm_priv_device_table();
}
/* Ends all queues and replaces the table; see dscomm_priv_device_use(). */
void dscomm_priv_device_replace(const dscomm_device_ops_t *ops);
/* 1 if buffer is device memory. *ret_device: its device, -1 without a table. */
int dscomm_priv_device_holds(const void *buffer, int *ret_device);
/* The thread's current device; -1: none, or there is no table. */
int dscomm_priv_device_current(void);
/* The queue of a device; there is one. */
dscomm_status_t dscomm_priv_device_queue(int device,
                                         dscomm_device_queue_t **ret_queue);
/* OK, or a failure with the sentence for a code of the table. */
dscomm_status_t dscomm_priv_device_result(int code, const char *what);

/* In part.c: looks where the buffers of a call are. A part gets a side on its
 * device, or a copy of its buffer on the host. The errors of a part that the
 * host computes are copied back to the host. */
dscomm_status_t dscomm_priv_device_begin(dscomm_exchange_t *x);
/* Frees the copy; before that, finish() copies the result to the device. */
void dscomm_priv_device_end(part_t *part);
dscomm_status_t dscomm_priv_device_finish(const dscomm_exchange_t *x,
                                          part_t *part);

/* In work.c, for the parts of a call with a side; the work is put on the
 * device's queue. encode() encodes the parts for all ranks; encoded() is called
 * after that. */
dscomm_status_t dscomm_priv_device_encode(dscomm_exchange_t *x);
/* Reduces the parts [first, end) of all ranks (rows as in dscomm_priv_reduce())
 * and encodes the results; reduced() is called after that. */
void dscomm_priv_device_encoded(const dscomm_exchange_t *x, part_t *part);
dscomm_status_t dscomm_priv_device_reduce(dscomm_exchange_t *x, size_t first,
                                          size_t end, char *const *rows);
/* decode() decodes the results of a packet; complete() orders the program's
 * streams after that. */
dscomm_status_t dscomm_priv_device_reduced(const dscomm_exchange_t *x,
                                           part_t *part);
dscomm_status_t dscomm_priv_device_decode(dscomm_exchange_t *x, size_t p);
dscomm_status_t dscomm_priv_device_complete(dscomm_exchange_t *x);

/* In rows.c: OK if the queue has reached the mark of a packet's stage, or if
 * there is no such mark. With STAGES, p is a mark of the call: MARK_*. */
dscomm_status_t dscomm_priv_device_reached(dscomm_exchange_t *x, stage_t stage,
                                           size_t p);
/* Frees the regions on a device, which must not be in use. */
void dscomm_priv_device_leave(dscomm_exchange_t *x);
/* Waits for at most so long until no device uses the memory of x. */
dscomm_status_t dscomm_priv_device_settle(dscomm_exchange_t *x, int most_ms);

/* In drain.c: waits for at most so long until the queue is empty. event: where
 * a mark is kept for later calls, or NULL. */
dscomm_status_t dscomm_priv_device_drain(dscomm_device_queue_t *queue,
                                         void **event, int most_ms);
/* The same in a call, which ends if one of x's groups ends. */
dscomm_status_t dscomm_priv_exchange_drain(const dscomm_exchange_t *x,
                                           dscomm_device_queue_t *queue);
/* The same without a sentence. 1: it is empty. */
int dscomm_priv_device_is_idle(dscomm_device_queue_t *queue, int most_ms);
/* Drains the queue and releases memory; if the queue does not end, the memory
 * is retained. */
dscomm_status_t dscomm_priv_device_release(dscomm_device_queue_t *queue,
                                           int on_host, void *memory,
                                           int most_ms);

/* Keeps memory, which a device or a backend may still use, until the process
 * ends. */
void dscomm_priv_retain(void *memory);

/* After a device had no memory, a number of calls do not try again; the number
 * grows with each failure. is_short(): 1 if this call shall not try to allocate
 * so many bytes. asked() records the result of a try, a code of the table. */
int dscomm_priv_device_is_short(dscomm_shortage_t *shortage, size_t bytes);
void dscomm_priv_device_asked(dscomm_shortage_t *shortage, size_t bytes,
                              int code);

/* In side.c; all wait for the group's time-out at most. home() copies the
 * errors to the host; changes: 1 if the host is going to change them. */
dscomm_status_t dscomm_priv_device_home(const dscomm_compressor_t *c,
                                        int changes);
/* Drops the device's errors: those of the host are valid from here on. zero: 1
 * if they become zeros, which the device sets without a copy. */
dscomm_status_t dscomm_priv_device_discard(const dscomm_compressor_t *c,
                                           int zero);
/* Frees c's memory on its device. Memory that the device may still use is
 * retained, with the errors on the host, which c no longer has then. */
void dscomm_priv_device_free(dscomm_compressor_t *c);

#endif
