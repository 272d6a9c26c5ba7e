/* SPDX-License-Identifier: BSD-3-Clause */
/* A matrix of coloured cells in a picture. */
#ifndef TOOLS_TOPO_GRID_H
#define TOOLS_TOPO_GRID_H

#include "tools/common/canvas.h"

typedef struct {
    guint32 colour; /* 0xRRGGBB */
    char *text, *below; /* or NULL; of this cell */
} topo_cell_t;

typedef struct {
    char *title;
    char *const *names; /* of rows and columns */
    guint count; /* of rows, and of columns */
    topo_cell_t *cells; /* count * count, row by row */
} topo_grid_t;

/* Takes title; names must remain. */
topo_grid_t *topo_grid_new(char *title, char *const *names, guint count);
void topo_grid_free(topo_grid_t *grid);

double topo_grid_width(const topo_grid_t *grid);
double topo_grid_height(const topo_grid_t *grid);
/* Draws it with its upper left corner there. */
void topo_grid_draw(tool_canvas_t *canvas, const topo_grid_t *grid,
                    tool_point_t at);

/* A colour from the slowest, 0, to the fastest, 1. */
guint32 topo_level_colour(double level);

/* Draws grids one below another, and lines of text below them, in the file
 * path. Returns NULL, or a sentence, g_free(). */
char *topo_grids_save(const char *path, const GPtrArray *grids,
                      const GPtrArray *lines);

#endif
