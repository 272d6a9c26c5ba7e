/* SPDX-License-Identifier: BSD-3-Clause */
/* The table: nccl-tests' columns, byte for byte, so that programs that read
 * its output can read this one; this program's own columns follow them. */
#include "config.h"

#include "tools/perf/operations.h"
#include "tools/perf/report.h"
#include "tools/perf/roof.h"

#include <string.h>

static const char *mode(const perf_options_t *options)
{
    if (options->overlap)
        return "overlapped";
    return options->async ? "async" : "blocking";
}

static void table_begin(const perf_run_t *run)
{
    const perf_options_t *o = run->options;

    printf("# dscomm %s, backend %s, %d rank%s\n", dscomm_version_string(),
           dscomm_group_backend(run->group), run->ranks,
           run->ranks == 1 ? " (-n N starts N of them)" : "s");
    printf("# minBytes %zu maxBytes %zu step: ", o->min, o->max);
    if (o->step)
        printf("%zu(bytes)", o->step);
    else
        printf("%g(factor)", o->factor);
    printf(" warmup iters: %d iters: ", o->warmup);
    if (o->iterations)
        printf("%d", o->iterations);
    else
        printf("%g s", o->time);
    printf(" agg iters: %d validation: %d mode: %s%s\n", o->aggregate,
           o->checks, mode(o), o->registered ? ", registered" : "");
    printf("#\n# Using ranks\n");
    for (int i = 0; i < run->ranks; i++) {
        const perf_rank_t *rank = &run->everyone[i];
        printf("#  Rank %2d Pid %6d on %10s processor ", i, rank->pid,
               rank->host);
        if (rank->processor < 0)
            printf("any\n");
        else
            printf("%d\n", rank->processor);
    }
    if (perf_roof_first_line(run->roof) > 0)
        printf("#\n# Cache line, rank 0 to 1: %.0f ns\n",
               perf_roof_first_line(run->roof));
    printf("#\n# time: median over batches of the mean time of a call in "
           "the slowest rank\n");
}

/* The column before "algorithm" that only some runs have. */
static const char *extra(const perf_run_t *run, int line)
{
    static const char *const hidden[] = {"hidden", "(%)"};
    static const char *const ratio[] = {"speedup", "out    in"};

    if (run->options->overlap)
        return hidden[line];
    return run->baseline ? ratio[line] : "";
}

static void operation(const perf_run_t *run, const perf_operation_t *which)
{
    int width = run->options->overlap ? 7 : run->baseline ? 12 : 0;

    printf("#\n# %s: %s\n", which->name, which->summary);
    printf("# %10s  %12s  %8s  %6s  %6s           out-of-place           "
           "            in-place          \n",
           "", "", "", "", "");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s "
           "%6s  %7s  %7s  %6s  %5s%*s  %s\n",
           "size", "count", "type", "redop", "root", "time", "algbw", "busbw",
           "#wrong", "time", "algbw", "busbw", "#wrong", "min", "p99", "spread",
           "%roof", width, extra(run, 0), "algorithm");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s "
           "%6s  %7s  %7s  %6s  %5s%*s\n",
           "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "",
           "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)", "(%)", "(%)", width,
           extra(run, 1));
}

/* Seven columns at most, as far as they go. */
static void print_time(double time)
{
    int digits = time < 100 ? 3 : time < 1e5 ? 1 : 0;

    printf("  %7.*f", digits, time);
}

static void table_print_figure(const perf_figure_t *figure)
{
    if (!figure->valid) {
        printf("  %7s  %6s  %6s  %5s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    print_time(figure->times.p50);
    printf("  %6.2f  %6.2f  ", figure->algbw, figure->busbw);
    if (figure->wrong < 0)
        printf("%5s", "N/A");
    else
        printf("%5" G_GINT64_FORMAT, figure->wrong);
}

static void print_ratio(const perf_figure_t *figure)
{
    if (figure->valid && figure->ratio > 0)
        printf(" %5.2f", figure->ratio);
    else
        printf(" %5s", "-");
}

/* This program's own columns, for the first place that was measured. */
static void print_more(const perf_run_t *run, const perf_row_t *row)
{
    const perf_figure_t *figure =
        &row->figures[row->figures[PERF_OUT_OF_PLACE].valid ? PERF_OUT_OF_PLACE
                                                            : PERF_IN_PLACE];
    double roof = perf_roof_percent(figure);

    print_time(figure->times.min);
    print_time(figure->times.p99);
    printf("  %6.1f", figure->times.spread);
    if (roof > 0)
        printf("  %5.1f", roof);
    else
        printf("  %5s", "-");
    if (run->options->overlap)
        printf("  %5.1f", figure->hidden);
    else if (run->baseline)
        for (perf_place_t place = 0; place < PERF_PLACES; place++)
            print_ratio(&row->figures[place]);
    printf("  %s\n", row->algorithm);
}

static void table_row(const perf_run_t *run, const perf_row_t *r)
{
    char root[PERF_ROOT_TEXT];

    printf("%12zu  %12zu  %8s  %6s  %6s", r->bytes, r->count,
           dscomm_dtype_name(r->dtype), perf_row_op(r), perf_row_root(r, root));
    table_print_figure(&r->figures[PERF_OUT_OF_PLACE]);
    table_print_figure(&r->figures[PERF_IN_PLACE]);
    print_more(run, r);
}

static void table_end(const perf_run_t *run, char *const *warnings)
{
    char tuning[PERF_TUNING_TEXT];
    size_t bytes;
    double rate;

    if (run->options->checks > 0)
        printf("# Out of bounds values : %" G_GINT64_FORMAT " %s\n", run->wrong,
               run->wrong ? "FAILED" : "OK");
    printf("# Avg bus bandwidth    : %g \n",
           run->figures ? run->busbw_sum / (double)run->figures : 0);
    perf_roof_copy(run, &bytes, &rate);
    if (bytes)
        printf("# Copy bandwidth       : %.1f GB/s, all ranks at once, "
               "%zu bytes each\n",
               rate, bytes);
    if (perf_tuning(run->group, tuning))
        printf("# Chosen by trial      : %s\n", tuning);
    printf("#\n");
    for (int i = 0; warnings[i]; i++)
        printf("# Warning: %s\n", warnings[i]);
}

const perf_form_t perf_form_table = {table_begin, operation, table_row,
                                     table_end};
