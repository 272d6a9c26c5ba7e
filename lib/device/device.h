/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of CUDA devices, through the driver that the process has loaded, which
 * is never loaded from here. Without one nothing is a device's. All may be
 * called from any thread. */
#ifndef LIB_DEVICE_H
#define LIB_DEVICE_H

#include <dscomm/status.h>

#include <link.h>
#include <stdatomic.h>
#include <stddef.h>

/* For lib/module/module.c: handle is of an object that stays loaded, as do
 * those that came with it. */
void dscomm_priv_device_anchor(void *handle);

/* The same for what was loaded since then. */
void dscomm_priv_device_anchor_rest(void);

/* The last of these, and the one after whose load the driver was looked for.
 * What is loaded later comes behind it in the list of objects. */
extern _Atomic(struct link_map *) dscomm_priv_device_last;
extern _Atomic(struct link_map *) dscomm_priv_device_looked;

/* As below, where anything may have been loaded meanwhile. */
int dscomm_priv_device_look(void);

/* 1 where the process has CUDA's driver: a nanosecond, or ten where something
 * was loaded since the last module. */
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

/* 1 where the host must not touch what is at pointer. Memory that both can
 * touch is the host's here. */
int dscomm_priv_device_owns(const void *pointer);
/* 1 where this thread has a context, and so works with a device. */
int dscomm_priv_device_in_context(void);
/* Devices that there are. */
int dscomm_priv_device_count(void);

/* From here on where one of the pointers is a device's. stream: a CUstream of
 * that device's context; NULL is the default one. */

/* Waits for what stream has under way. */
dscomm_status_t dscomm_priv_device_sync(const void *pointer, void *stream);
/* Copies once stream has come so far, and waits. One of the two pointers is the
 * host's. */
dscomm_status_t dscomm_priv_device_to_host(void *dest, const void *source,
                                           size_t bytes, void *stream);
dscomm_status_t dscomm_priv_device_to_device(void *dest, const void *source,
                                             size_t bytes, void *stream);

/* Host memory that the device of pointer can copy from and to at its best,
 * plain memory where that is impossible or there would be more than 256 MiB of
 * it; NULL where there is no memory. What was given back is kept for the next,
 * as far as these go. */
void *dscomm_priv_device_host_take(const void *pointer, size_t bytes);
void dscomm_priv_device_host_give(void *memory);

#endif
