/* SPDX-License-Identifier: BSD-3-Clause */
/* See json.h. */
#include "config.h"

#include "tools/common/json.h"

void tool_json_value(JsonBuilder *builder, const char *text)
{
    char *valid = text ? g_utf8_make_valid(text, -1) : NULL;

    if (valid)
        json_builder_add_string_value(builder, valid);
    else
        json_builder_add_null_value(builder);
    g_free(valid);
}

void tool_json_text(JsonBuilder *builder, const char *name, const char *text)
{
    json_builder_set_member_name(builder, name);
    tool_json_value(builder, text);
}

void tool_json_number(JsonBuilder *builder, const char *name, gint64 number)
{
    json_builder_set_member_name(builder, name);
    json_builder_add_int_value(builder, number);
}

char *tool_json_end(JsonBuilder *builder, gboolean pretty)
{
    JsonNode *root = json_builder_get_root(builder);
    char *text = json_to_string(root, pretty);

    json_node_unref(root);
    g_object_unref(builder);
    return text;
}
