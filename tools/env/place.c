/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env --place`: on which processors ranks should run, for people and
 * for programs, and binding to them. */
#include "config.h"

#include "tools/env/place.h"

#include "env/devices.h"
#include "env/local-rank.h"
#include "env/placement.h"
#include "tools/common/json.h"
#include "tools/common/tool.h"
#include "tools/common/topology.h"
#include "tools/env/mpirun.h"

#include <dscomm/status.h>
#include <math.h>
#include <stdbool.h>

/* Numbers that all ranks of a node have in common. */
typedef struct {
    const dscomm_env_t *env;
    const tool_env_place_t *options;
    dscomm_place_rule_t rule;
    char **devices; /* or NULL */
    dscomm_topology_t *topology; /* or NULL */
} node_t;

/* Returns NULL, or why a device is refused, g_free(). */
static char *check_devices(char *const *devices)
{
    if (devices && !devices[0])
        return g_strdup("--device '' names no device");
    for (int i = 0; devices && devices[i]; i++) {
        char *address = dscomm_priv_pci_address(devices[i]);

        if (!address)
            return g_strdup_printf("--device '%s' is no PCI address; give one "
                                   "as 0000:1a:00.0, or the node's, with "
                                   "commas between, in the order of its ranks",
                                   devices[i]);
        g_free(address);
    }
    return NULL;
}

/* Reads --bind, or else DSCOMM_BIND. Returns NULL, or why it is refused,
 * g_free(). */
static char *read_rule(const tool_env_place_t *options,
                       dscomm_place_rule_t *rule)
{
    const char *set = g_getenv("DSCOMM_BIND");
    const char *text = options->bind      ? options->bind
                       : options->devices ? "gpu"
                       : set && *set      ? set
                                          : "numa";
    char *why, *problem;

    if (!dscomm_priv_place_rule_read(text, rule, &why)) {
        problem = g_strdup_printf(
            "%s '%s': %s", options->bind ? "--bind" : "DSCOMM_BIND", text, why);
        g_free(why);
        return problem;
    }
    if (options->devices && rule->kind != DSCOMM_PLACE_GPU)
        return g_strdup("--device goes with --bind gpu only");
    return NULL;
}

static void node_close(node_t *node)
{
    dscomm_priv_topology_free(node->topology);
    dscomm_priv_place_rule_clear(&node->rule);
    g_strfreev(node->devices);
}

/* Other than TOOL_OK: *ret_problem says why, g_free(). To be closed in any
 * case. */
static int node_open(const dscomm_env_t *env, const tool_env_place_t *options,
                     node_t *node, char **ret_problem)
{
    char *why;

    *node = (node_t){.env = env, .options = options};
    *ret_problem = read_rule(options, &node->rule);
    if (options->devices)
        node->devices = g_strsplit(options->devices, ",", -1);
    if (!*ret_problem)
        *ret_problem = check_devices(node->devices);
    if (*ret_problem)
        return TOOL_USAGE;
    node->topology = tool_topology_open(options->input, true);
    if (node->topology || !options->input)
        return TOOL_OK;
    why = tool_topology_problem(options->input);
    *ret_problem = g_strdup_printf("--input %s", why);
    g_free(why);
    return TOOL_FAILED;
}

static dscomm_placement_t *place_rank(const node_t *node, int rank, int size)
{
    const dscomm_place_question_t question = {
        .topology = node->topology,
        .rule = &node->rule,
        .devices = (const char *const *)node->devices,
        .visible = g_getenv("CUDA_VISIBLE_DEVICES"),
        .local_rank = rank,
        .local_size = size,
    };

    return dscomm_priv_place(&question);
}

/* Adds a warning if the launcher gave another local rank. */
static void warn_local_rank(int local_rank, dscomm_placement_t *placement)
{
    char *more = placement->warning;

    placement->warning = g_strdup_printf(
        "LOCAL_RANK is 0, but RANK says %d, as with torchrun "
        "--virtual-local-rank; %d is taken%s%s",
        local_rank, local_rank, more ? "; " : "", more ? more : "");
    g_free(more);
}

static dscomm_placement_t *place_own(const node_t *node)
{
    const int rank = dscomm_priv_true_local_rank(node->env);
    dscomm_placement_t *placement =
        place_rank(node, rank, dscomm_env_local_size(node->env));

    if (rank != dscomm_env_local_rank(node->env))
        warn_local_rank(rank, placement);
    return placement;
}

/* Appends the placement of number i of the ranks that are shown. */
static void place_print(const node_t *node, int i, GString *text)
{
    const int ranks = node->options->ranks;
    dscomm_placement_t *placement =
        ranks ? place_rank(node, i, ranks) : place_own(node);
    char *list = dscomm_priv_topology_text(placement->processors);

    g_string_append_printf(text, "%srank %d of %d: %s%s", ranks ? "local " : "",
                           ranks ? i : dscomm_env_rank(node->env),
                           ranks ? ranks : dscomm_env_world_size(node->env),
                           placement->bind   ? "processors "
                           : placement->kept ? "left as it is"
                                             : "not bound",
                           list);
    if (placement->node >= 0)
        g_string_append_printf(text, ", memory of NUMA node %d",
                               placement->node);
    if (placement->nic)
        g_string_append_printf(text, ", NIC %s", placement->nic);
    g_string_append_printf(text, "\n  %s\n", placement->why);
    if (placement->warning)
        g_string_append_printf(text, "  warning: %s\n", placement->warning);
    g_free(list);
    dscomm_priv_placement_free(placement);
}

static void add_rank(const node_t *node, int i, JsonBuilder *builder)
{
    const int ranks = node->options->ranks;
    dscomm_placement_t *placement =
        ranks ? place_rank(node, i, ranks) : place_own(node);
    char *list = dscomm_priv_topology_text(placement->processors);

    tool_json_object(builder, NULL);
    tool_json_real(builder, "rank", NULL,
                   ranks ? NAN : dscomm_env_rank(node->env));
    tool_json_number(builder, "local_rank", placement->local_rank);
    tool_json_flag(builder, "bind", placement->bind);
    tool_json_text(builder, "processors", list);
    tool_json_number(builder, "cores", placement->cores);
    tool_json_number(builder, "numa_node", placement->node);
    tool_json_text(builder, "device", placement->device);
    tool_json_text(builder, "nic", placement->nic);
    tool_json_text(builder, "why", placement->why);
    tool_json_text(builder, "warning", placement->warning);
    json_builder_end_object(builder);
    g_free(list);
    dscomm_priv_placement_free(placement);
}

/* Prints the placements, or, if node is NULL, error, which says why there are
 * none. */
static void print_json(const node_t *node, const char *error, GString *text)
{
    JsonBuilder *builder = json_builder_new();
    const int count = node ? MAX(node->options->ranks, 1) : 0;

    tool_json_object(builder, NULL);
    tool_json_text(builder, "bind",
                   node ? dscomm_priv_place_kind_name(node->rule.kind) : NULL);
    tool_json_array(builder, "ranks");
    for (int i = 0; i < count; i++)
        add_rank(node, i, builder);
    json_builder_end_array(builder);
    tool_json_text(builder, "error", error);
    json_builder_end_object(builder);
    tool_json_end(builder, false, text);
}

/* Reports why there is no placement. */
static int place_fail(const tool_env_place_t *options, int status,
                      const char *problem, GString *text)
{
    if (!options->json)
        return tool_fail(status, "env", "%s", problem);
    if (status == TOOL_USAGE)
        tool_env_mpirun_error(problem, text);
    else
        print_json(NULL, problem, text);
    return status;
}

int tool_env_place(const dscomm_env_t *env, const tool_env_place_t *options,
                   GString *text)
{
    char *problem;
    node_t node;
    int status;

    if (!options->ranks && dscomm_env_status(env) < 0)
        return place_fail(options, TOOL_FAILED, dscomm_last_error(), text);
    status = node_open(env, options, &node, &problem);
    if (status != TOOL_OK) {
        place_fail(options, status, problem, text);
        g_free(problem);
    } else if (options->json) {
        print_json(&node, NULL, text);
    } else {
        for (int i = 0; i < MAX(options->ranks, 1); i++)
            place_print(&node, i, text);
    }
    node_close(&node);
    return status;
}

static int place_apply(const dscomm_placement_t *placement,
                       const dscomm_topology_t *topology)
{
    int memory, error;

    error = dscomm_priv_placement_apply(placement, topology, &memory);
    if (memory)
        tool_fail(0, "env",
                  "memory of NUMA node %d cannot be preferred: %s; memory is "
                  "where it is first written",
                  placement->node, g_strerror(memory));
    return error ? tool_fail(TOOL_FAILED, "env",
                             "cannot bind to the processors that --place "
                             "tells: %s",
                             g_strerror(error))
                 : TOOL_OK;
}

int tool_env_bind(const dscomm_env_t *env, const tool_env_place_t *options)
{
    dscomm_placement_t *placement;
    char *problem;
    node_t node;
    int status = node_open(env, options, &node, &problem);

    if (status != TOOL_OK) {
        tool_fail(status, "env", "%s", problem);
        g_free(problem);
        node_close(&node);
        return status;
    }
    placement = place_own(&node);
    if (placement->warning)
        tool_fail(0, "env", "%s", placement->warning);
    if (placement->bind)
        status = place_apply(placement, node.topology);
    dscomm_priv_placement_free(placement);
    node_close(&node);
    return status;
}
