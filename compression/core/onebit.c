/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of compressors by the name of the codec that most of them have. */
#include "config.h"

#include <dscomm/compression.h>

dscomm_status_t dscomm_onebit_free(dscomm_onebit_t *onebit)
{
    return dscomm_compressor_free(onebit);
}

dscomm_status_t dscomm_onebit_all_reduce(dscomm_onebit_t *onebit, void *buffer,
                                         dscomm_dtype_t dtype,
                                         dscomm_work_t **ret_work)
{
    return dscomm_compressor_all_reduce(onebit, buffer, dtype, ret_work);
}

dscomm_status_t dscomm_onebit_all_reduce_many(dscomm_onebit_t *const *onebits,
                                              void *const *buffers, size_t n,
                                              dscomm_dtype_t dtype,
                                              dscomm_work_t **ret_work)
{
    return dscomm_compressor_all_reduce_many(onebits, buffers, n, dtype,
                                             ret_work);
}

dscomm_status_t dscomm_onebit_reset(dscomm_onebit_t *onebit)
{
    return dscomm_compressor_reset(onebit);
}

dscomm_status_t dscomm_onebit_set_mask(dscomm_onebit_t *onebit,
                                       const uint8_t *mask)
{
    return dscomm_compressor_set_mask(onebit, mask);
}

dscomm_status_t dscomm_onebit_info(const dscomm_onebit_t *onebit,
                                   dscomm_compressor_info_t *ret_info)
{
    return dscomm_compressor_info(onebit, ret_info);
}

dscomm_status_t dscomm_onebit_errors(dscomm_onebit_t *onebit,
                                     float **ret_worker, float **ret_server)
{
    return dscomm_compressor_errors(onebit, ret_worker, ret_server);
}

dscomm_status_t dscomm_onebit_save(const dscomm_onebit_t *onebit, void *memory,
                                   size_t bytes)
{
    return dscomm_compressor_save(onebit, memory, bytes);
}

dscomm_status_t dscomm_onebit_load(dscomm_onebit_t *onebit, const void *memory,
                                   size_t bytes)
{
    return dscomm_compressor_load(onebit, memory, bytes);
}

dscomm_status_t dscomm_onebit_save_file(const dscomm_onebit_t *onebit,
                                        const char *path)
{
    return dscomm_compressor_save_file(onebit, path);
}

dscomm_status_t dscomm_onebit_load_file(dscomm_onebit_t *onebit,
                                        const char *path)
{
    return dscomm_compressor_load_file(onebit, path);
}
