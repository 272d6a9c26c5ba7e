/* SPDX-License-Identifier: BSD-3-Clause */
/* Medians and rules, see times.h. */
#include "config.h"

#include "tools/tune/times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLEAR 1.05 /* ratio that counts as a gain */

void tune_times_init(tune_times_t *times, gsize alternatives, gsize figures)
{
    *times = (tune_times_t){alternatives, figures, 0,
                            g_array_new(FALSE, FALSE, sizeof(double))};
}

void tune_times_clear(tune_times_t *times)
{
    if (times->values)
        g_array_free(times->values, TRUE);
    memset(times, 0, sizeof *times);
}

void tune_times_begin(tune_times_t *times)
{
    const double none = NAN;

    for (gsize i = 0; i < times->alternatives * times->figures; i++)
        g_array_append_val(times->values, none);
    times->rounds++;
}

static double *time_at(const tune_times_t *times, gsize round,
                       gsize alternative, gsize figure)
{
    return &g_array_index(
        times->values, double,
        (round * times->alternatives + alternative) * times->figures + figure);
}

void tune_times_set(tune_times_t *times, gsize alternative, gsize figure,
                    double time)
{
    *time_at(times, times->rounds - 1, alternative, figure) = time;
}

static int value_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Returns the value of sorted ones that a part of them does not reach. */
static double quantile(const GArray *sorted, double part)
{
    const double at = part * (sorted->len - 1);
    const guint below = (guint)at;
    const double *values = (const double *)(const void *)sorted->data;

    if (below + 1 >= sorted->len)
        return values[sorted->len - 1];
    return values[below] + (at - below) * (values[below + 1] - values[below]);
}

/* Values of each round in which both alternatives have been measured. */
typedef struct {
    GArray *before, *after, *ratio;
} pairs_t;

static pairs_t pairs_new(void)
{
    return (pairs_t){g_array_new(FALSE, FALSE, sizeof(double)),
                     g_array_new(FALSE, FALSE, sizeof(double)),
                     g_array_new(FALSE, FALSE, sizeof(double))};
}

static void pairs_add(pairs_t *pairs, double before, double after)
{
    const double ratio = before / after;

    g_array_append_val(pairs->before, before);
    g_array_append_val(pairs->after, after);
    g_array_append_val(pairs->ratio, ratio);
}

/* Returns the gain that the pairs show, and frees them. */
static tune_gain_t pairs_end(pairs_t *pairs)
{
    tune_gain_t gain = {.rounds = pairs->ratio->len};

    if (gain.rounds) {
        g_array_sort(pairs->before, value_compare);
        g_array_sort(pairs->after, value_compare);
        g_array_sort(pairs->ratio, value_compare);
        gain.before = quantile(pairs->before, 0.5);
        gain.after = quantile(pairs->after, 0.5);
        gain.ratio = quantile(pairs->ratio, 0.5);
        gain.low = quantile(pairs->ratio, 0.25);
    }
    g_array_free(pairs->before, TRUE);
    g_array_free(pairs->after, TRUE);
    g_array_free(pairs->ratio, TRUE);
    return gain;
}

tune_gain_t tune_gain(const tune_times_t *times, gsize alternative,
                      gsize figure)
{
    pairs_t pairs = pairs_new();

    for (gsize round = 0; round < times->rounds; round++) {
        const double before = *time_at(times, round, 0, figure);
        const double after = *time_at(times, round, alternative, figure);

        if (before > 0 && after > 0)
            pairs_add(&pairs, before, after);
    }
    return pairs_end(&pairs);
}

/* Adds the geometric means over figures of one round. */
static void pairs_add_round(pairs_t *pairs, const tune_times_t *times,
                            gsize round, gsize alternative, const bool *figures)
{
    double before = 0, after = 0, count = 0;

    for (gsize figure = 0; figure < times->figures; figure++) {
        const double a = *time_at(times, round, 0, figure);
        const double b = *time_at(times, round, alternative, figure);

        if (!figures[figure] || !(a > 0 && b > 0))
            continue;
        before += log(a);
        after += log(b);
        count++;
    }
    if (count > 0)
        pairs_add(pairs, exp(before / count), exp(after / count));
}

tune_gain_t tune_gain_mean(const tune_times_t *times, gsize alternative,
                           const bool *figures, double *ret_worst)
{
    pairs_t pairs = pairs_new();

    for (gsize round = 0; round < times->rounds; round++)
        pairs_add_round(&pairs, times, round, alternative, figures);
    *ret_worst = INFINITY;
    for (gsize figure = 0; figure < times->figures; figure++) {
        const tune_gain_t gain = tune_gain(times, alternative, figure);

        if (figures[figure] && gain.rounds)
            *ret_worst = MIN(*ret_worst, gain.ratio);
    }
    return pairs_end(&pairs);
}

bool tune_gain_is_clear(const tune_gain_t *gain)
{
    return gain->rounds >= TUNE_ROUNDS_MIN && gain->ratio >= CLEAR &&
           gain->low > 1;
}

gsize tune_class_size(gsize size_class)
{
    gsize size = TUNE_SMALLEST;

    while (size_class--)
        size *= TUNE_FACTOR;
    return size;
}

gsize tune_class_from(gsize size_class)
{
    return size_class ? tune_class_size(size_class) / 2 : 0;
}

gsize tune_class_to(gsize size_class)
{
    return tune_class_size(size_class) * TUNE_FACTOR / 2 - 1;
}

gsize tune_class_of(gsize bytes)
{
    gsize size_class = 0;

    while (size_class + 1 < TUNE_CLASSES && bytes > tune_class_size(size_class))
        size_class++;
    return size_class;
}

/* Appends "4K", or bytes if it is no multiple. */
static void size_append(GString *text, gsize bytes)
{
    const bool whole = bytes && bytes % 1024 == 0;

    g_string_append_printf(text, "%" G_GSIZE_FORMAT "%s",
                           whole ? bytes / 1024 : bytes, whole ? "K" : "");
}

static void rule_append(GString *text, const char *subject, bool sized,
                        gsize first, gsize last, const char *algorithm)
{
    g_string_append_printf(text, "%s%s:", text->len ? "," : "", subject);
    if (sized) {
        if (tune_class_from(first))
            size_append(text, tune_class_from(first));
        g_string_append_c(text, '-');
        size_append(text, tune_class_to(last));
        g_string_append_c(text, ':');
    }
    g_string_append(text, algorithm);
}

void tune_rules_append(GString *text, const char *collective,
                       const char *backend, int ranks, bool sized,
                       const char *const algorithms[TUNE_CLASSES])
{
    char *subject = g_strdup_printf("%s@%s/%d", collective, backend, ranks);

    for (gsize first = 0, last; first < (sized ? TUNE_CLASSES : 1);
         first = last + 1) {
        last = first;
        while (sized && last + 1 < TUNE_CLASSES && algorithms[first] &&
               g_strcmp0(algorithms[first], algorithms[last + 1]) == 0)
            last++;
        if (algorithms[first])
            rule_append(text, subject, sized, first, last, algorithms[first]);
    }
    g_free(subject);
}
