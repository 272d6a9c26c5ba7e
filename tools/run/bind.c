/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding, see bind.h. */
#include "config.h"

#include "tools/run/bind.h"

#include "env/placement.h"
#include "tools/common/tool.h"
#include "tools/common/topology.h"

int tool_bind_check(const char *text)
{
    dscomm_place_rule_t rule;
    char *problem;
    int status;

    if (dscomm_priv_place_rule_read(text, &rule, &problem)) {
        dscomm_priv_place_rule_clear(&rule);
        return TOOL_OK;
    }
    status = tool_fail(TOOL_USAGE, "run", "--bind '%s': %s", text, problem);
    g_free(problem);
    return status;
}

/* Reports why ranks are not bound: the first reason, and the warnings of rank
 * 0. */
static void bind_report(const char *command, const tool_binding_t *b,
                        const dscomm_placement_t *first, int unbound)
{
    if (unbound == b->count)
        tool_fail(0, command, "no rank is bound: %s", first->why);
    else if (unbound)
        tool_fail(0, command,
                  "%d of %d ranks are not bound, such as local "
                  "rank %d: %s",
                  unbound, b->count, first->local_rank, first->why);
}

static void choose_all(const char *command, const dscomm_place_rule_t *rule,
                       const dscomm_topology_t *topology, tool_binding_t *b)
{
    dscomm_placement_t *first = NULL; /* that is not bound */
    int unbound = 0;

    for (int i = 0; i < b->count; i++) {
        const dscomm_place_question_t question = {
            .topology = topology,
            .rule = rule,
            .visible = g_getenv("CUDA_VISIBLE_DEVICES"),
            .local_rank = i,
            .local_size = b->count,
        };
        dscomm_placement_t *placement = dscomm_priv_place(&question);

        if (i == 0 && placement->warning)
            tool_fail(0, command, "%s", placement->warning);
        if (placement->bind) {
            b->ranks[i] = dscomm_priv_placement_affinity(placement, topology);
            b->cores[i] = placement->cores;
        } else {
            unbound++;
        }
        if (!placement->bind && !first)
            first = placement;
        else
            dscomm_priv_placement_free(placement);
    }
    bind_report(command, b, first, unbound);
    dscomm_priv_placement_free(first);
}

tool_binding_t tool_bind_choose(const char *command, const char *text,
                                int ranks)
{
    tool_binding_t result = {NULL, NULL, ranks};
    dscomm_place_rule_t rule;
    dscomm_topology_t *topology;
    char *problem;

    if (!text || !dscomm_priv_place_rule_read(text, &rule, &problem) ||
        rule.kind == DSCOMM_PLACE_NONE)
        return result;
    /* the user has asked this launcher to bind, whatever its own mask is */
    rule.force = true;
    result.ranks = g_new0(dscomm_affinity_t, ranks);
    result.cores = g_new0(int, ranks);
    topology = tool_topology_new(rule.kind == DSCOMM_PLACE_GPU);
    if (topology && topology->is_other)
        tool_fail(0, command,
                  "no rank is bound: the topology is of another machine "
                  "(HWLOC_THISSYSTEM=0)");
    else
        choose_all(command, &rule, topology, &result);
    dscomm_priv_topology_free(topology);
    dscomm_priv_place_rule_clear(&rule);
    return result;
}

void tool_bind_free(tool_binding_t *b)
{
    for (int i = 0; b->ranks && i < b->count; i++)
        g_free(b->ranks[i].mask);
    g_clear_pointer(&b->ranks, g_free);
    g_clear_pointer(&b->cores, g_free);
}

/* A rank whose processors have gone offline since runs unbound; one that may
 * not prefer memory gets it where it first writes. */
void tool_bind_apply(const tool_binding_t *b, int rank)
{
    if (!b->ranks || !b->ranks[rank].mask)
        return;
    if (dscomm_priv_affinity_thread(&b->ranks[rank]) == 0)
        dscomm_priv_affinity_memory(&b->ranks[rank]);
}

int tool_bind_cores(const tool_binding_t *b, int rank)
{
    return b->cores && b->cores[rank] ? b->cores[rank] : 1;
}
