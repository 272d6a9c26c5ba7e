/* SPDX-License-Identifier: BSD-3-Clause */
/* Which alternative wins for which sizes, and why, see compare.h.
 *
 * The measurement tells which part of the model matters: where a call takes
 * less than twice the time of the smallest size, its time is latency, that is,
 * steps; elsewhere it is bytes. A range of sizes is of one kind. */
#include "config.h"

#include "tools/common/plot.h"
#include "tools/perf/compare.h"
#include "tools/perf/sequences.h"

#include <stdbool.h>

/* Times within 5% of each other, and costs, are called equal. */
#define EQUAL 1.05
#define LATENCY 2.0
/* A spread, in percent, that makes a finding doubtful. */
#define NOISY 10.0

/* Comparisons of one type, operator and place: first to last of them all. */
typedef struct {
    const GPtrArray *all;
    guint first, last;
    perf_place_t place;
} series_t;

static const perf_comparison_t *at(const series_t *s, guint index)
{
    return g_ptr_array_index(s->all, index);
}

void perf_comparison_rate(perf_comparison_t *comparison)
{
    for (perf_place_t place = 0; place < PERF_PLACES; place++) {
        double best = 0;

        for (size_t i = 0; i < comparison->count; i++) {
            const perf_figure_t *f = &comparison->entries[i].row.figures[place];
            if (f->valid && (best == 0 || f->times.p50 < best))
                best = f->times.p50;
        }
        for (size_t i = 0; i < comparison->count && best > 0; i++)
            comparison->entries[i].ratios[place] =
                comparison->entries[i].row.figures[place].times.p50 / best;
    }
}

/* Returns the index of the fastest alternative. */
static size_t best_of(const series_t *s, guint index)
{
    const perf_comparison_t *comparison = at(s, index);
    size_t best = 0;

    for (size_t i = 1; i < comparison->count; i++)
        if (comparison->entries[i].ratios[s->place] <
            comparison->entries[best].ratios[s->place])
            best = i;
    return best;
}

static double time_of(const series_t *s, guint index, size_t alternative)
{
    return at(s, index)->entries[alternative].row.figures[s->place].times.p50;
}

static const char *name_at(const perf_entry_t *entry)
{
    return entry->row.operation->name;
}

/* Returns why the winner needs less time where time is latency; g_free(). */
static char *explain_latency(const perf_entry_t *winner,
                             const perf_entry_t *loser, perf_place_t place)
{
    const perf_traffic_t *few = &winner->costs[place];
    const perf_traffic_t *many = &loser->costs[place];

    if (few->steps < many->steps)
        return g_strdup_printf(
            "time is latency there, and it takes %s%g step%s, %s %s%g",
            few->bound ? "at least " : "", few->steps,
            few->steps == 1 ? "" : "s", name_at(loser),
            many->bound ? "at least " : "", many->steps);
    return g_strdup_printf("time is latency there, and the model gives no "
                           "reason, it has %g steps, no fewer than for %s",
                           few->steps, name_at(loser));
}

/* Bytes as a multiple of the row's, as "1.5 n". */
static char *multiple(const perf_entry_t *entry, double bytes, bool bound)
{
    return g_strdup_printf("%s%.3g n", bound ? "at least " : "",
                           bytes / (double)entry->row.bytes);
}

static char *explain_pair(const char *what, const perf_entry_t *winner,
                          double few, const perf_entry_t *loser, double many,
                          perf_place_t place, const char *why)
{
    char *less = multiple(winner, few, winner->costs[place].bound);
    char *more = multiple(loser, many, loser->costs[place].bound);
    char *text = g_strdup_printf("%s %s of the n bytes, with %s %s%s", what,
                                 less, name_at(loser), more, why);

    g_free(less);
    g_free(more);
    return text;
}

static char *explain_bytes(const perf_entry_t *winner,
                           const perf_entry_t *loser, perf_place_t place)
{
    const perf_traffic_t *few = &winner->costs[place];
    const perf_traffic_t *many = &loser->costs[place];
    const bool longer =
        perf_parts(loser->row.operation) && !perf_parts(winner->row.operation);
    const double wire = few->busiest > 0 ? many->busiest / few->busiest : 0;
    const double memory = few->memory > 0 ? many->memory / few->memory : 0;

    if (wire > EQUAL && wire >= memory)
        return explain_pair("its busiest rank sends or receives", winner,
                            few->busiest, loser, many->busiest, place,
                            perf_flags(loser->row.operation) & PERF_ROOTED
                                ? ": all of it passes the root's link"
                                : "");
    if (memory > EQUAL)
        return explain_pair("a rank reads and writes", winner, few->memory,
                            loser, many->memory, place,
                            longer ? ": what the first call stores, the second "
                                     "one reads again"
                                   : "");
    if (longer)
        return g_strdup_printf("by the model both move as many bytes, but the "
                               "two calls of %s do not overlap",
                               name_at(loser));
    return g_strdup_printf("the model gives no reason, it has no fewer bytes "
                           "than for %s",
                           name_at(loser));
}

/* Returns whether the time of an alternative is mostly latency. */
static bool is_latency(const series_t *s, guint index, size_t alternative)
{
    return !at(s, index)->entries->row.bytes ||
           time_of(s, index, alternative) <
               LATENCY * time_of(s, s->first, alternative);
}

/* Returns the reason, with a doubt if the times are noisy; g_free(). */
static char *explain(const series_t *s, guint index, size_t winner,
                     size_t loser)
{
    const perf_entry_t *fast = &at(s, index)->entries[winner];
    const perf_entry_t *slow = &at(s, index)->entries[loser];
    const double spread = MAX(fast->row.figures[s->place].times.spread,
                              slow->row.figures[s->place].times.spread);
    char *why = is_latency(s, index, winner)
                    ? explain_latency(fast, slow, s->place)
                    : explain_bytes(fast, slow, s->place);
    char *text;

    if (spread <= NOISY)
        return why;
    text = g_strdup_printf("%s (times spread by %.0f%%)", why, spread);
    g_free(why);
    return text;
}

static char *range_text(size_t from, size_t to)
{
    char *first = tool_plot_bytes((double)from);
    char *last = tool_plot_bytes((double)to);
    char *text =
        from == to ? g_strdup(first) : g_strdup_printf("%s to %s", first, last);

    g_free(first);
    g_free(last);
    return text;
}

static void finding_free(gpointer data)
{
    perf_finding_t *finding = data;

    g_free(finding->sentence);
    g_free(finding);
}

static perf_finding_t *finding_new(const series_t *s, guint from, guint to)
{
    perf_finding_t *finding = g_new0(perf_finding_t, 1);
    const perf_row_t *row = &at(s, from)->entries->row;

    finding->from = row->bytes;
    finding->to = at(s, to)->entries->row.bytes;
    finding->place = s->place;
    finding->dtype = row->dtype;
    finding->op = row->op;
    return finding;
}

/* Compares the winner of a range with another alternative. */
static perf_finding_t *range_compare(const series_t *s, guint from, guint to,
                                     size_t winner, size_t loser)
{
    perf_finding_t *f = finding_new(s, from, to);
    char *range = range_text(f->from, f->to);

    f->winner = at(s, from)->entries[winner].row.operation;
    f->loser = at(s, from)->entries[loser].row.operation;
    for (guint i = from; i <= to; i++) {
        double ratio = at(s, i)->entries[loser].ratios[s->place];
        f->least = i == from ? ratio : MIN(f->least, ratio);
        f->most = MAX(f->most, ratio);
    }
    if (f->most < EQUAL) {
        f->sentence =
            g_strdup_printf("%s: %s and %s take the same time, within 5%%",
                            range, f->winner->name, f->loser->name);
    } else {
        char *why = explain(s, from + (to - from) / 2, winner, loser);
        char *gain = f->most - f->least < 0.01
                         ? g_strdup_printf("%.2f", f->most)
                         : g_strdup_printf("%.2f to %.2f", f->least, f->most);
        f->sentence =
            g_strdup_printf("%s: %s is %s times as fast as %s: %s", range,
                            f->winner->name, gain, f->loser->name, why);
        g_free(gain);
        g_free(why);
    }
    g_free(range);
    return f;
}

static void series_find(const series_t *s, GPtrArray *findings)
{
    const size_t count = at(s, s->first)->count;

    for (guint from = s->first, to; from <= s->last; from = to + 1) {
        const size_t winner = best_of(s, from);
        const bool latency = is_latency(s, from, winner);
        to = from;
        while (to < s->last && best_of(s, to + 1) == winner &&
               is_latency(s, to + 1, winner) == latency)
            to++;
        for (size_t i = 0; i < count; i++)
            if (i != winner)
                g_ptr_array_add(findings,
                                range_compare(s, from, to, winner, i));
    }
}

/* Adds how the places of an alternative compare. */
static void places_find(const series_t *s, size_t alternative,
                        GPtrArray *findings)
{
    perf_finding_t *f = finding_new(s, s->first, s->last);
    char *range = range_text(f->from, f->to);
    double last = 1;

    f->place = PERF_IN_PLACE;
    f->winner = at(s, s->first)->entries[alternative].row.operation;
    for (guint i = s->first; i <= s->last; i++) {
        const perf_figure_t *figures =
            at(s, i)->entries[alternative].row.figures;
        double ratio = figures[PERF_OUT_OF_PLACE].times.p50 /
                       figures[PERF_IN_PLACE].times.p50;
        f->least = i == s->first ? ratio : MIN(f->least, ratio);
        f->most = MAX(f->most, ratio);
        last = ratio;
    }
    if (f->most < EQUAL && f->least > 1 / EQUAL)
        f->sentence = g_strdup_printf("%s: %s takes the same time in place and "
                                      "out of place, within 5%%",
                                      range, f->winner->name);
    else
        f->sentence = g_strdup_printf(
            "%s: out of place %s takes %.2f to %.2f of its time in place, %.2f "
            "of it at the largest size",
            range, f->winner->name, f->least, f->most, last);
    g_free(range);
    g_ptr_array_add(findings, f);
}

static bool is_same_series(const perf_comparison_t *a,
                           const perf_comparison_t *b)
{
    return a->entries->row.dtype == b->entries->row.dtype &&
           a->entries->row.op == b->entries->row.op;
}

GPtrArray *perf_findings(const GPtrArray *comparisons)
{
    GPtrArray *findings = g_ptr_array_new_with_free_func(finding_free);
    series_t s = {.all = comparisons};

    for (; s.first < comparisons->len; s.first = s.last + 1) {
        const perf_comparison_t *first = at(&s, s.first);
        const perf_figure_t *figures = first->entries->row.figures;

        s.last = s.first;
        while (s.last + 1 < comparisons->len &&
               is_same_series(first, at(&s, s.last + 1)))
            s.last++;
        for (s.place = 0; s.place < PERF_PLACES; s.place++)
            if (figures[s.place].valid)
                series_find(&s, findings);
        if (!figures[PERF_OUT_OF_PLACE].valid || !figures[PERF_IN_PLACE].valid)
            continue;
        for (size_t i = 0; i < first->count; i++)
            places_find(&s, i, findings);
    }
    return findings;
}
