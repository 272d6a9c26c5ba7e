/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether this MPI accepts buffers in device memory. */
#include "config.h"

#include "backends/mpi/impl.h"

/* Asks the library that is loaded, because MPIX_CUDA_AWARE_SUPPORT describes
 * the header of the compilation. */
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

/* Open MPI with CUDA support reports it even if there is no device. */
const char *engine_device(void *impl, int devices)
{
    const char *why = engine_device_why();

    (void)impl;
    return why || devices > 0 ? why : "CUDA has found no device";
}
