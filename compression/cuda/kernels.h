/* SPDX-License-Identifier: BSD-3-Clause */
/* Between cuda.c and kernels.cu: one function starts one kernel. They return
 * what the runtime says of the start. */
#ifndef COMPRESSION_CUDA_KERNELS_H
#define COMPRESSION_CUDA_KERNELS_H

#include "compression/device/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a kernel runs, and what its blocks share. */
typedef struct {
    void *stream;
    unsigned blocks; /* at most, and no fewer than DSCOMM_DEVICE_TOGETHER */
    double *partials; /* one for each block */
    unsigned *arrived; /* one for each job that is done together; 0 between
                          kernels */
} dscomm_cuda_grid_t;

/* Up to DSCOMM_DEVICE_TOGETHER jobs, in one kernel where they are of one kind:
 * of one format, with as many ranks. */
int dscomm_priv_cuda_worker(const dscomm_cuda_grid_t *grid,
                            const dscomm_device_worker_t *args, size_t jobs);
int dscomm_priv_cuda_server(const dscomm_cuda_grid_t *grid,
                            const dscomm_device_server_t *args, size_t jobs);
int dscomm_priv_cuda_unpack(const dscomm_cuda_grid_t *grid,
                            const dscomm_device_unpack_t *args, size_t jobs);
/* s is left alone. */
int dscomm_priv_cuda_materialise(const dscomm_cuda_grid_t *grid,
                                 const dscomm_device_materialise_t *args);
int dscomm_priv_cuda_take_back(const dscomm_cuda_grid_t *grid,
                               const dscomm_device_take_back_t *args);

#ifdef __cplusplus
}
#endif

#endif
