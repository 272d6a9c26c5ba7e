/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of the model, from measured times, see model-run.h. */
#include "config.h"

#include "tools/perf/measure.h"
#include "tools/perf/model-run.h"

#include <dscomm/backend.h>
#include <math.h>
#include <string.h>

#define LARGEST ((size_t)4 << 20)
#define POINTS_MOST 24
#define LINE_LEAST 6 /* points of a line */
#define TURNS 20 /* of a fit */
#define NEAR 0.01 /* relative error from which a point of a fit counts less */
#define WORK_BYTES ((size_t)256 << 10) /* reduced, and copied */
#define WORK_CALLS 50
#define WORK_REPEATS 9

/* A straight line, and the sum of its relative errors. */
typedef struct {
    double alpha, beta, error;
} line_t;

/* The relative error of a line, absolute. */
static double line_error(const line_t *line, double bytes, double time)
{
    return fabs((line->alpha + line->beta * bytes) / time - 1);
}

/* Fits a line by least squares of relative errors, so that short messages count
 * as much as long ones. Points far from before, if it is not NULL, count less.
 * Neither parameter is negative. */
static line_t line_fit_squares(const double *bytes, const double *times,
                               size_t count, const line_t *before)
{
    double s = 0, sx = 0, sxx = 0, st = 0, sxt = 0;
    line_t line = {0};

    for (size_t i = 0; i < count; i++) {
        const double far = before ? line_error(before, bytes[i], times[i]) : 0;
        const double weight = 1 / (times[i] * times[i] * MAX(far, NEAR));

        s += weight;
        sx += weight * bytes[i];
        sxx += weight * bytes[i] * bytes[i];
        st += weight * times[i];
        sxt += weight * bytes[i] * times[i];
    }
    line.beta = MAX((s * sxt - sx * st) / (s * sxx - sx * sx), 0);
    line.alpha = (st - line.beta * sx) / s;
    if (line.alpha < 0)
        line = (line_t){.beta = sxt / sxx};
    for (size_t i = 0; i < count; i++)
        line.error += line_error(&line, bytes[i], times[i]);
    return line;
}

/* Fits a line for which the sum of relative errors is small, whatever a few
 * disturbed points say. */
static line_t line_fit(const double *bytes, const double *times, size_t count)
{
    line_t line = line_fit_squares(bytes, times, count, NULL);

    for (int i = 0; i < TURNS; i++)
        line = line_fit_squares(bytes, times, count, &line);
    return line;
}

static void set_piece(perf_cost_t *cost, int i, line_t line)
{
    cost->pieces[i].alpha = line.alpha;
    cost->pieces[i].beta = line.beta;
}

perf_errors_t perf_model_errors(double *values, size_t count)
{
    perf_times_t all;

    if (!count)
        return (perf_errors_t){0, 0};
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i]);
    perf_times_fill(values, count, &all);
    return (perf_errors_t){all.p50, all.max};
}

static perf_errors_t fit_errors(const double *bytes, const double *times,
                                size_t count, const perf_cost_t *cost)
{
    double errors[POINTS_MOST];

    for (size_t i = 0; i < count; i++)
        errors[i] = (perf_cost_alpha(cost, bytes[i]) +
                     perf_cost_beta(cost, bytes[i]) * bytes[i]) /
                        times[i] -
                    1;
    return perf_model_errors(errors, count);
}

/* Two lines, each of so many points that a disturbed one does not matter, if
 * they fit better than one. */
perf_errors_t perf_model_fit(const double *bytes, const double *times,
                             size_t count, perf_cost_t *ret_cost)
{
    const line_t all = line_fit(bytes, times, count);
    double best = all.error;

    ret_cost->split = INFINITY;
    set_piece(ret_cost, 0, all);
    set_piece(ret_cost, 1, all);
    for (size_t i = LINE_LEAST; i + LINE_LEAST <= count; i++) {
        const line_t first = line_fit(bytes, times, i);
        const line_t second = line_fit(bytes + i, times + i, count - i);

        if (first.error + second.error >= best)
            continue;
        best = first.error + second.error;
        ret_cost->split = bytes[i - 1];
        set_piece(ret_cost, 0, first);
        set_piece(ret_cost, 1, second);
    }
    return fit_errors(bytes, times, count, ret_cost);
}

/* Measures an operation on group, in seconds. */
static dscomm_status_t measure_call(perf_run_t *run, dscomm_group_t *group,
                                    const char *name, size_t bytes,
                                    double *ret_time)
{
    perf_call_t call = {.operation = perf_operation_find(name),
                        .group = group,
                        .rank = dscomm_group_rank(group),
                        .ranks = dscomm_group_size(group),
                        .dtype = DSCOMM_FLOAT32,
                        .size = sizeof(float),
                        .aggregate = 1};
    perf_times_t times = {0};
    dscomm_status_t status;

    perf_call_size(&call, bytes);
    perf_call_place(&call, PERF_OUT_OF_PLACE, run->send, run->recv);
    status = perf_time(run, &call, call.operation->run, &times);
    *ret_time = times.p50 * 1e-6;
    return status;
}

/* Measures messages by an operation with one message in a row, each way or one
 * way. */
static dscomm_status_t measure_cost(perf_run_t *run, dscomm_group_t *group,
                                    const char *name, perf_cost_t *ret_cost,
                                    perf_errors_t *ret_errors)
{
    const size_t most = CLAMP(run->options->max, 4096, LARGEST);
    double bytes[POINTS_MOST], times[POINTS_MOST];
    dscomm_status_t status = DSCOMM_OK;
    size_t count = 0;

    for (size_t size = sizeof(float); size <= most && status == DSCOMM_OK;
         size *= size < 1024 ? 4 : 2) {
        bytes[count] = (double)size;
        perf_progress(run, "%s, %zu bytes", name, size);
        status = measure_call(run, group, name, size, &times[count++]);
    }
    if (status == DSCOMM_OK)
        *ret_errors = perf_model_fit(bytes, times, count, ret_cost);
    return status;
}

/* Measures messages between ranks 0 and 1 of group one way, and those of all
 * its ranks to the next one, at the same time. */
static dscomm_status_t measure_link(perf_run_t *run, dscomm_group_t *group,
                                    perf_link_t *link,
                                    perf_errors_t ret_errors[2])
{
    dscomm_status_t status =
        measure_cost(run, group, "latency", &link->one_way, &ret_errors[0]);

    if (status == DSCOMM_OK)
        status = measure_cost(run, group, "sendrecv", &link->both_ways,
                              &ret_errors[1]);
    if (status == DSCOMM_OK)
        status =
            measure_call(run, group, "bandwidth", sizeof(float), &link->gap);
    return status;
}

/* Makes a group of the ranks with the same color, and measures its link if it
 * has messages and this rank takes part. */
static dscomm_status_t measure_group(perf_run_t *run, int color,
                                     bool takes_part, perf_link_t *link,
                                     perf_errors_t ret_errors[2])
{
    dscomm_group_t *group;
    dscomm_status_t status =
        dscomm_group_split(run->group, color, run->rank, NULL, &group);

    if (status != DSCOMM_OK)
        return status;
    if (takes_part && dscomm_group_size(group) > 1)
        status = measure_link(run, group, link, ret_errors);
    if (status == DSCOMM_OK)
        status = dscomm_barrier(run->group, NULL);
    dscomm_group_free(group);
    return status;
}

static void work_reduce(perf_run_t *run, size_t bytes)
{
    const void *sources[] = {run->send, run->recv};

    dscomm_reduce_kernel(DSCOMM_FLOAT32, DSCOMM_SUM)(
        run->recv, sources, 2, bytes / sizeof(float), NULL);
}

static void work_copy(perf_run_t *run, size_t bytes)
{
    memcpy(run->recv, run->send, bytes);
    /* Keeps the compiler from removing the copies, which are never read. */
    __asm__ __volatile__("" : : "r"(run->recv) : "memory");
}

size_t perf_model_work_bytes(const perf_options_t *options)
{
    return CLAMP(options->max, 4096, WORK_BYTES);
}

/* Measures the seconds for a byte that all ranks read or write at the same
 * time. The values do not grow: the first sources are 0. */
static dscomm_status_t measure_work(perf_run_t *run,
                                    void (*work)(perf_run_t *, size_t),
                                    double touched, double *ret_time)
{
    const size_t bytes = perf_model_work_bytes(run->options);
    double times[WORK_REPEATS];
    dscomm_status_t status = DSCOMM_OK;
    perf_times_t all;

    memset(run->send, 0, bytes);
    for (int i = 0; i < WORK_REPEATS && status == DSCOMM_OK; i++) {
        double start;

        status = dscomm_barrier(run->group, NULL);
        start = perf_now();
        for (int k = 0; k < WORK_CALLS; k++)
            work(run, bytes);
        times[i] = (perf_now() - start) / WORK_CALLS;
    }
    if (status == DSCOMM_OK)
        status = dscomm_all_reduce(run->group, times, times, WORK_REPEATS,
                                   DSCOMM_FLOAT64, DSCOMM_MAX, NULL);
    if (status != DSCOMM_OK)
        return status;
    perf_times_fill(times, WORK_REPEATS, &all);
    *ret_time = all.p50 * 1e-6 / (touched * (double)bytes);
    return DSCOMM_OK;
}

dscomm_status_t perf_model_measure(perf_run_t *run, perf_prediction_t *p)
{
    const int local = dscomm_group_local_rank(run->group);
    const int node = dscomm_group_node_rank(run->group);
    perf_model_t *model = &p->model;
    dscomm_status_t status =
        measure_group(run, node, true, &model->near, p->fits[0]);

    if (status == DSCOMM_OK)
        status = measure_group(run, local, local == 0, &model->far, p->fits[1]);
    if (status == DSCOMM_OK)
        status = measure_work(run, work_reduce, 3, &model->gamma);
    if (status == DSCOMM_OK)
        status = measure_work(run, work_copy, 2, &model->delta);
    perf_progress(run, NULL);
    p->is_fitted[0] = dscomm_group_local_size(run->group) > 1;
    p->is_fitted[1] = dscomm_group_local_size(run->group) < run->ranks;
    if (!p->is_fitted[0])
        model->near = model->far;
    if (!p->is_fitted[1])
        model->far = model->near;
    return status;
}
