/* SPDX-License-Identifier: BSD-3-Clause */
/* Comma-separated values: a line of names, then one line a figure. Fields that
 * are not known are empty; none holds a comma. */
#include "config.h"

#include "tools/perf/report.h"
#include "tools/perf/roof.h"

static void csv_begin(const perf_run_t *run)
{
    (void)run;
    printf("operation,bytes,count,type,redop,root,place,algorithm,ranks,"
           "backend,time_us,min_us,p99_us,max_us,spread_percent,"
           "algbw_gbs,busbw_gbs,roof_percent,hidden_percent,speedup,"
           "wrong,batches,calls\n");
}

static void print_known(gboolean known, double value)
{
    if (known)
        printf("%.4f", value);
    putchar(',');
}

static void csv_print_figure(const perf_run_t *run, const perf_row_t *row,
                             perf_place_t place)
{
    const perf_figure_t *f = &row->figures[place];
    double roof = perf_roof_percent(f);
    char root[PERF_ROOT_TEXT];

    printf("%s,%zu,%zu,%s,%s,%s,%s,%s,%d,%s,", row->operation->name, row->bytes,
           row->count, dscomm_dtype_name(row->dtype), perf_row_op(row),
           perf_row_root(row, root), place == PERF_IN_PLACE ? "in" : "out",
           row->algorithm, run->ranks, dscomm_group_backend(run->group));
    printf("%.4f,%.4f,%.4f,%.4f,%.2f,%.6g,%.6g,", f->times.p50, f->times.min,
           f->times.p99, f->times.max, f->times.spread, f->algbw, f->busbw);
    print_known(roof > 0, roof);
    print_known(run->options->overlap, f->hidden);
    print_known(f->ratio > 0, f->ratio);
    if (f->wrong >= 0)
        printf("%" G_GINT64_FORMAT, f->wrong);
    printf(",%zu,%zu\n", f->times.batches, f->times.calls);
}

static void csv_row(const perf_run_t *run, const perf_row_t *r)
{
    for (perf_place_t place = 0; place < PERF_PLACES; place++)
        if (r->figures[place].valid)
            csv_print_figure(run, r, place);
}

static void csv_end(const perf_run_t *run, char *const *warnings)
{
    char tuning[PERF_TUNING_TEXT];

    if (perf_tuning(run->group, tuning))
        fprintf(stderr, "dscomm perf: chosen by trial: %s\n", tuning);
    for (int i = 0; warnings[i]; i++)
        fprintf(stderr, "dscomm perf: warning: %s\n", warnings[i]);
}

const perf_form_t perf_form_csv = {csv_begin, NULL, csv_row, csv_end};
