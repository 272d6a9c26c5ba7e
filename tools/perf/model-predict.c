/* SPDX-License-Identifier: BSD-3-Clause */
/* Predictions of dscomm perf --model: times, and which algorithms are the
 * fastest, see model-run.h. */
#include "config.h"

#include "tools/perf/model-run.h"

#include <math.h>

#define CLEAR 1.1 /* times faster than the default, for a rule */

static perf_layout_t layout_of(const perf_prediction_t *p, int ranks)
{
    return (perf_layout_t){.ranks = ranks, .local = p->local, .rails = 1};
}

double perf_model_predict(const perf_prediction_t *p,
                          const perf_operation_t *operation,
                          const char *algorithm, int ranks, double bytes)
{
    const perf_layout_t layout = layout_of(p, ranks);

    return perf_model_time(&p->model, operation->coll, algorithm, &layout,
                           bytes);
}

void perf_model_visit(const perf_prediction_t *p,
                      const perf_operation_t *operation, int ranks,
                      double bytes, perf_visit_fn visit, void *arg)
{
    const char *name;
    int coll;

    for (size_t i = 0; (name = perf_model_algorithm(i, &coll)); i++) {
        double time;

        if (coll != operation->coll)
            continue;
        time = perf_model_predict(p, operation, name, ranks, bytes);
        if (isfinite(time))
            visit(name, time, arg);
    }
}

typedef struct {
    const char *algorithm; /* NULL: none so far */
    double time;
} fastest_t;

static void fastest_offer(const char *algorithm, double time, void *arg)
{
    fastest_t *fastest = arg;

    if (!fastest->algorithm || time < fastest->time)
        *fastest = (fastest_t){algorithm, time};
}

/* Whether the library's default is almost as fast, or cannot be predicted. */
static bool default_is_good(const perf_prediction_t *p,
                            const perf_operation_t *operation, int ranks,
                            double bytes, double best)
{
    dscomm_choice_info_t choice = {.size = sizeof choice};
    const int nodes = ranks / p->local + (ranks % p->local != 0);
    double time;

    if (dscomm_choice_info(ranks, nodes, (dscomm_coll_t)operation->coll,
                           DSCOMM_FLOAT32, DSCOMM_SUM, (uint64_t)bytes,
                           &choice) != DSCOMM_OK)
        return true;
    time = perf_model_predict(p, operation, choice.by_default, ranks, bytes);
    return isnan(time) || time <= CLEAR * best;
}

/* Sizes are powers of two; each stands for those from half of it on. */
GArray *perf_model_spans(const perf_prediction_t *p,
                         const perf_operation_t *operation, int ranks,
                         bool rules)
{
    const bool is_sized = operation->coll != DSCOMM_COLL_BARRIER;
    const double most = is_sized ? MAX((double)p->options->max, 1) : 1;
    GArray *spans = g_array_new(FALSE, FALSE, sizeof(perf_span_t));

    for (double bytes = 1; bytes <= most; bytes *= 2) {
        perf_span_t *last =
            spans->len ? &g_array_index(spans, perf_span_t, spans->len - 1)
                       : NULL;
        perf_span_t span = {.from = last ? last->to + 1 : 0, .to = bytes};
        fastest_t fastest = {0};

        perf_model_visit(p, operation, ranks, bytes, fastest_offer, &fastest);
        if (!rules ||
            !default_is_good(p, operation, ranks, bytes, fastest.time))
            span.algorithm = fastest.algorithm;
        if (last && last->algorithm == span.algorithm)
            last->to = bytes;
        else
            g_array_append_val(spans, span);
    }
    if (!rules)
        g_array_index(spans, perf_span_t, spans->len - 1).to = INFINITY;
    return spans;
}
