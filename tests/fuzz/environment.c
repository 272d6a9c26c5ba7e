/* SPDX-License-Identifier: BSD-3-Clause */
/* An arbitrary environment: discovery accepts it, or refuses it with a
 * sentence, and its results are consistent. The input is lines "NAME=value",
 * ended by zero bytes or newlines; of equal names the first counts. The whole
 * input is also read as a list of nodes, a list of tasks, and JSON. */
#include "config.h"

#include "env/json.h"
#include "env/nodelist.h"

#include <dscomm/env.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    const char *lines[LINES_MAX];
    int count;
} environment_t;

static const char *get(const char *name, void *arg)
{
    const environment_t *environment = arg;
    size_t length = strlen(name);

    for (int i = 0; i < environment->count; i++) {
        const char *line = environment->lines[i];

        if (strncmp(line, name, length) == 0 && line[length] == '=')
            return line + length + 1;
    }
    return NULL;
}

static void must(int holds)
{
    if (!holds)
        abort();
}

/* Checks the header's promises about known numbers. */
static void check_numbers(const dscomm_env_t *env)
{
    int rank = dscomm_env_rank(env), world = dscomm_env_world_size(env);
    int local_rank = dscomm_env_local_rank(env);
    int local_size = dscomm_env_local_size(env);
    int port = dscomm_env_master_port(env);

    must(rank >= 0 && rank < world);
    must(local_rank >= -1 && local_rank < world);
    must(local_size == -1 || (local_size >= 1 && local_size <= world));
    must(local_size == -1 || local_rank < local_size);
    must(dscomm_env_node_rank(env) < world);
    must(port == -1 || (port >= 1 && port <= 65535));
    must(strlen(dscomm_env_master_addr(env)) <= 255);
    must(strlen(dscomm_env_job(env)) <= 127);
}

static void check_candidates(const dscomm_env_t *env)
{
    dscomm_env_candidate_t info = {.size = sizeof info};
    int taken = 0;

    for (size_t i = 0; dscomm_env_candidate(env, i, &info) == DSCOMM_OK; i++) {
        must(info.why != NULL);
        taken += info.verdict == DSCOMM_ENV_TAKEN;
    }
    must(taken == (*dscomm_env_source(env) != '\0'));
}

static void try_environment(environment_t *environment)
{
    dscomm_env_attr_t attr = DSCOMM_ENV_ATTR_INIT;
    dscomm_env_t *env = NULL;

    attr.get = get;
    attr.arg = environment;
    attr.root = "/nowhere";
    attr.tolerate = 1;
    must(dscomm_env_discover(&attr, &env) == DSCOMM_OK);
    if (dscomm_env_status(env) == DSCOMM_OK)
        check_numbers(env);
    else
        must(strstr(dscomm_last_error(), ": ") != NULL);
    dscomm_env_check_master(env);
    check_candidates(env);
    dscomm_env_free(env);
}

static void walk(const char *value, int depth)
{
    const char *item = dscomm_priv_json_first(value);
    int64_t number;

    must(depth <= 32);
    g_free(dscomm_priv_json_string(value));
    dscomm_priv_json_number(value, &number);
    dscomm_priv_json_member(value, "a");
    for (; item; item = dscomm_priv_json_next(item))
        walk(item, depth + 1);
}

static void try_texts(const char *text)
{
    env_tasks_t tasks;
    const char *value;
    char *first = NULL;
    env_problem_t problem = dscomm_priv_nodelist_first(text, &first);

    must(problem.what ? problem.at <= strlen(text) : strlen(first) <= 255);
    g_free(first);
    problem = dscomm_priv_tasks(text, 1, &tasks);
    must(problem.what || (tasks.nodes >= 1 && tasks.here >= -1));
    problem = dscomm_priv_json_check(text, &value);
    must(problem.at <= strlen(text));
    if (!problem.what)
        walk(value, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = g_malloc(size + 1);
    environment_t environment = {.count = 0};
    char *line = text;

    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    try_texts(text);
    for (size_t i = 0; i <= size; i++) {
        if (text[i] != '\0' && text[i] != '\n')
            continue;
        text[i] = '\0';
        if (environment.count < LINES_MAX)
            environment.lines[environment.count++] = line;
        line = text + i + 1;
    }
    try_environment(&environment);
    g_free(text);
    return 0;
}
