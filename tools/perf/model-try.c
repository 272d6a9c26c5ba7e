/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms, measured beside the model's predictions. A world reads its
 * rules when it starts, so each set of rules has a world of its own. */
#include "config.h"

#include "tools/perf/measure.h"
#include "tools/perf/model-run.h"
#include "tools/perf/options.h"

#include <string.h>

#define NATIVE "native"

/* Whether the ranks of the prediction can have an algorithm. All ranks must say
 * the same, so this depends on the layout only, not on measured times. */
static bool is_possible(const perf_prediction_t *p, int coll, const char *name)
{
    const perf_layout_t layout = {p->ranks, p->local, 1};
    perf_schedule_t schedule;

    if (!perf_schedule_init(&schedule, coll, name, &layout, 1024))
        return false;
    perf_schedule_clear(&schedule);
    return true;
}

/* Returns algorithm index of a collective, NATIVE first, as far as it can be
 * used by the ranks of the prediction; NULL: there are not so many. */
static const char *find_candidate(const perf_prediction_t *p, int coll,
                                  int index)
{
    const char *name;
    int other;

    if (index == 0)
        return NATIVE;
    for (size_t i = 0; (name = perf_model_algorithm(i, &other)); i++)
        if (other == coll && is_possible(p, coll, name) && --index == 0)
            return name;
    return NULL;
}

/* The rules by which each operation has its algorithm number index; NULL: none
 * has so many. To be freed. */
static char *rules_new(const perf_prediction_t *p, int index)
{
    GString *rules = g_string_new(NULL);

    for (size_t i = 0; p->options->operations[i]; i++) {
        const perf_operation_t *operation = p->options->operations[i];
        const char *name = find_candidate(p, operation->coll, index);

        if (name)
            g_string_append_printf(rules, "%s%s:%s", rules->len ? "," : "",
                                   operation->name, name);
    }
    return g_string_free(rules, rules->len == 0);
}

/* Whether group's calls have the algorithm that the rules name: a backend may
 * have no collective of its own. */
static bool is_used(const perf_call_t *call, const char *algorithm)
{
    const char *name;

    return dscomm_group_algorithm(
               call->group, (dscomm_coll_t)call->operation->coll, call->dtype,
               call->op, call->count, 0, &name) == DSCOMM_OK &&
           strcmp(name, algorithm) == 0;
}

/* A call whose root is another rank each time, so that no root runs ahead. */
static dscomm_status_t step_rotating(const perf_call_t *call,
                                     dscomm_work_t **none)
{
    static int root;
    perf_call_t one = *call;

    one.root = root = (root + 1) % call->ranks;
    return one.operation->run(&one, none);
}

static dscomm_status_t try_size(perf_run_t *run, perf_prediction_t *p,
                                perf_call_t *call, const char *algorithm)
{
    const double bytes = (double)(call->total * call->size);
    const bool rooted = perf_kind(call->operation)->flags & PERF_ROOTED;
    perf_times_t times = {0};
    perf_trial_t trial = {
        .operation = call->operation, .algorithm = algorithm, .bytes = bytes};
    dscomm_status_t status;

    if (!is_used(call, algorithm))
        return DSCOMM_OK;
    perf_progress(run, "%s by %s, %.0f bytes", call->operation->name, algorithm,
                  bytes);
    perf_call_place(call, PERF_OUT_OF_PLACE, run->send, run->recv);
    status = perf_time(run, call, rooted ? step_rotating : call->operation->run,
                       &times);
    trial.measured = times.p50 * 1e-6;
    trial.predicted =
        perf_model_predict(p, call->operation, algorithm, p->ranks, bytes);
    g_array_append_val(p->trials, trial);
    return status;
}

/* Tries all sizes of an operation with algorithm number index in run's group.
 */
static dscomm_status_t try_operation(perf_run_t *run, perf_prediction_t *p,
                                     const perf_operation_t *operation,
                                     int index)
{
    const char *algorithm = find_candidate(p, operation->coll, index);
    perf_call_t call = {.operation = operation,
                        .group = run->group,
                        .rank = run->rank,
                        .ranks = run->ranks,
                        .dtype = DSCOMM_FLOAT32,
                        .size = sizeof(float),
                        .op = DSCOMM_SUM,
                        .factor = 1,
                        .aggregate = 1};
    dscomm_status_t status = DSCOMM_OK;
    size_t last = SIZE_MAX;

    for (size_t bytes = run->options->min, next = 1;
         algorithm && next && status == DSCOMM_OK; bytes = next) {
        next = perf_next_size(run->options, bytes);
        perf_call_size(&call, bytes);
        if (call.total != last)
            status = try_size(run, p, &call, algorithm);
        last = call.total;
    }
    return status;
}

static dscomm_status_t try_world(perf_run_t *run, perf_prediction_t *p,
                                 int index)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    perf_run_t trial = *run;
    dscomm_status_t status;

    attr.backend = run->options->backend;
    attr.name = "perf model";
    status = dscomm_init(&attr, &trial.group);
    if (status != DSCOMM_OK)
        return status;
    for (size_t i = 0; run->options->operations[i] && status == DSCOMM_OK; i++)
        status = try_operation(&trial, p, run->options->operations[i], index);
    if (status == DSCOMM_OK)
        status = dscomm_finalize(trial.group);
    else
        dscomm_finalize(trial.group);
    return status;
}

/* Ends the world that has measured so far, because its threads may read the
 * environment, which is about to change. */
static dscomm_status_t world_end(perf_run_t *run)
{
    dscomm_group_t *world = *run->world;

    *run->world = run->group = NULL;
    return dscomm_finalize(world);
}

dscomm_status_t perf_model_try(perf_run_t *run, perf_prediction_t *p)
{
    char *before = g_strdup(g_getenv("DSCOMM_ALGORITHM")), *rules;
    dscomm_status_t status = world_end(run);

    for (int i = 0; status == DSCOMM_OK && (rules = rules_new(p, i)); i++) {
        g_setenv("DSCOMM_ALGORITHM", rules, TRUE);
        g_free(rules);
        status = try_world(run, p, i);
    }
    if (before)
        g_setenv("DSCOMM_ALGORITHM", before, TRUE);
    else
        g_unsetenv("DSCOMM_ALGORITHM");
    g_free(before);
    perf_progress(run, NULL);
    return status;
}
