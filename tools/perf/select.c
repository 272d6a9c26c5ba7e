/* SPDX-License-Identifier: BSD-3-Clause */
/* Which operations, with which types and operators, see options.h. */
#include "config.h"

#include "lib/base/nearest.h"
#include "tools/perf/operations.h"
#include "tools/perf/options.h"

#include <string.h>

gboolean perf_is_selected(const perf_options_t *options,
                          const perf_operation_t *operation,
                          dscomm_dtype_t dtype, dscomm_op_t op)
{
    if (!options->dtypes[dtype])
        return FALSE;
    if (!(operation->flags & PERF_REDUCES))
        return op == DSCOMM_SUM;
    return options->ops[op] && dscomm_op_applies(op, dtype) &&
           (op != DSCOMM_PREMUL_SUM || operation->flags & PERF_PREMUL);
}

/* Whether any type and operator can be measured with this operation. */
static gboolean has_any(const perf_options_t *options,
                        const perf_operation_t *operation)
{
    for (int dtype = 0; dtype < DSCOMM_DTYPE_COUNT; dtype++)
        for (int op = 0; op < DSCOMM_OP_COUNT; op++)
            if (perf_is_selected(options, operation, (dscomm_dtype_t)dtype,
                                 (dscomm_op_t)op))
                return TRUE;
    return FALSE;
}

/* An option that needs a form with a work; NULL: none was given. */
static const char *needs_works(const perf_options_t *options)
{
    if (options->overlap)
        return "--overlap";
    if (options->async)
        return "--async";
    return options->aggregate > 1 ? "-m" : NULL;
}

static int check_one(const perf_options_t *options,
                     const perf_operation_t *operation)
{
    const char *option = needs_works(options);

    if (option && !(operation->flags & PERF_WORKS))
        return tool_fail(TOOL_USAGE, "perf",
                         "%s: %s has no form that returns a work; leave out "
                         "one of them",
                         option, operation->name);
    if (!has_any(options, operation))
        return tool_fail(TOOL_USAGE, "perf",
                         "-o: none of these operators is defined for %s on "
                         "any of the types",
                         operation->name);
    return TOOL_OK;
}

static void operation_add(GPtrArray *chosen, const perf_operation_t *operation)
{
    g_ptr_array_add(chosen, (gpointer)operation);
}

/* Chooses the operations that the other options allow. */
static void add_all(const perf_options_t *options, GPtrArray *chosen)
{
    const perf_operation_t *operation;

    for (size_t i = 0; (operation = perf_operation(i)); i++)
        if ((operation->flags & PERF_WORKS || !needs_works(options)) &&
            has_any(options, operation))
            operation_add(chosen, operation);
}

static int refuse_name(const char *name)
{
    dscomm_nearest_t search = dscomm_priv_nearest_begin(name, 0);
    const perf_operation_t *operation;

    for (size_t i = 0; (operation = perf_operation(i)); i++)
        dscomm_priv_nearest_try(&search, operation->name);
    return tool_fail(TOOL_USAGE, "perf",
                     "there is no operation '%s'; %s%s%s'dscomm perf --help' "
                     "lists them, 'all' is all",
                     name, search.nearest ? "is " : "",
                     search.nearest ? search.nearest : "",
                     search.nearest ? " meant? " : "");
}

static int add_named(const perf_options_t *options, GPtrArray *chosen,
                     const char *name)
{
    const perf_operation_t *operation = perf_operation_find(name);
    int status;

    if (!operation)
        return refuse_name(name);
    status = check_one(options, operation);
    if (status == TOOL_OK)
        operation_add(chosen, operation);
    return status;
}

int perf_select(perf_options_t *options, char *const *names)
{
    GPtrArray *chosen = g_ptr_array_new();
    int status = TOOL_OK;

    if (!names[0])
        status = tool_fail(TOOL_USAGE, "perf",
                           "which operation? Usage: dscomm perf [-n N] "
                           "OPERATION...; 'dscomm perf --help' lists them");
    for (int i = 0; names[i] && status == TOOL_OK; i++)
        if (strcmp(names[i], "all") == 0)
            add_all(options, chosen);
        else if (strcmp(names[i], "--") != 0)
            status = add_named(options, chosen, names[i]);
    g_ptr_array_add(chosen, NULL);
    options->operations =
        (const perf_operation_t **)g_ptr_array_free(chosen, FALSE);
    return status;
}
