/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing a file that is complete or is not there. */
#ifndef TOOLS_SAVE_H
#define TOOLS_SAVE_H

#include <stddef.h>

/* Opens path for writing; a regular file gets its name only when it is
 * complete. NULL: errno has the reason. */
typedef struct tool_save tool_save_t;
tool_save_t *tool_save_new(const char *path);
/* Writes bytes before that. Returns 0 or an errno. */
int tool_save_write(tool_save_t *save, const void *bytes, size_t size);
/* Writes text and completes the file; discards the file if text is NULL.
 * Returns 0 or an errno. save may be NULL. */
int tool_save_end(tool_save_t *save, const char *text);

#endif
