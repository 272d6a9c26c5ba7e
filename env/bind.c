/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding as DSCOMM_BIND says, see bind.h. */
#include "config.h"

#include "env/bind.h"

#include "env/local-rank.h"
#include "env/placement.h"
#include "lib/base/log.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"

#include <dscomm/env.h>
#include <glib.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Finds which rank of how many of this node the process is; -1: unknown. The
 * environment's numbers count only if they are of the same world. */
static void find_local(int rank, int world_size, int *ret_rank, int *ret_size)
{
    dscomm_env_attr_t attr = DSCOMM_ENV_ATTR_INIT;
    dscomm_env_t *env = NULL;

    *ret_rank = world_size == 1 ? 0 : -1;
    *ret_size = world_size == 1 ? 1 : -1;
    attr.tolerate = 1;
    if (dscomm_env_discover(&attr, &env) < 0)
        return;
    if (dscomm_env_rank(env) == rank &&
        dscomm_env_world_size(env) == world_size) {
        *ret_rank = dscomm_priv_true_local_rank(env);
        *ret_size = dscomm_env_local_size(env);
    }
    dscomm_env_free(env);
}

static void bind_log(const dscomm_placement_t *placement)
{
    char *list = dscomm_priv_topology_text(placement->processors);

    if (placement->warning)
        dscomm_log(DSCOMM_LOG_WARN, "env", "DSCOMM_BIND: %s",
                   placement->warning);
    if (placement->bind)
        dscomm_log(DSCOMM_LOG_INFO, "env", "bound to processors %s: %s%s%s",
                   list, placement->why,
                   placement->nic ? "; the nearest NIC is " : "",
                   placement->nic ? placement->nic : "");
    else if (placement->kept)
        dscomm_log(DSCOMM_LOG_INFO, "env", "DSCOMM_BIND is ignored: %s",
                   placement->why);
    else
        dscomm_log(DSCOMM_LOG_WARN, "env", "DSCOMM_BIND: not bound: %s",
                   placement->why);
    g_free(list);
}

static void bind_apply(const dscomm_placement_t *placement,
                       const dscomm_topology_t *topology)
{
    int memory,
        error = dscomm_priv_placement_apply(placement, topology, &memory);

    if (error)
        dscomm_log(DSCOMM_LOG_WARN, "env", "DSCOMM_BIND: cannot bind: %s",
                   strerror(error));
    if (memory)
        dscomm_log(DSCOMM_LOG_WARN, "env",
                   "DSCOMM_BIND: memory of NUMA node %d cannot be preferred: "
                   "%s; memory is where it is first written",
                   placement->node, strerror(memory));
}

static void bind_by(const dscomm_place_rule_t *rule, int rank, int world_size)
{
    dscomm_topology_t *topology =
        dscomm_priv_topology_new(NULL, rule->kind == DSCOMM_PLACE_GPU);
    dscomm_place_question_t question = {
        .topology = topology,
        .rule = rule,
        .visible = getenv("CUDA_VISIBLE_DEVICES"),
    };
    dscomm_placement_t *placement;

    if (topology && topology->is_other) {
        dscomm_log(DSCOMM_LOG_WARN, "env",
                   "DSCOMM_BIND: not bound: the topology is of another machine "
                   "(HWLOC_THISSYSTEM=0)");
        dscomm_priv_topology_free(topology);
        return;
    }
    find_local(rank, world_size, &question.local_rank, &question.local_size);
    placement = dscomm_priv_place(&question);
    bind_log(placement);
    if (placement->bind)
        bind_apply(placement, topology);
    dscomm_priv_placement_free(placement);
    dscomm_priv_topology_free(topology);
}

dscomm_status_t dscomm_priv_bind(int rank, int world_size)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    const char *text = dscomm_priv_setting_text(SETTING_BIND);
    dscomm_place_rule_t rule;
    dscomm_status_t status;
    char *problem, quoted[96];

    if (strcmp(text, "none") == 0)
        return DSCOMM_OK;
    if (!dscomm_priv_place_rule_read(text, &rule, &problem)) {
        status = dscomm_fail(DSCOMM_ERR_ENVIRONMENT, "DSCOMM_BIND='%s': %s",
                             dscomm_priv_quote(text, quoted, sizeof quoted),
                             problem);
        g_free(problem);
        return status;
    }
    if (!atomic_flag_test_and_set(&done))
        bind_by(&rule, rank, world_size);
    dscomm_priv_place_rule_clear(&rule);
    return DSCOMM_OK;
}
