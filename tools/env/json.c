/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env --json`: the same for programs, a line a rank. */
#include "config.h"

#include "tools/common/json.h"
#include "tools/env/env.h"

#include <dscomm/status.h>

static void add_fields(JsonBuilder *builder, const dscomm_env_t *env)
{
    for (int i = 0; i < DSCOMM_ENV_FIELD_COUNT; i++) {
        char *text = tool_env_field(env, (dscomm_env_field_t)i);

        if (text && i != DSCOMM_ENV_MASTER_ADDR)
            tool_json_number(builder, tool_env_fields[i],
                             g_ascii_strtoll(text, NULL, 10));
        else
            tool_json_text(builder, tool_env_fields[i], text);
        g_free(text);
    }
}

static void add_origins(JsonBuilder *builder, const dscomm_env_t *env)
{
    tool_json_object(builder, "origins");
    for (int i = 0; i < DSCOMM_ENV_FIELD_COUNT; i++)
        tool_json_text(builder, tool_env_fields[i],
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
        tool_json_text(builder, "verdict", tool_env_verdicts[info.verdict]);
        tool_json_text(builder, "why", info.why);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

/* error: why there are no values; no_master: why others cannot be met. */
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

void tool_env_print_json(const dscomm_env_t *env, gboolean explain,
                         GString *text)
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
    tool_json_end(builder, FALSE, text);
}
