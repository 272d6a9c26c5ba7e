/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences of levels. A level has numbers of its own for its ranks, and a name
 * of its own, by which its sentences are known: one that has been translated
 * and comes back from another level has it no more. */
#include "config.h"

#include "lib/schedule/level-sentence.h"

#include <string.h>

/* A number of a rank at text, translated; returns what is behind it. */
static const char *number(const dscomm_level_t *level, const char *text,
                          GString *out)
{
    char *end;
    const guint64 rank = g_ascii_strtoull(text, &end, 10);

    if (rank < (guint64)level->count)
        g_string_append_printf(out, "%d", level->members[rank]);
    else
        g_string_append_len(out, text, end - text);
    return end;
}

/* What joins two numbers in a list: its length, or 0. */
static size_t joint(const char *text)
{
    static const char *const joints[] = {", ", " and ", "-"};

    for (size_t i = 0; i < G_N_ELEMENTS(joints); i++)
        if (g_str_has_prefix(text, joints[i]) &&
            g_ascii_isdigit(text[strlen(joints[i])]))
            return strlen(joints[i]);
    return 0;
}

/* Numbers behind "rank " or "ranks ". */
static const char *numbers(const dscomm_level_t *level, const char *text,
                           int several, GString *out)
{
    size_t length;

    text = number(level, text, out);
    while (several && (length = joint(text))) {
        g_string_append_len(out, text, (gssize)length);
        text = number(level, text + length, out);
    }
    return text;
}

void dscomm_priv_level_translate(const dscomm_levels_t *levels,
                                 const dscomm_level_t *level, char *text,
                                 size_t size)
{
    GString *out = g_string_new(NULL);
    const size_t length = strlen(level->name);
    const char *at = text;

    while (*at) {
        const int one = g_str_has_prefix(at, "rank ");
        const int several = g_str_has_prefix(at, "ranks ");
        const char *digit = at + (one ? 5 : 6);

        if (!strncmp(at, level->name, length)) {
            g_string_append(out, levels->group->identity.name);
            at += length;
        } else if ((one || several) && g_ascii_isdigit(*digit)) {
            g_string_append_len(out, at, digit - at);
            at = numbers(level, digit, several, out);
        } else {
            g_string_append_c(out, *at++);
        }
    }
    g_strlcpy(text, out->str, size);
    g_string_free(out, TRUE);
}

void dscomm_priv_level_sentence(const dscomm_levels_t *levels,
                                const dscomm_level_t *level, char *text,
                                size_t size)
{
    if (strcmp(level->name, levels->group->identity.name) &&
        strstr(text, level->name))
        dscomm_priv_level_translate(levels, level, text, size);
}
