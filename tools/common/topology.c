/* SPDX-License-Identifier: BSD-3-Clause */
/* Topologies for the tools, see topology.h. */
#include "config.h"

#include "tools/common/topology.h"

/* Environment variables for loading a topology. Without THISSYSTEM, hwloc binds
 * nothing if a job manager gives the topology by HWLOC_XMLFILE. Plugins find
 * OpenCL and NVML devices and X displays, which the tools do not need, and take
 * longer than the rest. */
static const struct {
    const char *name, *value;
} variables[] = {
    {"HWLOC_THISSYSTEM", "1"},
    {"HWLOC_HIDE_ERRORS", "2"}, /* print none */
    {"HWLOC_PLUGINS_PATH", ""}, /* load none */
};

/* A variable that the user has set keeps its value. */
dscomm_topology_t *tool_topology_open(const char *path, bool devices)
{
    bool set[G_N_ELEMENTS(variables)];
    dscomm_topology_t *topology;

    for (size_t i = 0; i < G_N_ELEMENTS(variables); i++) {
        set[i] = g_getenv(variables[i].name) != NULL;
        g_setenv(variables[i].name, variables[i].value, false);
    }
    topology = dscomm_priv_topology_new(path, devices);
    for (size_t i = 0; i < G_N_ELEMENTS(variables); i++)
        if (!set[i])
            g_unsetenv(variables[i].name);
    return topology;
}

dscomm_topology_t *tool_topology_new(bool devices)
{
    return tool_topology_open(NULL, devices);
}
