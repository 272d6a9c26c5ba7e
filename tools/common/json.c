/* SPDX-License-Identifier: BSD-3-Clause */
/* See json.h. */
#include "config.h"

#include "tools/common/json.h"

#include <math.h>
#include <stdbool.h>

static void value_name(JsonBuilder *builder, const char *name)
{
    if (name)
        json_builder_set_member_name(builder, name);
}

void tool_json_object(JsonBuilder *builder, const char *name)
{
    value_name(builder, name);
    json_builder_begin_object(builder);
}

void tool_json_array(JsonBuilder *builder, const char *name)
{
    value_name(builder, name);
    json_builder_begin_array(builder);
}

void tool_json_flag(JsonBuilder *builder, const char *name, bool flag)
{
    value_name(builder, name);
    json_builder_add_boolean_value(builder, flag);
}

void tool_json_number(JsonBuilder *builder, const char *name, gint64 number)
{
    value_name(builder, name);
    json_builder_add_int_value(builder, number);
}

void tool_json_real(JsonBuilder *builder, const char *name, const char *format,
                    double number)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    value_name(builder, name);
    if (!isfinite(number)) {
        json_builder_add_null_value(builder);
        return;
    }
    if (!format) {
        json_builder_add_int_value(builder, (gint64)number);
        return;
    }
    g_ascii_formatd(text, sizeof text, format, number);
    json_builder_add_double_value(builder, g_ascii_strtod(text, NULL));
}

void tool_json_text(JsonBuilder *builder, const char *name, const char *text)
{
    char *valid = text ? g_utf8_make_valid(text, -1) : NULL;

    value_name(builder, name);
    if (valid)
        json_builder_add_string_value(builder, valid);
    else
        json_builder_add_null_value(builder);
    g_free(valid);
}

void tool_json_texts(JsonBuilder *builder, const char *name, char *const *texts)
{
    tool_json_array(builder, name);
    for (; texts && *texts; texts++)
        tool_json_text(builder, NULL, *texts);
    json_builder_end_array(builder);
}

void tool_json_end(JsonBuilder *builder, bool pretty, GString *text)
{
    JsonNode *root = json_builder_get_root(builder);
    char *json = json_to_string(root, pretty);

    g_string_append_printf(text, "%s\n", json);
    g_free(json);
    json_node_unref(root);
    g_object_unref(builder);
}

JsonNode *tool_json_get(JsonNode *node, const char *name)
{
    if (!node || !JSON_NODE_HOLDS_OBJECT(node))
        return NULL;
    return json_object_get_member(json_node_get_object(node), name);
}

const char *tool_json_get_text(JsonNode *node, const char *name)
{
    JsonNode *member = tool_json_get(node, name);

    if (!member || json_node_get_value_type(member) != G_TYPE_STRING)
        return NULL;
    return json_node_get_string(member);
}

double tool_json_get_number(JsonNode *node, const char *name)
{
    JsonNode *member = tool_json_get(node, name);
    GType type = member ? json_node_get_value_type(member) : G_TYPE_NONE;

    if (type != G_TYPE_DOUBLE && type != G_TYPE_INT64)
        return 0;
    return json_node_get_double(member);
}

JsonArray *tool_json_get_array(JsonNode *node, const char *name)
{
    JsonNode *member = tool_json_get(node, name);

    if (!member || !JSON_NODE_HOLDS_ARRAY(member))
        return NULL;
    return json_node_get_array(member);
}
