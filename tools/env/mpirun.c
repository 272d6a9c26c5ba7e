/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env --mpirun`: advice about each mpirun that is installed, for people
 * and for programs. */
#include "config.h"

#include "tools/common/json.h"
#include "tools/common/tool.h"
#include "tools/common/topology.h"
#include "tools/env/mpirun-version.h"
#include "tools/env/mpirun.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

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

/* Appends an array of objects, one line. */
static void json_add_list(const GPtrArray *list, GString *text)
{
    JsonBuilder *builder = json_builder_new();

    tool_json_array(builder, NULL);
    for (guint i = 0; i < list->len; i++)
        json_add_advice(builder, g_ptr_array_index(list, i));
    json_builder_end_array(builder);
    tool_json_end(builder, false, text);
}

void tool_env_mpirun_error(const char *sentence, GString *text)
{
    JsonBuilder *builder = json_builder_new();

    tool_json_object(builder, NULL);
    tool_json_text(builder, "error", sentence);
    json_builder_end_object(builder);
    tool_json_end(builder, false, text);
}

#define VERSION_MSEC 10000

static void text_add_line(GString *text, const char *what, const char *more)
{
    char *printable = tool_printable(what);
    char *rest = tool_printable(more);

    g_string_append_printf(text, "  %-38s %s\n", printable, rest);
    g_free(rest);
    g_free(printable);
}

static void text_add_parts(const GPtrArray *parts, GString *text)
{
    for (guint i = 0; i < parts->len; i++) {
        const tool_advice_part_t *part = g_ptr_array_index(parts, i);
        char *words = tool_advice_quote(part->words);

        text_add_line(text, words, part->why);
        g_free(words);
    }
}

static void add_judgement(const tool_advice_judgement_t *judgement,
                          GString *text)
{
    char *why =
        g_strdup_printf("%s: %s%s%s", judgement->verdict, judgement->why,
                        judgement->instead ? ". Instead: " : "",
                        judgement->instead ? judgement->instead : "");

    text_add_line(text, judgement->text, why);
    g_free(why);
}

static void text_add_advice(const tool_advice_t *advice, GString *text)
{
    char *line = tool_advice_line(advice);
    char *printable = tool_printable(line);

    g_string_append_printf(text, "# %s %s: %s\n%s\n", advice->library,
                           advice->version, advice->program, printable);
    text_add_parts(advice->variables, text);
    text_add_parts(advice->parts, text);
    if (advice->judgements->len)
        g_string_append(text, "given:\n");
    for (guint i = 0; i < advice->judgements->len; i++)
        add_judgement(g_ptr_array_index(advice->judgements, i), text);
    for (guint i = 0; i < advice->notes->len; i++)
        text_add_line(text, "note", g_ptr_array_index(advice->notes, i));
    g_free(printable);
    g_free(line);
}

/* The part of the question that does not depend on the program. */
static tool_advice_question_t make_question(const tool_env_mpirun_t *options)
{
    dscomm_topology_t *topology = tool_topology_new(false);
    tool_advice_question_t question = {
        .root = "",
        .environment = environ,
        .superuser = geteuid() == 0,
        .nodes = options->nodes,
        .ranks_per_node = options->ranks_per_node,
        .given = options->given,
    };

    if (topology)
        dscomm_priv_topology_count(topology, &question.cores,
                                   &question.numa_nodes,
                                   &question.cores_per_numa);
    dscomm_priv_topology_free(topology);
    return question;
}

/* Returns the advice about one program, or NULL and a sentence. */
static tool_advice_t *advice_query(tool_advice_question_t question,
                                   const char *program, char **ret_problem)
{
    char *version = tool_mpirun_version(program, VERSION_MSEC, ret_problem);
    tool_advice_t *advice;

    if (!version)
        return NULL;
    question.program = program;
    question.version = version;
    advice = tool_advise(&question, ret_problem);
    g_free(version);
    return advice;
}

static void free_advice(void *advice)
{
    tool_advice_free(advice);
}

/* Skips programs that are not known mpiruns, with a sentence; a program that
 * the user names must be a known one. */
static GPtrArray *query_all(const tool_env_mpirun_t *options,
                            GPtrArray *problems)
{
    char *named[] = {(char *)options->program, NULL};
    char **found = options->program ? g_strdupv(named) : tool_mpirun_find();
    const tool_advice_question_t question = make_question(options);
    GPtrArray *list = g_ptr_array_new_with_free_func(free_advice);

    for (int i = 0; found[i]; i++) {
        char *problem = NULL;
        tool_advice_t *advice = advice_query(question, found[i], &problem);

        g_ptr_array_add(advice ? list : problems,
                        advice ? (void *)advice : (void *)problem);
    }
    if (!found[0])
        g_ptr_array_add(
            problems,
            g_strdup("no mpirun is in PATH; --mpirun-path names one"));
    g_strfreev(found);
    return list;
}

/* Reports the problems: as messages, or, with JSON, as one object. */
static void report_problems(GPtrArray *problems, bool json, GString *text)
{
    char *all;

    for (guint i = 0; !json && i < problems->len; i++)
        tool_fail(0, "env", "%s", (char *)g_ptr_array_index(problems, i));
    if (!json)
        return;
    g_ptr_array_add(problems, NULL);
    all = g_strjoinv("; ", (char **)problems->pdata);
    tool_env_mpirun_error(all, text);
    g_free(all);
}

int tool_env_mpirun(const tool_env_mpirun_t *options, GString *text)
{
    GPtrArray *problems = g_ptr_array_new_with_free_func(g_free);
    GPtrArray *list = query_all(options, problems);
    int status = list->len ? TOOL_OK : TOOL_FAILED;

    report_problems(problems, options->json && !list->len, text);
    if (options->json && list->len)
        json_add_list(list, text);
    for (guint i = 0; !options->json && i < list->len; i++) {
        if (i)
            g_string_append_c(text, '\n');
        text_add_advice(g_ptr_array_index(list, i), text);
    }
    g_ptr_array_unref(list);
    g_ptr_array_unref(problems);
    return status;
}
