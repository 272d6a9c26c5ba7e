/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows on their way to a reader: a table in nccl-tests' form, JSON, or CSV. */
#ifndef TOOLS_PERF_REPORT_H
#define TOOLS_PERF_REPORT_H

#include "tools/perf/operations.h"

#include <stdio.h>

/* One form; to is where it goes. Members may be NULL. */
typedef struct {
    void (*begin)(const perf_run_t *run, FILE *to);
    void (*operation)(const perf_run_t *run, FILE *to,
                      const perf_operation_t *operation);
    void (*row)(const perf_run_t *run, FILE *to, const perf_row_t *row,
                gboolean first);
    void (*end)(const perf_run_t *run, FILE *to, char *const *warnings);
} perf_form_t;

extern const perf_form_t perf_form_table, perf_form_json, perf_form_csv;

struct perf_report {
    const perf_form_t *form; /* of stdout */
    FILE *save; /* JSON as well; NULL: no */
    gboolean first; /* no row was written yet */
    gboolean complete;
    GPtrArray *warnings;
};

void perf_report_begin(const perf_run_t *run);
void perf_report_operation(const perf_run_t *run,
                           const perf_operation_t *operation);
void perf_report_row(const perf_run_t *run, const perf_row_t *row);
/* Warns of what makes figures doubtful, and ends the report. */
void perf_report_end(const perf_run_t *run, double line_now);

/* A number, or "rotate", in text. */
#define PERF_ROOT_TEXT 12
const char *perf_row_root(const perf_row_t *row, char text[PERF_ROOT_TEXT]);

#endif
