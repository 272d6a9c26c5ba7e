/* SPDX-License-Identifier: BSD-3-Clause */
/* Heat maps of pairs, see heat.h. */
#include "config.h"

#include "tools/topo/p2p/heat.h"

#include "tools/topo/grid.h"
#include "tools/topo/p2p/explain.h"
#include "tools/topo/p2p/write.h"

#include <string.h>

#define UNKNOWN 0xe4e4e4
#define WRAP 110 /* characters of a line */

static topo_grid_t *rates_grid(const topo_pairs_t *pairs, topo_mode_t mode)
{
    topo_grid_t *grid =
        topo_grid_new(g_strdup_printf("GB/s between %s, %s", pairs->what,
                                      topo_mode_words(mode)),
                      pairs->names, pairs->count);
    const topo_rates_t rates = topo_rates(pairs, mode);

    for (guint i = 0; i < pairs->count * pairs->count; i++) {
        const double rate =
            topo_pair_rate(pairs, i / pairs->count, i % pairs->count, mode);
        topo_cell_t *cell = &grid->cells[i];

        cell->below = g_strdup(pairs->pairs[i].path.word);
        cell->colour = UNKNOWN;
        if (rate <= 0)
            continue;
        cell->text = g_strdup_printf("%.3g", rate);
        cell->colour = topo_level_colour(topo_rates_level(&rates, rate));
    }
    return grid;
}

static topo_grid_t *latencies_grid(const topo_pairs_t *pairs)
{
    topo_grid_t *grid =
        topo_grid_new(g_strdup_printf("Latency between %s, us", pairs->what),
                      pairs->names, pairs->count);
    double low = 0;

    for (guint i = 0; i < pairs->count * pairs->count; i++) {
        const double latency = pairs->pairs[i].latency;

        low = latency > 0 && (low <= 0 || latency < low) ? latency : low;
    }
    for (guint i = 0; i < pairs->count * pairs->count; i++) {
        const double latency = pairs->pairs[i].latency;
        topo_cell_t *cell = &grid->cells[i];

        cell->below = g_strdup(pairs->pairs[i].path.word);
        cell->colour = UNKNOWN;
        if (latency <= 0)
            continue;
        cell->text = g_strdup_printf("%.3g", latency);
        cell->colour = topo_level_colour(low / latency);
    }
    return grid;
}

/* Adds a sentence in lines of at most WRAP characters. */
static void add_wrapped(GPtrArray *lines, const char *sentence)
{
    char **words = g_strsplit(sentence, " ", -1);
    GString *line = g_string_new(NULL);

    for (guint i = 0; words[i]; i++) {
        if (line->len && line->len + strlen(words[i]) >= WRAP) {
            g_ptr_array_add(lines, g_string_free(line, FALSE));
            line = g_string_new("   ");
        }
        g_string_append_printf(line, "%s%s", line->len ? " " : "", words[i]);
    }
    g_ptr_array_add(lines, g_string_free(line, FALSE));
    g_strfreev(words);
}

static void add_explanation(GPtrArray *lines, const topo_pairs_t *pairs)
{
    topo_explanation_t *explanation = topo_explain(pairs);
    char *warning = topo_pairs_warning(pairs);
    char *head = g_strdup_printf("%s on %s, %s: %s", pairs->what, pairs->host,
                                 pairs->time, pairs->how);

    *head = g_ascii_toupper(*head);
    add_wrapped(lines, head);
    g_free(head);
    for (guint i = 0; i < explanation->classes->len; i++)
        add_wrapped(
            lines,
            g_array_index(explanation->classes, topo_class_t, i).sentence);
    for (guint i = 0; i < explanation->outliers->len; i++)
        add_wrapped(
            lines,
            g_array_index(explanation->outliers, topo_outlier_t, i).sentence);
    topo_explanation_free(explanation);
    if (warning) {
        char *line = g_strdup_printf("Warning: %s", warning);

        add_wrapped(lines, line);
        g_free(line);
    }
    g_free(warning);
}

static void grid_clear(void *grid)
{
    topo_grid_free(grid);
}

char *topo_heat(const GPtrArray *list, const char *path)
{
    GPtrArray *grids = g_ptr_array_new_with_free_func(grid_clear);
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    char *problem;

    for (guint i = 0; i < list->len; i++) {
        const topo_pairs_t *pairs = g_ptr_array_index(list, i);

        for (topo_mode_t mode = TOPO_ALONE; mode < TOPO_MODES; mode++)
            if (topo_pairs_have(pairs, mode))
                g_ptr_array_add(grids, rates_grid(pairs, mode));
        g_ptr_array_add(grids, latencies_grid(pairs));
        add_explanation(lines, pairs);
    }
    problem = topo_grids_save(path, grids, lines);
    g_ptr_array_unref(grids);
    g_ptr_array_unref(lines);
    return problem;
}
