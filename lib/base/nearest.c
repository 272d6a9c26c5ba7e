/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the known name that is most similar to a misspelt one, by Levenshtein's
 * edit distance. */
#include "config.h"

#include "lib/base/nearest.h"

#include <glib.h>
#include <string.h>

#define NAME_MAX_BYTES 64 /* longer names are similar to none */

/* The edit distance of two names, both shorter than NAME_MAX_BYTES. */
static unsigned name_distance(const char *a, const char *b)
{
    unsigned row[NAME_MAX_BYTES];
    size_t length = strlen(b);

    for (unsigned j = 0; j <= length; j++)
        row[j] = j;
    for (unsigned i = 1; *a; a++, i++) {
        unsigned diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            unsigned change = diagonal + (*a != b[j - 1]);

            diagonal = row[j];
            row[j] = MIN(change, MIN(row[j], row[j - 1]) + 1);
        }
    }
    return row[length];
}

dscomm_nearest_t dscomm_priv_nearest_begin(const char *name, size_t prefix)
{
    const size_t length = strlen(name);
    dscomm_nearest_t search = {.name = name};

    if (length < NAME_MAX_BYTES && length >= prefix)
        search.limit = MAX(2, (unsigned)(length - prefix) / 3) + 1;
    return search;
}

void dscomm_priv_nearest_try(dscomm_nearest_t *search, const char *candidate)
{
    unsigned edits;

    if (!search->limit || strlen(candidate) >= NAME_MAX_BYTES)
        return;
    edits = name_distance(search->name, candidate);
    if (edits >= search->limit)
        return;
    search->limit = edits;
    search->nearest = candidate;
}
