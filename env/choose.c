/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the source of rank and world size, and says of each source why it was
 * taken or not. */
#include "config.h"

#include "env/env.h"

#include <stdio.h>
#include <string.h>

#define LIST_MAX 512 /* bytes of ENV_MARKS names and their separators */

static void list_append(char *text, const char *between, const char *name)
{
    const size_t length = strlen(text);

    snprintf(text + length, LIST_MAX - length, "%s%s", length ? between : "",
             name);
}

/* Writes "A, B and C": the names in list that are set, or those that are
 * not. */
static void list_marks(const env_view_t *view, const char *const *list, int set,
                       char *text)
{
    const char *last = NULL;

    *text = '\0';
    for (int i = 0; i < ENV_MARKS && list[i]; i++) {
        if ((dscomm_priv_view_value(view, list[i]) != NULL) != set)
            continue;
        if (last)
            list_append(text, ", ", last);
        last = list[i];
    }
    if (last)
        list_append(text, " and ", last);
}

static int has_all(const env_view_t *view, const env_family_t *family)
{
    for (int i = 0; i < ENV_MARKS && family->all[i]; i++) {
        if (!dscomm_priv_view_value(view, family->all[i]))
            return 0;
    }
    return 1;
}

static int family_has_any(const env_view_t *view, const env_family_t *family)
{
    for (int i = 0; i < ENV_MARKS && family->any[i]; i++) {
        if (dscomm_priv_view_value(view, family->any[i]))
            return 1;
    }
    return !family->any[0];
}

/* Describes the marks that are missing, or those that are present. */
static char *describe_marks(const env_view_t *view, const env_family_t *family,
                            dscomm_env_t *env)
{
    const char *const *list =
        !has_all(view, family) || !family->any[0] ? family->all : family->any;
    int present = has_all(view, family) && family_has_any(view, family);
    char names[LIST_MAX];

    list_marks(view, list, present, names);
    if (!*names)
        return dscomm_priv_env_text(env, "nothing else is there");
    return dscomm_priv_env_text(env, present ? "%s set" : "%s not set", names);
}

/* Judges a source by its own variables only. */
static env_judgement_t family_judge(const env_view_t *view,
                                    const env_family_t *family, int asked,
                                    dscomm_env_t *env)
{
    env_judgement_t judgement = {DSCOMM_ENV_ABSENT, NULL};

    if (family->on_request && !asked) {
        judgement.why = dscomm_priv_env_text(
            env, "only where DSCOMM_LAUNCHER is '%s'", family->name);
        return judgement;
    }
    if (has_all(view, family) && family_has_any(view, family)) {
        int refused =
            !asked && family->refuses && family->refuses(view, &judgement.why);

        judgement.verdict = refused ? DSCOMM_ENV_REFUSED : DSCOMM_ENV_IGNORED;
    }
    if (!judgement.why)
        judgement.why = describe_marks(view, family, env);
    return judgement;
}

static void judge_all(const env_view_t *view, const char *wanted,
                      dscomm_env_t *env)
{
    for (size_t i = 0; i < dscomm_priv_env_family_count; i++) {
        const env_family_t *family = dscomm_priv_env_families[i];
        int asked = wanted && g_ascii_strcasecmp(wanted, family->name) == 0;

        env->judgements[i] = family_judge(view, family, asked, env);
    }
}

static void family_take(dscomm_env_t *env, size_t index)
{
    env->judgements[index].verdict = DSCOMM_ENV_TAKEN;
    env->family = dscomm_priv_env_families[index];
}

static dscomm_status_t choice_take_first(dscomm_env_t *env)
{
    size_t i = 0;

    while (env->judgements[i].verdict != DSCOMM_ENV_IGNORED)
        i++;
    family_take(env, i);
    return DSCOMM_OK;
}

static dscomm_status_t choice_refuse_name(const env_view_t *view,
                                          dscomm_env_t *env)
{
    GString *names = g_string_new(NULL);
    dscomm_status_t status;

    for (size_t i = 0; i < dscomm_priv_env_family_count; i++)
        g_string_append_printf(names, ", %s",
                               dscomm_priv_env_families[i]->name);
    status = dscomm_priv_env_fail(view, env, "DSCOMM_LAUNCHER",
                                  "no such source. Set it to one of auto%s",
                                  names->str);
    g_string_free(names, TRUE);
    return status;
}

/* Both were set by the user, who may have forgotten one of them. */
static void warn_explicit(dscomm_env_t *env)
{
    for (size_t i = 0; i < dscomm_priv_env_family_count; i++) {
        if (env->judgements[i].verdict == DSCOMM_ENV_IGNORED &&
            dscomm_priv_env_families[i]->tier == ENV_TIER_EXPLICIT)
            dscomm_priv_env_warn(env,
                                 "%s, but DSCOMM_LAUNCHER asks for %s, which "
                                 "is taken",
                                 env->judgements[i].why, env->family->name);
    }
}

/* A source without marks is always present. */
static void explain_forced(dscomm_env_t *env, size_t index)
{
    if (env->family->all[0] || env->family->any[0])
        return;
    g_free(env->judgements[index].why);
    env->judgements[index].why =
        dscomm_priv_env_text(env, "DSCOMM_LAUNCHER asks for it");
}

static dscomm_status_t take_named(const env_view_t *view, const char *name,
                                  dscomm_env_t *env)
{
    for (size_t i = 0; i < dscomm_priv_env_family_count; i++) {
        if (g_ascii_strcasecmp(dscomm_priv_env_families[i]->name, name) != 0)
            continue;
        if (env->judgements[i].verdict != DSCOMM_ENV_IGNORED)
            return dscomm_priv_env_fail(view, env, "DSCOMM_LAUNCHER",
                                        "is not there: %s. Start the program "
                                        "by it, or unset DSCOMM_LAUNCHER",
                                        env->judgements[i].why);
        env->forced = 1;
        family_take(env, i);
        explain_forced(env, i);
        warn_explicit(env);
        return DSCOMM_OK;
    }
    return choice_refuse_name(view, env);
}

/* Judges the sources that are present, but were not taken. */
static void explain_ignored(dscomm_env_t *env)
{
    int taken = 0;

    for (size_t i = 0; i < dscomm_priv_env_family_count; i++) {
        env_judgement_t *judgement = &env->judgements[i];
        char *marks = judgement->why;

        taken |= judgement->verdict == DSCOMM_ENV_TAKEN;
        if (judgement->verdict != DSCOMM_ENV_IGNORED)
            continue;
        judgement->why = dscomm_priv_env_text(
            env, "%s, but %s %s", marks ? marks : "", env->family->name,
            taken ? "comes first" : "is asked for");
        g_free(marks);
    }
}

dscomm_status_t dscomm_priv_env_choose(const env_view_t *view,
                                       dscomm_env_t *env)
{
    const char *wanted = dscomm_priv_view_value(view, "DSCOMM_LAUNCHER");
    dscomm_status_t status;

    judge_all(view, wanted, env);
    if (wanted && g_ascii_strcasecmp(wanted, "auto") != 0)
        status = take_named(view, wanted, env);
    else
        status = choice_take_first(env);
    if (status == DSCOMM_OK)
        explain_ignored(env);
    return status;
}
