/* SPDX-License-Identifier: BSD-3-Clause */
/* Given arguments: splits them into options with values, and decides about
 * each by the rules or by the new command line. */
#include "config.h"

#include "tools/env/advice/rules.h"

#include <stdbool.h>
#include <string.h>

void tool_advice_given_free(void *given)
{
    advice_given_t *g = given;

    g_free(g->name);
    g_free(g->value);
    g_strfreev(g->words);
    g_free(g);
}

/* Returns the number of words after an option; sets its kind, and whether it
 * is known. */
static int option_words(const advice_state_t *state, advice_given_t *given)
{
    static const char *const groups[] = {"options 0", "options 1", "options 2"};
    int words = 0;

    given->kind = "option";
    for (int count = 0; count < 3 && !given->known; count++) {
        char **keys =
            g_key_file_get_keys(state->file, groups[count], NULL, NULL);

        for (int i = 0; keys[i] && !given->known; i++) {
            const char *names =
                tool_advice_rules_get(state, groups[count], keys[i]);

            given->known = tool_advice_matches(state, names, given->name);
            words = given->known ? count : 0;
            if (given->known && strcmp(keys[i], "mca") == 0)
                given->kind = "mca";
            else if (given->known && strcmp(keys[i], "variable") == 0)
                given->kind = "variable";
        }
        g_strfreev(keys);
    }
    return words;
}

/* Sets the name and the value of a parameter or variable. */
static void given_name_pair(advice_given_t *given)
{
    const char *name = given->words[1];
    const char *equals = strchr(name, '=');

    if (strcmp(given->kind, "option") == 0) {
        given->value = g_strdup(name);
        return;
    }
    g_free(given->name);
    given->name = g_strndup(name, strcspn(name, "="));
    if (given->words[2])
        given->value = g_strdup(given->words[2]);
    else if (equals)
        given->value = g_strdup(equals + 1);
}

/* Parses one option at the beginning of words; returns the number of words
 * that it takes. */
static int given_cut(advice_state_t *state, char *const *words)
{
    const char *name = words[0] + 1 + (words[0][1] == '-');
    size_t length = strcspn(name, "=");
    advice_given_t *given = g_new0(advice_given_t, 1);
    int count, taken;

    given->name = g_strndup(name, length);
    count = option_words(state, given);
    if (name[length] && strcmp(given->kind, "option") == 0) {
        given->value = g_strdup(name + length + 1);
        count = 0;
    }
    for (taken = 1; taken <= count && words[taken]; taken++)
        ;
    given->words = g_new0(char *, (gsize)taken + 1);
    for (int i = 0; i < taken; i++)
        given->words[i] = g_strdup(words[i]);
    if (taken > 1)
        given_name_pair(given);
    else if (count)
        given->known = false;
    g_ptr_array_add(state->given, given);
    return taken;
}

static bool word_is_launcher(const char *word)
{
    char *name = g_path_get_basename(word);
    bool launcher =
        g_str_has_prefix(name, "mpirun") || g_str_has_prefix(name, "mpiexec") ||
        strcmp(name, "orterun") == 0 || strcmp(name, "prterun") == 0;

    g_free(name);
    return launcher;
}

static void given_read_ambient(advice_state_t *state)
{
    static const char prefix[] = "OMPI_MCA_";
    char *const *entry = state->question->environment;

    for (; entry && *entry; entry++) {
        char **pair = g_strsplit(*entry, "=", 2);

        if (g_str_has_prefix(*entry, prefix) && pair[1] && *pair[1]) {
            advice_given_t *given = g_new0(advice_given_t, 1);

            given->kind = "mca";
            given->known = given->ambient = true;
            given->name = g_strdup(pair[0] + strlen(prefix));
            given->value = g_strdup(pair[1]);
            given->words = g_new0(char *, 2);
            given->words[0] = g_strdup(*entry);
            g_ptr_array_add(state->given, given);
        }
        g_strfreev(pair);
    }
}

void tool_advice_given_read(advice_state_t *state)
{
    char *const *word = state->question->given;

    if (word && *word && word_is_launcher(*word))
        word++;
    while (word && *word && (*word)[0] == '-' && (*word)[1]) {
        if (strcmp(*word, "--") == 0) {
            word++;
            break;
        }
        word += given_cut(state, word);
    }
    if (word && *word)
        state->advice->command = g_strdupv((char **)word);
    if (tool_advice_holds(state, "openmpi"))
        given_read_ambient(state);
}

void tool_advice_part_add(GPtrArray *parts, char **words, const char *why)
{
    tool_advice_part_t *part = g_new(tool_advice_part_t, 1);

    part->words = words;
    part->why = g_strdup(why);
    g_ptr_array_add(parts, part);
}

/* Returns the text of the part whose words begin with `begin`, or NULL;
 * g_free(). */
static char *part_find(const advice_state_t *state, const char *begin)
{
    const GPtrArray *parts = state->advice->parts;

    for (guint i = 0; i < parts->len; i++) {
        const tool_advice_part_t *part = g_ptr_array_index(parts, i);
        char *text = tool_advice_quote(part->words);

        if (g_str_has_prefix(text, begin))
            return text;
        g_free(text);
    }
    return NULL;
}

/* Adds a decision; takes ownership of instead. */
static void given_judge(advice_state_t *state, const advice_given_t *given,
                        const char *verdict, const char *why, char *instead)
{
    tool_advice_judgement_t *judgement = g_new(tool_advice_judgement_t, 1);

    judgement->text = tool_advice_quote(given->words);
    judgement->verdict = verdict;
    judgement->why = tool_advice_expand(state, why);
    judgement->instead = instead;
    g_ptr_array_add(state->advice->judgements, judgement);
}

/* Adds the equivalent argument of this mpirun to the line, unless it is from
 * the environment, which is not in the line; g_free(). */
static char *part_add_other(advice_state_t *state, const advice_given_t *given,
                            const char *template)
{
    char **words = tool_advice_words(state, template);
    char *text = tool_advice_quote(words);

    if (given->ambient)
        g_strfreev(words);
    else
        tool_advice_part_add(state->advice->parts, words,
                             "as it was given, in this mpirun's words");
    return text;
}

/* Returns the replacement that a rule gives, or NULL; g_free(). */
static char *judge_instead(advice_state_t *state, const advice_rule_t *rule,
                           const advice_given_t *given)
{
    const char *line = tool_advice_rules_get(state, rule->group, "line");
    const char *other = tool_advice_rules_get(state, rule->group, "add");
    const char *text = tool_advice_rules_get(state, rule->group, "instead");

    if (line)
        return part_find(state, line);
    if (other)
        return part_add_other(state, given, other);
    return text ? tool_advice_expand(state, text) : NULL;
}

/* Decides by the rules. Returns false if no rule matches, or the argument needs
 * no comment. */
static bool judge_by_rule(advice_state_t *state, const advice_given_t *given)
{
    static const char *const verdicts[] = {"kept", "replaced", "dropped"};
    const advice_rule_t *rule = tool_advice_rule(state, given);
    const char *why = NULL;
    int i = given->ambient; /* variables that are kept need no comment */

    for (; rule && i < 3; i++) {
        why = tool_advice_rules_get(state, rule->group, verdicts[i]);
        if (why)
            break;
    }
    if (!why)
        return false;
    tool_advice_set(state, "value", "%s", given->value ? given->value : "");
    tool_advice_set(state, "rest", "%s",
                    given->name +
                        MIN(strlen(given->name), strcspn(rule->name, "*")));
    if (i == 0)
        tool_advice_part_add(state->advice->parts, g_strdupv(given->words),
                             "as it was given");
    given_judge(state, given, verdicts[i], why,
                judge_instead(state, rule, given));
    return true;
}

/* Returns whether part sets the same option as given. */
static bool part_is_about(const tool_advice_part_t *part,
                          const advice_given_t *given)
{
    static const char *const synonyms[][2] = {
        {"np", "n"}, {"c", "n"}, {"perhost", "ppn"}};
    const char *name = given->name, *option = part->words[0];

    if (strcmp(given->kind, "option") != 0)
        return strcmp(option, strcmp(given->kind, "mca") == 0 ? "--mca"
                                                              : "-genv") == 0 &&
               g_strcmp0(part->words[1], name) == 0;
    for (size_t i = 0; i < G_N_ELEMENTS(synonyms); i++) {
        if (strcmp(name, synonyms[i][0]) == 0)
            name = synonyms[i][1];
    }
    return strcmp(option + strspn(option, "-"), name) == 0;
}

/* Returns the part of the line that sets the same option as given, or NULL. */
static const tool_advice_part_t *part_about(const advice_state_t *state,
                                            const advice_given_t *given)
{
    const GPtrArray *parts = state->advice->parts;

    for (guint i = 0; i < parts->len; i++) {
        const tool_advice_part_t *part = g_ptr_array_index(parts, i);

        if (part_is_about(part, given))
            return part;
    }
    return NULL;
}

static void judge_by_part(advice_state_t *state, const advice_given_t *given,
                          const tool_advice_part_t *part)
{
    const char *value = part->words[g_strv_length(part->words) - 1];

    if (given->value ? strcmp(given->value, value) == 0 : given->known)
        given_judge(state, given, "kept", "the line says the same", NULL);
    else
        given_judge(state, given, "replaced",
                    given->value ? "the line has its own"
                                 : "it lacks its value; the line has its own",
                    tool_advice_quote(part->words));
}

static void judge_kept(advice_state_t *state, const advice_given_t *given,
                       const char *verdict, const char *why)
{
    tool_advice_part_add(state->advice->parts, g_strdupv(given->words),
                         "as it was given");
    given_judge(state, given, verdict, why, NULL);
}

/* Open MPI has -x NAME=VALUE, the others have -genv NAME VALUE. */
static void judge_variable(advice_state_t *state, const advice_given_t *given)
{
    bool openmpi = tool_advice_holds(state, "openmpi");
    bool is_x = strspn(given->words[0], "-x") == strlen(given->words[0]);
    char *pair, **words;

    if (is_x == openmpi) {
        judge_kept(state, given, "kept", "right as it is");
        return;
    }
    if (!given->value) {
        given_judge(state, given, "dropped",
                    "an option of Open MPI; mpiexec hands all variables on",
                    NULL);
        return;
    }
    pair = g_strdup_printf("%s=%s", given->name, given->value);
    words = g_strdupv(
        openmpi ? (char *[]){(char *)"-x", pair, NULL}
                : (char *[]){(char *)"-genv", given->name, given->value, NULL});
    given_judge(state, given, "replaced",
                openmpi ? "an option of MPICH" : "an option of Open MPI",
                tool_advice_quote(words));
    tool_advice_part_add(state->advice->parts, words, "as it was given");
    g_free(pair);
}

static void judge_other(advice_state_t *state, const advice_given_t *given)
{
    const tool_advice_part_t *part = part_about(state, given);

    if (given->ambient)
        return;
    if (part)
        judge_by_part(state, given, part);
    else if (!given->known)
        judge_kept(
            state, given, "unknown",
            "no rule knows it; it and what follows are left as they are");
    else if (strcmp(given->kind, "mca") == 0)
        judge_kept(
            state, given, "unknown",
            "no rule knows it; Open MPI silently ignores a name that it does "
            "not know either: see ompi_info --all");
    else if (strcmp(given->kind, "variable") == 0)
        judge_variable(state, given);
    else
        judge_kept(state, given, "kept", "right as it is");
}

void tool_advice_given_judge(advice_state_t *state)
{
    for (guint i = 0; i < state->given->len; i++) {
        const advice_given_t *given = g_ptr_array_index(state->given, i);

        if (!judge_by_rule(state, given))
            judge_other(state, given);
    }
}
