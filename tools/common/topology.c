/* SPDX-License-Identifier: BSD-3-Clause */
/* Topologies for the tools, see topology.h. */
#include "config.h"

#include "tools/common/topology.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

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

/* Tells why hwloc refuses a file, by its first elements. */
static const char *text_problem(const char *text, gsize length)
{
    const char *const begin = text + strspn(text, " \t\r\n");

    if (!*begin)
        return "it is empty";
    if (*begin != '<' || strlen(text) != length)
        return "it is no XML; lstopo writes it to a file whose name ends in "
               ".xml";
    if (strstr(text, "<topology"))
        return "it is incomplete, or no XML that hwloc has exported, or that "
               "of a newer hwloc";
    if (strstr(text, "<system"))
        return "it is NCCL's XML, which dscomm topo reads; hwloc's is needed "
               "here: lstopo machine.xml";
    return "it is no XML that hwloc has exported (lstopo machine.xml)";
}

char *tool_topology_problem(const char *path)
{
    char *text = NULL, *problem;
    gsize length = 0;

    if (!path)
        return g_strdup("hwloc cannot find this machine's topology");
    if (access(path, R_OK) != 0)
        return g_strdup_printf("%s: %s", path, g_strerror(errno));
    if (!g_file_get_contents(path, &text, &length, NULL))
        return g_strdup_printf("%s: it is no file, or cannot be read", path);
    problem = g_strdup_printf("%s: %s", path, text_problem(text, length));
    g_free(text);
    return problem;
}
