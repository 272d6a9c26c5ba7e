/* SPDX-License-Identifier: BSD-3-Clause */
/* Classes of pairs, see explain.h. */
#include "config.h"

#include "tools/topo/p2p/explain.h"

#include <string.h>

/* Times this much above another are longer; within it, equal. */
#define EQUAL 1.1
/* The same for a pair among those of its class, and the least number of pairs
 * for which the middle one says what is usual; of fewer, the fastest one. */
#define OUTLIER 1.3
#define CLASS_LEAST 3
/* A path of which less is used than this part of its limit is slow. */
#define SLOW 0.5

static void class_clear(void *class)
{
    g_free(((topo_class_t *)class)->sentence);
}

static void outlier_clear(void *outlier)
{
    g_free(((topo_outlier_t *)outlier)->sentence);
}

char *topo_time_text(double time)
{
    if (time >= 1e6)
        return g_strdup_printf("%.3g s", time / 1e6);
    if (time >= 1e3)
        return g_strdup_printf("%.3g ms", time / 1e3);
    return g_strdup_printf("%.3g us", time);
}

static bool pair_has_path(const topo_pairs_t *pairs, guint from, guint to,
                          const topo_path_t *path)
{
    const topo_pair_t *pair = topo_pair(pairs, from, to);

    return from != to && pair->times[TOPO_ALONE] > 0 &&
           !strcmp(pair->path.word, path->word);
}

/* Fills a class from its path: count, median, and the pair nearest to it. */
static void class_measure(const topo_pairs_t *pairs, topo_class_t *class)
{
    const guint all = pairs->count * pairs->count;
    double *times = g_new(double, all), best = 0;

    class->count = 0;
    for (guint i = 0; i < all; i++)
        if (pair_has_path(pairs, i / pairs->count, i % pairs->count,
                          class->path))
            times[class->count++] = pairs->pairs[i].times[TOPO_ALONE];
    topo_median(times, class->count, NULL);
    class->time = class->count ? times[(class->count - 1) / 2] : 0;
    class->usual = class->count < CLASS_LEAST ? times[0] : class->time;
    g_free(times);
    for (guint i = 0; i < all; i++) {
        const double off = ABS(pairs->pairs[i].times[TOPO_ALONE] - class->time);

        if (!pair_has_path(pairs, i / pairs->count, i % pairs->count,
                           class->path))
            continue;
        if (off < best || (!class->from && !class->to)) {
            class->from = i / pairs->count;
            class->to = i % pairs->count;
            best = off;
        }
    }
}

static bool classes_have(const GArray *classes, const topo_path_t *path)
{
    for (guint i = 0; i < classes->len; i++)
        if (!strcmp(g_array_index(classes, topo_class_t, i).path->word,
                    path->word))
            return true;
    return false;
}

static int compare_distance(const void *a, const void *b)
{
    const topo_class_t *x = a, *y = b;

    return (x->path->distance > y->path->distance) -
           (x->path->distance < y->path->distance);
}

/* Appends how the class compares with the nearest one. */
static void append_comparison(GString *text, const topo_class_t *class,
                              const topo_class_t *first)
{
    if (class == first)
        return;
    if (class->ratio > EQUAL)
        g_string_append_printf(text,
                               ", %.3g times as long as %s: expected from the "
                               "path",
                               class->ratio, first->path->word);
    else if (class->ratio * EQUAL >= 1)
        g_string_append_printf(text, ", as fast as %s", first->path->word);
    else
        g_string_append_printf(text,
                               ", %.3g times as fast as %s, although the path "
                               "is longer: not expected",
                               1 / class->ratio, first->path->word);
}

/* Appends how much of the path's limit is used, if that is little. */
static void append_limit(GString *text, const topo_class_t *class, double rate)
{
    const double limit = class->path->limit / 1e9;

    if (limit > 0 && rate < SLOW * limit)
        g_string_append_printf(text,
                               "; its slowest link allows %.3g GB/s, of which "
                               "this is %.0f %%",
                               limit, 100 * rate / limit);
}

static void class_explain(const topo_pairs_t *pairs, topo_class_t *class,
                          const topo_class_t *first)
{
    GString *text = g_string_new(NULL);
    char *time = topo_time_text(class->time);
    const double rate =
        (double)topo_copies_bytes(&pairs->copies) / class->time / 1e3;

    class->ratio = class->time / first->time;
    g_string_append_printf(text,
                           "%s -> %s over %s (%s, %u pair%s): %s, %.3g "
                           "GB/s",
                           pairs->names[class->from], pairs->names[class->to],
                           class->path->word, class->path->meaning,
                           class->count, class->count == 1 ? "" : "s", time,
                           rate);
    append_comparison(text, class, first);
    append_limit(text, class, rate);
    g_free(time);
    class->sentence = g_string_free(text, FALSE);
}

static char *outlier_sentence(const topo_pairs_t *pairs,
                              const topo_class_t *class,
                              const topo_outlier_t *outlier)
{
    if (outlier->ratio < 1)
        return g_strdup_printf(
            "%s -> %s is %.3g times as fast as most over %s: not expected from "
            "the path; see what slows the others",
            pairs->names[outlier->from], pairs->names[outlier->to],
            1 / outlier->ratio, class->path->word);
    return g_strdup_printf(
        "%s -> %s takes %.3g times as long as %s over %s: not expected from "
        "the path; %s%s",
        pairs->names[outlier->from], pairs->names[outlier->to], outlier->ratio,
        class->count < CLASS_LEAST ? "the other pair" : "most",
        class->path->word, pairs->hint,
        class->path->network ? ", and what else uses their network" : "");
}

/* Whether a pair that takes so many times as long as others is unlike them. Of
 * ends that wait for their turn, some pair has always waited less. */
static bool is_outlier(const topo_pairs_t *pairs, double ratio)
{
    return ratio > OUTLIER || (ratio * OUTLIER < 1 && !pairs->crowd);
}

static void outliers_find(const topo_pairs_t *pairs, const topo_class_t *class,
                          GArray *outliers)
{
    for (guint i = 0; i < pairs->count * pairs->count; i++) {
        topo_outlier_t outlier = {i / pairs->count, i % pairs->count, 0, NULL};

        outlier.ratio = pairs->pairs[i].times[TOPO_ALONE] / class->usual;
        if (!is_outlier(pairs, outlier.ratio) ||
            !pair_has_path(pairs, outlier.from, outlier.to, class->path))
            continue;
        outlier.sentence = outlier_sentence(pairs, class, &outlier);
        g_array_append_val(outliers, outlier);
    }
}

topo_explanation_t *topo_explain(const topo_pairs_t *pairs)
{
    topo_explanation_t *result = g_new(topo_explanation_t, 1);
    GArray *classes = g_array_new(FALSE, FALSE, sizeof(topo_class_t));

    result->classes = classes;
    result->outliers = g_array_new(FALSE, FALSE, sizeof(topo_outlier_t));
    g_array_set_clear_func(classes, class_clear);
    g_array_set_clear_func(result->outliers, outlier_clear);
    for (guint i = 0; i < pairs->count * pairs->count; i++) {
        topo_class_t class = {.path = &pairs->pairs[i].path};

        if (classes_have(classes, class.path))
            continue;
        class_measure(pairs, &class);
        if (class.count)
            g_array_append_val(classes, class);
    }
    g_array_sort(classes, compare_distance);
    for (guint i = 0; i < classes->len; i++) {
        topo_class_t *class = &g_array_index(classes, topo_class_t, i);

        class_explain(pairs, class, &g_array_index(classes, topo_class_t, 0));
        outliers_find(pairs, class, result->outliers);
    }
    return result;
}

void topo_explanation_free(topo_explanation_t *explanation)
{
    if (!explanation)
        return;
    g_array_unref(explanation->classes);
    g_array_unref(explanation->outliers);
    g_free(explanation);
}
