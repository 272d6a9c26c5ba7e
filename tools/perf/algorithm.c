/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithm that carries out a call. */
#include "config.h"

#include "tools/perf/operations.h"

#include <string.h>

static const char *name_of(const perf_call_t *call, size_t count, int async)
{
    const char *name;

    if (dscomm_group_algorithm(
            call->group, (dscomm_coll_t)call->operation->coll, call->dtype,
            call->op, count, async, &name) != DSCOMM_OK)
        return "unknown";
    return name;
}

/* Collectives that the library may fuse, if they are small. */
static gboolean can_fuse(const perf_call_t *call)
{
    return call->operation->coll == DSCOMM_COLL_ALL_REDUCE ||
           call->operation->coll == DSCOMM_COLL_BROADCAST;
}

const char *perf_algorithm(const perf_options_t *options,
                           const perf_call_t *call)
{
    static char both[80];
    const size_t aggregate = (size_t)MAX(call->aggregate, 1);
    const char *one, *all;

    if (call->operation->coll < 0)
        return "-";
    one = name_of(call, call->count, options->async || aggregate > 1);
    if (aggregate == 1 || !can_fuse(call))
        return one;
    all = name_of(call, call->count * aggregate, 1);
    if (strcmp(one, all) == 0)
        return one;
    g_snprintf(both, sizeof both, "%s/%s", one, all);
    return both;
}

gboolean perf_tuning(dscomm_group_t *group, char text[PERF_TUNING_TEXT])
{
    return dscomm_group_tuning(group, text, PERF_TUNING_TEXT) == DSCOMM_OK &&
           *text;
}
