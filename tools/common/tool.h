/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the subcommands of the program `dscomm` share. */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <glib.h>
#include <stdbool.h>

/* Exit statuses of every subcommand; 124 to 127 are as in timeout(1). */
enum {
    TOOL_OK = 0,
    TOOL_FAILED = 1,
    TOOL_USAGE = 2,
    TOOL_TIMED_OUT = 124,
    TOOL_INTERNAL = 125,
    TOOL_NOT_EXECUTABLE = 126,
    TOOL_NOT_FOUND = 127
};

/* One subcommand; argv[0] is its name. Returns the exit status. */
typedef struct {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *summary;
    int unwritten; /* the status if stdout could not be written */
} tool_command_t;

int tool_run(int argc, char **argv);
int tool_env(int argc, char **argv);
int tool_info(int argc, char **argv);
int tool_perf(int argc, char **argv);
int tool_analyze(int argc, char **argv);
int tool_top(int argc, char **argv);
int tool_tune(int argc, char **argv);
int tool_topo(int argc, char **argv);
/* Runs `dscomm perf --pairs`: dscomm topo --p2p --ranks, with argv of perf.
 * Removes --pairs from argv. */
int tool_topo_pairs(int argc, char **argv);

/* Parses and removes the options: all, or if strict only those before the first
 * other word. --help prints and exits; the help contains parameters and
 * description. Whole numbers are decimal. false: a sentence is in *ret_problem,
 * g_free(), or went to stderr if that is NULL; the exit status is TOOL_USAGE.
 */
bool tool_parse(int *argc, char ***argv, const GOptionEntry *entries,
                const char *parameters, const char *description, bool strict,
                char **ret_problem);

/* Whether text is 1 to 100 letters, digits, '.', '_' and '-', and no "." or
 * "..": fit for a run id, and a folder's name. */
bool tool_is_id(const char *text);

/* Returns text with control characters and invalid bytes as "\x1b";
 * g_free(). */
char *tool_printable(const char *text);

/* Returns "dscomm COMMAND: sentence" and a newline, printable; g_free(). */
char *tool_sentence(const char *command, const char *format, va_list args)
    G_GNUC_PRINTF(2, 0);

/* Prints the same to stderr; returns status. */
int tool_fail(int status, const char *command, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* Replaces the last line of the session's terminal, if that is stderr; NULL:
 * clears it. */
void tool_progress(const char *format, va_list args) G_GNUC_PRINTF(1, 0);

#endif
