/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses processors for a rank: those near its device, or of its share of the
 * NUMA nodes; whole cores, and no core for two ranks of a node. */
#ifndef TOOLS_PLACEMENT_H
#define TOOLS_PLACEMENT_H

#include "tools/common/topology.h"

typedef struct {
    const tool_topology_t *topology; /* with PCI devices if devices are given;
                                        NULL: unknown */
    /* PCI addresses of the ranks' devices: local rank r uses number r modulo
     * how many there are; NULL at the end, or NULL */
    const char *const *devices;
    int local_rank, local_size;
    gboolean force; /* also if the process is bound already */
} tool_placement_question_t;

typedef struct {
    gboolean bind; /* FALSE: leave the process where it is */
    hwloc_bitmap_t processors; /* empty unless bind */
    int cores, node; /* how many, and of which NUMA node, -1: several or none */
    char *why;
    char *warning; /* or NULL */
} tool_placement_t;

/* To be freed with tool_placement_free(). */
tool_placement_t *tool_place(const tool_placement_question_t *question);
void tool_placement_free(tool_placement_t *placement);

/* Normalises a PCI address, in any form that tools print, to "0000:1a:00.0";
 * NULL if text is no PCI address; g_free(). */
char *tool_pci_address(const char *text);

#endif
