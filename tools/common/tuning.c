/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading and writing tuning files, see tuning.h. */
#include "config.h"

#include "tools/common/tuning.h"

#include "lib/base/machine.h"
#include "lib/base/tuning.h"
#include "tools/common/save.h"
#include "tools/common/tool.h"

#include <errno.h>
#include <string.h>

static void add_machine(GKeyFile *keys)
{
    dscomm_machine_fact_t facts[DSCOMM_MACHINE_FACTS];

    dscomm_priv_machine_read("", facts);
    g_key_file_set_string(keys, DSCOMM_TUNING_MACHINE, DSCOMM_TUNING_KEY,
                          DSCOMM_TUNING_FORMAT);
    for (int i = 0; i < DSCOMM_MACHINE_FACTS; i++)
        g_key_file_set_string(keys, DSCOMM_TUNING_MACHINE, facts[i].name,
                              facts[i].value);
}

char *tool_tuning_machine(void)
{
    GKeyFile *keys = g_key_file_new();
    char *text;

    add_machine(keys);
    text = g_key_file_to_data(keys, NULL, NULL);
    g_key_file_free(keys);
    return text;
}

char *tool_tuning_text(const char *comment, char *const *settings)
{
    char *machine = tool_tuning_machine();
    GString *text = g_string_new(NULL);

    g_string_printf(text, "# %s\n%s\n[" DSCOMM_TUNING_SETTINGS "]\n", comment,
                    machine);
    for (; *settings; settings++)
        g_string_append_printf(text, "%s\n", *settings);
    g_free(machine);
    return g_string_free(text, FALSE);
}

/* Whether keys are for a machine like this one. */
static bool machine_is_this(GKeyFile *keys)
{
    dscomm_machine_fact_t facts[DSCOMM_MACHINE_FACTS];
    bool same = true;

    dscomm_priv_machine_read("", facts);
    for (int i = 0; i < DSCOMM_MACHINE_FACTS; i++) {
        char *value = g_key_file_get_string(keys, DSCOMM_TUNING_MACHINE,
                                            facts[i].name, NULL);

        same = same && g_strcmp0(value, facts[i].value) == 0;
        g_free(value);
    }
    return same;
}

GKeyFile *tool_tuning_load(const char *path)
{
    GKeyFile *keys = g_key_file_new();

    if (g_file_test(path, G_FILE_TEST_IS_REGULAR) &&
        g_key_file_load_from_file(keys, path, G_KEY_FILE_NONE, NULL) &&
        machine_is_this(keys))
        return keys;
    g_key_file_free(keys);
    return NULL;
}

char **tool_tuning_rules(GKeyFile *file)
{
    char *text = file ? g_key_file_get_string(file, DSCOMM_TUNING_SETTINGS,
                                              "DSCOMM_ALGORITHM", NULL)
                      : NULL;
    char **rules = g_strsplit(text ? text : "", ",", -1);

    g_free(text);
    return rules;
}

/* The library reads rules with blanks between words, and names in any case. */
bool tool_tuning_rule_is_for(const char *rule, const char *operation,
                             const char *backend, int ranks)
{
    char **words = g_strsplit_set(rule, " \t", -1);
    char *packed = g_strjoinv("", words);
    char *of = g_strdup_printf("%s@%s/%d:", operation ? operation : "", backend,
                               ranks);
    const char *from = operation ? packed : strchr(packed, '@');
    const bool is = from && g_ascii_strncasecmp(from, of, strlen(of)) == 0;

    g_strfreev(words);
    g_free(packed);
    g_free(of);
    return is;
}

void tool_tuning_keep(const char *path, const char *backend, int ranks,
                      GString *rules)
{
    GKeyFile *file = tool_tuning_load(path);
    char **before = tool_tuning_rules(file);

    for (char **rule = before; *rule; rule++)
        if (!tool_tuning_rule_is_for(*rule, NULL, backend, ranks))
            g_string_append_printf(rules, "%s%s", rules->len ? "," : "", *rule);
    g_strfreev(before);
    if (file)
        g_key_file_free(file);
}

/* Returns why the file at path must not be replaced; NULL: it may be. */
static const char *file_problem(const char *path)
{
    GKeyFile *keys = g_key_file_new();
    const char *problem = NULL;

    if (!g_file_test(path, G_FILE_TEST_IS_REGULAR))
        problem = NULL;
    else if (!g_key_file_load_from_file(keys, path, G_KEY_FILE_NONE, NULL) ||
             !g_key_file_has_group(keys, DSCOMM_TUNING_MACHINE))
        problem = "it exists and is no tuning file";
    else if (!machine_is_this(keys))
        problem = "it is the tuning file of another machine";
    g_key_file_free(keys);
    return problem;
}

static int write_fail(const char *command, const char *option, const char *path,
                      int error)
{
    return tool_fail(TOOL_FAILED, command, "%s %s: %s", option, path,
                     g_strerror(error));
}

int tool_tuning_check(const char *command, const char *option, const char *path)
{
    const char *problem = file_problem(path);
    tool_save_t *save;

    if (problem)
        return tool_fail(TOOL_FAILED, command,
                         "%s %s: %s; remove it, or choose another name", option,
                         path, problem);
    save = tool_save_new(path);
    if (!save)
        return write_fail(command, option, path, errno);
    tool_save_end(save, NULL);
    return TOOL_OK;
}

int tool_tuning_write(const char *command, const char *option, const char *path,
                      const char *text)
{
    tool_save_t *save = tool_save_new(path);
    int error = save ? tool_save_end(save, text) : errno;

    return error ? write_fail(command, option, path, error) : TOOL_OK;
}
