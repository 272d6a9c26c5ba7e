/* SPDX-License-Identifier: BSD-3-Clause */
/* A group's end as one rank knows it: what the slots revoke and status of a
 * backend share, where it has no place of its own for that. Any thread may call
 * any of these at any time. */
#ifndef BACKENDS_ENDING_H
#define BACKENDS_ENDING_H

#include <dscomm/backend.h>
#include <stdatomic.h>
#include <stdio.h>

#define ENDING_MAX 512

/* Zero: not ended. text is written between begun and status. */
typedef struct {
    atomic_int begun, status;
    char text[ENDING_MAX];
} ending_t;

/* 1 where this call is the first, which counts. */
static inline int ending_mark(ending_t *ending, dscomm_status_t status,
                              const char *sentence)
{
    if (atomic_exchange(&ending->begun, 1))
        return 0;
    snprintf(ending->text, sizeof ending->text, "%s", sentence);
    atomic_store_explicit(&ending->status, status, memory_order_release);
    return 1;
}

/* As the slot status: OK, or why the group has ended, in text unless NULL. */
static inline dscomm_status_t ending_status(ending_t *ending, char *text,
                                            size_t size)
{
    int status = atomic_load_explicit(&ending->status, memory_order_acquire);

    if (status && text)
        snprintf(text, size, "%s", ending->text);
    return (dscomm_status_t)status;
}

/* OK, or the failure of a call on a group that has ended. */
static inline dscomm_status_t ending_check(ending_t *ending)
{
    dscomm_status_t status = ending_status(ending, NULL, 0);

    return status < 0 ? dscomm_fail(status, "%s", ending->text) : DSCOMM_OK;
}

#endif
