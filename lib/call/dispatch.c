/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow path of a collective. */
#include "config.h"
#include "lib/call/dispatch.h"
#include "lib/base/settings.h"
#include "lib/call/recording.h"
#include "lib/schedule/collective.h"
#include "lib/work/work.h"

#include <stddef.h>
#include <string.h>

static int call_is_native(dscomm_group_t *group, const dscomm_coll_args_t *args)
{
    if (args->user && !(group->capabilities & DSCOMM_CAP_USER_OPS))
        return 0;
    if (group->capabilities & DSCOMM_CAP_NATIVE_COLLECTIVES)
        return 1;
    return group->ops.native && group->ops.native(group->impl, args);
}

/* Logs the choice, once for each collective and group. */
static void choice_log(dscomm_group_t *group, const dscomm_coll_args_t *args,
                       const dscomm_algorithm_t *algorithm)
{
    uint32_t bit = UINT32_C(1) << args->coll;

    if (group->schedules.logged & bit)
        return;
    group->schedules.logged |= bit;
    dscomm_log(DSCOMM_LOG_INFO, "core",
               "group '%s': %s is a schedule over backend %s's messages (%s)",
               group->identity.name,
               dscomm_coll_name((dscomm_coll_t)args->coll), group->module->name,
               algorithm->name);
}

const dscomm_algorithm_t *
dscomm_priv_dispatch_peek(dscomm_group_t *group, const dscomm_coll_args_t *args,
                          int async)
{
    const dscomm_nodes_t *nodes = dscomm_priv_group_nodes(group);
    const dscomm_choice_t *rule = dscomm_priv_choice_rule(
        group->schedules.rules, args, group->size, group->module->name, nodes);
    int native = 0;

    if (rule && rule->algorithm && group->size > 1)
        return rule->algorithm;
    if (async ? group->ops.start != NULL : group->ops.run || group->ops.start)
        native = call_is_native(group, args);
    return native ? NULL : dscomm_priv_choice_default(args, group->size, nodes);
}

/* True if the rule was logged before, for any group of this process. */
static int choice_is_logged(guint index)
{
    /* a bit for each rule; rules from 63 on share one */
    static _Atomic uint64_t logged;
    uint64_t bit = UINT64_C(1) << MIN(index, 63);

    return (atomic_fetch_or(&logged, bit) & bit) != 0;
}

/* The level for rules that do not fit: those that a user has written are worth
 * a warning, those that dscomm tune has found are not. */
static dscomm_log_level_t passed_level(void)
{
    return dscomm_priv_setting_file(dscomm_priv_setting(SETTING_ALGORITHM))
               ? DSCOMM_LOG_INFO
               : DSCOMM_LOG_WARN;
}

/* Logs the rules that do not fit; on rank 0 only, because they are the same on
 * all ranks. */
static void choice_log_passed(const dscomm_group_t *group,
                              const dscomm_coll_args_t *args,
                              const dscomm_algorithm_t *instead)
{
    const dscomm_nodes_t *nodes = dscomm_priv_group_nodes(group);
    const dscomm_choice_t *rule;
    guint index = 0;

    while ((rule = dscomm_priv_choice_passed(group->schedules.rules, index,
                                             args, group->size,
                                             group->module->name, nodes))) {
        index = (guint)(rule -
                        (const dscomm_choice_t *)group->schedules.rules->data) +
                1;
        if (!choice_is_logged(index - 1))
            dscomm_log(
                passed_level(), "core",
                "group '%s': rule %u of DSCOMM_ALGORITHM, %s:%s, cannot serve "
                "this call of %d ranks: %s; %s serves instead",
                group->identity.name, index,
                dscomm_coll_name((dscomm_coll_t)args->coll),
                rule->algorithm->name, group->size,
                dscomm_priv_algorithm_unfit(rule->algorithm, nodes),
                instead ? instead->name : "what the backend has");
    }
}

const dscomm_algorithm_t *
dscomm_priv_dispatch_choose(dscomm_group_t *group,
                            const dscomm_coll_args_t *args, int async)
{
    const dscomm_algorithm_t *algorithm =
        dscomm_priv_dispatch_peek(group, args, async);

    if (algorithm)
        choice_log(group, args, algorithm);
    if (group->schedules.rules->len && group->size > 1 && group->rank == 0)
        choice_log_passed(group, args, algorithm);
    return algorithm;
}

static dscomm_status_t call_unstage(dscomm_call_t *call, dscomm_status_t status)
{
    if (status == DSCOMM_OK)
        status = call->bounce->finish(call->bounce, SIZE_MAX);
    call->bounce->free(call->bounce);
    return status;
}

static dscomm_status_t collective_run(dscomm_group_t *group,
                                      dscomm_call_t *call)
{
    dscomm_hook_span_t span = dscomm_priv_hook_begin(group, call);
    dscomm_phases_t phases;
    dscomm_status_t status;

    dscomm_priv_hook_phases(span.hooks, &call->coll, &phases);
    status = dscomm_priv_group_run(group, &call->coll);
    if (G_UNLIKELY(call->bounce)) {
        dscomm_phase(&call->coll, DSCOMM_PHASE_COPY_OUT);
        status = call_unstage(call, status);
    }
    dscomm_priv_hook_end(group, call, span, status, NULL);
    return status;
}

/* Runs a blocking call by the slot run while works are pending. That is right:
 * after the drain all pending works are messages, which make progress in run.
 */
static dscomm_status_t collective_run_locked(dscomm_group_t *group,
                                             dscomm_call_t *call)
{
    dscomm_status_t status;

    pthread_mutex_lock(&group->works.lock);
    dscomm_priv_works_drain(group);
    status = collective_run(group, call);
    group->works.unscanned = 1;
    pthread_mutex_unlock(&group->works.lock);
    return status;
}

/* True if a blocking call cannot be made of a work: there is no slot start, or
 * blocking calls match only blocking calls. */
static int must_run(const dscomm_group_t *group)
{
    return !group->ops.start ||
           (group->capabilities & DSCOMM_CAP_SEPARATE_MATCHING) != 0;
}

/* Runs a short schedule without a work; false: its work must be started. */
static bool collective_now(dscomm_group_t *group, dscomm_call_t *call)
{
    const dscomm_coll_args_t *args = &call->coll;

    if (!call->algorithm || call->bounce || !dscomm_priv_may_be_now(group))
        return false;
    call->recorded = dscomm_priv_recorder_collective(
        group->recorder, group->recorded_as, group->size, args,
        RECORDED_STARTED | (call->internal ? RECORDED_INTERNAL : 0));
    if (!dscomm_priv_collective_now(group, call))
        return false;
    dscomm_priv_recorder_end(group->recorder, call->recorded,
                             args->count * args->element, DSCOMM_OK);
    return true;
}

/* A blocking call returns after the collectives before it. Waiting for them
 * delays no rank, because all ranks have started them. */
dscomm_status_t dscomm_priv_dispatch_block(dscomm_group_t *group,
                                           dscomm_call_t *call)
{
    dscomm_status_t status;

    if (!call->algorithm && group->ops.run &&
        !dscomm_priv_group_is(group, GROUP_PENDING))
        return collective_run(group, call);
    if (!call->algorithm && must_run(group))
        return collective_run_locked(group, call);
    if (collective_now(group, call))
        return DSCOMM_OK;
    status = dscomm_priv_work_block(group, dscomm_priv_collective_kind(call),
                                    call, NULL);
    dscomm_priv_works_await(group);
    return status;
}

static dscomm_status_t collective_record(dscomm_group_t *group,
                                         const dscomm_call_t *call, int async)
{
    const char *name = dscomm_coll_name((dscomm_coll_t)call->coll.coll);

    if (async)
        return dscomm_priv_recording_refuse(group, name);
    if (dscomm_priv_stage_wanted(group, call))
        return dscomm_priv_stage_refuse(group, name);
    return dscomm_priv_recording_collective(group, &call->coll);
}

/* Whether a collective has a rule in this group. */
static int is_ruled(dscomm_group_t *group, int coll)
{
    dscomm_group_schedules_t *schedules = &group->schedules;

    if (!schedules->rules->len)
        return 0;
    if (!schedules->ruled_known) {
        schedules->ruled = dscomm_priv_choices_ruled(
            schedules->rules, group->size, group->module->name);
        schedules->ruled_known = true;
    }
    return schedules->ruled >> coll & 1;
}

/* True if the backend runs a blocking call on an idle group, which may have
 * hooks. */
static int is_simple(dscomm_group_t *group, const dscomm_coll_args_t *args)
{
    const unsigned state =
        atomic_load_explicit(&group->state, memory_order_acquire);

    return (!state ||
            (state == GROUP_SLOW && group->queries_native &&
             !is_ruled(group, args->coll) && call_is_native(group, args))) &&
           !dscomm_priv_group_forked(group) && !dscomm_priv_device_present();
}

static dscomm_status_t dispatch_collective(dscomm_group_t *group,
                                           dscomm_coll_args_t *args,
                                           dscomm_work_t **ret_work)
{
    const char *name = dscomm_coll_name((dscomm_coll_t)args->coll);
    dscomm_status_t status = dscomm_priv_group_usable(group, name);
    dscomm_call_t call;

    if (status < 0)
        return status;
    memset(&call, 0, offsetof(dscomm_call_t, coll)); /* the rest is coll */
    call.type = CALL_COLLECTIVE;
    call.async = ret_work != NULL;
    call.coll = *args;
    if (dscomm_priv_group_is(group, GROUP_COALESCING))
        return collective_record(group, &call, ret_work != NULL);
    call.algorithm = dscomm_priv_dispatch_choose(group, args, ret_work != NULL);
    call.coll.sequence = ++group->sequence;
    if (G_UNLIKELY(dscomm_priv_stage_wanted(group, &call)) &&
        (status = dscomm_priv_stage_call(group, &call)) < 0)
        return status;
    if (ret_work)
        return dscomm_priv_work_start(group, dscomm_priv_collective_kind(&call),
                                      &call, ret_work);
    return dscomm_priv_dispatch_block(group, &call);
}

dscomm_status_t dscomm_priv_dispatch_slow(dscomm_group_t *group,
                                          dscomm_coll_args_t *args,
                                          dscomm_work_t **ret_work)
{
    if (ret_work || !is_simple(group, args))
        return dispatch_collective(group, args, ret_work);
    args->sequence = ++group->sequence;
    return dscomm_priv_hook_run(group, args);
}
