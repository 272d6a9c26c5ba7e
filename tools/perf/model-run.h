/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm perf --model`: its options, the fit of the parameters to measured
 * times, and what is printed and saved. */
#ifndef TOOLS_PERF_MODEL_RUN_H
#define TOOLS_PERF_MODEL_RUN_H

#include "tools/perf/model.h"
#include "tools/perf/operations.h"

/* Relative errors of a fit or a prediction. */
typedef struct {
    double median, worst;
} perf_errors_t;

/* A measured call of an algorithm, beside the model's time; seconds. */
typedef struct {
    const perf_operation_t *operation;
    const char *algorithm;
    double bytes, measured, predicted; /* predicted: NAN for "native" */
} perf_trial_t;

/* A range of bytes, both limits included, with one algorithm. */
typedef struct {
    double from, to; /* to: INFINITY if there is no limit */
    const char *algorithm;
} perf_span_t;

/* A job, as far as it is known or was given. */
typedef struct {
    const perf_options_t *options;
    const char *backend; /* NULL: unknown */
    int ranks; /* of the job; 0: there is none */
    int local; /* ranks of a node; INT_MAX: all nodes are one */
    perf_model_t model;
    bool is_fitted[2]; /* the links inside a node, and between nodes */
    perf_errors_t fits[2][2]; /* of them, one way and both ways */
    GArray *trials; /* perf_trial_t */
    GArray *counts; /* int: numbers of ranks to predict for */
} perf_prediction_t;

/* Whether an option of the model was given. */
bool perf_model_is_asked(const perf_options_t *options);
/* Whether the model has an operation. */
bool perf_model_has(const perf_operation_t *operation);
/* Checks them, with the other options. Returns the exit status. */
int perf_model_check(perf_options_t *options);
/* Reads them; the job's part of *prediction is filled in already. */
int perf_model_read(perf_prediction_t *prediction);

/* Measures, fits and predicts in the ranks of run, or only predicts by given
 * parameters. Returns the exit status. */
int perf_model_run(perf_run_t *run);
int perf_model_given(const perf_options_t *options);

/* Fits a cost to count times in seconds of messages, whose bytes ascend. */
perf_errors_t perf_model_fit(const double *bytes, const double *times,
                             size_t count, perf_cost_t *ret_cost);
/* The errors of count values, which become absolute and sorted. */
perf_errors_t perf_model_errors(double *values, size_t count);
/* The bytes with which gamma and delta are measured. */
size_t perf_model_work_bytes(const perf_options_t *options);
/* Measures the parameters; collective. They are valid on rank 0. */
dscomm_status_t perf_model_measure(perf_run_t *run,
                                   perf_prediction_t *prediction);
/* Measures the algorithms of the model and the backend's own; collective. run's
 * world ends before, and its group with it. */
dscomm_status_t perf_model_try(perf_run_t *run, perf_prediction_t *prediction);

/* Predicts the seconds of an operation on so many ranks. */
double perf_model_predict(const perf_prediction_t *prediction,
                          const perf_operation_t *operation,
                          const char *algorithm, int ranks, double bytes);
/* Calls visit for each algorithm of an operation on so many ranks, with its
 * predicted seconds. */
typedef void (*perf_visit_fn)(const char *algorithm, double time, void *arg);
void perf_model_visit(const perf_prediction_t *prediction,
                      const perf_operation_t *operation, int ranks,
                      double bytes, perf_visit_fn visit, void *arg);
/* The fastest algorithms from the smallest to the largest call, an array of
 * perf_span_t, to be freed. rules: only what is faster than the library's
 * default by more than a tenth, else the algorithm is NULL; the last range ends
 * with the largest size that was predicted, because nobody knows what is the
 * fastest beyond. */
GArray *perf_model_spans(const perf_prediction_t *prediction,
                         const perf_operation_t *operation, int ranks,
                         bool rules);

/* Prints everything, as text or JSON. */
void perf_model_report(const perf_prediction_t *prediction);
/* Writes the tuning file that was asked for. Returns the exit status. */
int perf_model_save(const perf_prediction_t *prediction);

#endif
