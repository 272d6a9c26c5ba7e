/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures in files: a canvas on which rectangles, lines, dots and texts are
 * drawn. Lengths are in points, from the upper left corner; colours are
 * 0xRRGGBB. A PNG has two pixels a point. Without cairo there is no canvas, and
 * a sentence says so. */
#ifndef TOOLS_CANVAS_H
#define TOOLS_CANVAS_H

#include <glib.h>
#include <stdbool.h>

typedef struct tool_canvas tool_canvas_t;

/* Whether the name of a file, or NULL, is that of a picture. */
static inline bool tool_canvas_is_picture(const char *path)
{
    return path &&
           (g_str_has_suffix(path, ".png") || g_str_has_suffix(path, ".svg"));
}

/* Opens the file of a white canvas, a PNG or an SVG by the suffix of path. A
 * regular file gets its name only when it is complete. NULL: the sentence
 * *ret_problem, which begins with the path, says why; g_free(). */
tool_canvas_t *tool_canvas_new(const char *path, double width, double height,
                               char **ret_problem);

/* Completes the file, or discards it if keep is false, and frees canvas, which
 * may be NULL. Returns NULL, or a sentence as above. */
char *tool_canvas_end(tool_canvas_t *canvas, bool keep);

void tool_canvas_rectangle(tool_canvas_t *canvas, double x, double y,
                           double width, double height, guint32 colour);

typedef struct {
    double x, y;
} tool_point_t;

typedef struct {
    double width;
    guint32 colour;
    bool dashed;
} tool_pen_t;

/* Draws a line through count points. */
void tool_canvas_line(tool_canvas_t *canvas, const tool_point_t *points,
                      size_t count, tool_pen_t pen);
void tool_canvas_dot(tool_canvas_t *canvas, tool_point_t centre, double radius,
                     guint32 colour);

/* The part of a text that is at its point. */
typedef enum { TOOL_TEXT_BEGIN, TOOL_TEXT_MIDDLE, TOOL_TEXT_END } tool_anchor_t;

typedef struct {
    double size;
    guint32 colour;
    tool_anchor_t anchor;
    bool bold;
    bool upward; /* turned, to be read from below */
} tool_font_t;

/* Writes a text, whose middle in height is at the point. */
void tool_canvas_text(tool_canvas_t *canvas, tool_point_t at, tool_font_t font,
                      const char *text);
double tool_canvas_text_width(tool_canvas_t *canvas, tool_font_t font,
                              const char *text);

#endif
