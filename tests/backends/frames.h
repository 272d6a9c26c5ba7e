/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls on the stack, by the compiler's library: not every libc has
 * backtrace(). */
#ifndef TESTS_BACKENDS_FRAMES_H
#define TESTS_BACKENDS_FRAMES_H

#include "tests/backends/inject.h"

#include <unwind.h>

typedef struct {
    void **frames;
    int count, max;
} frames_t;

INJECT_UNWATCHED static inline _Unwind_Reason_Code
frames_add(struct _Unwind_Context *context, void *arg)
{
    frames_t *to = arg;

    if (to->count == to->max)
        return _URC_END_OF_STACK;
    to->frames[to->count++] = (void *)_Unwind_GetIP(context);
    return _URC_NO_REASON;
}

/* Writes at most max return addresses, innermost first. Returns their
 * number. */
INJECT_UNWATCHED static inline int frames_get(void **ret_frames, int max)
{
    frames_t to = {ret_frames, 0, max};

    _Unwind_Backtrace(frames_add, &to);
    return to.count;
}

#endif
