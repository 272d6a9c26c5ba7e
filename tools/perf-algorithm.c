/* SPDX-License-Identifier: BSD-3-Clause */
/* What the library would run. */
#include "config.h"

#include "tools/perf.h"

const char *perf_algorithm(const perf_call_t *call)
{
    (void)call;
    return "native";
}
