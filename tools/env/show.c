/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env` for people, for the shell, and for programs, a line a rank. */
#include "config.h"

#include "tools/common/json.h"
#include "tools/common/tool.h"
#include "tools/env/env.h"

#include <dscomm/status.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A field's name in JSON, with blanks instead of "_" for people. */
static const char *const fields[DSCOMM_ENV_FIELD_COUNT] = {
    "rank",      "world_size",  "local_rank",  "local_size",
    "node_rank", "master_addr", "master_port",
};

static const char *const verdicts[] = {"absent", "refused", "ignored", "taken"};

static int (*const numbers[DSCOMM_ENV_FIELD_COUNT])(const dscomm_env_t *) = {
    [DSCOMM_ENV_RANK] = dscomm_env_rank,
    [DSCOMM_ENV_WORLD_SIZE] = dscomm_env_world_size,
    [DSCOMM_ENV_LOCAL_RANK] = dscomm_env_local_rank,
    [DSCOMM_ENV_LOCAL_SIZE] = dscomm_env_local_size,
    [DSCOMM_ENV_NODE_RANK] = dscomm_env_node_rank,
    [DSCOMM_ENV_MASTER_PORT] = dscomm_env_master_port,
};

/* A field as text, or NULL if it is unknown; g_free(). */
static char *field_text(const dscomm_env_t *env, dscomm_env_field_t field)
{
    if (!dscomm_env_origin(env, field))
        return NULL;
    if (field == DSCOMM_ENV_MASTER_ADDR)
        return g_strdup(dscomm_env_master_addr(env));
    return g_strdup_printf("%d", numbers[field](env));
}

/* Returns the description of the source, from the list of all sources. */
static const char *source_describe(const dscomm_env_t *env)
{
    dscomm_env_candidate_t info = {.size = sizeof info};

    for (size_t i = 0; dscomm_env_candidate(env, i, &info) == DSCOMM_OK; i++)
        if (info.verdict == DSCOMM_ENV_TAKEN)
            return info.about;
    return "";
}

static void table_add_line(GString *text, const char *name, const char *value,
                           const char *origin)
{
    char *label = g_strdelimit(g_strdup(name), "_", ' ');
    char *printable = tool_printable(value ? value : "unknown");

    if (origin)
        g_string_append_printf(text, "  %-12s %-15s %s\n", label, printable,
                               origin);
    else
        g_string_append_printf(text, "  %-12s %s\n", label, printable);
    g_free(printable);
    g_free(label);
}

static void table_add_notes(const dscomm_env_t *env, GString *text)
{
    const char *note;

    for (size_t i = 0; (note = dscomm_env_overlay(env, i)); i++)
        table_add_line(text, "platform", note, NULL);
    if (*dscomm_env_job(env))
        table_add_line(text, "job", dscomm_env_job(env), NULL);
    for (size_t i = 0; (note = dscomm_env_warning(env, i)); i++)
        table_add_line(text, "warning", note, NULL);
    if (dscomm_env_world_size(env) > 1 && dscomm_env_check_master(env) < 0)
        table_add_line(text, "warning", dscomm_last_error(), NULL);
}

static void add_values(const dscomm_env_t *env, GString *text)
{
    g_string_append_printf(text, "rank %d of %d, by %s (%s)\n",
                           dscomm_env_rank(env), dscomm_env_world_size(env),
                           dscomm_env_source(env), source_describe(env));
    for (int i = 0; i < DSCOMM_ENV_FIELD_COUNT; i++) {
        dscomm_env_field_t field = (dscomm_env_field_t)i;
        char *value = field_text(env, field);

        table_add_line(text, fields[i], value, dscomm_env_origin(env, field));
        g_free(value);
    }
    table_add_notes(env, text);
}

static void table_add_candidates(const dscomm_env_t *env, GString *text)
{
    dscomm_env_candidate_t info = {.size = sizeof info};

    g_string_append(text, "sources, in the order of precedence:\n");
    for (size_t i = 0; dscomm_env_candidate(env, i, &info) == DSCOMM_OK; i++)
        g_string_append_printf(text, "  %-12s %-8s %s\n", info.name,
                               verdicts[info.verdict],
                               info.why ? info.why : "");
}

void tool_env_print(const dscomm_env_t *env, bool explain, GString *text)
{
    if (dscomm_env_status(env) == DSCOMM_OK)
        add_values(env, text);
    if (explain)
        table_add_candidates(env, text);
}

void tool_env_print_exports(GString *text)
{
    static const char *const names[] = {"RANK",        "WORLD_SIZE",
                                        "LOCAL_RANK",  "LOCAL_WORLD_SIZE",
                                        "MASTER_ADDR", "MASTER_PORT"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *value = getenv(names[i]);
        char *quoted = value && *value ? g_shell_quote(value) : NULL;

        if (quoted)
            g_string_append_printf(text, "export %s=%s\n", names[i], quoted);
        g_free(quoted);
    }
}

static void add_fields(JsonBuilder *builder, const dscomm_env_t *env)
{
    for (int i = 0; i < DSCOMM_ENV_FIELD_COUNT; i++) {
        char *text = field_text(env, (dscomm_env_field_t)i);

        if (text && i != DSCOMM_ENV_MASTER_ADDR)
            tool_json_number(builder, fields[i],
                             g_ascii_strtoll(text, NULL, 10));
        else
            tool_json_text(builder, fields[i], text);
        g_free(text);
    }
}

static void add_origins(JsonBuilder *builder, const dscomm_env_t *env)
{
    tool_json_object(builder, "origins");
    for (int i = 0; i < DSCOMM_ENV_FIELD_COUNT; i++)
        tool_json_text(builder, fields[i],
                       dscomm_env_origin(env, (dscomm_env_field_t)i));
    json_builder_end_object(builder);
}

static void add_list(JsonBuilder *builder, const char *name,
                     const dscomm_env_t *env,
                     const char *(*get)(const dscomm_env_t *, size_t))
{
    const char *text;

    tool_json_array(builder, name);
    for (size_t i = 0; (text = get(env, i)); i++)
        tool_json_text(builder, NULL, text);
    json_builder_end_array(builder);
}

static void json_add_candidates(JsonBuilder *builder, const dscomm_env_t *env)
{
    dscomm_env_candidate_t info = {.size = sizeof info};

    tool_json_array(builder, "candidates");
    for (size_t i = 0; dscomm_env_candidate(env, i, &info) == DSCOMM_OK; i++) {
        tool_json_object(builder, NULL);
        tool_json_text(builder, "name", info.name);
        tool_json_text(builder, "about", info.about);
        tool_json_text(builder, "verdict", verdicts[info.verdict]);
        tool_json_text(builder, "why", info.why);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

/* error: why there are no values; no_master: why the address of other ranks is
 * unknown. */
static void add_problems(JsonBuilder *builder, const dscomm_env_t *env)
{
    int broken = dscomm_env_status(env) < 0;

    tool_json_text(builder, "error", broken ? dscomm_last_error() : NULL);
    if (!broken && dscomm_env_world_size(env) > 1 &&
        dscomm_env_check_master(env) < 0)
        tool_json_text(builder, "no_master", dscomm_last_error());
    else
        tool_json_text(builder, "no_master", NULL);
}

void tool_env_print_json(const dscomm_env_t *env, bool explain, GString *text)
{
    JsonBuilder *builder = json_builder_new();

    tool_json_object(builder, NULL);
    tool_json_text(builder, "source", dscomm_env_source(env));
    add_fields(builder, env);
    tool_json_flag(builder, "agent_store", dscomm_env_agent_store(env));
    tool_json_text(builder, "job",
                   *dscomm_env_job(env) ? dscomm_env_job(env) : NULL);
    add_origins(builder, env);
    add_list(builder, "overlays", env, dscomm_env_overlay);
    add_list(builder, "warnings", env, dscomm_env_warning);
    add_problems(builder, env);
    if (explain)
        json_add_candidates(builder, env);
    json_builder_end_object(builder);
    tool_json_end(builder, false, text);
}
