/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of CUDA's driver that copies between devices need, by dlopen().
 * All return CUresult, 0 for success. */
#ifndef TOOLS_TOPO_DRIVER_H
#define TOOLS_TOPO_DRIVER_H

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int (*init)(unsigned flags);
    int (*device_count)(int *ret_count);
    int (*device_get)(int *ret_device, int ordinal);
    int (*device_address)(char *address, int size, int device);
    int (*can_access)(int *ret_can, int device, int peer);
    int (*context_retain)(void **ret_context, int device);
    int (*context_release)(int device);
    int (*context_set)(void *context);
    int (*context_wait)(void);
    int (*access_enable)(void *peer_context, unsigned flags);
    int (*memory_alloc)(uint64_t *ret_memory, size_t bytes);
    int (*memory_free)(uint64_t memory);
    int (*memory_set)(uint64_t memory, unsigned char byte, size_t bytes);
    int (*host_alloc)(void **ret_memory, size_t bytes);
    int (*host_free)(void *memory);
    int (*stream_create)(void **ret_stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_wait)(void *stream);
    int (*event_create)(void **ret_event, unsigned flags);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_elapsed)(float *ret_ms, void *begin, void *end);
    int (*copy)(uint64_t dest, uint64_t source, size_t bytes, void *stream);
    int (*copy_peer)(uint64_t dest, void *dest_context, uint64_t source,
                     void *source_context, size_t bytes, void *stream);
    int (*copy_to_device)(uint64_t dest, const void *source, size_t bytes,
                          void *stream);
    int (*copy_to_host)(void *dest, uint64_t source, size_t bytes,
                        void *stream);
    int (*error_name)(int code, const char **ret_name);
} topo_driver_t;

/* Loads the driver and calls its init. NULL, or a sentence, g_free(). */
char *topo_driver_load(topo_driver_t *ret_driver);

/* Why there is no device, though there is a driver; g_free(). */
char *topo_driver_none(void);

/* "cuInit: CUDA_ERROR_INVALID_VALUE", with advice for lack of memory;
 * g_free(). */
char *topo_driver_error(const topo_driver_t *driver, const char *what,
                        int code);

#endif
