/* SPDX-License-Identifier: BSD-3-Clause */
/* The measuring loop, see measure.h.
 *
 * A figure is made of batches. After a barrier, every rank reads its clock,
 * makes a number of calls, and reads the clock again; so reading the clock does
 * not count in each call. Between the barriers, ranks wait for each other only
 * in the measured call. After all batches, the ranks' times are compared; the
 * time of a batch is that of its slowest rank. */
#include "config.h"

#include "tools/perf/measure.h"
#include "tools/perf/ranks.h"
#include "tools/perf/roof.h"
#include "tools/perf/sequences.h"
#include "tools/perf/verify.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Least duration of a batch that has more than one call. */
#define BATCH_US 500.0
#define BATCHES_MIN 3
#define BATCHES_MAX 1000
/* Number of batches from which the time of a call is estimated. */
#define TRIES 3
/* A figure is called noisy if its interquartile range is at least so many
 * percent of the median. */
#define NOISY 10.0
/* Bytes of inputs, and of results, of coalesced calls that are verified. */
#define CHECKED_MOST ((size_t)128 << 20)
#define ALIGNMENT ((size_t)64)

static const char *name_of(const perf_call_t *call, const perf_part_t *part,
                           size_t count, int async)
{
    const char *name;

    if (dscomm_group_algorithm(call->group, part->coll, call->dtype, call->op,
                               count, async, &name) != DSCOMM_OK)
        return "unknown";
    return name;
}

/* Returns the algorithm of a blocking call; if it is the backend's own, and the
 * backend describes that, *info has the description, else no algorithm. */
static const char *describe(const perf_options_t *options,
                            const perf_call_t *call, int number,
                            dscomm_native_info_t *info)
{
    const perf_part_t part = perf_part(call, number);
    const char *name = name_of(call, &part, part.count, 0);
    char *full;

    *info = (dscomm_native_info_t){.size = sizeof *info};
    if (options->accelerator ||
        dscomm_group_native_info(call->group, part.coll, part.send, part.recv,
                                 part.count, call->dtype, call->op, call->root,
                                 info) != DSCOMM_OK)
        return name;
    full = g_strdup_printf("%s:%s", name, info->algorithm);
    name = g_intern_string(full);
    g_free(full);
    return name;
}

/* Collectives that the library may fuse, if they are small. */
static bool can_fuse(const perf_call_t *call)
{
    return call->operation->coll == DSCOMM_COLL_ALL_REDUCE ||
           call->operation->coll == DSCOMM_COLL_BROADCAST;
}

const char *perf_algorithm(const perf_options_t *options,
                           const perf_call_t *call,
                           dscomm_native_info_t natives[2])
{
    static char both[80];
    const size_t aggregate = (size_t)MAX(call->aggregate, 1);
    const char *one, *all;

    natives[0] = natives[1] = (dscomm_native_info_t){0};
    if (perf_parts(call->operation)) {
        one = describe(options, call, 0, &natives[0]);
        all = describe(options, call, 1, &natives[1]);
        g_snprintf(both, sizeof both, "%s+%s", one, all);
        return both;
    }
    if (call->operation->coll < 0)
        return "-";
    if (!options->async && aggregate == 1)
        return describe(options, call, 0, &natives[0]);
    const perf_part_t part = perf_part(call, 0);
    one = name_of(call, &part, part.count, 1);
    if (aggregate == 1 || !can_fuse(call))
        return one;
    all = name_of(call, &part, part.count * aggregate, 1);
    if (strcmp(one, all) == 0)
        return one;
    g_snprintf(both, sizeof both, "%s/%s", one, all);
    return both;
}

/* Returns number `number` of the calls that are coalesced into call. */
static perf_call_t coalesced_call(const perf_call_t *call, int number)
{
    const size_t offset = (size_t)number * call->apart;
    perf_call_t one = *call;

    one.send = (char *)call->send + offset;
    one.recv = (char *)call->recv + offset;
    return one;
}

static dscomm_status_t start_coalesced(const perf_call_t *call,
                                       dscomm_work_t **ret_work)
{
    dscomm_status_t status = dscomm_coalesce_begin(call->group);

    for (int i = 0; i < call->aggregate && status == DSCOMM_OK; i++) {
        perf_call_t one = coalesced_call(call, i);

        status = call->operation->run(&one, NULL);
    }
    if (status != DSCOMM_OK)
        return status;
    return dscomm_coalesce_end(call->group, ret_work);
}

static dscomm_status_t step_start(const perf_call_t *call,
                                  dscomm_work_t **ret_work)
{
    if (call->aggregate > 1)
        return start_coalesced(call, ret_work);
    return call->operation->run(call, ret_work);
}

static dscomm_status_t work_finish(dscomm_work_t *work)
{
    dscomm_status_t status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);

    dscomm_work_free(work);
    return status;
}

/* Computes for so many turns, with almost no memory accesses. */
static void compute(double turns)
{
    volatile double result;
    double x = 1;

    for (gint64 i = 0; i < (gint64)turns; i++)
        x = x * 0.999999 + 0.5;
    result = x;
    (void)result;
}

static dscomm_status_t step_async(const perf_call_t *call, dscomm_work_t **none)
{
    dscomm_work_t *work;
    dscomm_status_t status = step_start(call, &work);

    (void)none;
    return status == DSCOMM_OK ? work_finish(work) : status;
}

/* Calls with the computation between start and wait. */
static dscomm_status_t step_overlap(const perf_call_t *call,
                                    dscomm_work_t **none)
{
    dscomm_work_t *work;
    dscomm_status_t status = step_start(call, &work);

    (void)none;
    if (status != DSCOMM_OK)
        return status;
    compute(call->work);
    return work_finish(work);
}

/* The computation alone. */
static dscomm_status_t step_compute(const perf_call_t *call,
                                    dscomm_work_t **none)
{
    (void)none;
    compute(call->work);
    return DSCOMM_OK;
}

perf_call_fn perf_step(const perf_options_t *options, const perf_call_t *call)
{
    if (options->async)
        return step_async;
    return call->aggregate > 1 ? start_coalesced : call->operation->run;
}

typedef struct {
    perf_run_t *run;
    perf_call_t *call;
    perf_call_fn step;
    perf_place_t place;
    bool rotates;
} loop_t;

static dscomm_status_t batch(const loop_t *loop, size_t calls, double *ret_time)
{
    perf_call_t *call = loop->call;
    perf_call_fn step = loop->step;
    dscomm_status_t status = dscomm_barrier(call->group, NULL);
    double time = perf_now();

    for (size_t i = 0; i < calls && status == DSCOMM_OK; i++) {
        if (loop->rotates)
            call->root = (call->root + 1) % call->ranks;
        status = step(call, NULL);
    }
    *ret_time = (perf_now() - time) / (double)calls;
    return status;
}

static dscomm_status_t slowest(const loop_t *loop, double *times, size_t count)
{
    return dscomm_all_reduce(loop->call->group, times, times, count,
                             DSCOMM_FLOAT64, DSCOMM_MAX, NULL);
}

/* Returns the shortest time of a few batches, because interruptions only
 * lengthen a batch. */
static dscomm_status_t best_batch(const loop_t *loop, size_t calls,
                                  double *ret_time)
{
    double times[TRIES];
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < TRIES && status == DSCOMM_OK; i++)
        status = batch(loop, calls, &times[i]);
    if (status == DSCOMM_OK)
        status = slowest(loop, times, TRIES);
    if (status != DSCOMM_OK)
        return status;
    for (int i = 1; i < TRIES; i++)
        times[0] = MIN(times[0], times[i]);
    *ret_time = MAX(times[0], 1e-3);
    return DSCOMM_OK;
}

/* Estimates the time of one call; the result is the same on all ranks. */
static dscomm_status_t estimate(const loop_t *loop, double *ret_time)
{
    dscomm_status_t status = DSCOMM_OK;

    for (size_t calls = 1; calls <= 4096 && status == DSCOMM_OK; calls *= 8) {
        status = best_batch(loop, calls, ret_time);
        if (status == DSCOMM_OK && *ret_time * (double)calls > BATCH_US / 10)
            break;
    }
    return status;
}

/* Plans batches of at least BATCH_US, and limits their number. */
static void plan(const perf_options_t *options, double time,
                 perf_times_t *times)
{
    double all =
        options->iterations ? options->iterations : options->time * 1e6 / time;
    double calls = MAX(BATCH_US / time, all / BATCHES_MAX);
    double least = options->iterations ? 1 : BATCHES_MIN;

    calls = CLAMP(calls, 1, MAX(all, 1));
    times->calls = (size_t)calls;
    times->batches = (size_t)CLAMP(all / calls, least, BATCHES_MAX);
}

/* The page faults of this process so far. */
static double page_faults(void)
{
    struct rusage usage = {0};

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_minflt + usage.ru_majflt);
}

/* The last of times, after those of all batches, is the number of page faults
 * in a call. */
static dscomm_status_t run_batches(const loop_t *loop, double *times,
                                   const perf_times_t *plan)
{
    const double before = page_faults();
    dscomm_status_t status = DSCOMM_OK;

    for (size_t i = 0; i < plan->batches && status == DSCOMM_OK; i++)
        status = batch(loop, plan->calls, &times[i]);
    if (status != DSCOMM_OK)
        return status;
    times[plan->batches] =
        (page_faults() - before) / (double)(plan->batches * plan->calls);
    return slowest(loop, times, plan->batches + 1);
}

static int time_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Returns the smallest value that at least so many percent do not exceed
 * (nearest rank). */
static double percentile(const double *sorted, size_t count, size_t percent)
{
    size_t rank = (count * percent + 99) / 100;

    return sorted[rank > 0 ? rank - 1 : 0];
}

void perf_times_fill(double *times, size_t count, perf_times_t *ret_times)
{
    qsort(times, count, sizeof *times, time_compare);
    ret_times->min = times[0];
    ret_times->max = times[count - 1];
    ret_times->p50 = percentile(times, count, 50);
    ret_times->p99 = percentile(times, count, 99);
    ret_times->spread = 0;
    if (ret_times->p50 > 0)
        ret_times->spread =
            100 *
            (percentile(times, count, 75) - percentile(times, count, 25)) /
            ret_times->p50;
}

/* Measures *ret_times, the time of one call, or of one message if the
 * operation moves several. */
static dscomm_status_t time_loop(const loop_t *loop, perf_times_t *ret_times)
{
    const perf_options_t *options = loop->run->options;
    double divisor = loop->call->aggregate * loop->call->operation->messages;
    double one, *times;
    dscomm_status_t status = estimate(loop, &one);

    if (status != DSCOMM_OK)
        return status;
    plan(options, one, ret_times);
    if (options->warmup > 0)
        status = batch(loop, (size_t)options->warmup, &one);
    if (status != DSCOMM_OK)
        return status;
    times = g_new(double, ret_times->batches + 1);
    status = run_batches(loop, times, ret_times);
    if (status == DSCOMM_OK) {
        for (size_t i = 0; i <= ret_times->batches; i++)
            times[i] /= divisor;
        ret_times->faults = times[ret_times->batches];
        perf_times_fill(times, ret_times->batches, ret_times);
    }
    g_free(times);
    return status;
}

/* Plans each loop as if it were alone; then all get the number of batches of
 * the one that needs fewest, with as many calls in each as the plan has in
 * all. */
static dscomm_status_t plan_turns(const loop_t *loops, size_t count,
                                  perf_times_t *times)
{
    dscomm_status_t status = DSCOMM_OK;
    size_t batches = BATCHES_MAX;
    double one;

    for (size_t i = 0; i < count && status == DSCOMM_OK; i++) {
        status = estimate(&loops[i], &one);
        if (status != DSCOMM_OK)
            return status;
        plan(loops[i].run->options, one, &times[i]);
        batches = MIN(batches, times[i].batches);
    }
    for (size_t i = 0; i < count && status == DSCOMM_OK; i++) {
        times[i].calls = times[i].calls * times[i].batches / batches;
        times[i].batches = batches;
        if (loops[i].run->options->warmup > 0)
            status =
                batch(&loops[i], (size_t)loops[i].run->options->warmup, &one);
    }
    return status;
}

/* Runs the batches, one of each loop in turn, and each turn begins with another
 * loop; samples has room for all of them. */
static dscomm_status_t run_turns(const loop_t *loops, size_t count,
                                 const perf_times_t *times, double *samples)
{
    dscomm_status_t status = DSCOMM_OK;
    const size_t batches = times->batches;

    for (size_t b = 0; b < batches; b++)
        for (size_t k = 0; k < count && status == DSCOMM_OK; k++) {
            const size_t i = (b + k) % count;

            status =
                batch(&loops[i], times[i].calls, &samples[i * batches + b]);
        }
    if (status != DSCOMM_OK)
        return status;
    return slowest(loops, samples, count * batches);
}

static loop_t loop_new(perf_run_t *run, perf_call_t *call, perf_place_t place)
{
    const bool rotates = perf_flags(call->operation) & PERF_ROOTED &&
                         run->options->root == PERF_ROOT_ROTATES;

    return (loop_t){run, call, perf_step(run->options, call), place, rotates};
}

dscomm_status_t perf_time_in_turn(perf_run_t *run, perf_call_t *calls,
                                  size_t count, perf_place_t place,
                                  perf_times_t *ret_times)
{
    loop_t *loops = g_new(loop_t, count);
    double *samples = NULL;
    dscomm_status_t status;

    for (size_t i = 0; i < count; i++)
        loops[i] = loop_new(run, &calls[i], place);
    status = plan_turns(loops, count, ret_times);
    if (status == DSCOMM_OK) {
        samples = g_new(double, count * ret_times->batches);
        status = run_turns(loops, count, ret_times, samples);
    }
    for (size_t i = 0; i < count && status == DSCOMM_OK; i++) {
        const size_t batches = ret_times[i].batches;
        const int messages = calls[i].operation->messages;
        double *own = &samples[i * batches];

        for (size_t b = 0; b < batches; b++)
            own[b] /= messages;
        perf_times_fill(own, batches, &ret_times[i]);
    }
    g_free(samples);
    g_free(loops);
    return status;
}

dscomm_status_t perf_time(perf_run_t *run, perf_call_t *call, perf_call_fn step,
                          perf_times_t *ret_times)
{
    const loop_t loop = {run, call, step, PERF_IN_PLACE, false};

    return time_loop(&loop, ret_times);
}

/* Adds the wrong elements of all ranks to *ret_wrong. */
static dscomm_status_t count_wrong(const loop_t *loop, guint32 seed,
                                   gint64 *ret_wrong)
{
    const perf_call_t *call = loop->call;
    dscomm_status_t status = DSCOMM_OK;
    gint64 wrong = 0;

    for (int i = 0; i < call->aggregate && status == DSCOMM_OK; i++) {
        perf_call_t one = coalesced_call(call, i);
        gint64 more;

        status = perf_buffers_wrong(loop->run, &one, seed + (guint32)i, &more);
        wrong += more;
    }
    if (status != DSCOMM_OK)
        return status;
    status = dscomm_all_reduce(call->group, &wrong, &wrong, 1, DSCOMM_INT64,
                               DSCOMM_SUM, NULL);
    if (status == DSCOMM_OK)
        *ret_wrong += wrong;
    return status;
}

static dscomm_status_t check_once(const loop_t *loop, guint32 seed,
                                  gint64 *ret_wrong)
{
    perf_call_t *call = loop->call;
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < call->aggregate && status == DSCOMM_OK; i++) {
        perf_call_t one = coalesced_call(call, i);

        status = perf_buffers_fill(loop->run, &one, seed + (guint32)i);
    }
    if (status != DSCOMM_OK)
        return status;
    call->keep = call->recv;
    status = loop->step(call, NULL);
    call->keep = NULL;
    return status == DSCOMM_OK ? count_wrong(loop, seed, ret_wrong) : status;
}

/* Returns buffers for coalesced calls that are verified. These calls run at the
 * same time, so each has its own buffers; there are as many calls as there is
 * room for. */
static char *spread(const loop_t *loop)
{
    perf_call_t *call = loop->call;
    size_t bytes = (call->total * call->size + ALIGNMENT) & ~(ALIGNMENT - 1);
    size_t calls = CLAMP(CHECKED_MOST / bytes, 1, (size_t)call->aggregate);
    char *memory = g_malloc(2 * calls * bytes);

    call->aggregate = (int)calls;
    call->apart = bytes;
    perf_call_place(call, loop->place, memory, memory + calls * bytes);
    return memory;
}

static dscomm_status_t loop_check(const loop_t *loop, gint64 *ret_wrong)
{
    const perf_call_t call = *loop->call;
    char *memory = call.aggregate > 1 ? spread(loop) : NULL;
    dscomm_status_t status = DSCOMM_OK;

    *ret_wrong = 0;
    for (int i = 0; i < loop->run->options->checks && status == DSCOMM_OK; i++)
        status = check_once(loop, (guint32)i + 1, ret_wrong);
    *loop->call = call;
    g_free(memory);
    return status;
}

dscomm_status_t perf_check(perf_run_t *run, perf_call_t *call,
                           perf_place_t place, gint64 *ret_wrong)
{
    const loop_t loop = loop_new(run, call, place);

    return loop_check(&loop, ret_wrong);
}

/* Measures which part of the call's time is hidden by a computation of equal
 * length, as OSU defines it. */
static dscomm_status_t measure_hidden(const loop_t *loop, perf_figure_t *figure)
{
    loop_t compute = *loop, both = *loop;
    double alone = figure->times.p50 * loop->call->aggregate;
    perf_times_t computed = {0}, together = {0};
    dscomm_status_t status;

    compute.step = step_compute;
    both.step = step_overlap;
    loop->call->work = 100000;
    status = time_loop(&compute, &computed);
    if (status != DSCOMM_OK)
        return status;
    loop->call->work *= alone / (computed.p50 * loop->call->aggregate);
    status = time_loop(&compute, &computed);
    if (status == DSCOMM_OK)
        status = time_loop(&both, &together);
    if (status != DSCOMM_OK)
        return status;
    figure->hidden = CLAMP(
        100 * (1 - (together.p50 - computed.p50) / figure->times.p50), 0, 100);
    return DSCOMM_OK;
}

/* Computes the figures that follow from the times. */
static void rate(perf_run_t *run, const perf_call_t *call, size_t bytes,
                 perf_figure_t *figure)
{
    figure->valid = true;
    figure->algbw = perf_algbw(bytes, figure->times.p50);
    figure->busbw = perf_busbw(call->operation, run->ranks, figure->algbw);
    figure->messages =
        perf_message_rate(call->operation, run->ranks, figure->times.p50);
    run->busbw_sum += figure->busbw;
    run->figures++;
    run->noisy += figure->times.spread > NOISY;
    run->faults = MAX(run->faults, figure->times.faults);
    if (figure->wrong > 0)
        run->wrong += figure->wrong;
}

/* Counts wrong elements after the last timed call. Out of place, its inputs and
 * its result are still there, unless calls have shared them. */
static dscomm_status_t check_last(const loop_t *loop, gint64 *ret_wrong)
{
    if (loop->place == PERF_IN_PLACE || loop->rotates ||
        loop->call->aggregate > 1)
        return DSCOMM_OK;
    return count_wrong(loop, (guint32)loop->run->options->checks, ret_wrong);
}

static dscomm_status_t measure_place(perf_run_t *run, perf_call_t *call,
                                     perf_place_t place, perf_figure_t *figure)
{
    const loop_t loop = loop_new(run, call, place);
    const int root = call->root;
    dscomm_status_t status;

    perf_call_place(call, place, run->send, run->recv);
    figure->wrong = -1;
    status = perf_buffers_fill(run, call, 0);
    if (status == DSCOMM_OK && run->options->checks > 0)
        status = loop_check(&loop, &figure->wrong);
    if (status == DSCOMM_OK)
        status = time_loop(&loop, &figure->times);
    if (status == DSCOMM_OK && run->options->checks > 0)
        status = check_last(&loop, &figure->wrong);
    if (status == DSCOMM_OK && run->options->overlap)
        status = measure_hidden(&loop, figure);
    call->root = root;
    return status;
}

static double find_roof(perf_run_t *run, const perf_call_t *call,
                        perf_place_t place, size_t bytes)
{
    double part = perf_copied(call->operation, run->ranks, place);

    return perf_roof_time(run, (size_t)((double)bytes * part));
}

static int shown_root(const perf_run_t *run, const perf_call_t *call)
{
    if (!(perf_flags(call->operation) & PERF_ROOTED))
        return -1;
    return run->options->root == PERF_ROOT_ROTATES ? PERF_ROOT_ROTATES
                                                   : call->root;
}

int perf_measure(perf_run_t *run, perf_call_t *call, perf_row_t *ret_row)
{
    const perf_operation_t *operation = call->operation;
    perf_row_t row = {.operation = operation,
                      .dtype = call->dtype,
                      .op = call->op,
                      .root = shown_root(run, call),
                      .bytes = call->total * call->size,
                      .count = call->count};
    dscomm_native_info_t natives[2];
    dscomm_status_t status = DSCOMM_OK;

    for (perf_place_t place = 0; place < PERF_PLACES; place++) {
        perf_figure_t *figure = &row.figures[place];
        if (!(operation->flags & 1u << place) || status != DSCOMM_OK)
            continue;
        perf_progress(run, "%s, %zu bytes, %s", operation->name, row.bytes,
                      place == PERF_IN_PLACE ? "in place" : "out of place");
        figure->roof = find_roof(run, call, place, row.bytes);
        status = measure_place(run, call, place, figure);
        if (status == DSCOMM_OK)
            rate(run, call, row.bytes, figure);
    }
    perf_progress(run, NULL);
    if (status != DSCOMM_OK) {
        char *what =
            g_strdup_printf("%s of %zu bytes", operation->name, row.bytes);
        perf_fail(what);
        g_free(what);
        return TOOL_FAILED;
    }
    row.algorithm = perf_algorithm(run->options, call, natives);
    *ret_row = row;
    return TOOL_OK;
}
