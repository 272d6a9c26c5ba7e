/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of rows: a table in nccl-tests' form or CSV, a line for each row when
 * it is complete, or JSON at the end. */
#ifndef TOOLS_PERF_REPORT_H
#define TOOLS_PERF_REPORT_H

#include "tools/common/json.h"
#include "tools/perf/operations.h"

#include <stdio.h>

/* One form of lines on stdout; operation may be NULL. */
typedef struct {
    void (*begin)(const perf_run_t *run);
    void (*operation)(const perf_run_t *run, const perf_operation_t *operation);
    void (*row)(const perf_run_t *run, const perf_row_t *row);
    void (*end)(const perf_run_t *run, char *const *warnings);
} perf_form_t;

extern const perf_form_t perf_form_table, perf_form_csv;

/* JSON: begins with what is known before the rows; perf_json_end() frees it and
 * returns the text; g_free(). */
JsonBuilder *perf_json_new(const perf_run_t *run);
void perf_json_row(const perf_run_t *run, JsonBuilder *json,
                   const perf_row_t *row);
char *perf_json_end(const perf_run_t *run, JsonBuilder *json,
                    char *const *warnings);

struct perf_report {
    const perf_form_t *form; /* NULL: JSON */
    JsonBuilder *json; /* NULL: neither --json nor --save, or ended */
    char *text; /* the JSON; NULL: not complete */
    GPtrArray *warnings;
};

void perf_report_begin(const perf_run_t *run);
void perf_report_operation(const perf_run_t *run,
                           const perf_operation_t *operation);
void perf_report_row(const perf_run_t *run, const perf_row_t *row);
/* Warns of what makes figures doubtful, and ends the report. */
void perf_report_end(const perf_run_t *run, double line_now);
void perf_report_clear(perf_report_t *report);

/* A number, or "rotate", in text. */
#define PERF_ROOT_TEXT 12
const char *perf_row_root(const perf_row_t *row, char text[PERF_ROOT_TEXT]);

#endif
