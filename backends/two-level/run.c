/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocking collectives made of the levels' blocking calls. Messages of the
 * group must go on meanwhile: each level sees to its own while it runs, and a
 * thread to those of the others, if there are any. */
#include "config.h"

#include "backends/two-level/two-level.h"

static int progress_idle_levels(void *arg)
{
    two_t *two = arg;
    int moved = 0;

    for (int i = 0; i < TWO_LEVELS; i++) {
        two_level_t *level = &two->levels[i];

        if (!level->ops || pthread_mutex_trylock(&level->lock))
            continue;
        moved |= level->ops->progress(level->impl) > 0;
        pthread_mutex_unlock(&level->lock);
    }
    return moved;
}

static dscomm_status_t run_step(two_level_t *level, dscomm_coll_args_t *args)
{
    dscomm_status_t status;

    args->sequence = ++level->sequence;
    pthread_mutex_lock(&level->lock);
    status = level->ops->run(level->impl, args);
    pthread_mutex_unlock(&level->lock);
    return status;
}

/* Peers of the other levels would wait for this rank. */
static dscomm_status_t give_up(two_t *two, const two_level_t *level,
                               dscomm_status_t status)
{
    char text[ENDING_MAX];
    dscomm_status_t ended;

    g_strlcpy(text, dscomm_last_error(), sizeof text);
    if (level)
        two_sentence(two, level, text, sizeof text);
    two_revoke(two, status, text);
    ended = two_check(two);
    /* Another thread may be about to say why the group has ended. */
    return ended < 0 ? ended : dscomm_fail(status, "%s", text);
}

static dscomm_status_t run_plan(two_t *two, const dscomm_coll_args_t *args)
{
    two_plan_t *plan = &two->plan;
    dscomm_status_t status = two_plan_make(two, args);

    if (status < 0)
        return give_up(two, NULL, status);
    for (; plan->at < plan->count; plan->at++) {
        two_step_t *step = &plan->steps[plan->at];

        status = run_step(step->level, &step->args);
        if (status < 0)
            return give_up(two, step->level, status);
        if (step->after)
            step->after(two, step);
    }
    return DSCOMM_OK;
}

static dscomm_status_t run_helped(two_t *two, const dscomm_coll_args_t *args)
{
    dscomm_help_t help = {.turn = progress_idle_levels, .arg = two};
    dscomm_status_t status;

    dscomm_help_begin(&help);
    status = run_plan(two, args);
    dscomm_help_end(&help);
    return status;
}

dscomm_status_t two_run(void *impl, const dscomm_coll_args_t *args)
{
    two_t *two = impl;
    dscomm_status_t status;

    if (two->only) {
        dscomm_coll_args_t own = *args;

        own.of = args;
        return run_step(two->only, &own);
    }
    status = two_check(two);
    if (status < 0)
        return status;
    status = two->messages ? run_helped(two, args) : run_plan(two, args);
    two->plan.args = NULL;
    return status;
}

void two_trim(void *impl, dscomm_backend_ops_t *ops)
{
    const two_t *two = impl;
    const two_level_t *only = two->only;

    for (int i = 0; i < TWO_LEVELS; i++) {
        if (two->levels[i].ops && !two->levels[i].ops->withdraw)
            ops->withdraw = NULL;
        if (two->levels[i].ops && !two->levels[i].ops->probe)
            ops->probe = NULL;
    }

    if (only ? !only->ops->run : !two->apart)
        ops->run = NULL;
    if (only ? !only->ops->start : two->apart)
        ops->start = NULL;
    if (!only || !only->ops->send)
        ops->send = NULL;
    if (!only || !only->ops->recv)
        ops->recv = NULL;
}
