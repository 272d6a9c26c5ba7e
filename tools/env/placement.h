/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses processors for a rank: those near its device, or in its share of the
 * NUMA nodes. Ranks get whole cores, and no two ranks of a node share one. */
#ifndef TOOLS_PLACEMENT_H
#define TOOLS_PLACEMENT_H

#include "tools/common/topology.h"

#include <stdbool.h>

typedef struct {
    /* with PCI devices, if devices are given; NULL: unknown */
    const tool_topology_t *topology;
    /* PCI addresses of the ranks' devices: local rank r uses number r modulo
     * their number; NULL at the end; or NULL */
    const char *const *devices;
    int local_rank, local_size;
    bool force; /* decide even if the process is bound already */
} tool_placement_question_t;

typedef struct {
    int local_rank; /* of the question */
    bool bind; /* false: leave the process where it is */
    hwloc_bitmap_t processors; /* empty unless bind */
    int cores, node; /* number of cores; their NUMA node, -1: several or none */
    char *why;
    char *warning; /* or NULL */
} tool_placement_t;

/* To be freed with tool_placement_free(). */
tool_placement_t *tool_place(const tool_placement_question_t *question);
void tool_placement_free(tool_placement_t *placement);

/* Converts a PCI address, in any form that tools print, to "0000:1a:00.0"; NULL
 * if text is not a PCI address; g_free(). */
char *tool_pci_address(const char *text);

#endif
