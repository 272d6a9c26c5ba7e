/* SPDX-License-Identifier: BSD-3-Clause */
/* Wakes ranks that sleep, and revokes the group for all ranks, with the
 * reason. */
#include "config.h"

#include "backends/shm/shm.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <glib.h>

/* time limit; writing a record takes less */
#define REVOKE_NS (100 * NS_PER_MS)

/* sleepers is never zero while a rank needs the fence in this function. */
void shm_wake_slow(shm_t *shm)
{
    atomic_thread_fence(memory_order_seq_cst);
    for (int r = 0; r < shm->ranks; r++) {
        shm_control_t *control = shm_control(shm, r);

        if (!atomic_load_explicit(&control->sleeping, memory_order_relaxed))
            continue;
        atomic_fetch_add(&control->wake, 1);
        syscall(SYS_futex, &control->wake, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

/* Waits while another rank writes the reason of the revocation, which takes a
 * moment; false if that does not end, because the writer has died. */
static bool revoked_by_other(const shm_t *shm)
{
    int64_t start_ns = shm_now_ns();

    while (!shm_is_revoked(shm)) {
        if (shm_now_ns() - start_ns > REVOKE_NS)
            return false;
        sched_yield();
    }
    return true;
}

void shm_revoke(void *impl, const dscomm_failure_t *failure)
{
    shm_t *shm = impl;
    shm_header_t *header = shm->header;
    uint32_t free_to_write = 0;

    if (!atomic_compare_exchange_strong(&header->revoking, &free_to_write, 1) &&
        revoked_by_other(shm))
        return;
    dscomm_backend_failure_pack(failure, header->failure);
    atomic_store_explicit(&header->revoked, failure->status,
                          memory_order_release);
    shm_wake_slow(shm);
}

dscomm_status_t shm_status(void *impl, dscomm_failure_t *ret_failure)
{
    shm_t *shm = impl;
    int32_t status =
        atomic_load_explicit(&shm->header->revoked, memory_order_acquire);

    if (status >= 0)
        return DSCOMM_OK;
    if (ret_failure &&
        !dscomm_backend_failure_unpack(
            shm->header->failure, sizeof shm->header->failure, ret_failure))
        dscomm_backend_failure(shm->group, (dscomm_status_t)status,
                               DSCOMM_FAILURE_PROTOCOL, -1, 0, ret_failure);
    return (dscomm_status_t)status;
}

dscomm_status_t shm_revoked(shm_t *shm)
{
    dscomm_failure_t failure;
    dscomm_status_t status = shm_status(shm, &failure);

    return status ? dscomm_backend_fail(&failure) : DSCOMM_OK;
}

dscomm_status_t shm_fail(shm_t *shm, const dscomm_failure_t *failure)
{
    shm_revoke(shm, failure);
    return shm_revoked(shm);
}

dscomm_status_t shm_revoke_last(shm_t *shm, dscomm_status_t status)
{
    dscomm_failure_t failure;

    dscomm_backend_failure_last(shm->group, status, &failure);
    return shm_fail(shm, &failure);
}

dscomm_status_t shm_fail_resource(const shm_t *shm, dscomm_status_t status,
                                  const char *format, ...)
{
    char text[DSCOMM_FAILURE_DETAIL_MAX];
    dscomm_failure_t failure;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dscomm_backend_failure(shm->group, status, DSCOMM_FAILURE_RESOURCE,
                           shm->world_ranks[shm->rank], getpid(), &failure);
    dscomm_backend_failure_detail(&failure, "group '%s': %s", shm->name, text);
    return dscomm_backend_fail(&failure);
}

void shm_blame(const shm_t *shm, dscomm_status_t status,
               dscomm_failure_kind_t kind, int rank,
               dscomm_failure_t *ret_failure)
{
    dscomm_backend_failure(
        shm->group, status, kind, rank < 0 ? -1 : shm->world_ranks[rank],
        rank < 0 ? 0 : shm->peers->pids[shm->peer[rank]], ret_failure);
    if (!shm->op_step)
        return;
    ret_failure->coll = shm_call(shm)->coll;
    ret_failure->sequence = shm_call(shm)->sequence;
}

int shm_number(const shm_t *shm, int rank)
{
    return dscomm_backend_rank_number(shm->group, shm->world_ranks[rank]);
}

const char *shm_rank_describe(const shm_t *shm, int rank,
                              char text[DSCOMM_CREATION_RANK_MAX])
{
    return dscomm_backend_rank(shm->group, shm->world_ranks[rank],
                               shm->peers->pids[shm->peer[rank]], text);
}
