/* SPDX-License-Identifier: BSD-3-Clause */
/* dscomm analyze: which rank is behind, in which operation, and what it was
 * doing. */
#include "config.h"

#include "tools/analyze/finding.h"
#include "tools/analyze/torch.h"
#include "tools/common/json.h"
#include "tools/common/tool.h"

#include <stdio.h>
#include <string.h>

static void find_processes(const dumps_t *dumps, const char *process,
                           GPtrArray *findings)
{
    for (guint i = 0; i < dumps->ranks->len; i++) {
        const rank_t *rank = g_ptr_array_index(dumps->ranks, i);
        char *activity;

        if (strcmp(rank->process, process))
            continue;
        activity = rank_activity(rank);
        finding_add_rank(
            finding_add(findings, process, NULL, 0,
                        g_strdup_printf("rank %d (pid %d on %s) is %s; it was "
                                        "%s",
                                        rank->number, rank->pid, rank->host,
                                        process, activity)),
            rank->number);
        g_free(activity);
    }
}

/* In each world, the sentence of the first rank that has one; other ranks have
 * the same. */
static void find_failure(const dumps_t *dumps, GPtrArray *findings)
{
    GHashTable *worlds = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < dumps->ranks->len; i++) {
        const rank_t *rank = g_ptr_array_index(dumps->ranks, i);

        finding_t *finding;

        if (!rank->sentence || !g_hash_table_add(worlds, (char *)rank->world))
            continue;
        finding = finding_add(findings, "failure", rank->failed_group,
                              rank->failed_sequence, g_strdup(rank->sentence));
        if (rank->culprit >= 0)
            finding_add_rank(finding, rank->culprit);
    }
    g_hash_table_destroy(worlds);
}

static void find_all(const dumps_t *dumps, GPtrArray *findings)
{
    find_failure(dumps, findings);
    find_processes(dumps, "dead", findings);
    find_processes(dumps, "stopped", findings);
    find_waits(dumps, findings);
    for (guint i = 0; i < dumps->groups->len; i++) {
        const group_t *group = g_ptr_array_index(dumps->groups, i);

        find_in_group(group, findings);
    }
}

static void print_text(const dumps_t *dumps, const GPtrArray *findings)
{
    for (guint i = 0; i < findings->len; i++) {
        const finding_t *finding = g_ptr_array_index(findings, i);
        char *text = tool_printable(finding->text);

        puts(text);
        g_free(text);
    }
    if (!findings->len)
        printf("nothing found in the records of %u rank%s\n", dumps->ranks->len,
               dumps->ranks->len == 1 ? "" : "s");
}

static void add_finding(JsonBuilder *builder, const finding_t *finding)
{
    tool_json_object(builder, NULL);
    tool_json_text(builder, "kind", finding->kind);
    tool_json_text(builder, "group", finding->group);
    tool_json_number(builder, "sequence", finding->sequence);
    tool_json_array(builder, "ranks");
    for (guint i = 0; i < finding->ranks->len; i++)
        tool_json_number(builder, NULL, g_array_index(finding->ranks, int, i));
    json_builder_end_array(builder);
    tool_json_text(builder, "text", finding->text);
    json_builder_end_object(builder);
}

static void print_json(const dumps_t *dumps, const GPtrArray *findings)
{
    JsonBuilder *builder = json_builder_new();
    GString *text = g_string_new(NULL);

    tool_json_object(builder, NULL);
    tool_json_number(builder, "ranks", dumps->ranks->len);
    tool_json_number(builder, "groups", dumps->groups->len);
    tool_json_array(builder, "findings");
    for (guint i = 0; i < findings->len; i++)
        add_finding(builder, g_ptr_array_index(findings, i));
    json_builder_end_array(builder);
    json_builder_end_object(builder);
    tool_json_end(builder, true, text);
    fputs(text->str, stdout);
    g_string_free(text, true);
}

/* Reads all paths, and writes them for PyTorch to folder unless that is NULL.
 * NULL, or a sentence; g_free(). */
static char *dumps_load(dumps_t *dumps, char **paths, const char *folder)
{
    char *problem = NULL;

    for (; *paths && !problem; paths++)
        problem = dumps_read(dumps, *paths);
    if (problem)
        return problem;
    dumps_sort(dumps);
    return folder ? torch_write(dumps, folder) : NULL;
}

static int analyze(char **paths, bool json, const char *torch)
{
    dumps_t *dumps = dumps_new();
    GPtrArray *findings = g_ptr_array_new_with_free_func(finding_free);
    char *problem = dumps_load(dumps, paths, torch);
    int status;

    if (problem) {
        status = tool_fail(TOOL_USAGE, "analyze", "%s", problem);
    } else {
        find_all(dumps, findings);
        (json ? print_json : print_text)(dumps, findings);
        status = findings->len ? TOOL_FAILED : TOOL_OK;
    }
    g_free(problem);
    g_ptr_array_free(findings, true);
    dumps_free(dumps);
    return status;
}

int tool_analyze(int argc, char **argv)
{
    gboolean json = false;
    char *torch = NULL;
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "Print it as JSON", NULL},
        {"torch", 0, 0, G_OPTION_ARG_FILENAME, &torch,
         "Write the dumps to FOLDER for PyTorch's analyzer, torchfrtrace",
         "FOLDER"},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    int status;

    if (!tool_parse(&argc, &argv, entries, "DUMP...",
                    "Finds, in dumps of the flight recorder (DSCOMM_DUMP), "
                    "which rank is behind, and what it was doing. A DUMP is a "
                    "file, a folder of them, or the pid of a rank or a dscomm "
                    "run that runs. The status is 0 if nothing "
                    "was found, 1 if something was, 2 if a file cannot be "
                    "read.",
                    false, NULL))
        status = TOOL_USAGE;
    else if (argc < 2)
        status = tool_fail(TOOL_USAGE, "analyze", "no dump is given");
    else
        status = analyze(argv + 1, json, torch);
    g_free(torch);
    return status;
}
