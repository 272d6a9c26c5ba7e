/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm info --json`: the same for programs. */
#include "config.h"

#include "tools/common/json.h"
#include "tools/info/info.h"

#include <dscomm/codec.h>
#include <dscomm/info.h>
#include <stdio.h>
#include <string.h>

/* The words of text, which are separated by single spaces. */
static void add_words(JsonBuilder *builder, const char *name, const char *text)
{
    char **words = g_strsplit(text, " ", -1);

    tool_json_texts(builder, name, words);
    g_strfreev(words);
}

static void add_build(JsonBuilder *builder)
{
    const char *name, *value;

    tool_json_object(builder, "build");
    for (size_t i = 0; dscomm_build_info(i, &name, &value) == DSCOMM_OK; i++) {
        char *member = g_strdelimit(g_strdup(name), " ", '_');
        tool_json_text(builder, member, value);
        g_free(member);
    }
    add_words(builder, "cpu_features", dscomm_cpu_features());
    add_words(builder, "kernels", dscomm_kernels());
    json_builder_end_object(builder);
}

static void add_backend(JsonBuilder *builder, const dscomm_backend_info_t *info)
{
    tool_json_object(builder, NULL);
    tool_json_text(builder, "name", info->name);
    tool_json_text(builder, "path", info->path);
    tool_json_flag(builder, "usable", info->usable);
    if (info->usable)
        tool_json_number(builder, "priority", info->priority);
    else
        tool_json_text(builder, "priority", NULL);
    tool_json_text(builder, "why", info->why);
    tool_json_text(builder, "detail", info->detail);
    json_builder_end_object(builder);
}

static void add_backends(JsonBuilder *builder)
{
    dscomm_backend_info_t info = {.size = sizeof(info)};

    tool_json_text(builder, "backend_directory", dscomm_backend_directory());
    tool_json_array(builder, "backends");
    for (size_t i = 0; dscomm_backend_info(i, &info) == DSCOMM_OK; i++)
        add_backend(builder, &info);
    json_builder_end_array(builder);
}

static void add_codecs(JsonBuilder *builder)
{
    const char *problem = dscomm_codec_device_problem();

    add_words(builder, "codecs", dscomm_codec_names());
    add_words(builder, "device_codecs", problem ? "" : "onebit");
    tool_json_text(builder, "device_problem", problem);
}

static void add_available(JsonBuilder *builder, int coll, int ranks, int nodes)
{
    dscomm_algorithm_info_t info = {.size = sizeof(info)};

    tool_json_array(builder, "available");
    for (size_t i = 0; dscomm_algorithm_info(i, &info) == DSCOMM_OK; i++)
        if (info.coll == coll && tool_info_fits(&info, ranks, nodes))
            tool_json_text(builder, NULL, info.name);
    json_builder_end_array(builder);
}

/* JSON's numbers hold no more, and no buffer does. */
static void add_bytes(JsonBuilder *builder, const char *name, uint64_t bytes)
{
    if (bytes > INT64_MAX)
        tool_json_text(builder, name, NULL);
    else
        tool_json_number(builder, name, (gint64)bytes);
}

static void add_choices(JsonBuilder *builder, dscomm_coll_t coll,
                        dscomm_dtype_t dtype, int ranks, int nodes)
{
    dscomm_choice_info_t info = {.size = sizeof(info)};
    uint64_t from = 0;

    do {
        if (dscomm_choice_info(ranks, nodes, coll, dtype, DSCOMM_SUM, from,
                               &info) < 0)
            return;
        tool_json_object(builder, NULL);
        add_bytes(builder, "from", info.from);
        add_bytes(builder, "to", info.to);
        tool_json_text(builder, "dtype",
                       tool_info_reduces(coll) ? dscomm_dtype_name(dtype)
                                               : NULL);
        tool_json_text(builder, "by_default", info.by_default);
        tool_json_text(builder, "by_setting", info.by_setting);
        tool_json_text(builder, "passed_over", info.passed_over);
        tool_json_text(builder, "why", info.why);
        json_builder_end_object(builder);
        from = info.to + 1;
    } while (from);
}

static void add_collective(JsonBuilder *builder, dscomm_coll_t coll, int ranks,
                           int nodes)
{
    tool_json_object(builder, NULL);
    tool_json_text(builder, "name", dscomm_coll_name(coll));
    add_available(builder, (int)coll, ranks, nodes);
    tool_json_array(builder, "choices");
    add_choices(builder, coll, DSCOMM_FLOAT32, ranks, nodes);
    if (tool_info_reduces(coll))
        add_choices(builder, coll, DSCOMM_BFLOAT16, ranks, nodes);
    json_builder_end_array(builder);
    json_builder_end_object(builder);
}

static void add_algorithms(JsonBuilder *builder, int ranks, int nodes)
{
    tool_json_object(builder, "algorithms");
    tool_json_number(builder, "ranks", ranks);
    tool_json_number(builder, "nodes", nodes);
    tool_json_text(builder, "setting", tool_info_algorithm_setting());
    tool_json_array(builder, "collectives");
    for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++)
        add_collective(builder, (dscomm_coll_t)coll, ranks, nodes);
    json_builder_end_array(builder);
    json_builder_end_object(builder);
}

static void add_setting(JsonBuilder *builder, const dscomm_setting_info_t *info)
{
    const char *value = info->value ? info->value : info->default_value;

    tool_json_object(builder, NULL);
    tool_json_text(builder, "name", info->name);
    tool_json_text(builder, "type", info->type);
    tool_json_text(builder, "accepted", info->accepted);
    tool_json_text(builder, "default", info->default_value);
    tool_json_text(builder, "value", value);
    tool_json_text(builder, "origin",
                   info->value ? "environment"
                   : value     ? "default"
                               : NULL);
    tool_json_text(builder, "help", info->help);
    json_builder_end_object(builder);
}

static void add_settings(JsonBuilder *builder)
{
    dscomm_setting_info_t info = {.size = sizeof(info)};

    tool_json_array(builder, "settings");
    for (size_t i = 0; dscomm_setting_info(i, &info) == DSCOMM_OK; i++)
        add_setting(builder, &info);
    json_builder_end_array(builder);
}

static void add_unknown(JsonBuilder *builder)
{
    const char *name, *nearest;

    tool_json_array(builder, "unknown");
    for (size_t i = 0; dscomm_setting_unknown(i, &name, &nearest) == DSCOMM_OK;
         i++) {
        tool_json_object(builder, NULL);
        tool_json_text(builder, "name", name);
        tool_json_text(builder, "nearest", nearest);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

void tool_info_print_json(const tool_info_parts_t *parts)
{
    JsonBuilder *builder = json_builder_new();
    GString *text = g_string_new(NULL);

    tool_json_object(builder, NULL);
    if (parts->build)
        add_build(builder);
    if (parts->backends)
        add_backends(builder);
    if (parts->codecs)
        add_codecs(builder);
    if (parts->ranks)
        add_algorithms(builder, parts->ranks, parts->nodes);
    if (parts->settings) {
        add_settings(builder);
        add_unknown(builder);
    }
    json_builder_end_object(builder);
    tool_json_end(builder, TRUE, text);
    fputs(text->str, stdout);
    g_string_free(text, TRUE);
}
