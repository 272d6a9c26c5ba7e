/* SPDX-License-Identifier: BSD-3-Clause */
/* The tuning file that `dscomm tune` writes, see lib/base/tuning.h. */
#ifndef TOOLS_TUNE_FILE_H
#define TOOLS_TUNE_FILE_H

#include "tools/tune/tune.h"

/* The group of this machine as text, to be freed. */
char *tune_file_machine(void);

/* The text of a file with these settings ("NAME=VALUE"; NULL at the end), to be
 * freed. */
char *tune_file_text(const tune_options_t *options, const char *backend,
                     char *const *settings);

/* TOOL_OK if the output can be written, and replaces at most a tuning file;
 * else a sentence goes to stderr. */
int tune_file_check(const tune_options_t *options);
/* Writes text to the output. TOOL_FAILED, with a sentence on stderr: the file
 * is as it was. */
int tune_file_write(const tune_options_t *options, const char *text);

#endif
