/* SPDX-License-Identifier: BSD-3-Clause */
/* Does this MPI take buffers in the memory of a device? */
#include "config.h"

#include "backends/mpi/impl.h"

/* Of the library that the process really has, whatever it was compiled with:
 * MPIX_CUDA_AWARE_SUPPORT is of the header. */
__attribute__((weak)) extern int MPIX_Query_cuda_support(void);

const char *engine_device_why(void)
{
    int64_t wanted = MPI_AUTO;

    dscomm_setting_number(&mpi_settings[MPI_SETTING_CUDA_AWARE], &wanted);
    if (wanted == MPI_NO)
        return "DSCOMM_CUDA_AWARE is no";
    if (wanted == MPI_YES)
        return NULL;
    if (!MPIX_Query_cuda_support)
        return "this MPI has no MPIX_Query_cuda_support()";
    return MPIX_Query_cuda_support() ? NULL : "this MPI is not CUDA-aware";
}

/* An Open MPI with support says so where there is no device as well. */
const char *engine_device(void *impl, int devices)
{
    const char *why = engine_device_why();

    (void)impl;
    return why || devices > 0 ? why : "CUDA has found no device";
}
