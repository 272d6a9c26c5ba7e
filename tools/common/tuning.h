/* SPDX-License-Identifier: BSD-3-Clause */
/* Tuning files that commands write, see lib/base/tuning.h. */
#ifndef TOOLS_TUNING_H
#define TOOLS_TUNING_H

#include <glib.h>
#include <stdbool.h>

/* The group of this machine as text, to be freed. */
char *tool_tuning_machine(void);

/* The text of a file for this machine, to be freed. comment: a line for its
 * head; settings: "NAME=VALUE", NULL at the end. */
char *tool_tuning_text(const char *comment, char *const *settings);

/* The tuning file at path, for g_key_file_free(); NULL: there is none, or it is
 * for another machine. */
GKeyFile *tool_tuning_load(const char *path);
/* Its rules of DSCOMM_ALGORITHM, for g_strfreev(); none if file is NULL. */
char **tool_tuning_rules(GKeyFile *file);
/* Whether a rule of an operation, or of any if that is NULL, is for groups of
 * so many ranks of backend only. */
bool tool_tuning_rule_is_for(const char *rule, const char *operation,
                             const char *backend, int ranks);
/* Appends the rules of the file at path but for those that are for groups of so
 * many ranks of backend only: dscomm tune has measured the others in an earlier
 * run, dscomm perf --model has predicted them, or the user has written them. */
void tool_tuning_keep(const char *path, const char *backend, int ranks,
                      GString *rules);

/* TOOL_OK if the file at path, the value of an option of command, can be
 * written, and replaces at most a tuning file of this machine; else a sentence
 * goes to stderr. */
int tool_tuning_check(const char *command, const char *option,
                      const char *path);
/* Writes text to it. TOOL_FAILED, with a sentence on stderr: the file is as it
 * was. */
int tool_tuning_write(const char *command, const char *option, const char *path,
                      const char *text);

#endif
