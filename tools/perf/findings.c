/* SPDX-License-Identifier: BSD-3-Clause */
/* Findings: the alternative that wins for a range of sizes, and why, see
 * compare.h.
 *
 * The measurement tells which part of the model matters: where a call takes
 * less than twice the time of the smallest size, its time is latency, that is,
 * steps, if that size is small itself; elsewhere it is bytes. If those give no
 * reason, it is steps still, as far as they take so long as a small call's.
 * Bytes through memory are those of the rank with most of them, for whom the
 * others wait; if ranks share processors, those of all. The costs of the faster
 * one explain nothing if they are lower bounds. Ranges consist of sizes with
 * one kind of time, the same algorithms and the same outcome. */
#include "config.h"

#include "tools/common/plot.h"
#include "tools/perf/compare.h"
#include "tools/perf/sequences.h"

#include <math.h>
#include <stdbool.h>

/* Times within 5% of each other, and costs, are called equal. */
#define EQUAL 1.05
#define LATENCY 2.0
/* A call of at most so many bytes takes only latency. */
#define SMALL 1024
/* A spread, in percent, that makes a finding doubtful. */
#define NOISY 10.0
/* One that makes the time of the smallest size useless to compare with. */
#define USELESS 50.0
/* Fewer batches do not tell how far times spread. */
#define BATCHES 3

/* The part that most of a call's time is. */
typedef enum { UNKNOWN, LATENCY_TIME, BYTES_TIME } kind_t;

/* The figure of an alternative whose time is meant. */
typedef struct {
    size_t alternative;
    perf_place_t place;
} figure_at_t;

/* How one time compares with another one. */
typedef enum { TOO_FEW, SAME, MORE, LESS } outcome_t;

/* The times of a range in common: their outcome, and the largest of
 * the ratios, spreads and limits of difference, in percent. */
typedef struct {
    outcome_t outcome;
    double least, most, spread, limit;
} difference_t;

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

/* Whether the smallest size's time tells what latency is. */
static bool has_base(const series_t *s, size_t alternative)
{
    const perf_row_t *row = &at(s, s->first)->entries[alternative].row;

    return row->bytes <= SMALL &&
           row->figures[s->place].times.spread <= USELESS;
}

static const char *name_at(const perf_entry_t *entry)
{
    return entry->row.operation->name;
}

/* A winner and another alternative, where they are compared. */
typedef struct {
    const perf_entry_t *fast, *slow;
    const perf_traffic_t *few, *many; /* their costs */
    const difference_t *times; /* of the slow one to the fast one */
    GString *partly; /* what the costs that are the reason leave over, or "" */
} contest_t;

/* Whether both costs tell the bytes of each rank, copy by copy, or neither
 * does, so that they are counted alike. */
static bool is_counted_alike(const contest_t *c)
{
    return !isfinite(c->few->most) == !isfinite(c->many->most);
}

static char *ratio_text(const difference_t *j)
{
    return j->most - j->least < 0.01
               ? g_strdup_printf("%.2f", j->most)
               : g_strdup_printf("%.2f to %.2f", j->least, j->most);
}

/* Notes what costs that are a reason explain, if that is less than half of the
 * difference. */
static void note_partly(contest_t *c, double few, double many)
{
    char *measured;

    if (c->many->bound || !(many / few - 1 < (c->times->most - 1) / 2))
        return;
    measured = ratio_text(c->times);
    g_string_printf(c->partly,
                    "; that explains only a part of the difference: %.2f times "
                    "as fast is expected from it, %s was measured",
                    many / few, measured);
    g_free(measured);
}

static char *explain_latency(contest_t *c)
{
    const double few = c->few->steps, many = c->many->steps;

    if (few < many) {
        note_partly(c, few, many);
        return g_strdup_printf(
            "time is latency there, and it takes %g step%s, %s %s%g%s", few,
            few == 1 ? "" : "s", name_at(c->slow),
            c->many->bound ? "at least " : "", many, c->partly->str);
    }
    if (c->many->bound)
        return g_strdup_printf("time is latency there, and the model has only "
                               "lower bounds for %s",
                               name_at(c->slow));
    return g_strdup_printf("time is latency there, and the model gives no "
                           "reason, it has %g steps, no fewer than for %s",
                           few, name_at(c->slow));
}

/* Bytes as a multiple of the row's, as "1.5 n". */
static char *multiple(const perf_entry_t *entry, double bytes, bool bound)
{
    return g_strdup_printf("%s%.3g n", bound ? "at least " : "",
                           bytes / (double)entry->row.bytes);
}

static char *explain_pair(contest_t *c, const char *what, double few,
                          double many, const char *why)
{
    char *less = multiple(c->fast, few, c->few->bound);
    char *more = multiple(c->slow, many, c->many->bound);
    char *text = g_strdup_printf("%s %s of the n bytes, with %s %s%s", what,
                                 less, name_at(c->slow), more, why);

    note_partly(c, few, many);
    g_free(less);
    g_free(more);
    return text;
}

/* Whether ranks have to wait for a root, because some rank has clearly more
 * bytes through memory than others. */
static bool has_busy_root(const contest_t *c)
{
    return perf_flags(c->slow->row.operation) & PERF_ROOTED &&
           c->many->most > EQUAL * c->many->memory;
}

/* The reason in the bytes through memory, if those of each rank are known;
 * NULL: there is none. */
static char *explain_memory(contest_t *c, bool crowded)
{
    if (crowded && c->many->memory > EQUAL * c->few->memory)
        return explain_pair(c,
                            "ranks share processors, and a rank on average "
                            "reads and writes",
                            c->few->memory, c->many->memory, "");
    if (!crowded && c->many->most > EQUAL * c->few->most)
        return explain_pair(
            c, "the busiest rank of each call reads and writes, in all,",
            c->few->most, c->many->most,
            has_busy_root(c) ? ": the others wait for its root" : "");
    return NULL;
}

/* The reason in the bytes of messages; NULL: there is none. */
static char *explain_messages(contest_t *c)
{
    const perf_operation_t *fast = c->fast->row.operation;
    const perf_operation_t *slow = c->slow->row.operation;
    const bool longer = perf_parts(slow) && !perf_parts(fast);
    const bool rooted =
        perf_flags(slow) & PERF_ROOTED && !(perf_flags(fast) & PERF_ROOTED);
    const double wire =
        c->few->busiest > 0 ? c->many->busiest / c->few->busiest : 0;
    const double memory =
        c->few->memory > 0 ? c->many->memory / c->few->memory : 0;

    if (wire > EQUAL && wire >= memory)
        return explain_pair(c, "its busiest rank sends or receives",
                            c->few->busiest, c->many->busiest,
                            rooted ? ": all of it passes the root's link" : "");
    /* a lower bound holds for each way to count */
    if (memory > EQUAL && (is_counted_alike(c) || c->many->bound))
        return explain_pair(c, "a rank reads and writes", c->few->memory,
                            c->many->memory,
                            longer ? ": what the first call stores, the second "
                                     "one reads again"
                                   : "");
    return NULL;
}

/* Whether most of the difference is the time of steps that the winner has not,
 * if each takes as long as one of its smallest call. */
static bool steps_matter(const series_t *s, guint index, size_t winner,
                         size_t loser)
{
    const perf_entry_t *small = &at(s, s->first)->entries[winner];
    const perf_entry_t *entries = at(s, index)->entries;
    const double steps = small->costs[s->place].steps;
    const double more = entries[loser].costs[s->place].steps -
                        entries[winner].costs[s->place].steps;

    return has_base(s, winner) && !small->costs[s->place].bound && steps > 0 &&
           more * time_of(s, s->first, winner) / steps >=
               (time_of(s, index, loser) - time_of(s, index, winner)) / 2;
}

/* The steps of both, as "1 step, reduce+broadcast 2"; g_free(). */
static char *steps_text(const contest_t *c)
{
    return g_strdup_printf("%g step%s, %s %s%g", c->few->steps,
                           c->few->steps == 1 ? "" : "s", name_at(c->slow),
                           c->many->bound ? "at least " : "", c->many->steps);
}

/* Whether the bytes of each rank are known of both. */
static bool is_known(const contest_t *c)
{
    return isfinite(c->few->most) && isfinite(c->many->most);
}

/* Whether the bytes that were compared are the same, within 5%. */
static bool has_same_bytes(const contest_t *c, bool crowded)
{
    const bool most = !crowded && is_known(c);
    const double few = most ? c->few->most : c->few->memory;
    const double many = most ? c->many->most : c->many->memory;

    return MAX(few, many) <= EQUAL * MIN(few, many);
}

/* Says which bytes were compared, and are no fewer: other columns of the
 * table may be lower. */
static const char *no_fewer(const contest_t *c, bool crowded)
{
    if (!is_known(c))
        return "its busiest rank sends or receives, and a rank reads and "
               "writes, no fewer bytes, within 5%";
    return crowded ? "ranks share processors, and a rank on average reads and "
                     "writes no fewer bytes, within 5%"
                   : "the busiest rank of each call reads and writes no fewer "
                     "bytes, within 5%";
}

/* Returns why there is a difference for which the bytes give no reason. */
static char *explain_otherwise(const contest_t *c, const char *steps,
                               bool by_steps, bool crowded)
{
    if (by_steps && (c->many->bound || !is_counted_alike(c)))
        return g_strdup_printf("it takes %s, which is most of the difference",
                               steps);
    if (c->many->bound)
        return g_strdup_printf("the model has only lower bounds for %s",
                               name_at(c->slow));
    if (!is_counted_alike(c))
        return g_strdup_printf(
            "the model gives no reason, as the costs are "
            "counted differently, copy by copy only for %s",
            name_at(isfinite(c->few->most) ? c->fast : c->slow));
    if (by_steps)
        return g_strdup_printf("%s, by the model, but %s takes %s, which is "
                               "most of the difference",
                               no_fewer(c, crowded), name_at(c->fast), steps);
    if (perf_parts(c->slow->row.operation) &&
        !perf_parts(c->fast->row.operation) && has_same_bytes(c, crowded))
        return g_strdup_printf("by the model %s reads and writes as many bytes "
                               "in both, but the two calls of %s do not "
                               "overlap",
                               crowded || !is_known(c)
                                   ? "a rank on average"
                                   : "the busiest rank of each call",
                               name_at(c->slow));
    return g_strdup_printf("the model gives no reason: %s, than for %s",
                           no_fewer(c, crowded), name_at(c->slow));
}

/* The reason in the bytes at sizes from to to, or in steps after all. */
static char *explain_bytes(const series_t *s, guint from, guint to,
                           size_t winner, size_t loser, contest_t *c)
{
    const bool crowded = at(s, from)->crowded;
    char *bytes =
        is_known(c) ? explain_memory(c, crowded) : explain_messages(c);
    char *steps = steps_text(c), *text;
    bool by_steps = true;

    for (guint i = from; i <= to; i++)
        by_steps = by_steps && steps_matter(s, i, winner, loser);
    if (!bytes)
        text = explain_otherwise(c, steps, by_steps, crowded);
    else if (c->partly->len && by_steps)
        text = g_strdup_printf("%s; it takes %s, which is most of the "
                               "difference",
                               bytes, steps);
    else
        text = g_strdup_printf("%s%s", bytes, c->partly->str);
    g_free(bytes);
    g_free(steps);
    return text;
}

static kind_t kind_of(const series_t *s, guint index, size_t alternative)
{
    if (!at(s, index)->entries->row.bytes)
        return LATENCY_TIME;
    if (time_of(s, index, alternative) >=
        LATENCY * time_of(s, s->first, alternative))
        return BYTES_TIME;
    return has_base(s, alternative) ? LATENCY_TIME : UNKNOWN;
}

/* The part of the time that explains a difference: the bytes, if they take most
 * of either's. */
static kind_t kind_of_both(const series_t *s, guint index, size_t winner,
                           size_t loser)
{
    return kind_of(s, index, loser) == BYTES_TIME ? BYTES_TIME
                                                  : kind_of(s, index, winner);
}

/* Returns the reason at sizes from to to, whose times differ so much;
 * g_free(). */
static char *explain(const series_t *s, guint from, guint to, size_t winner,
                     size_t loser, const difference_t *times)
{
    const perf_entry_t *entries = at(s, from)->entries;
    contest_t c = {.fast = &entries[winner],
                   .slow = &entries[loser],
                   .few = &entries[winner].costs[s->place],
                   .many = &entries[loser].costs[s->place],
                   .times = times};
    char *text;

    if (c.few->bound)
        return g_strdup_printf("the model has only lower bounds for %s (%s), "
                               "which do not prove why",
                               name_at(c.fast), c.fast->row.algorithm);
    c.partly = g_string_new(NULL);
    switch (kind_of_both(s, from, winner, loser)) {
    case LATENCY_TIME:
        text = explain_latency(&c);
        break;
    case BYTES_TIME:
        text = explain_bytes(s, from, to, winner, loser, &c);
        break;
    default:
        text = g_strdup(at(s, s->first)->entries->row.bytes <= SMALL
                            ? "whether time is latency there is not known, as "
                              "the times of the smallest size spread too much"
                            : "whether time is latency there is not known, as "
                              "no size up to 1 KiB was measured");
    }
    g_string_free(c.partly, TRUE);
    return text;
}

/* Compares time a with time b. */
static difference_t compare_times(const perf_times_t *a, const perf_times_t *b)
{
    const double ratio = a->p50 / b->p50;
    difference_t j = {.least = ratio,
                      .most = ratio,
                      .spread = MAX(a->spread, b->spread),
                      .limit = MAX(a->spread + b->spread, 100 * (EQUAL - 1))};

    if (MIN(a->batches, b->batches) < BATCHES)
        j.outcome = TOO_FEW;
    else if (100 * (MAX(ratio, 1 / ratio) - 1) <= j.limit)
        j.outcome = SAME;
    else
        j.outcome = ratio > 1 ? MORE : LESS;
    return j;
}

static void difference_add(difference_t *sum, const difference_t *more)
{
    sum->least = MIN(sum->least, more->least);
    sum->most = MAX(sum->most, more->most);
    sum->spread = MAX(sum->spread, more->spread);
    sum->limit = MAX(sum->limit, more->limit);
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

/* Returns the sentence on two things that were not told apart, "a and b";
 * g_free(). */
static char *undecided(const difference_t *j, const char *things)
{
    if (j->outcome == TOO_FEW)
        return g_strdup_printf("%s were measured in too few batches to compare "
                               "them: raise -i, or leave it out",
                               things);
    if (j->limit > 100 * (EQUAL - 1))
        return g_strdup_printf("no difference between %s beyond the spread of "
                               "their times, together %.0f%%",
                               things, j->limit);
    return g_strdup_printf("%s take the same time, within 5%%", things);
}

/* Adds a finding; takes text, which gets a doubt if it tells a difference of
 * noisy times. */
static void finding_add(GPtrArray *findings, perf_finding_t *f,
                        const difference_t *j, char *text)
{
    char *range = range_text(f->from, f->to);
    char *doubt = j->outcome >= MORE && j->spread > NOISY
                      ? g_strdup_printf(" (times spread by %.0f%%)", j->spread)
                      : g_strdup("");

    f->least = j->least;
    f->most = j->most;
    f->sentence = g_strdup_printf("%s: %s%s", range, text, doubt);
    g_ptr_array_add(findings, f);
    g_free(doubt);
    g_free(range);
    g_free(text);
}

/* Compares the winner of a range with another alternative. */
static void winner_add(const series_t *s, guint from, guint to, size_t winner,
                       size_t loser, const difference_t *j, GPtrArray *findings)
{
    perf_finding_t *f = finding_new(s, from, to);
    char *text;

    f->winner = at(s, from)->entries[winner].row.operation;
    f->loser = at(s, from)->entries[loser].row.operation;
    if (j->outcome < MORE) {
        char *both =
            g_strdup_printf("%s and %s", f->winner->name, f->loser->name);
        text = undecided(j, both);
        g_free(both);
    } else {
        char *why = explain(s, from, to, winner, loser, j);
        char *ratio = ratio_text(j);
        text = g_strdup_printf("%s is %s times as fast as %s: %s",
                               f->winner->name, ratio, f->loser->name, why);
        g_free(ratio);
        g_free(why);
    }
    finding_add(findings, f, j, text);
}

/* Compares times a with times b until the outcome changes, or the kind of time
 * of a; returns the index after the last one. */
static guint difference_find(const series_t *s, guint from, guint to,
                             figure_at_t a, figure_at_t b,
                             difference_t *ret_difference)
{
    guint end;

    for (end = from; end <= to; end++) {
        const perf_entry_t *entries = at(s, end)->entries;
        const difference_t j =
            compare_times(&entries[a.alternative].row.figures[a.place].times,
                          &entries[b.alternative].row.figures[b.place].times);

        if (end == from)
            *ret_difference = j;
        else if (j.outcome != ret_difference->outcome ||
                 (a.alternative != b.alternative &&
                  kind_of(s, end, a.alternative) !=
                      kind_of(s, from, a.alternative)))
            break;
        difference_add(ret_difference, &j);
    }
    return end;
}

/* Adds the findings of a range on its winner and another alternative, one for
 * each outcome. */
static void range_find(const series_t *s, guint from, guint to, size_t winner,
                       size_t loser, GPtrArray *findings)
{
    for (guint begin = from, end; begin <= to; begin = end) {
        difference_t j;

        end = difference_find(s, begin, to, (figure_at_t){loser, s->place},
                              (figure_at_t){winner, s->place}, &j);
        winner_add(s, begin, end - 1, winner, loser, &j, findings);
    }
}

/* Whether algorithms are the same, and what is known of their costs. */
static bool has_same_costs(const perf_comparison_t *a,
                           const perf_comparison_t *b, perf_place_t place)
{
    for (size_t i = 0; i < a->count; i++)
        if (g_strcmp0(a->entries[i].row.algorithm,
                      b->entries[i].row.algorithm) != 0 ||
            a->entries[i].costs[place].bound !=
                b->entries[i].costs[place].bound)
            return false;
    return true;
}

static void series_find(const series_t *s, GPtrArray *findings)
{
    const size_t count = at(s, s->first)->count;

    for (guint from = s->first, to; from <= s->last; from = to + 1) {
        const size_t winner = best_of(s, from);
        const kind_t kind = kind_of(s, from, winner);
        to = from;
        while (to < s->last && best_of(s, to + 1) == winner &&
               kind_of(s, to + 1, winner) == kind &&
               has_same_costs(at(s, from), at(s, to + 1), s->place))
            to++;
        for (size_t i = 0; i < count; i++)
            if (i != winner)
                range_find(s, from, to, winner, i, findings);
    }
}

static void places_add(const series_t *s, guint from, guint to,
                       size_t alternative, const difference_t *j,
                       GPtrArray *findings)
{
    perf_finding_t *f = finding_new(s, from, to);
    char *text;

    f->place = PERF_IN_PLACE;
    f->winner = at(s, from)->entries[alternative].row.operation;
    if (j->outcome < MORE) {
        char *both =
            g_strdup_printf("%s in place and out of place", f->winner->name);
        text = undecided(j, both);
        g_free(both);
    } else {
        char *ratio = ratio_text(j);
        text = g_strdup_printf("out of place %s takes %s of its time in place",
                               f->winner->name, ratio);
        g_free(ratio);
    }
    finding_add(findings, f, j, text);
}

/* Adds how the places of an alternative compare. */
static void places_find(const series_t *s, size_t alternative,
                        GPtrArray *findings)
{
    for (guint from = s->first, end; from <= s->last; from = end) {
        difference_t j;

        end = difference_find(s, from, s->last,
                              (figure_at_t){alternative, PERF_OUT_OF_PLACE},
                              (figure_at_t){alternative, PERF_IN_PLACE}, &j);
        places_add(s, from, end - 1, alternative, &j, findings);
    }
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
