/* SPDX-License-Identifier: BSD-3-Clause */
/* A check of what a call of the store returned. */
#ifndef TESTS_LIB_STORE_TOLD_H
#define TESTS_LIB_STORE_TOLD_H

#include "tests/tap.h"

#include <dscomm/status.h>

static inline int status_is(dscomm_status_t got, dscomm_status_t want,
                            const char *what)
{
    int passed = is_int(got, want, "%s", what);

    if (!passed)
        tap_text("last error:", dscomm_last_error());
    return passed;
}

#endif
