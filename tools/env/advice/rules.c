/* SPDX-License-Identifier: BSD-3-Clause */
/* The interpreter of rules.ini. */
#include "config.h"

#include "tools/env/advice/rules.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* One string a line. */
static const char *const lines[] = {
#include "tools/env/advice/rules.inc"
    NULL};

/* The keys that groups of each kind may have, and of which they need one. */
#define DECISIONS "kept|replaced|dropped"

static const struct {
    const char *kind, *needed, *keys;
} kinds[] = {
    {"front", "why", "why|value"},
    {"part", "why", "why|value"},
    {"note", "why", "why|each"},
    {"option", DECISIONS, DECISIONS "|line|add|instead"},
    {"mca", DECISIONS, DECISIONS "|line|add|instead"},
    {"variable", DECISIONS, DECISIONS "|line|add|instead"},
    {"device", "why", "why|mtl"},
    {"options", "*", "*"},
    {"facts", "*", "*"},
    {"names", "*", "*"},
    {"forward", "*", "*"},
};

/* Adds a rule. A group whose name is one word is not a rule. */
static void rule_add(advice_state_t *state, const char *group)
{
    char **halves = g_strsplit(group, " if ", 2);
    char **words = g_strsplit(halves[0], " ", 2);

    if (words[1]) {
        advice_rule_t *rule = g_new0(advice_rule_t, 1);
        char **pair = g_strsplit(words[1], "=", 2);

        rule->group = group;
        rule->kind = g_intern_string(words[0]);
        rule->name = g_intern_string(pair[0]);
        rule->check = g_intern_string(pair[1]);
        rule->terms = g_intern_string(halves[1]);
        g_ptr_array_add(state->rules, rule);
        g_strfreev(pair);
    }
    g_strfreev(words);
    g_strfreev(halves);
}

void tool_advice_rules_open(advice_state_t *state)
{
    static const char *const launchers[] = {"openmpi", "mpich", "intel"};
    char *text = g_strjoinv("\n", (char **)lines);
    GError *error = NULL;
    char **group;

    state->file = g_key_file_new();
    g_key_file_load_from_data(state->file, text, strlen(text), 0, &error);
    if (error)
        g_error("rules.ini: %s", error->message);
    g_free(text);
    state->groups = g_key_file_get_groups(state->file, NULL);
    state->rules = g_ptr_array_new_with_free_func(g_free);
    for (group = state->groups; *group; group++)
        rule_add(state, *group);
    state->values =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (size_t i = 0; i < G_N_ELEMENTS(launchers); i++)
        tool_advice_set_fact(state, launchers[i], false);
    tool_advice_set(state, state->advice->launcher, "%s",
                    state->advice->version);
}

void tool_advice_rules_close(advice_state_t *state)
{
    g_ptr_array_unref(state->rules);
    g_hash_table_unref(state->values);
    g_strfreev(state->groups);
    g_key_file_unref(state->file);
}

const char *tool_advice_rules_get(const advice_state_t *state,
                                  const char *group, const char *key)
{
    char *value = g_key_file_get_value(state->file, group, key, NULL);
    const char *text = g_intern_string(value);

    g_free(value);
    return text;
}

const char *tool_advice_variable(const tool_advice_question_t *question,
                                 const char *name)
{
    const char *value = g_environ_getenv((char **)question->environment, name);

    return value && *value ? value : NULL;
}

void tool_advice_set(advice_state_t *state, const char *name,
                     const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_hash_table_insert(state->values, g_strdup(name),
                        g_strdup_vprintf(format, args));
    va_end(args);
}

void tool_advice_set_fact(advice_state_t *state, const char *name, bool holds)
{
    tool_advice_set(state, name, "%s", holds ? "1" : "");
}

const char *tool_advice_fact(const advice_state_t *state, const char *name)
{
    const char *value = g_hash_table_lookup(state->values, name);

    if (!value)
        g_error("rules.ini: [%s]: there is no fact '%s'", state->group, name);
    return value;
}

char *tool_advice_expand(const advice_state_t *state, const char *text)
{
    GString *result = g_string_new(NULL);
    const char *open;

    while ((open = strchr(text, '{'))) {
        const char *close = strchr(open, '}');
        char *name;

        g_assert(close);
        name = g_strndup(open + 1, (gsize)(close - open - 1));
        g_string_append_len(result, text, open - text);
        g_string_append(result, tool_advice_fact(state, name));
        g_free(name);
        text = close + 1;
    }
    g_string_append(result, text);
    return g_string_free(result, FALSE);
}

char **tool_advice_words(const advice_state_t *state, const char *text)
{
    char **words = g_strsplit(text, " ", -1);

    for (int i = 0; words[i]; i++) {
        char *word = tool_advice_expand(state, words[i]);

        g_free(words[i]);
        words[i] = word;
    }
    return words;
}

char *tool_advice_quote(char *const *words)
{
    static const char plain[] =
        G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-+./:=,@%";
    GString *line = g_string_new(NULL);

    for (; words && *words; words++) {
        char *quoted = **words && !(*words)[strspn(*words, plain)]
                           ? g_strdup(*words)
                           : g_shell_quote(*words);

        g_string_append_printf(line, "%s%s", line->len ? " " : "", quoted);
        g_free(quoted);
    }
    return g_string_free(line, FALSE);
}

static bool pattern_matches(const advice_state_t *state, const char *pattern,
                            const char *text)
{
    if (*pattern != '@')
        return g_pattern_match_simple(pattern, text);
    return tool_advice_matches(
        state, tool_advice_rules_get(state, "names", pattern + 1), text);
}

bool tool_advice_matches(const advice_state_t *state, const char *patterns,
                         const char *text)
{
    char **items = g_strsplit(patterns, "|", -1);
    bool found = false;

    for (int i = 0; items[i] && !found; i++)
        found = pattern_matches(state, items[i], text);
    g_strfreev(items);
    return found;
}

/* Tests of values. A list of components that begins with "^" excludes them. */
static bool test_lists(const char *value, const char *component)
{
    char **words = g_strsplit(value, ",", -1);
    bool found =
        *value != '^' && g_strv_contains((const char *const *)words, component);

    g_strfreev(words);
    return found;
}

static bool test_lacks(const char *value, const char *components)
{
    char **words = g_strsplit(components, ",", -1);
    bool lacks = false;

    for (int i = 0; words[i] && *value != '^'; i++)
        lacks = lacks || !test_lists(value, words[i]);
    g_strfreev(words);
    return lacks;
}

int tool_advice_decimal(const char *text, int max)
{
    gint64 number = 0;

    if (!text || !*text || text[strspn(text, "0123456789")])
        return 0;
    for (; *text && number <= max; text++)
        number = number * 10 + *text - '0';
    return number > max ? 0 : (int)number;
}

static bool test_number(const char *value, const char *max)
{
    return tool_advice_decimal(value, atoi(max)) > 0;
}

bool tool_advice_is_network(const char *text)
{
    char **words = g_strsplit(text, ",", -1);
    bool good = words[0] != NULL;

    for (int i = 0; words[i]; i++) {
        char *slash = strchr(words[i], '/');
        struct in6_addr address;

        if (slash)
            *slash = 0;
        good = good && slash &&
               (inet_pton(AF_INET, words[i], &address) == 1 ||
                inet_pton(AF_INET6, words[i], &address) == 1);
    }
    g_strfreev(words);
    return good;
}

static bool test_network(const char *value, const char *unused)
{
    (void)unused;
    return tool_advice_is_network(value);
}

static const struct {
    const char *name;
    bool (*holds)(const char *value, const char *argument);
} tests[] = {
    {"lists(", test_lists},
    {"lacks(", test_lacks},
    {"number(", test_number},
    {"network(", test_network},
};

/* Returns the test with which check begins; if there is none, the number of
 * tests. */
static size_t test_find(const char *check)
{
    size_t i = 0;

    while (i < G_N_ELEMENTS(tests) && !g_str_has_prefix(check, tests[i].name))
        i++;
    return i;
}

/* Returns what is wrong with the tests in the name of a group, or NULL. */
static char *tests_fault(const char *group)
{
    for (const char *open = strchr(group, '('); open;
         open = strchr(open + 1, '(')) {
        const char *name = open;

        while (name > group && g_ascii_isalpha(name[-1]))
            name--;
        if (test_find(name) == G_N_ELEMENTS(tests) || !strchr(open, ')'))
            return g_strdup_printf("there is no test '%s'", name);
    }
    return NULL;
}

static char *group_fault(GKeyFile *file, const char *group)
{
    char *kind = g_strndup(group, strcspn(group, " ")), *fault = NULL;
    char **keys = g_key_file_get_keys(file, group, NULL, NULL);
    bool complete = false;
    size_t i = 0;

    while (i < G_N_ELEMENTS(kinds) && strcmp(kinds[i].kind, kind) != 0)
        i++;
    if (i == G_N_ELEMENTS(kinds))
        fault = g_strdup_printf("there is no kind '%s'", kind);
    for (char **key = keys; *key && !fault; key++) {
        if (!tool_advice_matches(NULL, kinds[i].keys, *key))
            fault = g_strdup_printf("there is no key '%s'", *key);
        else if (tool_advice_matches(NULL, kinds[i].needed, *key))
            complete = true;
    }
    if (!fault && !complete)
        fault = g_strdup_printf("it needs %s", kinds[i].needed);
    g_strfreev(keys);
    g_free(kind);
    return fault ? fault : tests_fault(group);
}

char *tool_advice_rules_fault(const char *text)
{
    GKeyFile *file = g_key_file_new();
    GError *error = NULL;
    char *fault = NULL, **groups;

    g_key_file_load_from_data(file, text, strlen(text), 0, &error);
    groups = g_key_file_get_groups(file, NULL);
    if (error)
        fault = g_strdup(error->message);
    for (char **group = groups; *group && !fault; group++) {
        char *what = group_fault(file, *group);

        if (what)
            fault = g_strdup_printf("[%s]: %s", *group, what);
        g_free(what);
    }
    g_clear_error(&error);
    g_strfreev(groups);
    g_key_file_unref(file);
    return fault;
}

/* A missing value fails every check. */
static bool value_passes(const advice_state_t *state, const char *check,
                         const char *value)
{
    bool negated = *check == '!', passes;
    size_t i;

    if (!value)
        return false;
    check += negated;
    i = test_find(check);
    if (i < G_N_ELEMENTS(tests)) {
        const char *open = check + strlen(tests[i].name);
        char *argument = g_strndup(open, strcspn(open, ")"));

        passes = tests[i].holds(value, argument);
        g_free(argument);
    } else {
        passes = tool_advice_matches(state, check, value);
    }
    return passes != negated;
}

const advice_given_t *tool_advice_given(const advice_state_t *state,
                                        const char *kind, const char *patterns)
{
    const advice_given_t *found = NULL;

    for (guint i = 0; i < state->given->len; i++) {
        const advice_given_t *given = g_ptr_array_index(state->given, i);

        if (strcmp(given->kind, kind) == 0 &&
            tool_advice_matches(state, patterns, given->name) &&
            (!found || !given->ambient))
            found = given;
    }
    return found;
}

/* The term "mca:pml=ucx": returns whether the effective argument passes the
 * check. */
static bool term_given(const advice_state_t *state, char *term, char *name,
                       const char *value)
{
    bool arguments = strcmp(term, "given") == 0;
    const advice_given_t *given =
        tool_advice_given(state, arguments ? "mca" : term, name);

    return given && !(arguments && given->ambient) &&
           (!value || value_passes(state, value, given->value));
}

/* The term of a fact or variable: compares its value with operand by sign;
 * without sign, returns whether it is not empty. */
static bool term_compare(const char *value, char sign, const char *operand)
{
    if (!value || !*value)
        return false;
    if (sign == '<')
        return atoi(value) < atoi(operand);
    if (sign == '>') /* ">=" */
        return atoi(value) >= atoi(operand + 1);
    return !sign || strcmp(value, operand) == 0;
}

static bool term_holds(const advice_state_t *state, const char *text)
{
    bool negated = *text == '!', holds;
    char *term = g_strdup(text + negated);
    char *operand = term + strcspn(term, "=<>"), sign = *operand, *colon;

    if (sign)
        *operand++ = 0;
    colon = strchr(term, ':');
    if (colon)
        *colon++ = 0;
    if (colon)
        holds = term_given(state, term, colon, sign ? operand : NULL);
    else if (*term == '$')
        holds = term_compare(tool_advice_variable(state->question, term + 1),
                             sign, operand);
    else
        holds = term_compare(tool_advice_fact(state, term), sign, operand);
    g_free(term);
    return holds != negated;
}

bool tool_advice_holds(const advice_state_t *state, const char *terms)
{
    char **words = g_strsplit(terms ? terms : "", " ", -1);
    bool holds = true;

    for (int i = 0; words[i] && holds; i++)
        holds = !*words[i] || term_holds(state, words[i]);
    g_strfreev(words);
    return holds;
}

void tool_advice_rules_facts(advice_state_t *state)
{
    char **names = g_key_file_get_keys(state->file, "facts", NULL, NULL);

    for (int i = 0; names[i]; i++) {
        char **alternatives = g_strsplit(
            tool_advice_rules_get(state, "facts", names[i]), ";", -1);
        bool holds = false;

        state->group = "facts";
        for (int j = 0; alternatives[j]; j++)
            holds = holds || tool_advice_holds(state, alternatives[j]);
        tool_advice_set_fact(state, names[i], holds);
        g_strfreev(alternatives);
    }
    g_strfreev(names);
}

const advice_rule_t *tool_advice_rule(advice_state_t *state,
                                      const advice_given_t *given)
{
    for (guint i = 0; i < state->rules->len; i++) {
        const advice_rule_t *rule = g_ptr_array_index(state->rules, i);

        state->group = rule->group;
        if (strcmp(rule->kind, given->kind) == 0 &&
            tool_advice_matches(state, rule->name, given->name) &&
            (!rule->check || value_passes(state, rule->check, given->value)) &&
            tool_advice_holds(state, rule->terms))
            return rule;
    }
    return NULL;
}
