/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of ranges and call sites, each kept once for the process, and the ones
 * that are current in this thread. */
#ifndef PROFILER_TEXT_H
#define PROFILER_TEXT_H

#include <stdbool.h>

#define TEXT_COUNT 4096 /* numbers that there are */
#define TEXT_OTHERS (TEXT_COUNT - 1) /* shared by all that found no room */

/* The number of text, which is copied; 0 for NULL and "". */
unsigned dscomm_priv_text_number(const char *text);
/* The text of a number; never freed. */
const char *dscomm_priv_text(unsigned number);

/* Replaces what would disturb a line by '?': control characters, and bytes that
 * are not UTF-8. */
void dscomm_priv_text_blank(char *text);

/* Whether call sites are noted at all: some profiler tells them apart. */
void dscomm_priv_text_want_sites(bool wanted);

/* The number of the call site at which this thread is; 0: none. */
unsigned dscomm_priv_text_site(void);

#endif
