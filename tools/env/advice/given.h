/* SPDX-License-Identifier: BSD-3-Clause */
/* Given arguments: splitting them, and the decision about each. */
#ifndef TOOLS_ADVICE_GIVEN_H
#define TOOLS_ADVICE_GIVEN_H

#include "tools/env/advice/rules.h"

/* Splits the arguments into state->given, with the variables of the
 * environment that set parameters of Open MPI; the words after the arguments
 * are advice->command. */
void tool_advice_given_read(advice_state_t *state);

/* Decides about each; those that are kept are added to the line. */
void tool_advice_given_judge(advice_state_t *state);

void tool_advice_given_free(void *given);

/* Adds a part to parts; takes ownership of words, copies why. */
void tool_advice_part_add(GPtrArray *parts, char **words, const char *why);

#endif
