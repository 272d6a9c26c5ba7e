/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of CUDA devices, through the driver that the process has loaded, which
 * is never loaded from here. Without one nothing is a device's. All may be
 * called from any thread. */
#ifndef LIB_DEVICE_H
#define LIB_DEVICE_H

#include <dscomm/status.h>

#include <stddef.h>

/* 1 where the process has CUDA's driver; a matter of nanoseconds. */
int dscomm_priv_device_present(void);
/* For lib/module.c: handle is of an object that stays loaded. While it is the
 * last one to be loaded, the above takes one nanosecond. */
void dscomm_priv_device_anchor(void *handle);
/* 1 where the host must not touch what is at pointer. Memory that both can
 * touch is the host's here. */
int dscomm_priv_device_owns(const void *pointer);
/* Devices that there are. */
int dscomm_priv_device_count(void);

/* From here on where one of the pointers is a device's. */

/* Waits for what the default stream of pointer's device has under way. */
dscomm_status_t dscomm_priv_device_sync(const void *pointer);
/* One of the two is the host's. */
dscomm_status_t dscomm_priv_device_to_host(void *dest, const void *source,
                                           size_t bytes);
dscomm_status_t dscomm_priv_device_to_device(void *dest, const void *source,
                                             size_t bytes);

/* Host memory that the device of pointer can copy from and to at its best,
 * plain memory where there is none; NULL where there is no memory. What was
 * given back is kept for the next, to some extent. */
void *dscomm_priv_device_host_take(const void *pointer, size_t bytes);
void dscomm_priv_device_host_give(void *memory);

#endif
