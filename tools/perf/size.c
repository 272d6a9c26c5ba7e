/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes as people write them, and the way from one to the next. */
#include "config.h"

#include "tools/perf/options.h"

#include <math.h>
#include <string.h>

/* Bits of a unit, or -1; *text moves behind it. */
static int parse_unit(const char **text)
{
    static const char letters[] = "KMGT";
    const char *letter =
        **text ? strchr(letters, g_ascii_toupper(**text)) : NULL;
    int bits = 0;

    if (letter) {
        bits = 10 * (int)(letter - letters + 1);
        (*text)++;
        if (**text == 'i')
            (*text)++;
    }
    if (**text == 'B' || **text == 'b')
        (*text)++;
    return **text ? -1 : bits;
}

gboolean perf_parse_size(const char *text, size_t *ret_bytes)
{
    char *end;
    double number;
    const char *unit;

    if (!g_ascii_isdigit(text[0]) || text[1] == 'x' || text[1] == 'X')
        return FALSE;
    number = g_ascii_strtod(text, &end);
    unit = end;
    int bits = parse_unit(&unit);
    if (bits < 0)
        return FALSE;
    number = ldexp(number, bits);
    if (!(number < ldexp(1, 62)))
        return FALSE;
    *ret_bytes = (size_t)number;
    return TRUE;
}

size_t perf_next_size(const perf_options_t *options, size_t bytes)
{
    double next = options->step ? (double)bytes + (double)options->step
                                : (double)bytes * options->factor;

    next = MAX(next, (double)bytes + 1);
    return next > (double)options->max ? 0 : (size_t)next;
}
