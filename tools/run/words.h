/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of `dscomm run`'s command line before they are parsed: other
 * spellings, and options of other launchers. */
#ifndef TOOLS_WORDS_H
#define TOOLS_WORDS_H

#include <glib.h>

/* Respells and checks the words before the program; entries are the options
 * that exist. Adds those words to others that are the same for all hosts of
 * --hostfile. TOOL_OK, or TOOL_USAGE: a sentence went to stderr. */
int tool_words_read(char **argv, const GOptionEntry *entries,
                    GPtrArray *others);

#endif
