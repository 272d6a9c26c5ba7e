/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocking collectives of a group with levels, and the table of slots. */
#include "config.h"

#include "lib/schedule/algorithm.h"
#include "lib/schedule/hierarchical.h"

static bool level_runs_native(const dscomm_level_t *level,
                              const dscomm_coll_args_t *args)
{
    if (dscomm_priv_level_capabilities(level) & DSCOMM_CAP_NATIVE_COLLECTIVES)
        return true;
    return level->ops.native && level->ops.native(level->impl, args);
}

/* True if this collective is composed, equally on all ranks. Not all ranks have
 * LEVEL_RAIL, so LEVEL_NETWORK's backend is queried instead, with the same
 * total number of elements. */
static bool can_compose(dscomm_levels_t *levels, const dscomm_coll_args_t *args)
{
    dscomm_coll_args_t question = *args;
    size_t *counts = levels->layout.counts;

    question.coll = dscomm_priv_hierarchical_between(args->coll);
    if (!levels->composes || question.coll < 0 ||
        (args->op >= 0 && !dscomm_priv_foldable(args)))
        return false;
    if (args->op == DSCOMM_AVG || args->op == DSCOMM_PREMUL_SUM)
        question.op = DSCOMM_SUM;
    question.send = question.recv = NULL;
    if (question.coll != args->coll) {
        for (int r = 0; r < levels->ranks; r++)
            counts[r] = args->count;
        question.recv_counts = question.recv_displs = counts;
    }
    return level_runs_native(&levels->level[LEVEL_NETWORK], &question);
}

static int levels_native(void *impl, const dscomm_coll_args_t *args)
{
    dscomm_levels_t *levels = impl;

    return levels->blocking &&
           (can_compose(levels, args) ||
            level_runs_native(&levels->level[LEVEL_NETWORK], args));
}

static dscomm_status_t levels_run_call(dscomm_levels_t *levels,
                                       const dscomm_coll_args_t *args)
{
    dscomm_coll_args_t own = *args;

    if (can_compose(levels, args))
        return dscomm_priv_hierarchical_run(levels, args);
    own.of = args;
    return dscomm_priv_level_run(levels, &levels->level[LEVEL_NETWORK], &own);
}

/* Messages of the group make progress meanwhile: the running level advances its
 * own, and the helper thread those of the others, if there are any. */
static dscomm_status_t levels_run(void *impl, const dscomm_coll_args_t *args)
{
    dscomm_levels_t *levels = impl;
    dscomm_help_t help = {.turn = dscomm_priv_levels_turn, .arg = levels};
    const bool helped = dscomm_priv_group_is(levels->group, GROUP_PENDING);
    dscomm_status_t status = dscomm_priv_levels_check(levels);

    if (status < 0)
        return status;
    if (helped)
        dscomm_help_begin(&help);
    status = levels_run_call(levels, args);
    if (helped)
        dscomm_help_end(&help);
    return status;
}

const dscomm_backend_ops_t dscomm_priv_levels_ops = {
    .size = sizeof(dscomm_backend_ops_t),
    .request_size = sizeof(dscomm_request_t),
    .open = dscomm_priv_levels_open,
    .close = dscomm_priv_levels_close,
    .isend = dscomm_priv_levels_isend,
    .irecv = dscomm_priv_levels_irecv,
    .cancel = dscomm_priv_levels_cancel,
    .progress = dscomm_priv_levels_progress,
    .revoke = dscomm_priv_levels_revoke,
    .status = dscomm_priv_levels_status,
    .capabilities = dscomm_priv_levels_capabilities,
    .native = levels_native,
    .run = levels_run,
    .wait = dscomm_priv_levels_wait,
    .explain = dscomm_priv_levels_explain,
    .mem_alloc = dscomm_priv_levels_mem_alloc,
    .mem_free = dscomm_priv_levels_mem_free,
    .quiesce = dscomm_priv_levels_quiesce,
    .leave = dscomm_priv_levels_leave,
    .trim = dscomm_priv_levels_trim,
    .withdraw = dscomm_priv_levels_withdraw,
    .matched = dscomm_priv_levels_matched,
    .probe = dscomm_priv_levels_probe,
    .expect = dscomm_priv_levels_expect,
};
