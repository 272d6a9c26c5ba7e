/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a baseline, see perf-baseline.h. */
#include "config.h"

#include "tools/perf/baseline.h"
#include "tools/perf/operations.h"

#include <json-glib/json-glib.h>
#include <string.h>

struct perf_baseline {
    JsonParser *parser;
    JsonObject *root; /* parser's */
    JsonArray *rows; /* root's */
    const char *backend; /* root's */
    int ranks;
};

/* A member of a type, or NULL where there is none of that type. */
static JsonNode *get(JsonObject *object, const char *name, JsonNodeType type)
{
    JsonNode *node = object ? json_object_get_member(object, name) : NULL;

    return node && json_node_get_node_type(node) == type ? node : NULL;
}

static JsonObject *get_object(JsonObject *object, const char *name)
{
    JsonNode *node = get(object, name, JSON_NODE_OBJECT);

    return node ? json_node_get_object(node) : NULL;
}

static JsonArray *get_array(JsonObject *object, const char *name)
{
    JsonNode *node = get(object, name, JSON_NODE_ARRAY);

    return node ? json_node_get_array(node) : NULL;
}

/* "" where there is none. */
static const char *get_text(JsonObject *object, const char *name)
{
    JsonNode *node = get(object, name, JSON_NODE_VALUE);

    if (!node || json_node_get_value_type(node) != G_TYPE_STRING)
        return "";
    return json_node_get_string(node);
}

/* 0 where there is none. */
static double get_number(JsonObject *object, const char *name)
{
    JsonNode *node = get(object, name, JSON_NODE_VALUE);

    if (!node || (json_node_get_value_type(node) != G_TYPE_DOUBLE &&
                  json_node_get_value_type(node) != G_TYPE_INT64))
        return 0;
    return json_node_get_double(node);
}

static JsonObject *row_at(JsonArray *rows, guint index)
{
    JsonNode *node = json_array_get_element(rows, index);

    return JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

/* What is wrong with it, or NULL. */
static const char *interpret(perf_baseline_t *b)
{
    JsonNode *node = json_parser_get_root(b->parser);

    if (!node || !JSON_NODE_HOLDS_OBJECT(node))
        return "it is no object";
    b->root = json_node_get_object(node);
    if (strcmp(get_text(b->root, "format"), PERF_FORMAT) != 0)
        return "its format is not " PERF_FORMAT;
    if (get_number(b->root, "format_version") != PERF_FORMAT_VERSION)
        return "it is of another version";
    b->rows = get_array(b->root, "rows");
    if (!b->rows || !get_array(b->root, "ranks"))
        return "it has no rows or no ranks";
    for (guint i = 0; i < json_array_get_length(b->rows); i++)
        if (!row_at(b->rows, i))
            return "a row is no object";
    b->ranks = (int)json_array_get_length(get_array(b->root, "ranks"));
    b->backend = get_text(b->root, "backend");
    return NULL;
}

int perf_baseline_load(const char *path, perf_baseline_t **ret_baseline)
{
    perf_baseline_t *b = g_new0(perf_baseline_t, 1);
    GError *error = NULL;
    const char *why;

    b->parser = json_parser_new();
    if (json_parser_load_from_file(b->parser, path, &error))
        why = interpret(b);
    else
        why = error->message;
    if (!why) {
        *ret_baseline = b;
        return TOOL_OK;
    }
    tool_fail(0, "perf",
              "--against %s: not a baseline: %s; write one with --save", path,
              why);
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

static int get_root(JsonObject *old)
{
    if (strcmp(get_text(old, "root"), "rotate") == 0)
        return PERF_ROOT_ROTATES;
    return (int)get_number(old, "root");
}

static gboolean is_same(JsonObject *old, const perf_row_t *row)
{
    return strcmp(get_text(old, "operation"), row->operation->name) == 0 &&
           get_number(old, "bytes") == (double)row->bytes &&
           strcmp(get_text(old, "type"), dscomm_dtype_name(row->dtype)) == 0 &&
           strcmp(get_text(old, "redop"), perf_row_op(row)) == 0 &&
           get_root(old) == row->root;
}

double perf_baseline_time(const perf_baseline_t *b, const perf_row_t *row,
                          perf_place_t place)
{
    const char *name = place == PERF_IN_PLACE ? "in_place" : "out_of_place";

    for (guint i = 0; i < json_array_get_length(b->rows); i++) {
        JsonObject *old = row_at(b->rows, i);
        if (is_same(old, row))
            return MAX(get_number(get_object(old, name), "time_us"), 0);
    }
    return 0;
}

gboolean perf_baseline_option(const perf_baseline_t *b, const char *name)
{
    JsonNode *node = get(get_object(b->root, "options"), name, JSON_NODE_VALUE);

    return node && json_node_get_boolean(node);
}

int perf_baseline_aggregate(const perf_baseline_t *b)
{
    return (int)MAX(get_number(get_object(b->root, "options"), "aggregate"), 1);
}

int perf_baseline_ranks(const perf_baseline_t *b)
{
    return b->ranks;
}

const char *perf_baseline_backend(const perf_baseline_t *b)
{
    return b->backend;
}
