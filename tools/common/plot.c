/* SPDX-License-Identifier: BSD-3-Clause */
/* Plots, see plot.h. */
#include "config.h"

#include "tools/common/canvas.h"
#include "tools/common/plot.h"

#include <math.h>

/* Points. */
#define WIDTH 1120.0
#define MARGIN 24.0
#define HEAD 96.0 /* title, note and headings */
#define LEFT 62.0 /* labels of a vertical axis */
#define BOX 380.0 /* height of a panel's axes */
#define FOOT 62.0 /* labels of a horizontal axis */
#define KEY_LINE 20.0 /* height of a line of the legend */
#define KEY_SAMPLE 34.0
#define CHARACTER 7.4 /* width of a character of the legend, about */
#define DOT 3.0
#define LABELS_MOST 9 /* of a horizontal axis */

#define INK 0x222222u
#define GREY 0x666666u
#define GRID 0xd4d4d4u
#define FINE_GRID 0xeeeeeeu

/* Okabe and Ito's colours, which colour-blind readers can tell apart; without
 * yellow, which is hard to see on white. */
static const guint32 colours[] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7,
                                  0xe69f00, 0x56b4e9, 0x000000};

typedef struct {
    char *name;
    guint colour;
    bool dashed;
} line_t;

typedef struct {
    guint panel, line;
    tool_point_t at; /* bytes and value */
} sample_t;

typedef struct {
    char *heading;
    tool_plot_unit_t unit;
} panel_t;

struct tool_plot {
    char *title, *note;
    GArray *panels, *lines, *samples;
    GPtrArray *remarks; /* char * */
};

/* A panel's axes on the canvas. */
typedef struct {
    const tool_plot_t *plot;
    guint panel;
    tool_plot_unit_t unit;
    double left, top, width; /* of the box */
    tool_point_t low, high; /* the corners, in bytes and values */
} axes_t;

static void panel_clear(gpointer data)
{
    g_free(((panel_t *)data)->heading);
}

static void line_clear(gpointer data)
{
    g_free(((line_t *)data)->name);
}

tool_plot_t *tool_plot_new(const char *title, const char *note)
{
    tool_plot_t *plot = g_new0(tool_plot_t, 1);

    plot->title = g_strdup(title);
    plot->note = g_strdup(note);
    plot->panels = g_array_new(false, false, sizeof(panel_t));
    plot->lines = g_array_new(false, false, sizeof(line_t));
    plot->samples = g_array_new(false, false, sizeof(sample_t));
    plot->remarks = g_ptr_array_new_with_free_func(g_free);
    g_array_set_clear_func(plot->panels, panel_clear);
    g_array_set_clear_func(plot->lines, line_clear);
    return plot;
}

void tool_plot_free(tool_plot_t *plot)
{
    g_free(plot->title);
    g_free(plot->note);
    g_array_unref(plot->panels);
    g_array_unref(plot->lines);
    g_array_unref(plot->samples);
    g_ptr_array_unref(plot->remarks);
    g_free(plot);
}

guint tool_plot_add_panel(tool_plot_t *plot, const char *heading,
                          tool_plot_unit_t unit)
{
    panel_t panel = {g_strdup(heading), unit};

    g_array_append_val(plot->panels, panel);
    return plot->panels->len - 1;
}

guint tool_plot_add_line(tool_plot_t *plot, const char *name, guint colour,
                         bool dashed)
{
    line_t line = {g_strdup(name), colour, dashed};

    g_array_append_val(plot->lines, line);
    return plot->lines->len - 1;
}

void tool_plot_add_point(tool_plot_t *plot, guint panel, guint line,
                         double bytes, double value)
{
    sample_t sample = {panel, line, {bytes, value}};

    if (bytes > 0 && value > 0 && isfinite(bytes) && isfinite(value))
        g_array_append_val(plot->samples, sample);
}

void tool_plot_add_remark(tool_plot_t *plot, const char *text)
{
    g_ptr_array_add(plot->remarks, g_strdup(text));
}

char *tool_plot_bytes(double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;

    while (bytes >= 1024 && unit + 1 < G_N_ELEMENTS(units)) {
        bytes /= 1024;
        unit++;
    }
    return g_strdup_printf("%.4g %s", bytes, units[unit]);
}

/* Returns the label of a value; g_free(). */
static char *value_label(tool_plot_unit_t unit, double value)
{
    if (unit == TOOL_PLOT_RATE)
        return g_strdup_printf("%g", value);
    if (value < 0.9)
        return g_strdup_printf("%g ns", value * 1e3);
    if (value < 0.9e3)
        return g_strdup_printf("%g µs", value);
    return value < 0.9e6 ? g_strdup_printf("%g ms", value / 1e3)
                         : g_strdup_printf("%g s", value / 1e6);
}

static tool_point_t place(const axes_t *axes, tool_point_t at)
{
    const double x = log(at.x / axes->low.x) / log(axes->high.x / axes->low.x);
    const double y = log(at.y / axes->low.y) / log(axes->high.y / axes->low.y);

    return (tool_point_t){axes->left + x * axes->width,
                          axes->top + (1 - y) * BOX};
}

/* Widens a range so that it begins and ends at 1, 2 or 5 times a power of
 * ten. */
static void widen(double *low, double *high)
{
    static const double steps[] = {1, 2, 5, 10};
    const double down = pow(10, floor(log10(*low)));
    const double up = pow(10, floor(log10(*high)));
    const double least = *low / down, most = *high / up;
    size_t i = G_N_ELEMENTS(steps) - 1, k = 0;

    while (i > 0 && steps[i] > least * 1.0001)
        i--;
    while (steps[k] < most / 1.0001)
        k++;
    *low = down * steps[i];
    *high = up * steps[k];
    if (*high <= *low)
        *high = *low * 2;
}

/* Finds the ranges: of bytes in all panels, of values in this one. */
static void find_ranges(axes_t *axes)
{
    bool any = false;

    axes->low = (tool_point_t){G_MAXDOUBLE, G_MAXDOUBLE};
    axes->high = (tool_point_t){0, 0};
    for (guint i = 0; i < axes->plot->samples->len; i++) {
        const sample_t *s = &g_array_index(axes->plot->samples, sample_t, i);

        axes->low.x = MIN(axes->low.x, s->at.x);
        axes->high.x = MAX(axes->high.x, s->at.x);
        if (s->panel != axes->panel)
            continue;
        any = true;
        axes->low.y = MIN(axes->low.y, s->at.y);
        axes->high.y = MAX(axes->high.y, s->at.y);
    }
    if (!any)
        axes->low.y = axes->high.y = 1;
    widen(&axes->low.y, &axes->high.y);
    if (axes->high.x < axes->low.x * 2) {
        axes->low.x /= 2;
        axes->high.x *= 2;
    }
}

static void draw_rule(tool_canvas_t *canvas, const axes_t *axes,
                      tool_point_t at, bool upright, guint32 colour)
{
    const tool_point_t from = {upright ? at.x : axes->left,
                               upright ? axes->top : at.y};
    const tool_point_t to = {upright ? at.x : axes->left + axes->width,
                             upright ? axes->top + BOX : at.y};
    const tool_point_t points[] = {from, to};

    tool_canvas_line(canvas, points, 2, (tool_pen_t){1, colour, false});
}

static void draw_sizes(tool_canvas_t *canvas, const axes_t *axes)
{
    const tool_font_t font = {
        .size = 11, .colour = INK, .anchor = TOOL_TEXT_MIDDLE};
    const int first = (int)ceil(log2(axes->low.x) - 1e-9);
    const int last = (int)floor(log2(axes->high.x) + 1e-9);
    const int step = 1 + (last - first) / LABELS_MOST;

    for (int i = first; i <= last; i += step) {
        const tool_point_t size = {exp2(i), axes->low.y};
        const tool_point_t at = place(axes, size);
        char *label = tool_plot_bytes(size.x);

        draw_rule(canvas, axes, at, true, GRID);
        tool_canvas_text(canvas, (tool_point_t){at.x, at.y + 14}, font, label);
        g_free(label);
    }
}

/* Labels powers of ten, and of a short axis 2 and 5 times these, too. */
static void draw_values(tool_canvas_t *canvas, const axes_t *axes)
{
    const tool_font_t font = {
        .size = 11, .colour = INK, .anchor = TOOL_TEXT_END};
    const bool is_short = axes->high.y / axes->low.y < 150;
    double power = pow(10, floor(log10(axes->low.y) + 1e-9));

    for (; power <= axes->high.y * 1.0001; power *= 10)
        for (int digit = 1; digit < 10; digit++) {
            const double value = power * digit;
            const bool labelled =
                digit == 1 || (is_short && (digit == 2 || digit == 5));
            if (value < axes->low.y / 1.0001 || value > axes->high.y * 1.0001)
                continue;
            const tool_point_t at =
                place(axes, (tool_point_t){axes->low.x, value});
            char *label = value_label(axes->unit, value);

            draw_rule(canvas, axes, at, false, labelled ? GRID : FINE_GRID);
            if (labelled)
                tool_canvas_text(canvas, (tool_point_t){at.x - 6, at.y}, font,
                                 label);
            g_free(label);
        }
}

static void draw_mark(tool_canvas_t *canvas, tool_point_t at, guint colour)
{
    const bool hollow = colour / G_N_ELEMENTS(colours) % 2;

    tool_canvas_dot(canvas, at, DOT, colours[colour % G_N_ELEMENTS(colours)]);
    if (hollow)
        tool_canvas_dot(canvas, at, DOT / 2, 0xffffff);
}

static void draw_points(tool_canvas_t *canvas, const tool_point_t *points,
                        size_t count, const line_t *line)
{
    const guint32 colour = colours[line->colour % G_N_ELEMENTS(colours)];

    if (count > 1)
        tool_canvas_line(canvas, points, count,
                         (tool_pen_t){1.8, colour, line->dashed});
}

static void draw_line(tool_canvas_t *canvas, const axes_t *axes, guint number)
{
    const line_t *line = &g_array_index(axes->plot->lines, line_t, number);
    GArray *points = g_array_new(false, false, sizeof(tool_point_t));

    for (guint i = 0; i < axes->plot->samples->len; i++) {
        const sample_t *s = &g_array_index(axes->plot->samples, sample_t, i);
        const tool_point_t at = place(axes, s->at);

        if (s->panel == axes->panel && s->line == number)
            g_array_append_val(points, at);
    }
    draw_points(canvas, (const tool_point_t *)(const void *)points->data,
                points->len, line);
    for (guint i = 0; i < points->len; i++)
        draw_mark(canvas, g_array_index(points, tool_point_t, i), line->colour);
    g_array_unref(points);
}

static void draw_panel(tool_canvas_t *canvas, const tool_plot_t *plot,
                       guint number)
{
    const panel_t *panel = &g_array_index(plot->panels, panel_t, number);
    const double each = (WIDTH - 2 * MARGIN) / plot->panels->len;
    const tool_font_t heading = {
        .size = 13, .colour = INK, .anchor = TOOL_TEXT_MIDDLE, .bold = true};
    const tool_font_t label = {
        .size = 11, .colour = GREY, .anchor = TOOL_TEXT_MIDDLE};
    axes_t axes = {.plot = plot,
                   .panel = number,
                   .unit = panel->unit,
                   .left = MARGIN + number * each + LEFT,
                   .top = HEAD,
                   .width = each - LEFT - MARGIN};
    const double middle = axes.left + axes.width / 2;

    find_ranges(&axes);
    draw_values(canvas, &axes);
    draw_sizes(canvas, &axes);
    draw_rule(canvas, &axes, (tool_point_t){0, axes.top + BOX}, false, INK);
    draw_rule(canvas, &axes, (tool_point_t){axes.left, 0}, true, INK);
    tool_canvas_text(canvas, (tool_point_t){middle, HEAD - 18}, heading,
                     panel->heading);
    tool_canvas_text(canvas, (tool_point_t){middle, axes.top + BOX + 36}, label,
                     "size");
    for (guint i = 0; i < plot->lines->len; i++)
        draw_line(canvas, &axes, i);
}

/* Columns of the legend: as many as fit with the longest name. */
static guint key_columns(const tool_plot_t *plot)
{
    glong letters = 1;

    for (guint i = 0; i < plot->lines->len; i++) {
        const char *name = g_array_index(plot->lines, line_t, i).name;
        letters = MAX(letters, g_utf8_strlen(name, -1));
    }
    const double width = KEY_SAMPLE + MARGIN + CHARACTER * (double)letters;
    return (guint)MAX((WIDTH - 2 * MARGIN) / width, 1);
}

/* Columns are high lines high. */
static void draw_legend(tool_canvas_t *canvas, const tool_plot_t *plot,
                        guint columns, guint high)
{
    const tool_font_t font = {.size = 12, .colour = INK};
    const double each = (WIDTH - 2 * MARGIN) / columns;

    for (guint i = 0; i < plot->lines->len; i++) {
        const line_t *line = &g_array_index(plot->lines, line_t, i);
        const double x = MARGIN + i / high * each;
        const double y = HEAD + BOX + FOOT + i % high * KEY_LINE;
        const tool_point_t sample[] = {{x, y}, {x + KEY_SAMPLE - 8, y}};

        draw_points(canvas, sample, 2, line);
        draw_mark(canvas, (tool_point_t){x + (KEY_SAMPLE - 8) / 2, y},
                  line->colour);
        tool_canvas_text(canvas, (tool_point_t){x + KEY_SAMPLE, y}, font,
                         line->name);
    }
}

/* Draws a line across the picture, smaller if it is too long. */
static void draw_text(tool_canvas_t *canvas, double y, tool_font_t font,
                      const char *text)
{
    const double width = tool_canvas_text_width(canvas, font, text);

    font.size *= MIN(1, (WIDTH - 2 * MARGIN) / MAX(width, 1));
    tool_canvas_text(canvas, (tool_point_t){MARGIN, y}, font, text);
}

char *tool_plot_save(const tool_plot_t *plot, const char *path)
{
    const tool_font_t title = {.size = 17, .colour = INK, .bold = true};
    const tool_font_t note = {.size = 12, .colour = GREY};
    const tool_font_t remark = {.size = 12, .colour = INK};
    const guint columns = key_columns(plot);
    const guint lines = (plot->lines->len + columns - 1) / columns;
    const double foot = HEAD + BOX + FOOT + MAX(lines, 1) * KEY_LINE;
    tool_canvas_t *canvas;
    char *problem = NULL;

    if (!plot->samples->len)
        return g_strdup_printf("%s: there is nothing to draw: all sizes are 0 "
                               "bytes",
                               path);
    canvas = tool_canvas_new(path, WIDTH, foot + plot->remarks->len * KEY_LINE,
                             &problem);
    if (!canvas)
        return problem;
    draw_text(canvas, 26, title, plot->title);
    draw_text(canvas, 50, note, plot->note);
    for (guint i = 0; i < plot->panels->len; i++)
        draw_panel(canvas, plot, i);
    draw_legend(canvas, plot, columns, lines);
    for (guint i = 0; i < plot->remarks->len; i++)
        draw_text(canvas, foot + i * KEY_LINE, remark,
                  g_ptr_array_index(plot->remarks, i));
    return tool_canvas_end(canvas, true);
}
