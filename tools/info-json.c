/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm info --json`: the same for programs. */
#include "config.h"

#include "tools/info.h"

#include <dscomm/info.h>
#include <json-glib/json-glib.h>
#include <stdio.h>
#include <string.h>

/* JSON is UTF-8, the environment and names of files are any bytes. */
static void add_text(JsonBuilder *builder, const char *name, const char *text)
{
    json_builder_set_member_name(builder, name);
    if (text) {
        char *valid = g_utf8_make_valid(text, -1);
        json_builder_add_string_value(builder, valid);
        g_free(valid);
    } else {
        json_builder_add_null_value(builder);
    }
}

/* The words of text, which are separated by single spaces. */
static void add_words(JsonBuilder *builder, const char *name, const char *text)
{
    char **words = g_strsplit(text, " ", -1);

    json_builder_set_member_name(builder, name);
    json_builder_begin_array(builder);
    for (int i = 0; words[i]; i++)
        if (*words[i])
            json_builder_add_string_value(builder, words[i]);
    json_builder_end_array(builder);
    g_strfreev(words);
}

static void add_build(JsonBuilder *builder)
{
    const char *name, *value;

    json_builder_set_member_name(builder, "build");
    json_builder_begin_object(builder);
    for (size_t i = 0; dscomm_build_info(i, &name, &value) == DSCOMM_OK; i++) {
        char *member = g_strdelimit(g_strdup(name), " ", '_');
        add_text(builder, member, value);
        g_free(member);
    }
    add_words(builder, "cpu_features", dscomm_cpu_features());
    json_builder_end_object(builder);
}

static void add_backend(JsonBuilder *builder, const dscomm_backend_info_t *info)
{
    json_builder_begin_object(builder);
    add_text(builder, "name", info->name);
    add_text(builder, "path", info->path);
    json_builder_set_member_name(builder, "usable");
    json_builder_add_boolean_value(builder, info->usable != 0);
    json_builder_set_member_name(builder, "priority");
    if (info->usable)
        json_builder_add_int_value(builder, info->priority);
    else
        json_builder_add_null_value(builder);
    add_text(builder, "why", info->why);
    json_builder_end_object(builder);
}

static void add_backends(JsonBuilder *builder)
{
    dscomm_backend_info_t info = {.size = sizeof(info)};

    add_text(builder, "backend_directory", dscomm_backend_directory());
    json_builder_set_member_name(builder, "backends");
    json_builder_begin_array(builder);
    for (size_t i = 0; dscomm_backend_info(i, &info) == DSCOMM_OK; i++)
        add_backend(builder, &info);
    json_builder_end_array(builder);
}

static void add_setting(JsonBuilder *builder, const dscomm_setting_info_t *info)
{
    const char *value = info->value ? info->value : info->default_value;

    json_builder_begin_object(builder);
    add_text(builder, "name", info->name);
    add_text(builder, "type", info->type);
    add_text(builder, "accepted", info->accepted);
    add_text(builder, "default", info->default_value);
    add_text(builder, "value", value);
    add_text(builder, "origin",
             info->value ? "environment"
             : value     ? "default"
                         : NULL);
    add_text(builder, "help", info->help);
    json_builder_end_object(builder);
}

static void add_settings(JsonBuilder *builder)
{
    dscomm_setting_info_t info = {.size = sizeof(info)};

    json_builder_set_member_name(builder, "settings");
    json_builder_begin_array(builder);
    for (size_t i = 0; dscomm_setting_info(i, &info) == DSCOMM_OK; i++)
        add_setting(builder, &info);
    json_builder_end_array(builder);
}

static void add_unknown(JsonBuilder *builder)
{
    const char *name, *nearest;

    json_builder_set_member_name(builder, "unknown");
    json_builder_begin_array(builder);
    for (size_t i = 0; dscomm_setting_unknown(i, &name, &nearest) == DSCOMM_OK;
         i++) {
        json_builder_begin_object(builder);
        add_text(builder, "name", name);
        add_text(builder, "nearest", nearest);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

void tool_info_print_json(const tool_info_parts_t *parts)
{
    JsonBuilder *builder = json_builder_new();
    JsonNode *root;
    char *text;

    json_builder_begin_object(builder);
    if (parts->build)
        add_build(builder);
    if (parts->backends)
        add_backends(builder);
    if (parts->settings) {
        add_settings(builder);
        add_unknown(builder);
    }
    json_builder_end_object(builder);
    root = json_builder_get_root(builder);
    text = json_to_string(root, TRUE);
    puts(text);
    g_free(text);
    json_node_unref(root);
    g_object_unref(builder);
}
