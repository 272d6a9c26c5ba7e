/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of a machine by hwloc: of this one, or of one whose XML hwloc has
 * exported. */
#ifndef TOOLS_TOPO_MACHINE_H
#define TOOLS_TOPO_MACHINE_H

#include "tools/topo/tree.h"

/* path: a file of hwloc's XML, or NULL: this machine. NULL and why, to be
 * freed, if hwloc fails. */
topo_tree_t *topo_machine(const char *path, char **ret_problem);

#endif
