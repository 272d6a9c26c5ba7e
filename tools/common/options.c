/* SPDX-License-Identifier: BSD-3-Clause */
/* Options and messages in one form for all subcommands. */
#include "config.h"

#include "lib/base/nearest.h"
#include "tools/common/terminal.h"
#include "tools/common/tool.h"
#include "tools/run/spawn.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Options with their whole numbers as texts, because GLib reads 010 as 8. */
typedef struct {
    const GOptionEntry *wanted;
    GOptionEntry *entries; /* the same, with numbers as texts */
    char **texts; /* one an entry */
} numbers_t;

static numbers_t numbers_new(const GOptionEntry *wanted)
{
    numbers_t numbers = {wanted, NULL, NULL};
    gsize count = 0;

    while (wanted[count].long_name)
        count++;
    numbers.entries = g_new0(GOptionEntry, count + 1);
    numbers.texts = g_new0(char *, count + 1);
    for (gsize i = 0; i < count; i++) {
        numbers.entries[i] = wanted[i];
        if (wanted[i].arg != G_OPTION_ARG_INT)
            continue;
        numbers.entries[i].arg = G_OPTION_ARG_STRING;
        numbers.entries[i].arg_data = &numbers.texts[i];
    }
    return numbers;
}

/* Returns false if text is not a decimal number that fits into an int. */
static bool read_decimal(const char *text, int *ret_number)
{
    gint64 number;

    if (*text == '+' ||
        !g_ascii_string_to_signed(text, 10, -G_MAXINT, G_MAXINT, &number, NULL))
        return false;
    *ret_number = (int)number;
    return true;
}

/* Stores the numbers. Returns NULL, or what is wrong; g_free(). */
static char *numbers_set(const numbers_t *numbers)
{
    for (gsize i = 0; numbers->wanted[i].long_name; i++) {
        if (numbers->texts[i] &&
            !read_decimal(numbers->texts[i], numbers->wanted[i].arg_data))
            return g_strdup_printf("'%s' for --%s is no decimal number, or far "
                                   "too large",
                                   numbers->texts[i],
                                   numbers->wanted[i].long_name);
    }
    return NULL;
}

static void numbers_free(numbers_t *numbers)
{
    for (gsize i = 0; numbers->wanted[i].long_name; i++)
        g_free(numbers->texts[i]);
    g_free(numbers->texts);
    g_free(numbers->entries);
}

/* True if word is "--NAME=VALUE", and NAME an option without a value. */
static bool is_valued_flag(const GOptionEntry *entries, const char *word)
{
    for (; entries->long_name; entries++) {
        const gsize length = strlen(entries->long_name);

        if (entries->arg == G_OPTION_ARG_NONE && g_str_has_prefix(word, "--") &&
            strncmp(word + 2, entries->long_name, length) == 0 &&
            word[2 + length] == '=')
            return true;
    }
    return false;
}

/* Returns what is wrong with the words that were parsed, those in words but not
 * in rest, or NULL; g_free(). GLib ignores the value of an option that has
 * none. */
static char *flags_check(const GOptionEntry *entries, char *const *words,
                         char *const *rest)
{
    for (; *words; words++) {
        if (*rest == *words)
            rest++;
        else if (is_valued_flag(entries, *words))
            return g_strdup_printf("%.*s takes no value; remove '%s'",
                                   (int)strcspn(*words, "="), *words,
                                   strchr(*words, '='));
    }
    return NULL;
}

/* Returns the word that error reports as an unknown option, without its value;
 * NULL: none. GLib's sentence ends with that word in every language. */
static char *find_unknown(char *const *words, const GError *error)
{
    if (!g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION))
        return NULL;
    for (; *words; words++) {
        const char *name = *words + strspn(*words, "-");

        if (**words == '-' && strlen(name) > 2 &&
            g_str_has_suffix(error->message, *words))
            return g_strndup(name, strcspn(name, "="));
    }
    return NULL;
}

/* Returns GLib's sentence, with a suggestion for a misspelt option;
 * g_free(). */
static char *error_describe(const GOptionEntry *entries, char *const *words,
                            const GError *error)
{
    char *name = find_unknown(words, error), *text;
    dscomm_nearest_t search = dscomm_priv_nearest_begin(name ? name : "", 0);

    for (; name && entries->long_name; entries++)
        dscomm_priv_nearest_try(&search, entries->long_name);
    text = search.nearest ? g_strdup_printf("%s (is --%s meant?)",
                                            error->message, search.nearest)
                          : g_strdup(error->message);
    g_free(name);
    return text;
}

bool tool_parse(int *argc, char ***argv, const GOptionEntry *entries,
                const char *parameters, const char *description, bool strict,
                char **ret_problem)
{
    const char *command = (*argv)[0];
    GOptionContext *context = g_option_context_new(parameters);
    numbers_t numbers = numbers_new(entries);
    GError *error = NULL;
    char **words = g_new0(char *, (gsize)*argc + 1);
    char *name = g_strdup_printf("dscomm %s", command), *problem, *sentence;

    memcpy(words, *argv, (gsize)*argc * sizeof *words);
    g_set_prgname(name);
    g_option_context_set_strict_posix(context, strict);
    g_option_context_set_description(context, description);
    g_option_context_add_main_entries(context, numbers.entries, NULL);
    if (g_option_context_parse(context, argc, argv, &error))
        problem = numbers_set(&numbers);
    else
        problem = error_describe(entries, *argv, error);
    if (!problem)
        problem = flags_check(entries, words, *argv);
    g_free(words);
    numbers_free(&numbers);
    g_clear_error(&error);
    g_option_context_free(context);
    g_free(name);
    if (!problem)
        return true;
    sentence =
        g_strdup_printf("%s; 'dscomm %s --help' explains", problem, command);
    g_free(problem);
    if (ret_problem) {
        *ret_problem = sentence;
    } else {
        tool_fail(0, command, "%s", sentence);
        g_free(sentence);
    }
    return false;
}

bool tool_is_id(const char *text)
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
    return g_string_free(clean, false);
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

void tool_progress(const char *format, va_list args)
{
    if (!tool_is_own_terminal(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[K");
    if (format)
        vfprintf(stderr, format, args);
    fflush(stderr);
}
