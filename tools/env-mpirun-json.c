/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env --mpirun --json`: the same for programs. */
#include "config.h"

#include "tools/env-mpirun.h"

#include <json-glib/json-glib.h>

/* JSON is UTF-8, arguments are any bytes. */
static void add_value(JsonBuilder *builder, const char *text)
{
    char *valid = text ? g_utf8_make_valid(text, -1) : NULL;

    if (valid)
        json_builder_add_string_value(builder, valid);
    else
        json_builder_add_null_value(builder);
    g_free(valid);
}

static void add_text(JsonBuilder *builder, const char *name, const char *text)
{
    json_builder_set_member_name(builder, name);
    add_value(builder, text);
}

static void add_number(JsonBuilder *builder, const char *name, int number)
{
    json_builder_set_member_name(builder, name);
    json_builder_add_int_value(builder, number);
}

static void add_words(JsonBuilder *builder, const char *name, char **words)
{
    json_builder_set_member_name(builder, name);
    json_builder_begin_array(builder);
    for (; words && *words; words++)
        add_value(builder, *words);
    json_builder_end_array(builder);
}

static void add_parts(JsonBuilder *builder, const char *name,
                      const GPtrArray *parts)
{
    json_builder_set_member_name(builder, name);
    json_builder_begin_array(builder);
    for (guint i = 0; i < parts->len; i++) {
        const tool_advice_part_t *part = g_ptr_array_index(parts, i);

        json_builder_begin_object(builder);
        add_words(builder, "words", part->words);
        add_text(builder, "why", part->why);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void add_judgements(JsonBuilder *builder, const GPtrArray *judgements)
{
    json_builder_set_member_name(builder, "given");
    json_builder_begin_array(builder);
    for (guint i = 0; i < judgements->len; i++) {
        const tool_advice_judgement_t *judgement =
            g_ptr_array_index(judgements, i);

        json_builder_begin_object(builder);
        add_text(builder, "text", judgement->text);
        add_text(builder, "verdict", tool_advice_verdicts[judgement->verdict]);
        add_text(builder, "why", judgement->why);
        add_text(builder, "instead", judgement->instead);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void add_notes(JsonBuilder *builder, const GPtrArray *notes)
{
    json_builder_set_member_name(builder, "notes");
    json_builder_begin_array(builder);
    for (guint i = 0; i < notes->len; i++)
        add_value(builder, g_ptr_array_index(notes, i));
    json_builder_end_array(builder);
}

static void add_advice(JsonBuilder *builder, const tool_advice_t *advice)
{
    char *line = tool_advice_line(advice);

    json_builder_begin_object(builder);
    add_text(builder, "program", advice->program);
    add_text(builder, "library", advice->library);
    add_text(builder, "version", advice->version);
    add_number(builder, "nodes", advice->nodes);
    add_number(builder, "ranks_per_node", advice->ranks_per_node);
    add_number(builder, "ranks", advice->ranks);
    add_text(builder, "line", line);
    add_parts(builder, "environment", advice->variables);
    add_parts(builder, "arguments", advice->parts);
    add_words(builder, "command", advice->command);
    add_judgements(builder, advice->judgements);
    add_notes(builder, advice->notes);
    json_builder_end_object(builder);
    g_free(line);
}

void tool_env_mpirun_json(const GPtrArray *list, GString *text)
{
    JsonBuilder *builder = json_builder_new();
    JsonNode *root;
    char *line;

    json_builder_begin_array(builder);
    for (guint i = 0; i < list->len; i++)
        add_advice(builder, g_ptr_array_index(list, i));
    json_builder_end_array(builder);
    root = json_builder_get_root(builder);
    line = json_to_string(root, FALSE);
    g_string_append_printf(text, "%s\n", line);
    g_free(line);
    json_node_unref(root);
    g_object_unref(builder);
}
