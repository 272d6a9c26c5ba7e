/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface between cuda.c and kernels.cu. Each function starts one kernel
 * and returns the runtime's code for the start. */
#ifndef COMPRESSION_CUDA_KERNELS_H
#define COMPRESSION_CUDA_KERNELS_H

#include "compression/device/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The stream of a kernel, its limit of blocks, and memory that blocks share. */
typedef struct {
    void *stream;
    unsigned blocks; /* limit; at least DSCOMM_DEVICE_TOGETHER */
    double *partials; /* one for each block */
    unsigned *arrived; /* one for each job of a kernel; 0 between kernels */
} dscomm_cuda_grid_t;

/* The next three take any number of jobs. Jobs of one kind (of one format, or
 * with equally many ranks) share a kernel, up to DSCOMM_DEVICE_TOGETHER of
 * them. */
int dscomm_priv_cuda_worker(const dscomm_cuda_grid_t *grid,
                            const dscomm_device_worker_t *args, size_t jobs);
int dscomm_priv_cuda_server(const dscomm_cuda_grid_t *grid,
                            const dscomm_device_server_t *args, size_t jobs);
int dscomm_priv_cuda_unpack(const dscomm_cuda_grid_t *grid,
                            const dscomm_device_unpack_t *args, size_t jobs);
/* Does not clear s. */
int dscomm_priv_cuda_materialise(const dscomm_cuda_grid_t *grid,
                                 const dscomm_device_materialise_t *args);
int dscomm_priv_cuda_take_back(const dscomm_cuda_grid_t *grid,
                               const dscomm_device_take_back_t *args);

#ifdef __cplusplus
}
#endif

#endif
