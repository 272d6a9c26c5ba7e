/* SPDX-License-Identifier: BSD-3-Clause */
/* Plots of lines over sizes in bytes, on two logarithmic axes: panels side by
 * side, with one legend. */
#ifndef TOOLS_PLOT_H
#define TOOLS_PLOT_H

#include <glib.h>
#include <stdbool.h>

typedef struct tool_plot tool_plot_t;

/* The figures of a panel: times in microseconds, or GB/s. */
typedef enum { TOOL_PLOT_TIME, TOOL_PLOT_RATE } tool_plot_unit_t;

/* note: a second line below the title. */
tool_plot_t *tool_plot_new(const char *title, const char *note);
void tool_plot_free(tool_plot_t *plot);

/* Each returns the number of what was added: 0, 1, ... Lines of one colour
 * number (0, 1, ...) have the same colour. */
guint tool_plot_add_panel(tool_plot_t *plot, const char *heading,
                          tool_plot_unit_t unit);
guint tool_plot_add_line(tool_plot_t *plot, const char *name, guint colour,
                         bool dashed);
/* Adds a point to a line in a panel, after those with fewer bytes; ignores it
 * if a logarithmic axis has no place for it. */
void tool_plot_add_point(tool_plot_t *plot, guint panel, guint line,
                         double bytes, double value);

/* Adds a line of text below the legend. */
void tool_plot_add_remark(tool_plot_t *plot, const char *text);

/* Draws the plot in a file, see canvas.h. Returns NULL, or a sentence that
 * begins with path; g_free(). */
char *tool_plot_save(const tool_plot_t *plot, const char *path);

/* Returns "8 B", "1.5 KiB", "32 MiB"; g_free(). */
char *tool_plot_bytes(double bytes);

#endif
