/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a group, as this rank knows it. Backends that keep no such
 * state elsewhere use it for the slots revoke and status. Any thread may call
 * these functions at any time. */
#ifndef BACKENDS_ENDING_H
#define BACKENDS_ENDING_H

#include <dscomm/backend.h>
#include <stdatomic.h>

/* Zero: the group has not ended. failure is written after begun is set and
 * before status is. */
typedef struct {
    atomic_int begun, status;
    dscomm_failure_t failure;
} ending_t;

/* Records how the group has ended. Returns 1 for the first call; later ones
 * change nothing and return 0. */
static inline int ending_mark(ending_t *ending, const dscomm_failure_t *failure)
{
    if (atomic_exchange(&ending->begun, 1))
        return 0;
    ending->failure = *failure;
    atomic_store_explicit(&ending->status, failure->status,
                          memory_order_release);
    return 1;
}

/* For the slot status: OK, or the status of the failure that has ended the
 * group. */
static inline dscomm_status_t ending_status(ending_t *ending,
                                            dscomm_failure_t *ret_failure)
{
    int status = atomic_load_explicit(&ending->status, memory_order_acquire);

    if (status && ret_failure)
        *ret_failure = ending->failure;
    return (dscomm_status_t)status;
}

/* OK, or the failure of a call on a group that has ended. */
static inline dscomm_status_t ending_check(ending_t *ending)
{
    dscomm_status_t status = ending_status(ending, NULL);

    return status < 0 ? dscomm_backend_fail(&ending->failure) : DSCOMM_OK;
}

#endif
