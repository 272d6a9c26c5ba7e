/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to CUDA's driver for libdscomm; other libraries use dscomm/device.h.
 * Only the process loads the driver, never this library. MT: all are safe. */
#ifndef LIB_DEVICE_H
#define LIB_DEVICE_H

#include <dscomm/backend.h>
#include <dscomm/device.h>

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* For lib/module/module.c: handle is an object that stays loaded, together with
 * the objects that were loaded with it. */
void dscomm_priv_device_anchor(void *handle);

/* Does the same for objects that were loaded since then. */
void dscomm_priv_device_anchor_rest(void);

/* The last of these objects, and the object that was last when the driver was
 * looked up. Objects that are loaded later follow it in the linker's list. */
extern _Atomic(struct link_map *) dscomm_priv_device_last;
extern _Atomic(struct link_map *) dscomm_priv_device_looked;

/* The slow part of the next function: looks again if objects were loaded
 * meanwhile. */
int dscomm_priv_device_look(void);

/* 1 if the process has CUDA's driver. Takes a nanosecond, or ten if objects
 * were loaded since the last module. */
static inline int dscomm_priv_device_present(void)
{
    struct link_map *last =
        atomic_load_explicit(&dscomm_priv_device_last, memory_order_acquire);

    if (last &&
        last == atomic_load_explicit(&dscomm_priv_device_looked,
                                     memory_order_acquire) &&
        !__atomic_load_n(&last->l_next, __ATOMIC_ACQUIRE))
        return 0;
    return dscomm_priv_device_look();
}

/* The number of devices; 0 without a driver. */
int dscomm_priv_device_count(void);
/* Waits for everything that was enqueued on stream, a CUstream of the device
 * that owns pointer; NULL is the default stream. */
dscomm_status_t dscomm_priv_device_sync(const void *pointer, void *stream);

/* Makes a dma-buf of bytes at pointer, in memory of a device; the caller closes
 * its descriptor. NULL, or static text: why there is none. */
const char *dscomm_priv_device_dma_buf(void *pointer, size_t bytes,
                                       dscomm_dma_buf_t *ret_memory);

/* A pair of events, by which a device times the work between them. Zero: it
 * has no events yet. */
typedef struct {
    void *context; /* of the events */
    void *events[2];
} dscomm_device_span_t;

/* Enqueue the first event, and the second one, on stream, of the device that
 * owns pointer. begin makes the events if the span has none of that device.
 * Nothing waits. False: CUDA refuses, for example because it has no memory. */
bool dscomm_priv_device_span_begin(dscomm_device_span_t *span,
                                   const void *pointer, void *stream);
bool dscomm_priv_device_span_end(const dscomm_device_span_t *span,
                                 void *stream);
/* Returns 1, and the ns between the events, if the device has passed both; 0 if
 * it has not; -1 if CUDA fails. Does not wait. */
int dscomm_priv_device_span_read(const dscomm_device_span_t *span,
                                 int64_t *ret_ns);
void dscomm_priv_device_span_free(dscomm_device_span_t *span);

#endif
