/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a baseline, see baseline.h. */
#include "config.h"

#include "tools/common/json.h"
#include "tools/perf/baseline.h"
#include "tools/perf/operations.h"
#include "tools/perf/sweep.h"

#include <stdbool.h>

struct perf_baseline {
    JsonParser *parser;
    JsonNode *root; /* parser's */
    JsonArray *rows, *ranks; /* root's */
};

static bool text_is(JsonNode *node, const char *name, const char *text)
{
    return g_strcmp0(tool_json_get_text(node, name), text) == 0;
}

/* Sets the root to the sweep's run with so many ranks. Returns NULL, or that
 * there is none, g_free(). */
static char *sweep_select(perf_baseline_t *b, int ranks)
{
    JsonArray *reports = tool_json_get_array(b->root, "reports");
    const guint count = reports ? json_array_get_length(reports) : 0;
    GString *others = g_string_new(NULL);

    for (guint i = 0; i < count; i++) {
        JsonNode *report = json_array_get_element(reports, i);
        JsonArray *list = tool_json_get_array(report, "ranks");
        const guint own = list ? json_array_get_length(list) : 0;

        if (own == (guint)ranks) {
            b->root = report;
            g_string_free(others, true);
            return NULL;
        }
        g_string_append_printf(others, "%s%u", i ? ", " : "", own);
    }
    g_string_prepend(others, count ? "it is a sweep over " : "it is empty");
    if (count)
        g_string_append_printf(others, " ranks, without %d", ranks);
    return g_string_free(others, false);
}

/* Reads the parts of the baseline. Returns what is wrong, or NULL. */
static const char *report_interpret(perf_baseline_t *b)
{
    if (!text_is(b->root, "format", PERF_FORMAT))
        return "its format is not " PERF_FORMAT;
    if (tool_json_get_number(b->root, "format_version") != PERF_FORMAT_VERSION)
        return "it is of another version";
    b->rows = tool_json_get_array(b->root, "rows");
    b->ranks = tool_json_get_array(b->root, "ranks");
    if (!b->rows || !b->ranks)
        return "it has no rows or no ranks";
    for (guint i = 0; i < json_array_get_length(b->rows); i++)
        if (!JSON_NODE_HOLDS_OBJECT(json_array_get_element(b->rows, i)))
            return "a row is no object";
    return NULL;
}

static bool sweep_is_known(JsonNode *root)
{
    return tool_json_get_number(root, "format_version") == PERF_SWEEP_VERSION;
}

/* Returns what is wrong, g_free(); or NULL. */
static char *baseline_interpret(perf_baseline_t *b, int ranks)
{
    char *why = NULL;

    b->root = json_parser_get_root(b->parser);
    if (!b->root || !JSON_NODE_HOLDS_OBJECT(b->root))
        return g_strdup("it is no object");
    if (text_is(b->root, "format", PERF_SWEEP_FORMAT))
        why = sweep_is_known(b->root)
                  ? sweep_select(b, ranks)
                  : g_strdup("it is a sweep of another version");
    return why ? why : g_strdup(report_interpret(b));
}

int perf_baseline_load(const char *path, int ranks,
                       perf_baseline_t **ret_baseline)
{
    perf_baseline_t *b = g_new0(perf_baseline_t, 1);
    GError *error = NULL;
    char *why;

    b->parser = json_parser_new();
    if (json_parser_load_from_file(b->parser, path, &error))
        why = baseline_interpret(b, ranks);
    else
        why = g_strdup(error->message);
    if (!why) {
        *ret_baseline = b;
        return TOOL_OK;
    }
    tool_fail(0, "perf",
              "--against %s: not a baseline: %s; write one with --save", path,
              why);
    g_free(why);
    g_clear_error(&error);
    perf_baseline_free(b);
    return TOOL_FAILED;
}

void perf_baseline_free(perf_baseline_t *b)
{
    if (!b)
        return;
    g_object_unref(b->parser);
    g_free(b);
}

static bool root_is(JsonNode *old, int root)
{
    if (root == PERF_ROOT_ROTATES)
        return text_is(old, "root", "rotate");
    return !text_is(old, "root", "rotate") &&
           tool_json_get_number(old, "root") == root;
}

static bool baseline_is_same(JsonNode *old, const perf_row_t *row)
{
    return text_is(old, "operation", row->operation->name) &&
           tool_json_get_number(old, "bytes") == (double)row->bytes &&
           text_is(old, "type", dscomm_dtype_name(row->dtype)) &&
           text_is(old, "redop", perf_row_op(row)) && root_is(old, row->root);
}

double perf_baseline_time(const perf_baseline_t *b, const perf_row_t *row,
                          perf_place_t place)
{
    const char *name = place == PERF_IN_PLACE ? "in_place" : "out_of_place";

    for (guint i = 0; i < json_array_get_length(b->rows); i++) {
        JsonNode *old = json_array_get_element(b->rows, i);

        if (baseline_is_same(old, row))
            return MAX(
                tool_json_get_number(tool_json_get(old, name), "time_us"), 0);
    }
    return 0;
}

bool perf_baseline_option(const perf_baseline_t *b, const char *name)
{
    JsonNode *node = tool_json_get(tool_json_get(b->root, "options"), name);

    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_boolean(node);
}

int perf_baseline_aggregate(const perf_baseline_t *b)
{
    JsonNode *options = tool_json_get(b->root, "options");

    return (int)MAX(tool_json_get_number(options, "aggregate"), 1);
}

int perf_baseline_ranks(const perf_baseline_t *b)
{
    return (int)json_array_get_length(b->ranks);
}

const char *perf_baseline_backend(const perf_baseline_t *b)
{
    const char *backend = tool_json_get_text(b->root, "backend");

    return backend ? backend : "";
}
