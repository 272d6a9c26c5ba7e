/* SPDX-License-Identifier: BSD-3-Clause */
/* Given arguments: cutting them up, and the verdict on each. */
#ifndef TOOLS_ADVICE_GIVEN_H
#define TOOLS_ADVICE_GIVEN_H

#include "tools/env/advice/rules.h"

/* Cuts the arguments up into state->given, to which variables of the
 * environment that set parameters of Open MPI belong as well; what follows
 * them is advice->command. */
void tool_advice_given_read(advice_state_t *state);

/* Decides what becomes of each; what is kept joins the line. */
void tool_advice_given_judge(advice_state_t *state);

void tool_advice_given_free(void *given);

/* Adds a part to parts; takes over words, and a copy of why. */
void tool_advice_part_add(GPtrArray *parts, char **words, const char *why);

#endif
