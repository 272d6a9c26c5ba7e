/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of pairs, written, see write.h. */
#include "config.h"

#include "tools/topo/p2p/write.h"

#include "tools/common/json.h"
#include "tools/common/tool.h"
#include "tools/topo/p2p/explain.h"

#include <math.h>
#include <string.h>

/* The least ratio of rates that the colours tell apart from end to end. */
#define SCALE 2.0

/* Slowest to fastest, of a terminal's 256 colours: background of a cell. */
static const int colours[] = {160, 166, 172, 142, 106, 70, 28};

topo_rates_t topo_rates(const topo_pairs_t *pairs, topo_mode_t mode)
{
    topo_rates_t rates = {0, 0};

    for (guint i = 0; i < pairs->count * pairs->count; i++) {
        const double rate =
            topo_pair_rate(pairs, i / pairs->count, i % pairs->count, mode);

        if (rate <= 0)
            continue;
        rates.low = rates.low > 0 ? MIN(rates.low, rate) : rate;
        rates.high = MAX(rates.high, rate);
    }
    return rates;
}

double topo_rates_level(const topo_rates_t *rates, double rate)
{
    return rates->high > rates->low
               ? 1 - log(rates->high / rate) /
                         log(MAX(rates->high / rates->low, SCALE))
               : 1;
}

static guint name_width(const topo_pairs_t *pairs)
{
    guint width = 6;

    for (guint i = 0; i < pairs->count; i++)
        width = MAX(width, (guint)strlen(pairs->names[i]));
    return width;
}

static void append_head(const topo_pairs_t *pairs, const char *what,
                        GString *text)
{
    const guint width = name_width(pairs);

    g_string_append_printf(text, "\n%s\n%-*s", what, (int)width, "");
    for (guint i = 0; i < pairs->count; i++)
        g_string_append_printf(text, " %12s", pairs->names[i]);
    g_string_append_c(text, '\n');
}

/* Appends a rate and the path's word; rates: for its colour, or NULL. */
static void append_rate(const topo_pairs_t *pairs, guint from, guint to,
                        topo_mode_t mode, const topo_rates_t *rates,
                        GString *text)
{
    const double rate = topo_pair_rate(pairs, from, to, mode);
    const int last = (int)G_N_ELEMENTS(colours) - 1;
    char *number = rate <= 0 ? g_strdup("-")
                   : rate < 1
                       ? g_strdup_printf("%.2g", rate)
                       : g_strdup_printf("%.*f", rate < 10 ? 2 : 1, rate);

    g_string_append_c(text, ' ');
    if (rates && rate > 0)
        g_string_append_printf(
            text, "\033[97;48;5;%dm",
            colours[(int)(topo_rates_level(rates, rate) * last + 0.5)]);
    g_string_append_printf(text, "%7s %-4s", number,
                           topo_pair(pairs, from, to)->path.word);
    if (rates && rate > 0)
        g_string_append(text, "\033[0m");
    g_free(number);
}

static void append_rates(const topo_pairs_t *pairs, topo_mode_t mode,
                         bool coloured, GString *text)
{
    const topo_rates_t rates = topo_rates(pairs, mode);
    const guint width = name_width(pairs);
    char *what = g_strdup_printf("GB/s, %s (from a row's end to a column's)",
                                 topo_mode_words(mode));

    append_head(pairs, what, text);
    for (guint from = 0; from < pairs->count; from++) {
        g_string_append_printf(text, "%-*s", (int)width, pairs->names[from]);
        for (guint to = 0; to < pairs->count; to++)
            append_rate(pairs, from, to, mode, coloured ? &rates : NULL, text);
        g_string_append_c(text, '\n');
    }
    g_free(what);
}

static void append_latencies(const topo_pairs_t *pairs, GString *text)
{
    const guint width = name_width(pairs);

    append_head(pairs, "latency, us, and how far it spreads", text);
    for (guint from = 0; from < pairs->count; from++) {
        g_string_append_printf(text, "%-*s", (int)width, pairs->names[from]);
        for (guint to = 0; to < pairs->count; to++) {
            const topo_pair_t *pair = topo_pair(pairs, from, to);

            if (pair->latency > 0)
                g_string_append_printf(
                    text, " %7.*f %3.0f%%", pair->latency < 1000 ? 3 : 0,
                    pair->latency, MIN(100 * pair->latency_spread, 999));
            else
                g_string_append_printf(text, " %12s", "-");
        }
        g_string_append_c(text, '\n');
    }
}

static void append_explanation(const topo_pairs_t *pairs, GString *text)
{
    topo_explanation_t *explanation = topo_explain(pairs);

    g_string_append(text, "\nWhy they differ\n");
    for (guint i = 0; i < explanation->classes->len; i++)
        g_string_append_printf(
            text, "%s\n",
            g_array_index(explanation->classes, topo_class_t, i).sentence);
    for (guint i = 0; i < explanation->outliers->len; i++)
        g_string_append_printf(
            text, "%s\n",
            g_array_index(explanation->outliers, topo_outlier_t, i).sentence);
    topo_explanation_free(explanation);
}

static void append_warning(const topo_pairs_t *pairs, GString *text)
{
    char *warning = topo_pairs_warning(pairs);

    if (warning)
        g_string_append_printf(text, "Warning: %s\n", warning);
    g_free(warning);
}

void topo_pairs_text(const GPtrArray *list, bool coloured, GString *text)
{
    for (guint i = 0; i < list->len; i++) {
        const topo_pairs_t *pairs = g_ptr_array_index(list, i);

        g_string_append_printf(
            text,
            "%sCopies between %u %s: %u tensors of %" G_GSIZE_FORMAT
            " float32, together %.4g MB\n%s\non %s, %s\n",
            i ? "\n" : "", pairs->count, pairs->what, pairs->copies.tensors,
            pairs->copies.elements,
            (double)topo_copies_bytes(&pairs->copies) / 1e6, pairs->how,
            pairs->host, pairs->time);
        for (topo_mode_t mode = TOPO_ALONE; mode < TOPO_MODES; mode++)
            if (topo_pairs_have(pairs, mode))
                append_rates(pairs, mode, coloured, text);
        append_latencies(pairs, text);
        append_explanation(pairs, text);
        append_warning(pairs, text);
    }
}

static void add_pair(JsonBuilder *builder, const topo_pairs_t *pairs,
                     guint from, guint to)
{
    const topo_pair_t *pair = topo_pair(pairs, from, to);

    tool_json_object(builder, NULL);
    tool_json_text(builder, "from", pairs->names[from]);
    tool_json_text(builder, "to", pairs->names[to]);
    tool_json_text(builder, "path", pair->path.word);
    if (pair->path.limit > 0)
        tool_json_real(builder, "limit_gb_s", "%.3f", pair->path.limit / 1e9);
    if (pair->latency > 0) {
        tool_json_real(builder, "latency_us", "%.3f", pair->latency);
        tool_json_real(builder, "latency_spread_percent", "%.1f",
                       100 * pair->latency_spread);
    }
    for (topo_mode_t mode = TOPO_ALONE; mode < TOPO_MODES; mode++) {
        if (pair->times[mode] <= 0)
            continue;
        tool_json_object(builder, topo_mode_name(mode));
        tool_json_real(builder, "us", "%.3f", pair->times[mode]);
        tool_json_real(builder, "spread_percent", "%.1f",
                       100 * pair->spreads[mode]);
        tool_json_real(builder, "gb_s", "%.3f",
                       topo_pair_rate(pairs, from, to, mode));
        json_builder_end_object(builder);
    }
    json_builder_end_object(builder);
}

static void add_explanation(JsonBuilder *builder, const topo_pairs_t *pairs)
{
    topo_explanation_t *explanation = topo_explain(pairs);

    tool_json_array(builder, "classes");
    for (guint i = 0; i < explanation->classes->len; i++) {
        const topo_class_t *class =
            &g_array_index(explanation->classes, topo_class_t, i);

        tool_json_object(builder, NULL);
        tool_json_text(builder, "path", class->path->word);
        tool_json_number(builder, "pairs", class->count);
        tool_json_real(builder, "us", "%.3f", class->time);
        tool_json_real(builder, "ratio", "%.3f", class->ratio);
        tool_json_text(builder, "sentence", class->sentence);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
    tool_json_array(builder, "outliers");
    for (guint i = 0; i < explanation->outliers->len; i++) {
        const topo_outlier_t *outlier =
            &g_array_index(explanation->outliers, topo_outlier_t, i);

        tool_json_object(builder, NULL);
        tool_json_text(builder, "from", pairs->names[outlier->from]);
        tool_json_text(builder, "to", pairs->names[outlier->to]);
        tool_json_real(builder, "ratio", "%.3f", outlier->ratio);
        tool_json_text(builder, "sentence", outlier->sentence);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
    topo_explanation_free(explanation);
}

static void add_warnings(JsonBuilder *builder, const topo_pairs_t *pairs)
{
    char *warnings[] = {topo_pairs_warning(pairs), NULL};

    tool_json_texts(builder, "warnings", warnings);
    g_free(warnings[0]);
}

void topo_pairs_json(const GPtrArray *list, GString *text)
{
    JsonBuilder *builder = json_builder_new();

    tool_json_object(builder, NULL);
    tool_json_array(builder, "copies");
    for (guint i = 0; i < list->len; i++) {
        const topo_pairs_t *pairs = g_ptr_array_index(list, i);

        tool_json_object(builder, NULL);
        tool_json_text(builder, "between", pairs->what);
        tool_json_text(builder, "how", pairs->how);
        tool_json_text(builder, "host", pairs->host);
        tool_json_text(builder, "time", pairs->time);
        tool_json_number(builder, "tensors", pairs->copies.tensors);
        tool_json_number(builder, "elements", (gint64)pairs->copies.elements);
        tool_json_number(builder, "bytes",
                         (gint64)topo_copies_bytes(&pairs->copies));
        tool_json_array(builder, "pairs");
        for (guint k = 0; k < pairs->count * pairs->count; k++)
            add_pair(builder, pairs, k / pairs->count, k % pairs->count);
        json_builder_end_array(builder);
        add_explanation(builder, pairs);
        add_warnings(builder, pairs);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
    json_builder_end_object(builder);
    tool_json_end(builder, true, text);
}

static void add_name(JsonBuilder *builder, const char *what, gint64 process,
                     gint64 thread, const char *name)
{
    tool_json_object(builder, NULL);
    tool_json_text(builder, "name", what);
    tool_json_text(builder, "ph", "M");
    tool_json_number(builder, "pid", process);
    tool_json_number(builder, "tid", thread);
    tool_json_object(builder, "args");
    tool_json_text(builder, "name", name);
    json_builder_end_object(builder);
    json_builder_end_object(builder);
}

/* Adds the names of ends, as processes from first on and as their threads. */
static void add_names(JsonBuilder *builder, const topo_pairs_t *pairs,
                      gint64 first)
{
    for (guint i = 0; i < pairs->count; i++) {
        add_name(builder, "process_name", first + i, 0, pairs->names[i]);
        for (guint k = 0; k < pairs->count; k++) {
            char *name = g_strdup_printf("to %s", pairs->names[k]);

            add_name(builder, "thread_name", first + i, k, name);
            g_free(name);
        }
    }
}

static void add_slice(JsonBuilder *builder, const topo_pairs_t *pairs,
                      const topo_slice_t *slice, gint64 first)
{
    const gsize bytes = topo_copies_bytes(&pairs->copies);

    tool_json_object(builder, NULL);
    tool_json_text(builder, "name", topo_mode_name(slice->mode));
    tool_json_text(builder, "cat", "copy");
    tool_json_text(builder, "ph", "X");
    tool_json_number(builder, "pid", first + slice->from);
    tool_json_number(builder, "tid", slice->to);
    tool_json_real(builder, "ts", "%.3f", slice->start);
    tool_json_real(builder, "dur", "%.3f", slice->length);
    tool_json_object(builder, "args");
    tool_json_number(builder, "bytes", (gint64)bytes);
    tool_json_real(builder, "gb_s", "%.3f",
                   (double)bytes / slice->length / 1e3);
    json_builder_end_object(builder);
    json_builder_end_object(builder);
}

void topo_pairs_trace(const GPtrArray *list, GString *text)
{
    JsonBuilder *builder = json_builder_new();
    gint64 first = 0;

    tool_json_object(builder, NULL);
    tool_json_array(builder, "traceEvents");
    for (guint i = 0; i < list->len; i++) {
        const topo_pairs_t *pairs = g_ptr_array_index(list, i);

        add_names(builder, pairs, first);
        for (guint k = 0; k < pairs->slices->len; k++)
            add_slice(builder, pairs,
                      &g_array_index(pairs->slices, topo_slice_t, k), first);
        first += pairs->count;
    }
    json_builder_end_array(builder);
    json_builder_end_object(builder);
    tool_json_end(builder, false, text);
}
