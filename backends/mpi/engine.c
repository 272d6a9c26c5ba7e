/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of an engine's functions. */
#include "config.h"

#include "backends/mpi/impl.h"

G_STATIC_ASSERT(sizeof(engine_request_t) <= MPI_REQUEST_BYTES);

static uint64_t capabilities(void *impl)
{
    const engine_t *engine = impl;

    return DSCOMM_CAP_ANY_SOURCE |
           (engine_device_why() ? 0 : DSCOMM_CAP_DEVICE_MEMORY) |
           (engine->lock == &engine->own_lock ? 0
                                              : DSCOMM_CAP_CALLER_PROGRESS) |
           (engine->blocking ? DSCOMM_CAP_SEPARATE_MATCHING : 0);
}

static const dscomm_backend_ops_t ops = {
    .size = sizeof(dscomm_backend_ops_t),
    .request_size = sizeof(engine_request_t),
    .open = engine_open,
    .close = engine_close,
    .isend = engine_isend,
    .irecv = engine_irecv,
    .cancel = engine_cancel,
    .progress = engine_progress,
    .revoke = engine_revoke,
    .status = engine_status,
    .capabilities = capabilities,
    .native = engine_native,
    .run = engine_run,
    .explain = engine_explain,
    .quiesce = engine_quiesce,
    .device = engine_device,
    .bootstrap = engine_bootstrap,
    .withdraw = engine_withdraw,
    .matched = engine_matched,
    .probe = engine_probe,
};

DSCOMM_BACKEND_EXPORT extern const dscomm_mpi_engine_t dscomm_mpi_engine;
const dscomm_mpi_engine_t dscomm_mpi_engine = {
    .version = MPI_ENGINE_VERSION,
    .abi = DSCOMM_BACKEND_ABI,
    .name = ENGINE_NAME,
    .ops = &ops,
};
