/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of processors, as Linux's files tell them below a root. */
#ifndef TOOLS_PROCESSORS_H
#define TOOLS_PROCESSORS_H

#include <glib.h>

#define TOOL_PROCESSORS_MAX 8192

typedef struct {
    guint8 has[TOOL_PROCESSORS_MAX];
} tool_processors_t;

/* A file below root, or NULL; g_free(). */
char *tool_root_file(const char *root, const char *path);

/* Names in a folder below root, sorted; g_ptr_array_unref(). */
GPtrArray *tool_root_names(const char *root, const char *path);

/* A list as "0-3,8" in a file; FALSE where there is none. */
gboolean tool_processors_read(const char *root, const char *path,
                              tool_processors_t *ret_set);

/* Those that are there, and those of them that this process may use; FALSE
 * where that is unknown. */
gboolean tool_processors_online(const char *root, tool_processors_t *ret_set);
gboolean tool_processors_allowed(const char *root, tool_processors_t *ret_set);

/* All that share a core with processor; itself alone where nobody tells. */
void tool_processors_siblings(const char *root, int processor,
                              tool_processors_t *ret_set);

/* Leaves of each core in set its first processor. */
void tool_processors_keep_cores(const char *root, tool_processors_t *set);

/* Leaves what other has as well. */
void tool_processors_intersect(tool_processors_t *set,
                               const tool_processors_t *other);

int tool_processors_count(const tool_processors_t *set);

/* "0-3,8"; g_free(). */
char *tool_processors_text(const tool_processors_t *set);

#endif
