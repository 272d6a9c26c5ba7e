/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm perf`: joins the launcher's job, or starts its own ranks, each of
 * which is this program again; and what one rank does in the job. */
#include "config.h"

#include "tools/common/save.h"
#include "tools/common/topology.h"
#include "tools/perf/baseline.h"
#include "tools/perf/compare.h"
#include "tools/perf/measure.h"
#include "tools/perf/model-run.h"
#include "tools/perf/operations.h"
#include "tools/perf/options.h"
#include "tools/perf/picture.h"
#include "tools/perf/ranks.h"
#include "tools/perf/report.h"
#include "tools/perf/roof.h"
#include "tools/perf/sweep.h"
#include "tools/run/job.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define GRACE_US (5 * G_USEC_PER_SEC)

static void row_compare(perf_run_t *run, perf_row_t *row)
{
    for (perf_place_t place = 0; place < PERF_PLACES && run->baseline;
         place++) {
        perf_figure_t *figure = &row->figures[place];
        if (figure->valid && figure->times.p50 > 0)
            figure->ratio = perf_baseline_time(run->baseline, row, place) /
                            figure->times.p50;
        run->compared += figure->ratio > 0;
    }
}

/* Measures every size, except sizes that are rounded to the one before. */
static int run_measure_sizes(perf_run_t *run, perf_call_t *call)
{
    const perf_options_t *o = run->options;
    size_t last = SIZE_MAX;

    for (size_t bytes = o->min, next; bytes != SIZE_MAX; bytes = next) {
        perf_row_t row;
        next = perf_next_size(o, bytes);
        next = next ? next : SIZE_MAX;
        perf_call_size(call, bytes);
        if (call->total == last)
            continue;
        last = call->total;
        int status = perf_measure(run, call, &row);
        if (status != TOOL_OK)
            return status;
        if (run->report) {
            row_compare(run, &row);
            perf_report_row(run, &row);
        }
    }
    return TOOL_OK;
}

static int measure_roots(perf_run_t *run, perf_call_t *call)
{
    int root = run->options->root;
    bool all =
        root == PERF_ROOT_ALL && perf_flags(call->operation) & PERF_ROOTED;
    int first = all ? 0 : MAX(root, 0);
    int status = TOOL_OK;

    for (call->root = first;
         call->root <= (all ? run->ranks - 1 : first) && status == TOOL_OK;
         call->root++) {
        int now = call->root;
        status = run_measure_sizes(run, call);
        call->root = now;
    }
    return status;
}

static int measure_operation(perf_run_t *run, const perf_operation_t *operation)
{
    perf_call_t call = {.operation = operation,
                        .group = run->group,
                        .rank = run->rank,
                        .ranks = run->ranks,
                        .keys = run->keys,
                        .factor = 1 + run->rank % 2,
                        .aggregate = run->options->aggregate,
                        .counts = g_new0(size_t, run->ranks),
                        .displs = g_new0(size_t, run->ranks)};
    int status = TOOL_OK;

    for (int dtype = 0; dtype < DSCOMM_DTYPE_COUNT; dtype++)
        for (int op = 0; op < DSCOMM_OP_COUNT; op++) {
            call.dtype = (dscomm_dtype_t)dtype;
            call.op = (dscomm_op_t)op;
            call.size = dscomm_dtype_size(call.dtype);
            if (status == TOOL_OK &&
                perf_is_selected(run->options, operation, call.dtype, call.op))
                status = measure_roots(run, &call);
        }
    g_free(call.counts);
    g_free(call.displs);
    return status;
}

/* Checks options that depend on the number of ranks. Returns NULL, or what is
 * wrong; g_free(). */
static char *check_ranks(const perf_run_t *run)
{
    const perf_options_t *o = run->options;

    if (o->sweep)
        return g_strdup("-n with several numbers of ranks starts a job for "
                        "each; leave out -n under a launcher");
    if (o->ranks && o->ranks != run->ranks)
        return g_strdup_printf("-n %d, but the launcher has started %d ranks; "
                               "leave out -n under a launcher",
                               o->ranks, run->ranks);
    if (o->root >= run->ranks)
        return g_strdup_printf("-r %d: there are %d ranks only", o->root,
                               run->ranks);
    if (o->compare && run->ranks < 2)
        return g_strdup("--compare needs 2 ranks, because one has nothing to "
                        "send; start them with -n");
    for (size_t i = 0; o->operations && o->operations[i]; i++)
        if (run->ranks < 2 &&
            (perf_kind(o->operations[i])->send == PERF_FIRST_TWO ||
             perf_kind(o->operations[i])->send == PERF_PAIRED))
            return g_strdup_printf("%s needs 2 ranks; start them with -n",
                                   o->operations[i]->name);
    return NULL;
}

/* Registers the buffers, if an operation needs that, until the group is freed.
 */
static int register_buffers(perf_run_t *run)
{
    const size_t bytes = run->options->max;
    dscomm_mem_t *send, *recv;
    perf_keys_t own;
    dscomm_status_t status;
    unsigned flags = 0;

    for (size_t i = 0; run->options->operations[i]; i++)
        flags |= run->options->operations[i]->flags;
    if (!(flags & PERF_ACCESSES) || !bytes)
        return TOOL_OK;
    run->keys = g_new0(perf_keys_t, run->ranks);
    status = dscomm_mem_register(run->group, run->send, bytes, &send);
    if (status == DSCOMM_OK)
        status = dscomm_mem_register(run->group, run->recv, bytes, &recv);
    if (status == DSCOMM_OK)
        status = dscomm_mem_key(send, own.send);
    if (status == DSCOMM_OK)
        status = dscomm_mem_key(recv, own.recv);
    if (status == DSCOMM_OK)
        status = dscomm_all_gather(run->group, &own, run->keys, sizeof own,
                                   DSCOMM_INT8, NULL);
    return status == DSCOMM_OK ? TOOL_OK : perf_fail("register");
}

static int measure_all(perf_run_t *run)
{
    const perf_options_t *o = run->options;
    int status = TOOL_OK;

    if (run->report)
        perf_report_begin(run);
    for (size_t i = 0; o->operations[i] && status == TOOL_OK; i++) {
        if (run->report)
            perf_report_operation(run, o->operations[i]);
        status = measure_operation(run, o->operations[i]);
    }
    if (status != TOOL_OK)
        return status;
    double line = perf_roof_line(run);
    if (run->report)
        perf_report_end(run, line);
    return run->wrong ? TOOL_FAILED : TOOL_OK;
}

static int open_files(const perf_options_t *o, int ranks,
                      perf_baseline_t **ret_baseline, tool_save_t **ret_save)
{
    if (o->against &&
        perf_baseline_load(o->against, ranks, ret_baseline) != TOOL_OK)
        return TOOL_FAILED;
    const int status = o->plot ? perf_picture_check(o->plot) : TOOL_OK;

    if (status != TOOL_OK || !o->save)
        return status;
    *ret_save = tool_save_new(o->save);
    if (*ret_save)
        return TOOL_OK;
    return tool_fail(TOOL_FAILED, "perf", "--save %s: %s", o->save,
                     g_strerror(errno));
}

/* Makes complaints that every rank would have once, before there are any. */
static int check_files(const perf_options_t *options)
{
    const int one[] = {options->ranks, 0};
    const int *ranks = options->sweep ? options->sweep : one;
    int status = TOOL_OK;

    for (; *ranks && status == TOOL_OK; ranks++) {
        perf_baseline_t *baseline = NULL;
        tool_save_t *save = NULL;

        status = open_files(options, *ranks, &baseline, &save);
        perf_baseline_free(baseline);
        tool_save_end(save, NULL);
    }
    return status;
}

static int close_files(perf_run_t *run, tool_save_t *save, int status)
{
    const char *text = run->report->text;
    int error = tool_save_end(save, text);

    perf_baseline_free(run->baseline);
    if (text && run->options->plot &&
        perf_picture(run->options->plot, &text, 1) != TOOL_OK)
        status = TOOL_FAILED;
    if (text && run->options->part &&
        perf_sweep_report(run->options, text) != TOOL_OK)
        status = TOOL_FAILED;
    if (error)
        status = tool_fail(TOOL_FAILED, "perf", "--save %s: %s",
                           run->options->save, g_strerror(error));
    return status;
}

static int run_measured(perf_run_t *run)
{
    int status = perf_buffers_new(run);

    if (status != TOOL_OK)
        return status;
    if (run->options->compress) {
        status = perf_compress(run);
        perf_buffers_free(run);
        return status;
    }
    if (run->options->model) {
        status = perf_model_run(run);
        perf_buffers_free(run);
        return status;
    }
    perf_roof_begin(run);
    status = register_buffers(run);
    if (status == TOOL_OK)
        status = run->options->compare ? perf_compare(run) : measure_all(run);
    g_array_unref(run->copies);
    perf_buffers_free(run);
    return status;
}

static int run_reporting(perf_run_t *run)
{
    perf_report_t report = {0};
    tool_save_t *save = NULL;
    int first, status = TOOL_OK;

    if (run->rank == 0)
        status = open_files(run->options, run->ranks, &run->baseline, &save);
    if (perf_agree(run, status == TOOL_OK, &first) != DSCOMM_OK)
        status = perf_fail("start");
    else if (first < run->ranks)
        status = TOOL_FAILED;
    if (run->rank == 0) {
        run->report = &report;
        /* A pipe gets rows as they are measured, and all before a failure. */
        setvbuf(stdout, NULL, _IOLBF, 0);
    }
    if (status == TOOL_OK)
        status = run_measured(run);
    if (run->rank == 0)
        status = close_files(run, save, status);
    perf_report_clear(&report);
    return status;
}

/* The measured group is made after all ranks are bound, because some backends
 * measure distances when they make a group. */
static int run_in_group(perf_run_t *run, dscomm_group_t *world)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    int *list = g_new(int, run->ranks);
    int status;

    for (int i = 0; i < run->ranks; i++)
        list[i] = i;
    attr.name = "perf";
    if (perf_ranks_place(run, world) != DSCOMM_OK ||
        dscomm_group_new(world, list, run->ranks, &attr, &run->group) !=
            DSCOMM_OK) {
        g_free(list);
        return perf_fail("start");
    }
    status = run_reporting(run);
    dscomm_group_free(run->group);
    g_free(run->keys);
    g_free(list);
    return status;
}

/* Measures what the options select, on world's ranks; topology may be NULL.
 * *world may end, and is NULL then. Returns the exit status. */
static int run_rank(const perf_options_t *options,
                    const dscomm_topology_t *topology, dscomm_group_t **world)
{
    perf_run_t run = {.options = options,
                      .topology = topology,
                      .world = world,
                      .rank = dscomm_group_rank(*world),
                      .ranks = dscomm_group_size(*world)};
    char *problem = check_ranks(&run);
    int status;

    if (problem && run.rank == 0) /* all have it */
        tool_fail(0, "perf", "%s", problem);
    g_free(problem);
    if (problem)
        return TOOL_USAGE;
    run.everyone = g_new0(perf_rank_t, run.ranks);
    status = run_in_group(&run, *world);
    g_free(run.everyone);
    g_free(run.crowd);
    return status;
}

/* Starts the same command line in as many processes as there are ranks. */
static int start_ranks(const perf_options_t *options, char **words)
{
    const tool_limits_t limits = {.grace_us = GRACE_US, .ranks_explain = true};
    const int status = check_files(options);

    if (status != TOOL_OK)
        return status;
    return options->sweep
               ? perf_sweep(options, words)
               : tool_job_run_self("perf", words, options->ranks, &limits);
}

/* Starts ranks if this process is alone, that is, if it was started without a
 * launcher. */
static int join_or_start(const perf_options_t *options,
                         const dscomm_topology_t *topology, char **words)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_group_t *world;
    int status;

    if (tool_job_is_needed(options->sweep ? G_MAXINT : options->ranks))
        return start_ranks(options, words);
    attr.backend = options->backend;
    attr.name = "perf";
    if (dscomm_init(&attr, &world) != DSCOMM_OK)
        return perf_fail("start");
    status = run_rank(options, topology, &world);
    if (dscomm_finalize(world) != DSCOMM_OK && status == TOOL_OK)
        status = perf_fail("end");
    return status;
}

int tool_perf(int argc, char **argv)
{
    perf_options_t options;
    char **words;
    int status;

    if (g_strv_contains((const char *const *)argv, "--pairs"))
        return tool_topo_pairs(argc, argv);
    words = g_strdupv(argv);
    status = perf_options_read(argc, argv, &options);
    if (status == TOOL_OK && options.model_parameters) {
        status = perf_model_given(&options);
        perf_options_clear(&options);
    } else if (status == TOOL_OK) {
        /* Before the library starts threads, see topology.h */
        dscomm_topology_t *topology = tool_topology_new(false);

        status = join_or_start(&options, topology, words);
        dscomm_priv_topology_free(topology);
        perf_options_clear(&options);
    }
    g_strfreev(words);
    return status;
}
