/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env --mpirun --json`: the same for programs. */
#include "config.h"

#include "tools/env/mpirun.h"
#include "tools/common/json.h"

static void add_words(JsonBuilder *builder, const char *name, char **words)
{
    json_builder_set_member_name(builder, name);
    json_builder_begin_array(builder);
    for (; words && *words; words++)
        tool_json_value(builder, *words);
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
        tool_json_text(builder, "why", part->why);
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
        tool_json_text(builder, "text", judgement->text);
        tool_json_text(builder, "verdict", judgement->verdict);
        tool_json_text(builder, "why", judgement->why);
        tool_json_text(builder, "instead", judgement->instead);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void add_notes(JsonBuilder *builder, const GPtrArray *notes)
{
    json_builder_set_member_name(builder, "notes");
    json_builder_begin_array(builder);
    for (guint i = 0; i < notes->len; i++)
        tool_json_value(builder, g_ptr_array_index(notes, i));
    json_builder_end_array(builder);
}

static void add_advice(JsonBuilder *builder, const tool_advice_t *advice)
{
    char *line = tool_advice_line(advice);

    json_builder_begin_object(builder);
    tool_json_text(builder, "program", advice->program);
    tool_json_text(builder, "library", advice->library);
    tool_json_text(builder, "version", advice->version);
    tool_json_number(builder, "nodes", advice->nodes);
    tool_json_number(builder, "ranks_per_node", advice->ranks_per_node);
    tool_json_number(builder, "ranks", advice->ranks);
    tool_json_text(builder, "line", line);
    add_parts(builder, "environment", advice->variables);
    add_parts(builder, "arguments", advice->parts);
    add_words(builder, "command", advice->command);
    add_judgements(builder, advice->judgements);
    add_notes(builder, advice->notes);
    json_builder_end_object(builder);
    g_free(line);
}

static void add_line(JsonBuilder *builder, GString *text)
{
    char *line = tool_json_end(builder, FALSE);

    g_string_append_printf(text, "%s\n", line);
    g_free(line);
}

void tool_env_mpirun_json(const GPtrArray *list, GString *text)
{
    JsonBuilder *builder = json_builder_new();

    json_builder_begin_array(builder);
    for (guint i = 0; i < list->len; i++)
        add_advice(builder, g_ptr_array_index(list, i));
    json_builder_end_array(builder);
    add_line(builder, text);
}

void tool_env_mpirun_error(const char *sentence, GString *text)
{
    JsonBuilder *builder = json_builder_new();

    json_builder_begin_object(builder);
    tool_json_text(builder, "error", sentence);
    json_builder_end_object(builder);
    add_line(builder, text);
}
