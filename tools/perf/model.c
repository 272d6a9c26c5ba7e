/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm perf --model`, see model-run.h: what a rank does. */
#include "config.h"

#include "tools/perf/model-run.h"

#include <limits.h>

static int finish(const perf_prediction_t *p)
{
    perf_model_report(p);
    return p->options->model_save ? perf_model_save(p) : TOOL_OK;
}

static void clear(perf_prediction_t *p)
{
    g_array_unref(p->trials);
    g_array_unref(p->counts);
}

/* Finds the ranks of a node. If nodes have different numbers, those of rank 0's
 * node count on all ranks, which must try the same algorithms. */
static dscomm_status_t local_find(perf_run_t *run, perf_prediction_t *p)
{
    int32_t local = dscomm_group_local_size(run->group);
    const dscomm_status_t status =
        dscomm_broadcast(run->group, &local, 1, DSCOMM_INT32, 0, NULL);

    p->local = local < run->ranks ? local : INT_MAX;
    return status;
}

int perf_model_run(perf_run_t *run)
{
    perf_prediction_t p = {.options = run->options,
                           .backend = dscomm_group_backend(run->group),
                           .ranks = run->ranks,
                           .trials =
                               g_array_new(FALSE, FALSE, sizeof(perf_trial_t))};
    int status = perf_model_read(&p);

    if (status == TOOL_OK && run->ranks < 2)
        status = tool_fail(TOOL_USAGE, "perf",
                           "--model needs 2 ranks; start them with -n, or give "
                           "--model-parameters");
    if (status == TOOL_OK && (local_find(run, &p) != DSCOMM_OK ||
                              perf_model_measure(run, &p) != DSCOMM_OK ||
                              perf_model_try(run, &p) != DSCOMM_OK))
        status = perf_fail("--model");
    if (status == TOOL_OK && run->rank == 0)
        status = finish(&p);
    clear(&p);
    return status;
}

int perf_model_given(const perf_options_t *options)
{
    perf_prediction_t p = {.options = options,
                           .backend = options->backend,
                           .trials =
                               g_array_new(FALSE, FALSE, sizeof(perf_trial_t))};
    int status = perf_model_read(&p);

    if (status == TOOL_OK)
        status = finish(&p);
    clear(&p);
    return status;
}
