/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences of a level, whose ranks have other numbers than in the group. */
#ifndef LIB_LEVEL_SENTENCE_H
#define LIB_LEVEL_SENTENCE_H

#include "lib/schedule/levels.h"

#define DSCOMM_LEVEL_NUMBERS 32 /* ranks in a level's name, at most */

/* Gives a sentence of level, in text, the group's name and numbers of ranks. */
void dscomm_priv_level_translate(const dscomm_levels_t *levels,
                                 const dscomm_level_t *level, char *text,
                                 size_t size);
/* The same, of a sentence that may have come from another level and have them
 * already: it does not name this one. */
void dscomm_priv_level_sentence(const dscomm_levels_t *levels,
                                const dscomm_level_t *level, char *text,
                                size_t size);

#endif
