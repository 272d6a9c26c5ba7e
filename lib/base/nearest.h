/* SPDX-License-Identifier: BSD-3-Clause */
/* Suggestions for misspelt names: the known name that is most like one. */
#ifndef ENV_NEAREST_H
#define ENV_NEAREST_H

#include <stddef.h>

/* A search among names that are given one by one. */
typedef struct {
    const char *name; /* the misspelt one */
    const char *nearest; /* NULL: none is near enough */
    unsigned limit; /* fewer edits than this, or none is near enough */
} dscomm_nearest_t;

/* prefix: bytes of name that all names share. Every third byte of the rest may
 * be wrong, and at least two. */
dscomm_nearest_t dscomm_priv_nearest_begin(const char *name, size_t prefix);
void dscomm_priv_nearest_try(dscomm_nearest_t *search, const char *candidate);

#endif
