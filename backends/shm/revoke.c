/* SPDX-License-Identifier: BSD-3-Clause */
/* Wakes ranks that sleep, and revokes the group for all ranks, with the
 * reason. */
#include "config.h"

#include "backends/shm/shm.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <glib.h>

#define REVOKE_US 100000 /* writing a sentence takes less */

/* Sleepers is never zero where the fence is needed. */
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

/* Somebody else writes why the group is revoked. That takes a moment; false if
 * it does not end, since its writer has died over it. */
static bool revoked_by_other(const shm_t *shm)
{
    int64_t start = g_get_monotonic_time();

    while (!shm_is_revoked(shm)) {
        if (g_get_monotonic_time() - start > REVOKE_US)
            return false;
        sched_yield();
    }
    return true;
}

void shm_revoke(void *impl, dscomm_status_t status, const char *sentence)
{
    shm_t *shm = impl;
    shm_header_t *header = shm->header;
    uint32_t free_to_write = 0;

    if (!atomic_compare_exchange_strong(&header->revoking, &free_to_write, 1) &&
        revoked_by_other(shm))
        return;
    snprintf(header->text, sizeof header->text, "%s", sentence);
    atomic_store_explicit(&header->revoked, status, memory_order_release);
    shm_wake_slow(shm);
}

dscomm_status_t shm_status(void *impl, char *text, size_t size)
{
    shm_t *shm = impl;
    int32_t status =
        atomic_load_explicit(&shm->header->revoked, memory_order_acquire);

    if (status >= 0)
        return DSCOMM_OK;
    if (text)
        snprintf(text, size, "%.*s", SHM_TEXT - 1, shm->header->text);
    return (dscomm_status_t)status;
}

dscomm_status_t shm_revoked(shm_t *shm)
{
    char text[SHM_TEXT];
    dscomm_status_t status = shm_status(shm, text, sizeof text);

    return status ? dscomm_fail(status, "%s", text) : DSCOMM_OK;
}

dscomm_status_t shm_revoke_last(shm_t *shm, dscomm_status_t status)
{
    shm_revoke(shm, status, dscomm_last_error());
    return shm_revoked(shm);
}
