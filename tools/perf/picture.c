/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures of reports, see picture.h. What distinguishes lines is in their
 * names; what all of them have in common is in the title. */
#include "config.h"

#include "tools/common/canvas.h"
#include "tools/common/json.h"
#include "tools/common/plot.h"
#include "tools/perf/picture.h"

#include "tools/common/tool.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

enum { TIME, RATE };

static const char *const places[] = {"out_of_place", "in_place"};

/* Members of a row that distinguish lines, if they differ between rows. */
static const char *const traits[] = {"operation", "type", "redop", "root"};
#define TRAITS G_N_ELEMENTS(traits)

typedef struct {
    tool_plot_t *plot;
    char *first[TRAITS]; /* that a row has; NULL: no row has one */
    bool varies[TRAITS];
    bool several_ranks, both_places;
    GHashTable *colours; /* by name without place: number + 1 */
    GHashTable *lines; /* by name: number + 1 */
} picture_t;

static guint ranks_of(JsonNode *report)
{
    JsonArray *ranks = tool_json_get_array(report, "ranks");

    return ranks ? json_array_get_length(ranks) : 0;
}

/* Returns a trait of a row as a text, or NULL if it has none; g_free(). */
static char *trait_text(JsonNode *row, size_t trait)
{
    const char *text = tool_json_get_text(row, traits[trait]);
    const double root = tool_json_get_number(row, traits[trait]);

    if (text)
        return strcmp(text, "none") == 0 ? NULL : g_strdup(text);
    return root < 0 ? NULL : g_strdup_printf("root %g", root);
}

static bool has_place(JsonNode *row, size_t place)
{
    JsonNode *figure = tool_json_get(row, places[place]);

    return figure && JSON_NODE_HOLDS_OBJECT(figure);
}

/* Notes what differs between this row and those before. */
static void row_compare(picture_t *p, JsonNode *row, guint ranks)
{
    (void)ranks;
    for (size_t i = 0; i < TRAITS; i++) {
        char *text = trait_text(row, i);

        if (text && !p->first[i])
            p->first[i] = g_strdup(text);
        p->varies[i] = p->varies[i] || (text && strcmp(text, p->first[i]) != 0);
        g_free(text);
    }
    p->both_places = p->both_places || (has_place(row, 0) && has_place(row, 1));
}

/* Returns the name of the line of a row, without its place; g_free(). */
static char *line_name(const picture_t *p, JsonNode *row, guint ranks)
{
    GString *name = g_string_new(NULL);

    for (size_t i = 0; i < TRAITS; i++) {
        char *text = trait_text(row, i);

        if (i == 0 || (p->varies[i] && text))
            g_string_append_printf(name, "%s%s", i ? ", " : "", text);
        g_free(text);
    }
    if (p->several_ranks)
        g_string_append_printf(name, ", %u ranks", ranks);
    return g_string_free(name, false);
}

/* Returns the line of that name in that place, which is added if it is new. */
static guint find_line(picture_t *p, const char *name, size_t place)
{
    char *full = g_strdup_printf("%s%s", name,
                                 place && p->both_places ? ", in place" : "");
    guint line = GPOINTER_TO_UINT(g_hash_table_lookup(p->lines, full));
    guint colour = GPOINTER_TO_UINT(g_hash_table_lookup(p->colours, name));

    if (!colour) {
        colour = g_hash_table_size(p->colours) + 1;
        g_hash_table_insert(p->colours, g_strdup(name),
                            GUINT_TO_POINTER(colour));
    }
    if (!line) {
        line = 1 + tool_plot_add_line(p->plot, full, colour - 1,
                                      place && p->both_places);
        g_hash_table_insert(p->lines, g_strdup(full), GUINT_TO_POINTER(line));
    }
    g_free(full);
    return line - 1;
}

static void row_add(picture_t *p, JsonNode *row, guint ranks)
{
    const double bytes = tool_json_get_number(row, "bytes");
    char *name = line_name(p, row, ranks);

    for (size_t place = 0; place < G_N_ELEMENTS(places); place++) {
        JsonNode *figure = tool_json_get(row, places[place]);

        if (!has_place(row, place) || bytes <= 0)
            continue;
        guint line = find_line(p, name, place);
        tool_plot_add_point(p->plot, TIME, line, bytes,
                            tool_json_get_number(figure, "time_us"));
        tool_plot_add_point(p->plot, RATE, line, bytes,
                            tool_json_get_number(figure, "busbw_gbs"));
    }
    g_free(name);
}

/* Calls a function for each row of the reports. */
static void for_rows(picture_t *p, JsonNode *const *reports, size_t count,
                     void (*visit)(picture_t *p, JsonNode *row, guint ranks))
{
    for (size_t i = 0; i < count; i++) {
        JsonArray *rows = tool_json_get_array(reports[i], "rows");
        guint length = rows ? json_array_get_length(rows) : 0;

        for (guint k = 0; k < length; k++)
            visit(p, json_array_get_element(rows, k), ranks_of(reports[i]));
    }
}

/* Returns the title: operation, if there is one, and numbers of ranks. */
static char *title_new(const picture_t *p, JsonNode *const *reports,
                       size_t count)
{
    GString *title = g_string_new("dscomm perf");

    if (p->first[0] && !p->varies[0])
        g_string_append_printf(title, ": %s", p->first[0]);
    for (size_t i = 0; i < count; i++)
        g_string_append_printf(title, "%s%u",
                               i == 0           ? ", "
                               : i + 1 == count ? " and "
                                                : ", ",
                               ranks_of(reports[i]));
    g_string_append_printf(title, " rank%s",
                           count > 1 || ranks_of(*reports) != 1 ? "s" : "");
    return g_string_free(title, false);
}

static char *note_new(JsonNode *report)
{
    JsonArray *ranks = tool_json_get_array(report, "ranks");
    JsonNode *first = ranks && json_array_get_length(ranks)
                          ? json_array_get_element(ranks, 0)
                          : NULL;
    const char *host = first ? tool_json_get_text(first, "host") : NULL;
    const char *backend = tool_json_get_text(report, "backend");
    const char *processor = tool_json_get_text(report, "processor");
    const char *time = tool_json_get_text(report, "time");

    return g_strdup_printf("backend %s, %s%s%s, %s; median times",
                           backend ? backend : "?", host ? host : "?",
                           processor ? ", " : "", processor ? processor : "",
                           time ? time : "?");
}

/* Adds the warnings of a report, with its number of ranks if there are
 * several. */
static void warnings_add(picture_t *p, JsonNode *report)
{
    JsonArray *warnings = tool_json_get_array(report, "warnings");
    const guint count = warnings ? json_array_get_length(warnings) : 0;

    for (guint i = 0; i < count; i++) {
        const char *warning = json_array_get_string_element(warnings, i);
        char *text = p->several_ranks
                         ? g_strdup_printf("Warning, %u ranks: %s",
                                           ranks_of(report), warning)
                         : g_strdup_printf("Warning: %s", warning);

        tool_plot_add_remark(p->plot, text);
        g_free(text);
    }
}

static int picture_draw(const char *path, JsonNode *const *reports,
                        size_t count)
{
    picture_t p = {.several_ranks = count > 1};
    char *title, *note, *problem;

    for_rows(&p, reports, count, row_compare);
    title = title_new(&p, reports, count);
    note = note_new(*reports);
    p.plot = tool_plot_new(title, note);
    p.colours = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    p.lines = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    tool_plot_add_panel(p.plot, "Time of a call", TOOL_PLOT_TIME);
    tool_plot_add_panel(p.plot, "Bus bandwidth, in GB/s", TOOL_PLOT_RATE);
    for_rows(&p, reports, count, row_add);
    for (size_t i = 0; i < count; i++)
        warnings_add(&p, reports[i]);
    problem = tool_plot_save(p.plot, path);
    if (problem)
        tool_fail(0, "perf", "--plot %s", problem);
    g_hash_table_unref(p.colours);
    g_hash_table_unref(p.lines);
    tool_plot_free(p.plot);
    for (size_t i = 0; i < TRAITS; i++)
        g_free(p.first[i]);
    g_free(title);
    g_free(note);
    int status = problem ? TOOL_FAILED : TOOL_OK;
    g_free(problem);
    return status;
}

int perf_picture(const char *path, const char *const *reports, size_t count)
{
    JsonNode **nodes = g_new0(JsonNode *, count);
    int status = TOOL_OK;

    for (size_t i = 0; i < count; i++) {
        nodes[i] = json_from_string(reports[i], NULL);
        if (!nodes[i])
            status =
                tool_fail(TOOL_FAILED, "perf", "--plot %s: no report", path);
    }
    if (status == TOOL_OK)
        status = picture_draw(path, nodes, count);
    for (size_t i = 0; i < count; i++)
        g_clear_pointer(&nodes[i], json_node_unref);
    g_free(nodes);
    return status;
}

int perf_picture_check(const char *path)
{
    struct stat status;
    char *problem = NULL;

    /* A reader of a pipe would see its end. */
    if (tool_canvas_is_picture(path) && stat(path, &status) == 0 &&
        S_ISFIFO(status.st_mode))
        return TOOL_OK;
    tool_canvas_t *canvas = tool_canvas_new(path, 1, 1, &problem);

    tool_canvas_end(canvas, false);
    if (problem)
        tool_fail(0, "perf", "--plot %s", problem);
    g_free(problem);
    if (canvas)
        return TOOL_OK;
    return tool_canvas_is_picture(path) ? TOOL_FAILED : TOOL_USAGE;
}
