/* SPDX-License-Identifier: BSD-3-Clause */
/* Topologies for the tools. */
#ifndef TOOLS_TOPOLOGY_H
#define TOOLS_TOPOLOGY_H

#include "env/topology.h"

/* Loads this machine's topology, faster and more quietly than
 * dscomm_priv_topology_new(). The process must have no other thread, because
 * the environment changes during the call. */
dscomm_topology_t *tool_topology_new(bool devices);
/* Does the same for another machine, whose topology is a file of hwloc's XML.
 * NULL for path: this machine. */
dscomm_topology_t *tool_topology_open(const char *path, bool devices);
/* Returns why that has failed, beginning with the path; g_free(). */
char *tool_topology_problem(const char *path);

#endif
