/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of rows: a table in nccl-tests' form or CSV, a line for each row when
 * it is complete, or JSON at the end. */
#ifndef TOOLS_PERF_REPORT_H
#define TOOLS_PERF_REPORT_H

#include "tools/common/json.h"
#include "tools/perf/operations.h"

#include <stdio.h>

struct perf_report {
    const struct perf_form *form; /* NULL: JSON */
    JsonBuilder *json; /* NULL: neither --json nor --save, or ended */
    char *text; /* the JSON; NULL: not complete */
    GPtrArray *warnings;
};

/* For reports with rows of their own: makes the JSON, if it is wanted, to the
 * beginning of its rows; prints the lines before a table; begins a row with
 * what identifies it; and ends the JSON, which has "wrong" and the warnings
 * last, and prints it, or the warnings. */
void perf_report_open(const perf_run_t *run, const char *format);
void perf_report_head(const perf_run_t *run);
void perf_report_row_begin(JsonBuilder *json, const perf_row_t *row);
void perf_report_close(const perf_run_t *run, double line_now);

void perf_report_begin(const perf_run_t *run);
void perf_report_operation(const perf_run_t *run,
                           const perf_operation_t *operation);
void perf_report_row(const perf_run_t *run, const perf_row_t *row);
/* Prints warnings about doubtful figures, and ends the report. */
void perf_report_end(const perf_run_t *run, double line_now);
void perf_report_clear(perf_report_t *report);

#endif
