/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of CUDA devices, for libraries and backends that get pointers from a
 * program. libdscomm calls the CUDA driver that the process has loaded and
 * never loads one; in a process without a driver no memory belongs to a device.
 * MT: all are safe. */
#ifndef DSCOMM_DEVICE_H
#define DSCOMM_DEVICE_H

#include <dscomm/status.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 1 if pointer is in memory that a device has and the host cannot access; 0 for
 * host memory, managed memory and NULL. Takes a few nanoseconds in a process
 * without a driver. */
DSCOMM_API int dscomm_device_owns(const void *pointer);

/* 1 if pointer is in host memory that CUDA knows, as it has allocated or pinned
 * it. */
DSCOMM_API int dscomm_device_pinned(const void *pointer);

/* The calling thread's current context, a CUcontext; NULL: none. */
DSCOMM_API void *dscomm_device_context(void);
/* Makes context the thread's current one; NULL: none. */
DSCOMM_API void dscomm_device_set_context(void *context);

/* Copies bytes between a device and the host, after everything that was put on
 * stream before, and returns when the copy is complete. stream is a CUstream or
 * cudaStream_t of the device; NULL is the default stream. ERR_UNSUPPORTED
 * without a driver; ERR_INVALID unless exactly one of dest and source is device
 * memory; ERR_IO with CUDA's reason. */
DSCOMM_API dscomm_status_t dscomm_device_copy(void *dest, const void *source,
                                              size_t bytes, void *stream);

/* Allocates host memory for copies of bytes from and to the device that owns
 * pointer; NULL if there is none. It is pinned, except beyond 256 MiB of the
 * process's pinned memory or if CUDA refuses. Freed memory is cached for later
 * calls. */
DSCOMM_API void *dscomm_device_staging_alloc(const void *pointer, size_t bytes);
/* Frees such memory, which may be NULL. */
DSCOMM_API void dscomm_device_staging_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
