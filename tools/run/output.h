/* SPDX-License-Identifier: BSD-3-Clause */
/* Tagged output: the ranks' output, line by line, each line after its rank's
 * number. A line is written whole: lines of different ranks never mix, nor do
 * those of stdout and stderr if both go to one place. */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <glib.h>
#include <stdbool.h>

/* Longer lines are broken into pieces, each of which is tagged. */
#define TOOL_LINE_MAX ((gsize)1 << 20)

typedef struct tool_output tool_output_t;

typedef enum {
    TOOL_COLOR_AUTO,
    TOOL_COLOR_ALWAYS,
    TOOL_COLOR_NEVER
} tool_color_t;

/* The look of tags. */
typedef struct {
    gboolean none; /* whole lines alone: they have tags already */
    gboolean timestamps; /* the time of each line comes before its tag */
    tool_color_t color; /* each rank's tag has a color */
} tool_tags_t;

/* Tags the output of so many ranks, from first on, and writes it to this
 * process's stdout and stderr. command: this command's name, for messages. */
tool_output_t *tool_output_new(const char *command, const tool_tags_t *tags,
                               int first, int ranks);
void tool_output_free(tool_output_t *output);

/* Makes rank's two pipes; fds = the ends that become its stdout and stderr, to
 * be closed by the caller. Files that were in fds, others than -1, are taken
 * over, and get the same output, unchanged. 0, or an errno. */
int tool_output_open(tool_output_t *output, int rank, int fds[2]);

/* Writes line, with its end, to stderr between lines of the ranks. */
void tool_output_write_line(tool_output_t *output, const char *line);

/* Appends a struct pollfd for each descriptor that must be polled to fds. */
void tool_output_prepare(tool_output_t *output, GArray *fds);
/* Moves bytes, after a poll of these descriptors. Never blocks. */
void tool_output_dispatch(tool_output_t *output, const GArray *fds);

/* Called when no rank is left: reads the rest from the pipes and closes
 * them. */
void tool_output_end(tool_output_t *output);
/* Discards output of the ranks that nobody has read, and prints to stderr how
 * many bytes that are, if stderr takes them at once. */
void tool_output_give_up(tool_output_t *output);
/* Returns when a reader last took output, in microseconds; 0: never. */
gint64 tool_output_taken(const tool_output_t *output);
/* Whether something could not be written, other than for lack of a reader. */
bool tool_output_failed(const tool_output_t *output);
/* Returns whether all output that was read has been written. */
bool tool_output_idle(const tool_output_t *output);

#endif
