/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds, see series.h. In a round each candidate is measured once, so that
 * what else the machine does, and slow drifts, meet all of them. The order of
 * all but number 0 alternates. */
#include "config.h"

#include "tools/tune/series.h"

#include "tools/tune/job.h"

#include <string.h>

#define ROUNDS_WANTED 5
#define ROUNDS_MAX 15
/* An algorithm or a setting whose ratio is below this after any round is left
 * out of the next ones. */
#define PRUNED_BELOW 0.85
/* Seconds that the start of a job takes, and a figure besides its time. */
#define JOB_S 0.2
#define FIGURE_S 0.004
#define TIME_MIN 0.0005 /* seconds of a figure */
#define TIME_MAX 0.02

typedef struct {
    const tune_options_t *options;
    const char *what;
    const GPtrArray *candidates;
    gint64 end, limit; /* see series.h */
    double seconds; /* of a figure */
    tune_times_t *times;
    bool *left_out; /* of each candidate */
    gsize now; /* the candidate that is measured */
} series_t;

static const tune_candidate_t *candidate_at(const series_t *series, gsize i)
{
    return series->candidates->pdata[i];
}

/* Returns the time of a figure with which the wanted number of rounds fits.
 * Most figures have two places. */
static double plan_time(const series_t *series)
{
    const gsize rounds = series->times->rounds;
    double left = (double)(series->end - g_get_monotonic_time()) / 1e6;
    double figures = 0;

    left /= rounds < ROUNDS_WANTED ? (double)(ROUNDS_WANTED - rounds) : 1;
    for (gsize i = 0; i < series->candidates->len; i++) {
        const tune_candidate_t *c = candidate_at(series, i);

        left -= series->left_out[i] ? 0 : JOB_S;
        for (int k = 0; k < TUNE_OPERATIONS && !series->left_out[i]; k++)
            figures +=
                c->operations[k] * 2.0 * (double)(c->last - c->first + 1);
    }
    return CLAMP(left / MAX(figures, 1) - FIGURE_S, TIME_MIN, TIME_MAX);
}

static void row_note(int operation, gsize size_class, const char *algorithm,
                     double time, void *arg)
{
    series_t *series = arg;
    const tune_candidate_t *candidate = candidate_at(series, series->now);
    const char *wanted = candidate->algorithms[operation];

    if (wanted && g_strcmp0(algorithm, wanted))
        return; /* the rule was passed over */
    tune_times_set(series->times, series->now,
                   tune_figure(operation, size_class), time);
}

/* Returns what is measured now, to be freed. */
static char *candidate_text(const tune_candidate_t *candidate)
{
    if (candidate->name)
        return g_strdup_printf("%s=%s", candidate->name, candidate->value);
    return candidate->environment && *candidate->environment
               ? g_strjoinv(" ", candidate->environment)
               : g_strdup("defaults");
}

static void show_progress(const series_t *series)
{
    char *text = candidate_text(candidate_at(series, series->now));

    tune_progress("%s, %d s left, round %" G_GSIZE_FORMAT ", %" G_GSIZE_FORMAT
                  " of %u: %.60s",
                  series->what,
                  (int)MAX((series->end - g_get_monotonic_time()) / 1000000, 0),
                  series->times->rounds, series->now + 1,
                  series->candidates->len, text);
    g_free(text);
}

/* Measures candidate number series->now. */
static int measure_one(series_t *series)
{
    const tune_candidate_t *candidate = candidate_at(series, series->now);
    char *problem = NULL, *text;
    int status;

    if (series->left_out[series->now])
        return TOOL_OK;
    show_progress(series);
    status = tune_job_measure(series->options, candidate, series->seconds,
                              row_note, series, &problem);
    tune_progress(NULL);
    if (status == TOOL_OK)
        return TOOL_OK;
    series->left_out[series->now] = true;
    text = candidate_text(candidate);
    if (series->now)
        tool_fail(0, "tune", "%s is left out: %s", text, problem);
    else
        tool_fail(0, "tune", "%s", problem);
    g_free(text);
    g_free(problem);
    return series->now ? TOOL_OK : TOOL_FAILED;
}

/* Returns the best ratio of a candidate in the classes of an operation. */
static double best_ratio(const series_t *series, gsize candidate, int operation)
{
    double best = 0;

    for (gsize size_class = 0; size_class < TUNE_CLASSES; size_class++) {
        const tune_gain_t gain = tune_gain(series->times, candidate,
                                           tune_figure(operation, size_class));

        best = MAX(best, gain.ratio);
    }
    return best;
}

/* Leaves out the operations for which an algorithm is much slower, and a
 * setting that makes all its operations slower. */
static void candidate_prune(series_t *series, gsize number)
{
    tune_candidate_t *candidate = series->candidates->pdata[number];
    bool some = false;

    for (int i = 0; i < TUNE_OPERATIONS; i++) {
        const bool keeps = candidate->operations[i] &&
                           best_ratio(series, number, i) >= PRUNED_BELOW;

        if (candidate->algorithms[i])
            candidate->operations[i] = keeps;
        some |= keeps;
    }
    series->left_out[number] |= !some;
}

/* Prunes all candidates, and number 0 accordingly. Returns whether any is
 * left. */
static bool series_prune(series_t *series)
{
    tune_candidate_t *first = series->candidates->pdata[0];
    bool left = false;

    memset(first->operations, 0, sizeof first->operations);
    for (gsize i = 1; i < series->candidates->len; i++) {
        candidate_prune(series, i);
        for (int k = 0; k < TUNE_OPERATIONS && !series->left_out[i]; k++)
            first->operations[k] |= candidate_at(series, i)->operations[k];
        left |= !series->left_out[i];
    }
    return left;
}

static bool time_is_left(const series_t *series)
{
    const gint64 now = g_get_monotonic_time();

    return now < series->end ||
           (series->times->rounds <= TUNE_ROUNDS_MIN && now < series->limit);
}

/* Measures a round, number 0 first. *ret_whole: whether there was time for all
 * of it. */
static int measure_round(series_t *series, bool *ret_whole)
{
    const gsize count = series->candidates->len;
    int status = TOOL_OK;

    tune_times_begin(series->times);
    *ret_whole = true;
    for (gsize i = 0; i < count && *ret_whole && status == TOOL_OK; i++) {
        series->now = series->times->rounds % 2 ? count - 1 - i : i;
        *ret_whole = time_is_left(series);
        if (*ret_whole)
            status = measure_one(series);
    }
    return status;
}

int tune_series_measure(const tune_options_t *options, const char *what,
                        const GPtrArray *candidates, gint64 end, gint64 limit,
                        tune_times_t *ret_times, bool *ret_short)
{
    series_t series = {.options = options,
                       .what = what,
                       .candidates = candidates,
                       .end = end,
                       .limit = limit,
                       .times = ret_times};
    bool goes_on = candidates->len > 1, whole = true;
    int status = TOOL_OK;

    tune_times_init(ret_times, candidates->len,
                    (gsize)TUNE_OPERATIONS * TUNE_CLASSES);
    series.left_out = g_new0(bool, candidates->len);
    while (status == TOOL_OK && goes_on && whole &&
           ret_times->rounds < ROUNDS_MAX) {
        series.seconds = plan_time(&series);
        status = measure_round(&series, &whole);
        goes_on = series_prune(&series);
    }
    *ret_short |= !whole && ret_times->rounds <= TUNE_ROUNDS_MIN;
    g_free(series.left_out);
    return status;
}
