/* SPDX-License-Identifier: BSD-3-Clause */
/* A command line for a shell. */
#include "config.h"

#include "tools/env/advice/advice.h"

#include <string.h>

static void add(GString *line, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+./:=,@%";
    char *quoted = *word && strspn(word, plain) == strlen(word)
                       ? g_strdup(word)
                       : g_shell_quote(word);

    if (line->len)
        g_string_append_c(line, ' ');
    g_string_append(line, quoted);
    g_free(quoted);
}

static void add_words(GString *line, char *const *words)
{
    for (; words && *words; words++)
        add(line, *words);
}

char *tool_advice_quote(char *const *words)
{
    GString *line = g_string_new(NULL);

    add_words(line, words);
    return g_string_free(line, FALSE);
}

static void add_parts(GString *line, const GPtrArray *parts)
{
    for (guint i = 0; i < parts->len; i++) {
        const tool_advice_part_t *part = g_ptr_array_index(parts, i);

        add_words(line, part->words);
    }
}

char *tool_advice_line(const tool_advice_t *advice)
{
    static char *const placeholder[] = {(char *)"PROGRAM", NULL};
    GString *line = g_string_new(NULL);

    add_parts(line, advice->variables);
    add(line, advice->program);
    add_parts(line, advice->parts);
    add_words(line, advice->command ? advice->command : placeholder);
    return g_string_free(line, FALSE);
}
