/* SPDX-License-Identifier: BSD-3-Clause */
/* Options and messages in one form for all subcommands. */
#include "config.h"

#include "tools/spawn.h"
#include "tools/tool.h"

#include <stdio.h>
#include <string.h>

static gboolean parse(int *argc, char ***argv, const GOptionEntry *entries,
                      const char *parameters, const char *description,
                      gboolean strict)
{
    const char *command = (*argv)[0];
    GOptionContext *context = g_option_context_new(parameters);
    GError *error = NULL;
    char *name = g_strdup_printf("dscomm %s", command);

    g_set_prgname(name);
    g_option_context_set_strict_posix(context, strict);
    g_option_context_set_description(context, description);
    g_option_context_add_main_entries(context, entries, NULL);
    gboolean parsed = g_option_context_parse(context, argc, argv, &error);
    if (!parsed) {
        tool_fail(TOOL_USAGE, command, "%s; 'dscomm %s --help' explains",
                  error->message, command);
        g_error_free(error);
    }
    g_option_context_free(context);
    g_free(name);
    return parsed;
}

gboolean tool_parse(int *argc, char ***argv, const GOptionEntry *entries,
                    const char *parameters, const char *description)
{
    return parse(argc, argv, entries, parameters, description, TRUE);
}

gboolean tool_parse_anywhere(int *argc, char ***argv,
                             const GOptionEntry *entries,
                             const char *parameters, const char *description)
{
    return parse(argc, argv, entries, parameters, description, FALSE);
}

gboolean tool_is_id(const char *text)
{
    static const char fit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t length = strlen(text);

    return length > 0 && length <= TOOL_ID_MAX && strspn(text, fit) == length &&
           strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

char *tool_printable(const char *text)
{
    GString *clean = g_string_new(NULL);

    while (*text) {
        gunichar c = g_utf8_get_char_validated(text, -1);
        if (c < (gunichar)-2 && g_unichar_isprint(c)) {
            g_string_append_unichar(clean, c);
            text = g_utf8_next_char(text);
        } else {
            g_string_append_printf(clean, "\\x%02x", (guchar)*text++);
        }
    }
    return g_string_free(clean, FALSE);
}

char *tool_sentence(const char *command, const char *format, va_list args)
{
    char *sentence = g_strdup_vprintf(format, args);
    char *printable = tool_printable(sentence);
    char *line = g_strdup_printf("dscomm %s: %s\n", command, printable);

    g_free(printable);
    g_free(sentence);
    return line;
}

int tool_fail(int status, const char *command, const char *format, ...)
{
    va_list args;
    char *line;

    va_start(args, format);
    line = tool_sentence(command, format, args);
    va_end(args);
    fputs(line, stderr);
    g_free(line);
    return status;
}
