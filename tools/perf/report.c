/* SPDX-License-Identifier: BSD-3-Clause */
/* The report, see report.h: to stdout in one form, and to a file. */
#include "config.h"

#include "tools/perf/baseline.h"
#include "tools/perf/ranks.h"
#include "tools/perf/report.h"
#include "tools/perf/roof.h"

#include <string.h>

/* A change of the cache line's time by this factor shows that the processors
 * have moved. */
#define MOVED 1.5

const char *perf_row_root(const perf_row_t *row, char text[PERF_ROOT_TEXT])
{
    if (row->root == PERF_ROOT_ROTATES)
        return "rotate";
    g_snprintf(text, PERF_ROOT_TEXT, "%d", row->root);
    return text;
}

void perf_report_begin(const perf_run_t *run)
{
    perf_report_t *report = run->report;

    report->warnings = g_ptr_array_new_with_free_func(g_free);
    if (report->form)
        report->form->begin(run);
    if (!report->form || run->options->save)
        report->json = perf_json_new(run);
}

void perf_report_operation(const perf_run_t *run,
                           const perf_operation_t *operation)
{
    const perf_form_t *form = run->report->form;

    if (form && form->operation)
        form->operation(run, operation);
    fflush(stdout);
}

void perf_report_row(const perf_run_t *run, const perf_row_t *row)
{
    perf_report_t *report = run->report;

    if (report->form)
        report->form->row(run, row);
    fflush(stdout);
    if (report->json)
        perf_json_row(run, report->json, row);
}

static void warn(const perf_run_t *run, const char *format, ...)
    G_GNUC_PRINTF(2, 3);
static void warn(const perf_run_t *run, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_ptr_array_add(run->report->warnings, g_strdup_vprintf(format, args));
    va_end(args);
}

/* Ranks that share a processor measure the scheduler. */
static void warn_of_sharing(const perf_run_t *run)
{
    int processors = perf_processor_count(run->topology);
    int locals = run->everyone[0].locals;

    if (run->everyone[0].processor < 0 && locals > processors)
        warn(run,
             "%d ranks share %d processor%s of %s and wait for their "
             "turn",
             locals, processors, processors == 1 ? "" : "s",
             run->everyone[0].host);
}

static void warn_of_option(const perf_run_t *run, const char *name,
                           gboolean now)
{
    if (perf_baseline_option(run->baseline, name) != now)
        warn(run, "the baseline is %s%s, this is %s%s", now ? "not " : "", name,
             now ? "" : "not ", name);
}

static void warn_of_baseline(const perf_run_t *run)
{
    const perf_baseline_t *baseline = run->baseline;

    if (!baseline)
        return;
    if (!run->compared)
        warn(run, "the baseline has none of these rows: their operation, size, "
                  "type, operator and root must be the same");
    else if (run->compared < run->figures)
        warn(run, "the baseline lacks %zu of the %zu figures",
             run->figures - run->compared, run->figures);
    warn_of_option(run, "async", run->options->async);
    warn_of_option(run, "overlapped", run->options->overlap);
    warn_of_option(run, "registered", run->options->registered);
    if (perf_baseline_aggregate(baseline) != run->options->aggregate)
        warn(run, "the baseline coalesces %d calls into one (-m), this %d",
             perf_baseline_aggregate(baseline), run->options->aggregate);
    if (perf_baseline_ranks(baseline) != run->ranks)
        warn(run, "the baseline is of %d ranks, this is of %d",
             perf_baseline_ranks(baseline), run->ranks);
    if (strcmp(perf_baseline_backend(baseline),
               dscomm_group_backend(run->group)) != 0)
        warn(run, "the baseline is of backend %s, this is of %s",
             perf_baseline_backend(baseline), dscomm_group_backend(run->group));
}

static void warn_of_noise(const perf_run_t *run, double line_now)
{
    double line = perf_roof_first_line(run->roof);

    if (line == 0 && perf_roof_has_line(run))
        warn(run, "a cache line's way from rank 0 to rank 1 could not be "
                  "measured: %%roof of small sizes says nothing");
    if (line > 0 && line_now > 0 &&
        (line_now > line * MOVED || line > line_now * MOVED))
        warn(run,
             "a cache line took %.0f ns from rank 0 to rank 1 before, and "
             "%.0f after: the processors were moved, figures do not "
             "compare",
             line, line_now);
    if (run->noisy * 10 > run->figures)
        warn(run,
             "%zu of %zu figures spread by more than 10%%: the machine "
             "is noisy; end what else runs, or give more time (-t)",
             run->noisy, run->figures);
}

void perf_report_end(const perf_run_t *run, double line_now)
{
    perf_report_t *report = run->report;
    char *const *warnings;

    warn_of_sharing(run);
    warn_of_baseline(run);
    warn_of_noise(run, line_now);
    g_ptr_array_add(report->warnings, NULL);
    warnings = (char *const *)report->warnings->pdata;
    if (report->json)
        report->text =
            perf_json_end(run, g_steal_pointer(&report->json), warnings);
    if (report->form)
        report->form->end(run, warnings);
    else
        fputs(report->text, stdout);
}

void perf_report_clear(perf_report_t *report)
{
    if (report->warnings)
        g_ptr_array_unref(report->warnings);
    g_clear_object(&report->json);
    g_free(report->text);
}
