/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env --mpirun`: advice about each mpirun that is installed, for
 * people. */
#include "config.h"

#include "tools/common/tool.h"
#include "tools/common/topology.h"
#include "tools/env/mpirun-version.h"
#include "tools/env/mpirun.h"

#include <string.h>
#include <unistd.h>

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
    tool_topology_t *topology = tool_topology_new(FALSE);
    tool_advice_question_t question = {
        .root = "",
        .environment = environ,
        .superuser = geteuid() == 0,
        .nodes = options->nodes,
        .ranks_per_node = options->ranks_per_node,
        .given = options->given,
    };

    if (topology)
        tool_topology_count(topology, &question.cores, &question.numa_nodes,
                            &question.cores_per_numa);
    tool_topology_free(topology);
    return question;
}

/* Advice about one program, or NULL and a sentence. */
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

/* Skips programs that are no known mpirun, with a sentence; a program that the
 * user names must be one. */
static GPtrArray *ask_all(const tool_env_mpirun_t *options, GPtrArray *problems)
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

/* If there is no advice, JSON has the sentence. */
static void tell_problems(GPtrArray *problems, gboolean json, GString *text)
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
    GPtrArray *list = ask_all(options, problems);
    int status = list->len ? TOOL_OK : TOOL_FAILED;

    tell_problems(problems, options->json && !list->len, text);
    if (options->json && list->len)
        tool_env_mpirun_json(list, text);
    for (guint i = 0; !options->json && i < list->len; i++) {
        if (i)
            g_string_append_c(text, '\n');
        text_add_advice(g_ptr_array_index(list, i), text);
    }
    g_ptr_array_unref(list);
    g_ptr_array_unref(problems);
    return status;
}
