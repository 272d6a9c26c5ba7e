/* SPDX-License-Identifier: BSD-3-Clause */
/* The files in which ranks write why they fail, TORCHELASTIC_ERROR_FILE:
 * torch's @record writes its exception there, as JSON. They are in a folder
 * that is removed with the job. */
#ifndef TOOLS_ERRORS_H
#define TOOLS_ERRORS_H

#include <glib.h>
#include <stdbool.h>

/* Creates the folder and writes its path to folder, which has size bytes. The
 * path is written before the folder exists, so that a process that shares
 * these bytes can always remove it. "" if the folder cannot be created. */
void tool_errors_make(char *folder, size_t size);
/* Removes the folder with the files in it; "" is fine. */
void tool_errors_remove(const char *folder);

/* Removes the file of rank, for its next start. */
void tool_errors_forget(const char *folder, int rank);

/* Path of rank's file; g_free(). */
char *tool_errors_path(const char *folder, int rank);
/* Returns the message that rank has written, which may be any text, or NULL;
 * g_free(). */
char *tool_errors_read(const char *folder, int rank);

/* In a rank: true if this is the first of this node's ranks that says sentence,
 * or if that cannot be known. It then prints the sentence and calls
 * tool_errors_said() with *ret_file. The others wait for that: the launcher
 * ends all ranks when one has failed. */
bool tool_errors_is_first(const char *sentence, int *ret_file);
void tool_errors_said(int file);

#endif
