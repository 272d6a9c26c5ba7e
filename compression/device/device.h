/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers in device memory: the device computes, and only rows are copied to
 * the host. If the device cannot compute a part, the host does, on a copy. */
#ifndef COMPRESSION_DEVICE_H
#define COMPRESSION_DEVICE_H

#include "compression/exchange/exchange.h"

/* One compressor's errors on a device. The worker error has two arrays:
 * encoding writes to the other one, so that the old errors are still there if
 * the scale is not finite. */
struct dscomm_device_side {
    int device;
    dscomm_device_queue_t *queue;
    char *memory; /* of all arrays */
    float *worker[2], *server;
    float *scales; /* scales of worker[0], worker[1] and server */
    int now; /* index of the valid worker array */
    int ahead; /* 1: the host's copy of the errors is out of date */
    int behind; /* 1: the device's are */
    int late; /* 1: the device may still use the host's copy */
    float *kept[2]; /* the host's errors, after the compressor was freed */
};

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

/* In part.c: the table's format for a dtype, or -1. */
int dscomm_priv_device_format(dscomm_dtype_t dtype);
/* Looks where the buffers of a call are. A part gets a side on its device, or a
 * copy of its buffer on the host. The errors of a part that the
 * host computes are copied back to the host. */
dscomm_status_t dscomm_priv_device_begin(dscomm_exchange_t *x);
/* Frees the copy; before that, finish() copies the result to the device. */
void dscomm_priv_device_end(part_t *part);
dscomm_status_t dscomm_priv_device_finish(const dscomm_exchange_t *x,
                                          part_t *part);

/* In work.c, for the parts of a call with a side. The functions enqueue work on
 * the device's queue. encode() encodes the parts for all ranks; the host calls
 * encoded() afterwards. */
dscomm_status_t dscomm_priv_device_encode(dscomm_exchange_t *x);
void dscomm_priv_device_encoded(const dscomm_exchange_t *x, part_t *part);
/* Reduces the parts [first, end) of all ranks (rows as in dscomm_priv_reduce())
 * and encodes the results; the host calls reduced() afterwards. */
dscomm_status_t dscomm_priv_device_reduce(dscomm_exchange_t *x, size_t first,
                                          size_t end, char *const *rows);
dscomm_status_t dscomm_priv_device_reduced(const dscomm_exchange_t *x,
                                           part_t *part);
/* decode() decodes the results of a packet; complete() orders the program's
 * streams after that. */
dscomm_status_t dscomm_priv_device_decode(dscomm_exchange_t *x, size_t p);
dscomm_status_t dscomm_priv_device_complete(dscomm_exchange_t *x);

/* In rows.c. The regions of a call in device memory. The device writes and
 * reads rows there; they are copied to and from the host's regions packet by
 * packet, and marks in the device's queue show when a copy is complete. If
 * messages use device memory, or other ranks map it, only headers are copied to
 * the host. */

/* Gives x the queue of that device, and room for marks. */
dscomm_status_t dscomm_priv_device_marks(dscomm_exchange_t *x, int device);
/* Allocates x's regions on the device, in a window if possible. ERR_NO_MEMORY:
 * the device has no room. */
dscomm_status_t dscomm_priv_device_regions(dscomm_exchange_t *x, int device);
/* The device's address of the bytes that are at `here` on the host. */
char *dscomm_priv_device_there(const dscomm_exchange_t *x, const char *here);

/* The following enqueue work and return the table's code. */

/* Copies the bytes of packet p that the host needs at that stage to the host,
 * and sets a mark after the copy; does nothing if the host needs none. */
int dscomm_priv_device_down(dscomm_exchange_t *x, stage_t stage, size_t p);
/* Copies a received packet p to the device; or its headers from there to the
 * host; or its rows out of windows. */
int dscomm_priv_device_came(dscomm_exchange_t *x, stage_t stage, size_t p);
/* Copies the headers of a part, from byte skip on, to the device, in so many
 * regions from first on. */
int dscomm_priv_device_headers(const dscomm_exchange_t *x, const part_t *part,
                               const char *first, int ranks, size_t skip);
/* Sets a mark for the end of the call. */
int dscomm_priv_device_mark_end(dscomm_exchange_t *x);

/* OK if the queue has reached the mark of a packet's stage, or if there is no
 * such mark. With STAGES, p is a mark of the call: MARK_*. */
dscomm_status_t dscomm_priv_device_reached(dscomm_exchange_t *x, stage_t stage,
                                           size_t p);
/* Frees the regions on a device, which must not be in use. */
void dscomm_priv_device_leave(dscomm_exchange_t *x);
/* Waits at most most_ms until no device uses the memory of x. */
dscomm_status_t dscomm_priv_device_settle(dscomm_exchange_t *x, int most_ms);

/* In drain.c: a short pause between two looks at a device. since_ns: the time
 * of its last progress. */
void dscomm_priv_device_rest(int64_t since_ns);
/* Waits for at most so long until the queue is empty. event: where a mark is
 * kept for later calls, or NULL. channel: that of a call, which ends if one of
 * its groups ends, or NULL. */
dscomm_status_t dscomm_priv_device_drain(const dscomm_channel_t *channel,
                                         dscomm_device_queue_t *queue,
                                         void **event, int most_ms);
/* Does the same without a sentence. 1: the queue is empty. */
int dscomm_priv_device_is_idle(dscomm_device_queue_t *queue, int most_ms);
/* Drains the queue and releases memory; if the queue does not end, the memory
 * is retained. */
dscomm_status_t dscomm_priv_device_release(dscomm_device_queue_t *queue,
                                           int on_host, void *memory,
                                           int most_ms);

/* Keeps memory, which a device or a backend may still use, until the process
 * ends. */
void dscomm_priv_retain(void *memory);

/* After an allocation on a device has failed, a number of calls do not try
 * again; the number grows with each failure. is_short() returns 1 if this call
 * must not try to allocate so many bytes. note_try() records the result of a
 * try, a code of the table. */
int dscomm_priv_device_is_short(dscomm_shortage_t *shortage, size_t bytes);
void dscomm_priv_device_note_try(dscomm_shortage_t *shortage, size_t bytes,
                                 int code);

/* Elements of the server error. */
static inline size_t side_server_count(const dscomm_compressor_t *c)
{
    return dscomm_priv_part_count(c, c->channel->rank);
}
/* In side.c. Gives the part a side on that device, with the compressor's
 * errors. ERR_NO_MEMORY: the device has no room; the host keeps the errors. */
dscomm_status_t dscomm_priv_device_take_side(part_t *part, int device);
/* Converts the worker errors on the device to a scale of 0. Returns the table's
 * code. */
int dscomm_priv_device_materialise_worker(dscomm_device_side_t *side,
                                          const dscomm_compressor_t *c);

/* In side.c; all wait at most for the group's time-out. home() copies the
 * errors to the host; changes: 1 if the host is going to change them. */
dscomm_status_t dscomm_priv_device_home(const dscomm_compressor_t *c,
                                        int changes);
/* Drops the device's copy of the errors, so that the host's is valid. zero: 1
 * if they become zeros, which the device sets without a copy. */
dscomm_status_t dscomm_priv_device_discard(const dscomm_compressor_t *c,
                                           int zero);
/* Frees c's memory on its device. Memory that the device may still use is
 * retained, and so are the host's errors, which c then no longer owns. */
void dscomm_priv_device_free(dscomm_compressor_t *c);

#endif
