/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without cairo: there is no canvas, see canvas.h. */
#include "config.h"

#include "tools/common/canvas.h"

tool_canvas_t *tool_canvas_new(const char *path, double width, double height,
                               char **ret_problem)
{
    (void)width;
    (void)height;
    *ret_problem = g_strdup_printf(
        "%s: this dscomm was built without cairo and draws no pictures; "
        "install cairo (Debian: libcairo2-dev) and configure again",
        path);
    return NULL;
}

/* The other functions have no canvas to work on. */

char *tool_canvas_end(tool_canvas_t *canvas, bool keep)
{
    (void)canvas;
    (void)keep;
    return NULL;
}

void tool_canvas_rectangle(tool_canvas_t *canvas, double x, double y,
                           double width, double height, guint32 colour)
{
    (void)canvas;
    (void)x;
    (void)y;
    (void)width;
    (void)height;
    (void)colour;
}

void tool_canvas_line(tool_canvas_t *canvas, const tool_point_t *points,
                      size_t count, tool_pen_t pen)
{
    (void)canvas;
    (void)points;
    (void)count;
    (void)pen;
}

void tool_canvas_dot(tool_canvas_t *canvas, tool_point_t centre, double radius,
                     guint32 colour)
{
    (void)canvas;
    (void)centre;
    (void)radius;
    (void)colour;
}

void tool_canvas_text(tool_canvas_t *canvas, tool_point_t at, tool_font_t font,
                      const char *text)
{
    (void)canvas;
    (void)at;
    (void)font;
    (void)text;
}

double tool_canvas_text_width(tool_canvas_t *canvas, tool_font_t font,
                              const char *text)
{
    (void)canvas;
    (void)font;
    (void)text;
    return 0;
}
