/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures by cairo, see canvas.h. */
#include "config.h"

#include "tools/common/canvas.h"
#include "tools/common/save.h"
#include "tools/common/tool.h"

#include <cairo-svg.h>
#include <cairo.h>
#include <errno.h>

#define PIXELS 2 /* of a PNG, a point */
#define DASH 5

struct tool_canvas {
    char *path;
    bool png;
    tool_save_t *save;
    int error; /* errno of the first failed write, or 0 */
    bool discarded; /* what is still to be written */
    cairo_surface_t *surface;
    cairo_t *cairo;
};

static cairo_status_t canvas_write(void *closure, const unsigned char *bytes,
                                   unsigned size)
{
    tool_canvas_t *canvas = closure;

    if (!canvas->error && !canvas->discarded)
        canvas->error = tool_save_write(canvas->save, bytes, size);
    return canvas->error ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

static void set_colour(cairo_t *cairo, guint32 colour)
{
    cairo_set_source_rgb(cairo, (colour >> 16 & 255) / 255.0,
                         (colour >> 8 & 255) / 255.0, (colour & 255) / 255.0);
}

static void canvas_begin(tool_canvas_t *canvas, double width, double height)
{
    if (canvas->png)
        canvas->surface = cairo_image_surface_create(
            CAIRO_FORMAT_RGB24, (int)width * PIXELS, (int)height * PIXELS);
    else
        canvas->surface = cairo_svg_surface_create_for_stream(
            canvas_write, canvas, width, height);
    canvas->cairo = cairo_create(canvas->surface);
    if (canvas->png)
        cairo_scale(canvas->cairo, PIXELS, PIXELS);
    set_colour(canvas->cairo, 0xffffff);
    cairo_paint(canvas->cairo);
}

tool_canvas_t *tool_canvas_new(const char *path, double width, double height,
                               char **ret_problem)
{
    const bool png = g_str_has_suffix(path, ".png");
    tool_canvas_t *canvas;
    tool_save_t *save;

    if (!png && !g_str_has_suffix(path, ".svg")) {
        *ret_problem = g_strdup_printf("%s: pictures are PNG or SVG; give a "
                                       "name that ends in .png or .svg",
                                       path);
        return NULL;
    }
    save = tool_save_new(path);
    if (!save) {
        *ret_problem = g_strdup_printf("%s: %s", path, g_strerror(errno));
        return NULL;
    }
    canvas = g_new0(tool_canvas_t, 1);
    canvas->path = g_strdup(path);
    canvas->png = png;
    canvas->save = save;
    canvas_begin(canvas, width, height);
    return canvas;
}

/* Returns the status of what was drawn and written. */
static cairo_status_t canvas_finish(tool_canvas_t *canvas)
{
    cairo_status_t status = cairo_status(canvas->cairo);

    if (status == CAIRO_STATUS_SUCCESS && canvas->png)
        return cairo_surface_write_to_png_stream(canvas->surface, canvas_write,
                                                 canvas);
    cairo_surface_finish(canvas->surface);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_status(canvas->surface);
    return status;
}

char *tool_canvas_end(tool_canvas_t *canvas, bool keep)
{
    char *problem = NULL;

    if (!canvas)
        return NULL;
    cairo_status_t status = keep ? canvas_finish(canvas) : CAIRO_STATUS_SUCCESS;
    const bool complete = keep && status == CAIRO_STATUS_SUCCESS;
    canvas->discarded = !keep;
    cairo_destroy(canvas->cairo);
    cairo_surface_destroy(canvas->surface);
    int error = tool_save_end(canvas->save, complete ? "" : NULL);
    error = canvas->error ? canvas->error : error;
    if (keep && (error || !complete))
        problem = g_strdup_printf("%s: %s", canvas->path,
                                  error ? g_strerror(error)
                                        : cairo_status_to_string(status));
    g_free(canvas->path);
    g_free(canvas);
    return problem;
}

void tool_canvas_rectangle(tool_canvas_t *canvas, double x, double y,
                           double width, double height, guint32 colour)
{
    set_colour(canvas->cairo, colour);
    cairo_rectangle(canvas->cairo, x, y, width, height);
    cairo_fill(canvas->cairo);
}

void tool_canvas_line(tool_canvas_t *canvas, const tool_point_t *points,
                      size_t count, tool_pen_t pen)
{
    static const double dash = DASH;

    cairo_new_path(canvas->cairo);
    for (size_t i = 0; i < count; i++)
        cairo_line_to(canvas->cairo, points[i].x, points[i].y);
    set_colour(canvas->cairo, pen.colour);
    cairo_set_line_width(canvas->cairo, pen.width);
    cairo_set_line_join(canvas->cairo, CAIRO_LINE_JOIN_ROUND);
    cairo_set_dash(canvas->cairo, &dash, pen.dashed, 0);
    cairo_stroke(canvas->cairo);
}

void tool_canvas_dot(tool_canvas_t *canvas, tool_point_t centre, double radius,
                     guint32 colour)
{
    set_colour(canvas->cairo, colour);
    cairo_new_path(canvas->cairo);
    cairo_arc(canvas->cairo, centre.x, centre.y, radius, 0, 2 * G_PI);
    cairo_fill(canvas->cairo);
}

static void set_font(cairo_t *cairo, tool_font_t font)
{
    cairo_select_font_face(cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           font.bold ? CAIRO_FONT_WEIGHT_BOLD
                                     : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cairo, font.size);
}

double tool_canvas_text_width(tool_canvas_t *canvas, tool_font_t font,
                              const char *text)
{
    char *printable = tool_printable(text);
    cairo_text_extents_t extents;

    set_font(canvas->cairo, font);
    cairo_text_extents(canvas->cairo, printable, &extents);
    g_free(printable);
    return extents.x_advance;
}

void tool_canvas_text(tool_canvas_t *canvas, tool_point_t at, tool_font_t font,
                      const char *text)
{
    static const double parts[] = {
        [TOOL_TEXT_BEGIN] = 0, [TOOL_TEXT_MIDDLE] = 0.5, [TOOL_TEXT_END] = 1};
    const double width = tool_canvas_text_width(canvas, font, text);
    char *printable = tool_printable(text);
    cairo_t *cairo = canvas->cairo;
    cairo_font_extents_t extents;

    cairo_font_extents(cairo, &extents);
    cairo_save(cairo);
    cairo_translate(cairo, at.x, at.y);
    if (font.upward)
        cairo_rotate(cairo, -G_PI / 2);
    cairo_move_to(cairo, -width * parts[font.anchor],
                  (extents.ascent - extents.descent) / 2);
    set_colour(cairo, font.colour);
    cairo_show_text(cairo, printable);
    cairo_restore(cairo);
    g_free(printable);
}
