/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of environments with the expected identity, and the functions that check
 * them. */
#ifndef TESTS_ENV_VECTORS_H
#define TESTS_ENV_VECTORS_H

#include "tests/env/fixture.h"

typedef struct {
    const char *name;
    const char *environment[VARIABLES];
    /* source, rank/world/local rank/local size/node, address, port; "-" if
     * unknown, "#" for a port derived from the job's name */
    const char *want;
    /* expected in a warning, or in the reason why there is no master; NULL:
     * there is neither */
    const char *says;
} vector_t;

#define ALONE "singleton 0/1/0/1/0 127.0.0.1 -"

static inline void add_number(GString *text, const char *before, int number)
{
    if (number < 0)
        g_string_append_printf(text, "%s-", before);
    else
        g_string_append_printf(text, "%s%d", before, number);
}

/* A port derived from the job's name is above the ports that Linux assigns
 * itself, and the first of eight. */
static inline void add_port(GString *text, const dscomm_env_t *env)
{
    int port = dscomm_env_master_port(env);

    if (port >= 61440 && port <= 65520 && port % 8 == 0)
        g_string_append(text, " #");
    else
        add_number(text, " ", port);
}

static inline char *describe(const dscomm_env_t *env)
{
    GString *text = g_string_new(dscomm_env_source(env));
    const char *address = dscomm_env_master_addr(env);

    add_number(text, " ", dscomm_env_rank(env));
    add_number(text, "/", dscomm_env_world_size(env));
    add_number(text, "/", dscomm_env_local_rank(env));
    add_number(text, "/", dscomm_env_local_size(env));
    add_number(text, "/", dscomm_env_node_rank(env));
    g_string_append_printf(text, " %s", *address ? address : "-");
    add_port(text, env);
    return g_string_free(text, FALSE);
}

/* Returns the warnings, and, if there are other ranks, why the master is not
 * known. */
static inline char *words_of(const dscomm_env_t *env)
{
    GString *words = g_string_new(NULL);
    const char *text;

    for (size_t i = 0; (text = dscomm_env_warning(env, i)); i++)
        g_string_append_printf(words, "%s\n", text);
    if (dscomm_env_world_size(env) > 1 && dscomm_env_check_master(env) < 0)
        g_string_append(words, dscomm_last_error());
    return g_string_free(words, FALSE);
}

static inline void vectors_check(const dscomm_env_t *env, const vector_t *want)
{
    char *text = describe(env), *words = words_of(env);

    is_str(text, want->want, "%s", want->name);
    if (!want->says)
        is_str(words, "", "%s: says nothing", want->name);
    else if (!ok(strstr(words, want->says) != NULL, "%s: says %s", want->name,
                 want->says))
        tap_text("", words);
    g_free(text);
    g_free(words);
}
static inline void vectors_try(const vector_t *vectors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        dscomm_env_t *env;

        if (is_int(fixture_discover(vectors[i].environment, NULL, &env),
                   DSCOMM_OK, "%s is understood", vectors[i].name)) {
            vectors_check(env, &vectors[i]);
            dscomm_env_free(env);
        } else {
            tap_text("", dscomm_last_error());
        }
    }
}

#endif
