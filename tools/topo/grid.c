/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices in pictures, see grid.h. */
#include "config.h"

#include "tools/topo/grid.h"

#include <string.h>

#define CELL_WIDTH 64.0
#define CELL_HEIGHT 34.0
#define MARGIN 20.0
#define NAMES 72.0 /* left of the cells */
#define TITLE 28.0 /* height of the title, and of the columns' names */
#define LINE 18.0
#define CHARACTER 6.4 /* width of one of the lines' characters, about */
#define INK 0x202020
#define LIGHT_INK 0xffffff

topo_grid_t *topo_grid_new(char *title, char *const *names, guint count)
{
    topo_grid_t *grid = g_new(topo_grid_t, 1);

    grid->title = title;
    grid->names = names;
    grid->count = count;
    grid->cells = g_new0(topo_cell_t, (gsize)count * count);
    return grid;
}

void topo_grid_free(topo_grid_t *grid)
{
    for (guint i = 0; i < grid->count * grid->count; i++) {
        g_free(grid->cells[i].text);
        g_free(grid->cells[i].below);
    }
    g_free(grid->title);
    g_free(grid->cells);
    g_free(grid);
}

double topo_grid_width(const topo_grid_t *grid)
{
    return MAX(NAMES + grid->count * CELL_WIDTH,
               CHARACTER * 1.15 * (double)strlen(grid->title));
}

double topo_grid_height(const topo_grid_t *grid)
{
    return 2 * TITLE + grid->count * CELL_HEIGHT;
}

/* Whether white letters can be read on a colour better than dark ones. */
static bool is_dark(guint32 colour)
{
    const guint32 red = colour >> 16, green = colour >> 8 & 0xff,
                  blue = colour & 0xff;

    return red * 299 + green * 587 + blue * 114 < 130 * 1000;
}

static void draw_cell(tool_canvas_t *canvas, const topo_cell_t *cell,
                      tool_point_t at)
{
    const guint32 ink = is_dark(cell->colour) ? LIGHT_INK : INK;
    const tool_point_t centre = {at.x + CELL_WIDTH / 2, at.y + CELL_HEIGHT / 2};
    const double up = cell->below ? 7 : 0;

    tool_canvas_rectangle(canvas, at.x, at.y, CELL_WIDTH - 1, CELL_HEIGHT - 1,
                          cell->colour);
    if (cell->text)
        tool_canvas_text(canvas, (tool_point_t){centre.x, centre.y - up},
                         (tool_font_t){.size = 12,
                                       .colour = ink,
                                       .anchor = TOOL_TEXT_MIDDLE},
                         cell->text);
    if (cell->below)
        tool_canvas_text(
            canvas, (tool_point_t){centre.x, centre.y + up + 1},
            (tool_font_t){.size = 9, .colour = ink, .anchor = TOOL_TEXT_MIDDLE},
            cell->below);
}

void topo_grid_draw(tool_canvas_t *canvas, const topo_grid_t *grid,
                    tool_point_t at)
{
    const tool_font_t names = {.size = 12, .colour = INK};
    tool_font_t columns = names, title = names;

    title.bold = true;
    columns.anchor = TOOL_TEXT_MIDDLE;
    tool_canvas_text(canvas, (tool_point_t){at.x, at.y + TITLE / 2}, title,
                     grid->title);
    at.y += TITLE;
    for (guint i = 0; i < grid->count; i++) {
        const double x = at.x + NAMES + i * CELL_WIDTH;
        const double y = at.y + TITLE + i * CELL_HEIGHT;

        tool_canvas_text(canvas,
                         (tool_point_t){x + CELL_WIDTH / 2, at.y + TITLE / 2},
                         columns, grid->names[i]);
        tool_canvas_text(canvas, (tool_point_t){at.x, y + CELL_HEIGHT / 2},
                         names, grid->names[i]);
        for (guint k = 0; k < grid->count; k++)
            draw_cell(canvas, &grid->cells[i * grid->count + k],
                      (tool_point_t){at.x + NAMES + k * CELL_WIDTH, y});
    }
}

/* Cividis, whose steps people with and without colour blindness tell apart. */
guint32 topo_level_colour(double level)
{
    static const guint32 colours[] = {0x00224e, 0x35456c, 0x666970,
                                      0x948e77, 0xc8b866, 0xfee838};
    const int last = (int)G_N_ELEMENTS(colours) - 1;
    const double place = CLAMP(level, 0, 1) * last;
    const int i = MIN((int)place, last - 1);
    guint32 mixed = 0;

    for (int shift = 0; shift <= 16; shift += 8) {
        const double a = colours[i] >> shift & 0xff;
        const double b = colours[i + 1] >> shift & 0xff;

        mixed |= (guint32)(a + (b - a) * (place - i) + 0.5) << shift;
    }
    return mixed;
}

char *topo_grids_save(const char *path, const GPtrArray *grids,
                      const GPtrArray *lines)
{
    double width = 0, height = MARGIN;
    char *problem = NULL;
    tool_canvas_t *canvas;
    tool_point_t at = {MARGIN, MARGIN};

    for (guint i = 0; i < grids->len; i++) {
        width = MAX(width, topo_grid_width(g_ptr_array_index(grids, i)));
        height += topo_grid_height(g_ptr_array_index(grids, i)) + MARGIN;
    }
    for (guint i = 0; i < lines->len; i++)
        width =
            MAX(width, CHARACTER * (double)strlen(g_ptr_array_index(lines, i)));
    canvas = tool_canvas_new(path, width + 2 * MARGIN,
                             height + LINE * lines->len + MARGIN, &problem);
    if (!canvas)
        return problem;
    for (guint i = 0; i < grids->len; i++) {
        topo_grid_draw(canvas, g_ptr_array_index(grids, i), at);
        at.y += topo_grid_height(g_ptr_array_index(grids, i)) + MARGIN;
    }
    for (guint i = 0; i < lines->len; i++) {
        at.y += LINE;
        tool_canvas_text(canvas, at, (tool_font_t){.size = 11, .colour = INK},
                         g_ptr_array_index(lines, i));
    }
    return tool_canvas_end(canvas, true);
}
