/* SPDX-License-Identifier: BSD-3-Clause */
/* What the library runs for a call. */
#include "config.h"

#include "tools/perf-operations.h"

const char *perf_algorithm(const perf_options_t *options,
                           const perf_call_t *call)
{
    const char *name;

    if (call->operation->coll < 0)
        return "-";
    if (dscomm_group_algorithm(
            call->group, (dscomm_coll_t)call->operation->coll, call->dtype,
            call->op, call->count, options->async || call->aggregate > 1,
            &name) != DSCOMM_OK)
        return "unknown";
    return name;
}
