/* SPDX-License-Identifier: BSD-3-Clause */
/* The files in which ranks say why they fail, TORCHELASTIC_ERROR_FILE: torch's
 * @record writes its exception there, as JSON. They lie in a folder of the job,
 * which goes with it. */
#ifndef TOOLS_ERRORS_H
#define TOOLS_ERRORS_H

#include <glib.h>

/* Makes the folder and puts its path into folder, which has size bytes: before
 * the folder exists, so that who sees these bytes can always remove it. ""
 * where it cannot be made. */
void tool_errors_make(char *folder, size_t size);
/* Removes it with the files in it; "" is fine. */
void tool_errors_remove(const char *folder);

/* Removes what rank has written, for its next start. */
void tool_errors_forget(const char *folder, int rank);

/* Where rank writes; g_free(). */
char *tool_errors_path(const char *folder, int rank);
/* The message that rank wrote, any text, or NULL; g_free(). */
char *tool_errors_read(const char *folder, int rank);

/* In a rank: whether none of this node's ranks has asked about sentence before;
 * TRUE where that cannot be known. */
gboolean tool_errors_is_first(const char *sentence);

#endif
