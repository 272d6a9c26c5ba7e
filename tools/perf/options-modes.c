/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that modes of `dscomm perf` need or exclude, see options.h. */
#include "config.h"

#include "tools/perf/operations.h"
#include "tools/perf/options.h"

#include <stdbool.h>
#include <string.h>

int perf_check_accelerator(perf_options_t *o)
{
    const char *other = o->compress        ? "--compress"
                        : o->registered    ? "-R"
                        : o->aggregate > 1 ? "-m"
                                           : NULL;

    if (strcmp(o->accelerator, "cuda") != 0)
        return tool_fail(TOOL_USAGE, "perf",
                         "--accelerator must be cuda, not '%s'",
                         o->accelerator);
    if (other)
        return tool_fail(TOOL_USAGE, "perf",
                         "--accelerator and %s exclude each other", other);
    /* Copies by the host say nothing about a device. */
    o->no_roof = true;
    return TOOL_OK;
}

int perf_check_compare(const perf_options_t *o, char *const *names)
{
    const struct {
        const char *name;
        bool given;
    } others[] = {
        {"--compress", o->compress != NULL},
        {"-m", o->aggregate > 1},
        {"--overlap", o->overlap},
        {"--async", o->async},
        {"--against", o->against != NULL},
        {"-r all", o->root == PERF_ROOT_ALL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        if (others[i].given)
            return tool_fail(TOOL_USAGE, "perf",
                             "--compare and %s exclude each other",
                             others[i].name);
    if (names[0])
        return tool_fail(TOOL_USAGE, "perf",
                         "--compare has the operations; leave out %s",
                         names[0]);
    return TOOL_OK;
}

/* Returns an alternative that is there twice, or NULL. */
static const perf_operation_t *
find_twice(const perf_operation_t *const *alternatives)
{
    for (size_t i = 1; alternatives[i]; i++)
        for (size_t k = 0; k < i; k++)
            if (alternatives[k] == alternatives[i])
                return alternatives[i];
    return NULL;
}

int perf_check_alternatives(const perf_options_t *o)
{
    const perf_operation_t *const *alternatives = o->operations;

    if (!alternatives[0] || !alternatives[1])
        return tool_fail(TOOL_USAGE, "perf",
                         "--compare needs two operations or more, separated "
                         "by commas, as all_reduce,reduce+broadcast");
    if (find_twice(alternatives))
        return tool_fail(TOOL_USAGE, "perf",
                         "--compare: %s is there twice; leave one of them out",
                         find_twice(alternatives)->name);
    for (size_t i = 1; alternatives[i]; i++)
        if (!perf_is_alike(alternatives[0], alternatives[i]))
            return tool_fail(TOOL_USAGE, "perf",
                             "--compare: %s and %s have different results; "
                             "'dscomm perf --help' lists the operations",
                             alternatives[0]->name, alternatives[i]->name);
    return TOOL_OK;
}
