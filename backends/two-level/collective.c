/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of collectives, the oldest of which runs step by step. */
#include "config.h"

#include "backends/two-level/two-level.h"

int two_level_native(const two_t *two, const two_level_t *level,
                     const dscomm_coll_args_t *args)
{
    if (two->apart ? !level->ops->run : !level->ops->start)
        return 0;
    if (two_level_capabilities(level) & DSCOMM_CAP_NATIVE_COLLECTIVES)
        return 1;
    return level->ops->native && level->ops->native(level->impl, args);
}

int two_native(void *impl, const dscomm_coll_args_t *args)
{
    two_t *two = impl;

    if (two->only)
        return two_level_native(two, two->only, args);
    return two_plan_fits(two, args) ||
           two_level_native(two, &two->levels[TWO_FLAT], args);
}

static void drop_step(two_t *two, int cancel)
{
    two_plan_t *plan = &two->plan;
    two_level_t *level;

    if (!plan->request)
        return;
    level = plan->steps[plan->at].level;
    if (cancel && plan->request->status == DSCOMM_IN_PROGRESS)
        level->ops->cancel(level->impl, plan->request);
    if (plan->request->held)
        two->queue->head.held = two->held = 1;
    two_request_give(level, plan->request);
    plan->request = NULL;
}

/* The status comes last: from there on the request is the core's. */
static unsigned finish(two_t *two, dscomm_status_t status)
{
    two_request_t *head = two->queue;

    drop_step(two, status == DSCOMM_IN_PROGRESS);
    two->plan.args = NULL;
    two->queue = head->next;
    head->head.status = status;
    return 1;
}

static dscomm_status_t start_step(two_t *two)
{
    two_plan_t *plan = &two->plan;
    two_step_t *step = &plan->steps[plan->at];
    two_level_t *level = step->level;

    step->args.sequence = ++level->sequence;
    plan->request = two_request_take(level);
    return level->ops->start(level->impl, &step->args, plan->request);
}

/* IN_PROGRESS, or how the head of the queue has ended. */
static dscomm_status_t advance(two_t *two)
{
    two_plan_t *plan = &two->plan;
    dscomm_status_t status;

    for (;;) {
        const two_step_t *step = &plan->steps[plan->at];

        if (plan->at == plan->count)
            return DSCOMM_OK;
        status = plan->request ? DSCOMM_OK : start_step(two);
        if (status < 0)
            return status;
        if (plan->request->status != DSCOMM_OK)
            return plan->request->status;
        drop_step(two, 0);
        if (step->after)
            step->after(two, step);
        plan->at++;
    }
}

/* A collective that fails here leaves its peers waiting. */
static dscomm_status_t advance_head(two_t *two)
{
    dscomm_status_t status = DSCOMM_OK;

    if (!two->plan.args)
        status = two_plan_make(two, &two->queue->args);
    if (status < 0)
        two_revoke(two, status, dscomm_last_error());
    else
        status = advance(two);
    if (status < 0 && two_status(two, NULL, 0) == DSCOMM_OK)
        two_revoke(two, status, dscomm_last_error());
    return status;
}

unsigned two_collectives_advance(two_t *two)
{
    unsigned completed = 0;

    while (two->queue) {
        dscomm_status_t status = advance_head(two);

        if (status == DSCOMM_IN_PROGRESS)
            break;
        completed += finish(two, status);
        if (status < 0)
            break;
    }
    return completed;
}

dscomm_status_t two_start(void *impl, const dscomm_coll_args_t *args,
                          dscomm_request_t *request)
{
    two_t *two = impl;
    two_request_t *own = (two_request_t *)request, **link = &two->queue;
    dscomm_status_t status = two_check(two);

    if (status < 0)
        return status;
    own->collective = 1;
    own->args = *args;
    own->next = NULL;
    own->head.status = DSCOMM_IN_PROGRESS;
    while (*link)
        link = &(*link)->next;
    *link = own;
    two_collectives_advance(two);
    return DSCOMM_OK;
}

void two_collective_cancel(two_t *two, two_request_t *request)
{
    two_request_t **link = &two->queue;

    if (two->queue == request) {
        finish(two, DSCOMM_IN_PROGRESS);
        return;
    }
    while (*link && *link != request)
        link = &(*link)->next;
    if (*link)
        *link = request->next;
}
