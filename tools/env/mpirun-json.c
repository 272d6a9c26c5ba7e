/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env --mpirun --json`: the same for programs. */
#include "config.h"

#include "tools/common/json.h"
#include "tools/env/mpirun.h"

static void json_add_parts(JsonBuilder *builder, const char *name,
                           const GPtrArray *parts)
{
    tool_json_array(builder, name);
    for (guint i = 0; i < parts->len; i++) {
        const tool_advice_part_t *part = g_ptr_array_index(parts, i);

        tool_json_object(builder, NULL);
        tool_json_texts(builder, "words", part->words);
        tool_json_text(builder, "why", part->why);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void add_judgements(JsonBuilder *builder, const GPtrArray *judgements)
{
    tool_json_array(builder, "given");
    for (guint i = 0; i < judgements->len; i++) {
        const tool_advice_judgement_t *judgement =
            g_ptr_array_index(judgements, i);

        tool_json_object(builder, NULL);
        tool_json_text(builder, "text", judgement->text);
        tool_json_text(builder, "verdict", judgement->verdict);
        tool_json_text(builder, "why", judgement->why);
        tool_json_text(builder, "instead", judgement->instead);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void json_add_notes(JsonBuilder *builder, const GPtrArray *notes)
{
    tool_json_array(builder, "notes");
    for (guint i = 0; i < notes->len; i++)
        tool_json_text(builder, NULL, g_ptr_array_index(notes, i));
    json_builder_end_array(builder);
}

static void json_add_advice(JsonBuilder *builder, const tool_advice_t *advice)
{
    char *line = tool_advice_line(advice);

    tool_json_object(builder, NULL);
    tool_json_text(builder, "program", advice->program);
    tool_json_text(builder, "library", advice->library);
    tool_json_text(builder, "version", advice->version);
    tool_json_number(builder, "nodes", advice->nodes);
    tool_json_number(builder, "ranks_per_node", advice->ranks_per_node);
    tool_json_number(builder, "ranks", advice->ranks);
    tool_json_text(builder, "line", line);
    json_add_parts(builder, "environment", advice->variables);
    json_add_parts(builder, "arguments", advice->parts);
    tool_json_texts(builder, "command", advice->command);
    add_judgements(builder, advice->judgements);
    json_add_notes(builder, advice->notes);
    json_builder_end_object(builder);
    g_free(line);
}

void tool_env_mpirun_json(const GPtrArray *list, GString *text)
{
    JsonBuilder *builder = json_builder_new();

    tool_json_array(builder, NULL);
    for (guint i = 0; i < list->len; i++)
        json_add_advice(builder, g_ptr_array_index(list, i));
    json_builder_end_array(builder);
    tool_json_end(builder, FALSE, text);
}

void tool_env_mpirun_error(const char *sentence, GString *text)
{
    JsonBuilder *builder = json_builder_new();

    tool_json_object(builder, NULL);
    tool_json_text(builder, "error", sentence);
    json_builder_end_object(builder);
    tool_json_end(builder, FALSE, text);
}
