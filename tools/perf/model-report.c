/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of dscomm perf --model: parameters, measured times beside predicted
 * ones, predicted times, and the fastest algorithms; as text or JSON. */
#include "config.h"

#include "tools/common/json.h"
#include "tools/perf/model-run.h"
#include "tools/perf/options.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const link_names[] = {"inside a node", "between nodes"};

static const perf_link_t *link_of(const perf_prediction_t *p, int i)
{
    return i ? &p->model.far : &p->model.near;
}

/* Calls visit for each size of the tables. */
typedef void (*size_fn)(const perf_prediction_t *p,
                        const perf_operation_t *operation, int ranks,
                        double bytes, void *arg);

static void visit_sizes(const perf_prediction_t *p,
                        const perf_operation_t *operation, int ranks,
                        size_fn visit, void *arg)
{
    size_t next = 1;

    if (operation->coll == DSCOMM_COLL_BARRIER) {
        visit(p, operation, ranks, 0, arg);
        return;
    }
    for (size_t bytes = p->options->min; next; bytes = next) {
        next = perf_next_size(p->options, bytes);
        visit(p, operation, ranks, (double)bytes, arg);
    }
}

/* "8K", or bytes if it is no multiple. */
static char *size_text(double bytes)
{
    static const char units[] = "KMG";
    int unit = -1;

    while (unit < 2 && bytes >= 1024 && fmod(bytes, 1024) == 0) {
        bytes /= 1024;
        unit++;
    }
    return g_strdup_printf("%.0f%.*s", bytes, unit >= 0, &units[MAX(unit, 0)]);
}

/* The errors of an algorithm's predictions; values are percent, signed. */
static perf_errors_t trial_errors(const perf_prediction_t *p,
                                  const perf_trial_t *of)
{
    double *errors = g_new(double, p->trials->len);
    perf_errors_t result;
    size_t count = 0;

    for (guint i = 0; i < p->trials->len; i++) {
        const perf_trial_t *trial = &g_array_index(p->trials, perf_trial_t, i);

        if (trial->operation == of->operation &&
            strcmp(trial->algorithm, of->algorithm) == 0)
            errors[count++] = trial->predicted / trial->measured - 1;
    }
    result = perf_model_errors(errors, count);
    g_free(errors);
    return result;
}

/* Whether trial i is the last one of an algorithm that was predicted. */
static bool trial_is_last(const perf_prediction_t *p, guint i)
{
    const perf_trial_t *trial = &g_array_index(p->trials, perf_trial_t, i);

    return isfinite(trial->predicted) &&
           (i + 1 == p->trials->len || trial[1].operation != trial->operation ||
            strcmp(trial[1].algorithm, trial->algorithm) != 0);
}

/* Text */

/* Prints what so many seconds a byte are. */
static void print_rate(double beta)
{
    if (beta > 0)
        printf("at %.2f GB/s", 1e-9 / beta);
    else
        printf("in no time");
}

static void print_piece(const perf_cost_t *cost, int i)
{
    printf("%.2f us + bytes ", cost->pieces[i].alpha * 1e6);
    print_rate(cost->pieces[i].beta);
}

/* errors: NULL if the cost was given. */
static void print_cost(const char *ways, const perf_cost_t *cost,
                       const perf_errors_t *errors)
{
    printf("#   %-10s ", ways);
    print_piece(cost, 0);
    if (isfinite(cost->split)) {
        printf(" up to %.0f bytes, ", cost->split);
        print_piece(cost, 1);
        printf(" beyond");
    }
    if (errors)
        printf("; error: median %.0f %%, worst %.0f %%", 100 * errors->median,
               100 * errors->worst);
    printf("\n");
}

static void print_link(const perf_prediction_t *p, int i)
{
    const perf_errors_t *errors = p->is_fitted[i] ? p->fits[i] : NULL;
    const perf_link_t *link = link_of(p, i);

    printf("# message %s: %.2f us for each further one\n", link_names[i],
           link->gap * 1e6);
    if (errors)
        print_cost("one way", &link->one_way, &errors[0]);
    print_cost("both ways", &link->both_ways, errors ? &errors[1] : NULL);
}

static void print_work(const perf_prediction_t *p)
{
    printf("# each rank, while all do so, reads and writes for reductions ");
    print_rate(p->model.gamma);
    printf(", for copies ");
    print_rate(p->model.delta);
    if (p->ranks) {
        char *size = size_text((double)perf_model_work_bytes(p->options));

        printf("; measured on %s bytes", size);
        g_free(size);
    }
    printf("\n");
}

static void print_parameters(const perf_prediction_t *p)
{
    printf("# dscomm %s, model", dscomm_version_string());
    if (p->ranks)
        printf(" fitted by %d ranks of backend %s", p->ranks, p->backend);
    if (p->local == INT_MAX)
        printf(", all of one node\n");
    else
        printf(", %d rank%s a node\n", p->local, p->local == 1 ? "" : "s");
    for (int i = 0; i < 2; i++)
        if (p->is_fitted[i] || (!p->ranks && (i || p->local > 1)))
            print_link(p, i);
    print_work(p);
    printf("#\n");
}

static void print_trials(const perf_prediction_t *p)
{
    if (!p->trials->len)
        return;
    printf("# %d ranks, us\n# %-14s %10s %-20s %12s %12s %8s\n", p->ranks,
           "operation", "bytes", "algorithm", "measured", "predicted", "error");
    for (guint i = 0; i < p->trials->len; i++) {
        const perf_trial_t *trial = &g_array_index(p->trials, perf_trial_t, i);

        printf("%-16s %10.0f %-20s %12.2f", trial->operation->name,
               trial->bytes, trial->algorithm, trial->measured * 1e6);
        if (isfinite(trial->predicted))
            printf(" %12.2f %+6.0f %%\n", trial->predicted * 1e6,
                   100 * (trial->predicted / trial->measured - 1));
        else
            printf(" %12s %8s\n", "N/A", "N/A");
    }
    printf("#\n");
    for (guint i = 0; i < p->trials->len; i++)
        if (trial_is_last(p, i)) {
            const perf_trial_t *trial =
                &g_array_index(p->trials, perf_trial_t, i);
            const perf_errors_t errors = trial_errors(p, trial);

            printf("# error of %s by %s: median %.0f %%, worst %.0f %%\n",
                   trial->operation->name, trial->algorithm,
                   100 * errors.median, 100 * errors.worst);
        }
    printf("#\n");
}

static void print_title(const char *algorithm, double time, void *arg)
{
    (void)time, (void)arg;
    printf(" %18s", algorithm);
}

static void print_time(const char *algorithm, double time, void *arg)
{
    (void)algorithm, (void)arg;
    printf(" %18.2f", time * 1e6);
}

static void print_row(const perf_prediction_t *p,
                      const perf_operation_t *operation, int ranks,
                      double bytes, void *arg)
{
    (void)arg;
    printf("%12.0f", bytes);
    perf_model_visit(p, operation, ranks, bytes, print_time, NULL);
    printf("\n");
}

static void print_table(const perf_prediction_t *p,
                        const perf_operation_t *operation, int ranks)
{
    printf("# %s, %d ranks: predicted, us\n# %10s", operation->name, ranks,
           "bytes");
    perf_model_visit(p, operation, ranks, 0, print_title, NULL);
    printf("\n");
    visit_sizes(p, operation, ranks, print_row, NULL);
    printf("#\n");
}

/* "all_reduce, 64 ranks: recursive_doubling to 8K, ring beyond" */
static void print_fastest(const perf_prediction_t *p,
                          const perf_operation_t *operation, int ranks)
{
    GArray *spans = perf_model_spans(p, operation, ranks, false);

    printf("# fastest %s, %d ranks:", operation->name, ranks);
    for (guint i = 0; i < spans->len; i++) {
        const perf_span_t *span = &g_array_index(spans, perf_span_t, i);
        char *to = isfinite(span->to) ? size_text(span->to) : g_strdup("");

        printf("%s %s%s%s", i ? "," : "", span->algorithm,
               isfinite(span->to) ? " to "
               : spans->len > 1   ? " beyond"
                                  : "",
               to);
        g_free(to);
    }
    printf("\n");
    g_array_unref(spans);
}

typedef void (*count_fn)(const perf_prediction_t *p,
                         const perf_operation_t *operation, int ranks);

static void visit_counts(const perf_prediction_t *p, count_fn visit)
{
    for (size_t i = 0; p->options->operations[i]; i++)
        for (guint k = 0; k < p->counts->len; k++)
            visit(p, p->options->operations[i],
                  g_array_index(p->counts, int, k));
}

/* JSON */

static void json_piece(JsonBuilder *json, const perf_cost_t *cost, int i)
{
    tool_json_object(json, i ? "long" : "short");
    tool_json_real(json, "alpha_s", "%.6g", cost->pieces[i].alpha);
    tool_json_real(json, "beta_s", "%.6g", cost->pieces[i].beta);
    json_builder_end_object(json);
}

/* errors: NULL if the cost was given. */
static void json_cost(JsonBuilder *json, const char *name,
                      const perf_cost_t *cost, const perf_errors_t *errors)
{
    const bool has_long = isfinite(cost->split);

    tool_json_object(json, name);
    json_piece(json, cost, 0);
    tool_json_real(json, "split_bytes", NULL, has_long ? cost->split : NAN);
    if (has_long)
        json_piece(json, cost, 1);
    tool_json_real(json, "median_error_percent", "%.2f",
                   errors ? 100 * errors->median : NAN);
    tool_json_real(json, "worst_error_percent", "%.2f",
                   errors ? 100 * errors->worst : NAN);
    json_builder_end_object(json);
}

static void json_link(JsonBuilder *json, const perf_prediction_t *p, int i)
{
    const perf_errors_t *errors = p->is_fitted[i] ? p->fits[i] : NULL;
    const perf_link_t *link = link_of(p, i);

    tool_json_object(json, i ? "far" : "near");
    tool_json_real(json, "gap_s", "%.6g", link->gap);
    json_cost(json, "one_way", &link->one_way, errors);
    json_cost(json, "both_ways", &link->both_ways, errors ? errors + 1 : NULL);
    json_builder_end_object(json);
}

static void json_trial(JsonBuilder *json, const perf_trial_t *trial)
{
    tool_json_object(json, NULL);
    tool_json_text(json, "operation", trial->operation->name);
    tool_json_real(json, "bytes", NULL, trial->bytes);
    tool_json_text(json, "algorithm", trial->algorithm);
    tool_json_real(json, "measured_us", "%.4f", trial->measured * 1e6);
    tool_json_real(json, "predicted_us", "%.4f", trial->predicted * 1e6);
    json_builder_end_object(json);
}

static void json_time(const char *algorithm, double time, void *arg)
{
    tool_json_real(arg, algorithm, "%.4f", time * 1e6);
}

static void json_row(const perf_prediction_t *p,
                     const perf_operation_t *operation, int ranks, double bytes,
                     void *arg)
{
    tool_json_object(arg, NULL);
    tool_json_real(arg, "bytes", NULL, bytes);
    tool_json_object(arg, "times_us");
    perf_model_visit(p, operation, ranks, bytes, json_time, arg);
    json_builder_end_object(arg);
    json_builder_end_object(arg);
}

static void json_fastest(JsonBuilder *json, const perf_prediction_t *p,
                         const perf_operation_t *operation, int ranks)
{
    GArray *spans = perf_model_spans(p, operation, ranks, false);

    tool_json_array(json, "fastest");
    for (guint i = 0; i < spans->len; i++) {
        const perf_span_t *span = &g_array_index(spans, perf_span_t, i);

        tool_json_object(json, NULL);
        tool_json_real(json, "from", NULL, span->from);
        tool_json_real(json, "to", NULL, isfinite(span->to) ? span->to : NAN);
        tool_json_text(json, "algorithm", span->algorithm);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
    g_array_unref(spans);
}

static void json_prediction(JsonBuilder *json, const perf_prediction_t *p,
                            const perf_operation_t *operation, int ranks)
{
    tool_json_object(json, NULL);
    tool_json_text(json, "operation", operation->name);
    tool_json_number(json, "ranks", ranks);
    tool_json_array(json, "rows");
    visit_sizes(p, operation, ranks, json_row, json);
    json_builder_end_array(json);
    json_fastest(json, p, operation, ranks);
    json_builder_end_object(json);
}

static void json_print(const perf_prediction_t *p)
{
    JsonBuilder *json = json_builder_new();
    GString *text = g_string_new(NULL);

    tool_json_object(json, NULL);
    tool_json_text(json, "format", "dscomm-perf-model");
    tool_json_number(json, "format_version", 1);
    tool_json_text(json, "dscomm", dscomm_version_string());
    tool_json_text(json, "backend", p->backend);
    tool_json_number(json, "ranks", p->ranks);
    tool_json_real(json, "ranks_of_node", NULL,
                   p->local == INT_MAX ? NAN : p->local);
    for (int i = 0; i < 2; i++)
        json_link(json, p, i);
    tool_json_real(json, "gamma_s", "%.6g", p->model.gamma);
    tool_json_real(json, "delta_s", "%.6g", p->model.delta);
    tool_json_array(json, "measured");
    for (guint i = 0; i < p->trials->len; i++)
        json_trial(json, &g_array_index(p->trials, perf_trial_t, i));
    json_builder_end_array(json);
    tool_json_array(json, "predicted");
    for (size_t i = 0; p->options->operations[i]; i++)
        for (guint k = 0; k < p->counts->len; k++)
            json_prediction(json, p, p->options->operations[i],
                            g_array_index(p->counts, int, k));
    json_builder_end_array(json);
    json_builder_end_object(json);
    tool_json_end(json, TRUE, text);
    fputs(text->str, stdout);
    g_string_free(text, TRUE);
}

void perf_model_report(const perf_prediction_t *p)
{
    if (p->options->json) {
        json_print(p);
        return;
    }
    print_parameters(p);
    print_trials(p);
    visit_counts(p, print_table);
    visit_counts(p, print_fastest);
}
