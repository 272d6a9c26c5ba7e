/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that share processors. */
#ifndef TOOLS_CROWD_H
#define TOOLS_CROWD_H

#include <hwloc.h>

/* The place of a rank, as it tells the others. */
typedef struct {
    char host[64];
    /* those it may use, as hwloc_bitmap_snprintf() writes them; "": unknown */
    char processors[512];
} tool_place_t;

/* Fills the place of this process, which may use a set; NULL: unknown. */
void tool_place_fill(tool_place_t *place, hwloc_const_bitmap_t set);

/* Returns the warning that a host's ranks are more than the processors among
 * which they choose; NULL: they are not, or it is unknown; g_free(). */
char *tool_crowd_text(const tool_place_t *places, int count);

#endif
