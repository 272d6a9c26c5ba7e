/* SPDX-License-Identifier: BSD-3-Clause */
/* Suggestions for misspelt names: the known name that is most similar. */
#ifndef LIB_NEAREST_H
#define LIB_NEAREST_H

#include <stddef.h>

/* A search among names that are given one by one. */
typedef struct {
    const char *name; /* the misspelt one */
    const char *nearest; /* NULL: none is similar enough */
    unsigned limit; /* only names with fewer edits than this count */
} dscomm_nearest_t;

/* Begins a search for a name like name. prefix: the bytes of name that all
 * names share. At most a third of the other bytes may differ, but two always
 * may. */
dscomm_nearest_t dscomm_priv_nearest_begin(const char *name, size_t prefix);
void dscomm_priv_nearest_try(dscomm_nearest_t *search, const char *candidate);

#endif
