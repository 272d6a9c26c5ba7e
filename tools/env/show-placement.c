/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env --placement`: which processors this rank should have, for people
 * and for programs, and binding to them. */
#include "config.h"

#include "tools/common/json.h"
#include "tools/common/tool.h"
#include "tools/env/placement.h"
#include "tools/env/show-placement.h"

#include <dscomm/status.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Returns false, with a sentence on stderr, if one of them is not a PCI
 * address. */
static bool check_devices(char *const *devices)
{
    if (devices && !devices[0]) {
        tool_fail(0, "env", "--device '' names no device");
        return false;
    }
    for (int i = 0; devices && devices[i]; i++) {
        char *address = tool_pci_address(devices[i]);

        g_free(address);
        if (address)
            continue;
        tool_fail(0, "env",
                  "--device '%s' is no PCI address; give one as 0000:1a:00.0, "
                  "or the node's, with commas between, in the order of its "
                  "ranks",
                  devices[i]);
        return false;
    }
    return true;
}

/* With --virtual-local-rank, torchrun sets local rank 0 in all ranks of a
 * node. The true local rank follows from RANK if all nodes have equally many
 * ranks. */
static int find_local_rank(const dscomm_env_t *env)
{
    const int local = dscomm_env_local_rank(env);
    const int size = dscomm_env_local_size(env);
    const int node = dscomm_env_node_rank(env);
    const char *nodes = g_getenv("GROUP_WORLD_SIZE");
    gint64 own = dscomm_env_rank(env) - (gint64)MAX(node, 0) * size;

    if (strcmp(dscomm_env_source(env), "torchrun") != 0 || local != 0 ||
        size < 1 || dscomm_env_world_size(env) % size != 0 ||
        (nodes && g_ascii_strtoll(nodes, NULL, 10) * size !=
                      dscomm_env_world_size(env)) ||
        (node < 0 && size != dscomm_env_world_size(env)) || own < 0 ||
        own >= size)
        return local;
    return (int)own;
}

/* Adds a warning if the launcher gave another local rank. */
static void warn_local_rank(int local_rank, tool_placement_t *placement)
{
    char *more = placement->warning;

    placement->warning = g_strdup_printf(
        "LOCAL_RANK is 0, but RANK says %d, as with torchrun "
        "--virtual-local-rank; %d is taken%s%s",
        local_rank, local_rank, more ? "; " : "", more ? more : "");
    g_free(more);
}

/* Returns NULL after a sentence on stderr. */
static tool_placement_t *placement_query(const dscomm_env_t *env,
                                         const tool_env_placement_t *options,
                                         const tool_topology_t *topology)
{
    char **devices =
        options->devices ? g_strsplit(options->devices, ",", -1) : NULL;
    const tool_placement_question_t question = {
        .topology = topology,
        .devices = (const char *const *)devices,
        .local_rank = find_local_rank(env),
        .local_size = dscomm_env_local_size(env),
        .force = options->rebind,
    };
    tool_placement_t *placement =
        check_devices(devices) ? tool_place(&question) : NULL;

    g_strfreev(devices);
    if (placement && question.local_rank != dscomm_env_local_rank(env))
        warn_local_rank(question.local_rank, placement);
    return placement;
}

static void placement_print(const dscomm_env_t *env,
                            const tool_placement_t *placement, GString *text)
{
    char *list = tool_topology_text(placement->processors);

    g_string_append_printf(
        text, "rank %d of %d: %s%s%s\n", dscomm_env_rank(env),
        dscomm_env_world_size(env), placement->bind ? "processors " : "",
        placement->bind ? list : "", placement->bind ? "" : "not bound");
    g_string_append_printf(text, "  %s\n", placement->why);
    if (placement->warning)
        g_string_append_printf(text, "  warning: %s\n", placement->warning);
    g_free(list);
}

/* Prints the placement, or, if placement is NULL, error, which says why there
 * is none. */
static void print_json(const dscomm_env_t *env,
                       const tool_placement_t *placement, const char *error,
                       GString *text)
{
    JsonBuilder *builder = json_builder_new();
    char *list =
        placement ? tool_topology_text(placement->processors) : g_strdup("");

    tool_json_object(builder, NULL);
    tool_json_real(builder, "rank", NULL,
                   placement ? dscomm_env_rank(env) : NAN);
    tool_json_real(builder, "local_rank", NULL,
                   placement ? placement->local_rank : NAN);
    tool_json_flag(builder, "bind", placement && placement->bind);
    tool_json_text(builder, "processors", list);
    tool_json_number(builder, "cores", placement ? placement->cores : 0);
    tool_json_number(builder, "numa_node", placement ? placement->node : -1);
    tool_json_text(builder, "why", placement ? placement->why : NULL);
    tool_json_text(builder, "warning", placement ? placement->warning : NULL);
    tool_json_text(builder, "error", error);
    json_builder_end_object(builder);
    tool_json_end(builder, false, text);
    g_free(list);
}

int tool_env_placement(const dscomm_env_t *env,
                       const tool_env_placement_t *options, GString *text)
{
    tool_topology_t *topology;
    tool_placement_t *placement;

    if (dscomm_env_status(env) < 0 && options->json)
        print_json(env, NULL, dscomm_last_error(), text);
    else if (dscomm_env_status(env) < 0)
        tool_fail(0, "env", "%s", dscomm_last_error());
    if (dscomm_env_status(env) < 0)
        return TOOL_FAILED;
    topology = tool_topology_new(options->devices != NULL);
    placement = placement_query(env, options, topology);
    tool_topology_free(topology);
    if (!placement)
        return TOOL_USAGE;
    if (options->json)
        print_json(env, placement, NULL, text);
    else
        placement_print(env, placement, text);
    tool_placement_free(placement);
    return TOOL_OK;
}

static int placement_apply(const tool_placement_t *placement,
                           const tool_topology_t *topology)
{
    char threads[16];

    if (hwloc_set_cpubind(topology->hwloc, placement->processors,
                          HWLOC_CPUBIND_THREAD) < 0)
        return tool_fail(TOOL_FAILED, "env",
                         "cannot bind to the processors that --placement "
                         "tells: %s",
                         g_strerror(errno));
    g_snprintf(threads, sizeof threads, "%d", placement->cores);
    setenv("OMP_NUM_THREADS", threads, 0);
    return TOOL_OK;
}

int tool_env_bind(const dscomm_env_t *env, const tool_env_placement_t *options)
{
    tool_topology_t *topology = tool_topology_new(options->devices != NULL);
    tool_placement_t *placement = placement_query(env, options, topology);
    int status = placement ? TOOL_OK : TOOL_USAGE;

    if (placement && placement->warning)
        tool_fail(0, "env", "%s", placement->warning);
    if (placement && placement->bind)
        status = placement_apply(placement, topology);
    tool_placement_free(placement);
    tool_topology_free(topology);
    return status;
}
