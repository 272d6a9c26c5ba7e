/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaving a job: delivers all sends, waits for all ranks in a last barrier, and
 * frees everything. */
#include "config.h"

#include "lib/base/clock.h"
#include "lib/base/failure.h"
#include "lib/base/status.h"
#include "lib/call/dispatch.h"
#include "lib/call/profile.h"
#include "lib/group/published.h"
#include "lib/group/world.h"
#include "lib/work/pending.h"
#include "lib/work/progress.h"

#include <dscomm/init.h>
#include <string.h>

#define LAST_TURNS 8

static dscomm_work_t *pending_send(const dscomm_group_t *group)
{
    for (dscomm_work_t *work = group->works.pending; work; work = work->next)
        if (work->call.type == CALL_MESSAGE && !work->call.p2p.receive)
            return work;
    return NULL;
}

/* True if the works send peers nothing on this group. */
static int group_is_quiet(const dscomm_group_t *group)
{
    for (dscomm_work_t *work = group->works.pending; work; work = work->next)
        if (work->call.type != CALL_CUSTOM &&
            (work->call.type != CALL_MESSAGE || !work->call.p2p.receive))
            return 0;
    return 1;
}

/* Waits for the group's sends, also those without an owner, and then calls the
 * slot leave. Meanwhile it advances other groups: peers may wait for receives
 * there. */
static void group_flush(dscomm_group_t *group, int64_t deadline)
{
    dscomm_work_t *work;
    int64_t left;

    pthread_mutex_lock(&group->works.lock);
    while ((work = pending_send(group)) &&
           (left = deadline - dscomm_priv_clock()) > 0) {
        dscomm_priv_progress(group);
        if (work != pending_send(group))
            continue;
        if (dscomm_priv_works_broken(group))
            break;
        dscomm_priv_progress_others(group);
        dscomm_priv_progress_rest(group, left,
                                  dscomm_priv_pending_others(group));
    }
    if (group->ops.leave && group_is_quiet(group)) {
        group->works.serve = NULL;
        group->ops.leave(group->impl);
    }
    dscomm_priv_pending_settle(group);
    pthread_mutex_unlock(&group->works.lock);
}

/* Makes some progress: all that peers sent has arrived, and may match receives
 * that nobody waited for. */
static void group_receive_rest(dscomm_group_t *group)
{
    pthread_mutex_lock(&group->works.lock);
    for (int i = 0; group->works.pending && i < LAST_TURNS; i++)
        dscomm_priv_progress(group);
    dscomm_priv_pending_settle(group);
    pthread_mutex_unlock(&group->works.lock);
}

/* Logs the works that are incomplete. A group that has ended has none. */
static void warn_about_works(dscomm_group_t *group)
{
    int count = 0;

    pthread_mutex_lock(&group->works.lock);
    dscomm_priv_works_broken(group);
    for (dscomm_work_t *work = group->works.pending; work; work = work->next)
        count += dscomm_priv_work_is_users(work);
    pthread_mutex_unlock(&group->works.lock);
    if (count)
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "dscomm_finalize: group '%s' has %d incomplete work%s, "
                   "cancelled now; wait for every work before",
                   group->identity.name, count, count > 1 ? "s" : "");
}

static int group_is_open(const dscomm_group_t *group)
{
    return !dscomm_priv_group_is(group, GROUP_FREED);
}

/* Waits until every rank has called, and delivers the sends of every rank
 * meanwhile. */
static dscomm_status_t world_last_barrier(dscomm_world_t *world,
                                          int64_t deadline)
{
    dscomm_group_t *group = world->group, *g;
    /* failures of this barrier call it dscomm_finalize */
    dscomm_coll_args_t args =
        dscomm_priv_args(DSCOMM_COLL_BARRIER, NULL, NULL, 0, 0, DSCOMM_UINT8,
                         -1, DSCOMM_ROOT_FINALIZE);
    dscomm_status_t status;

    dscomm_priv_group_clear(group, GROUP_COALESCING);
    LIST_FOREACH (g, &world->groups, life.in_world)
        if (group_is_open(g))
            group_flush(g, deadline);
    status = dscomm_priv_dispatch(group, &args, NULL);
    LIST_FOREACH (g, &world->groups, life.in_world)
        if (group_is_open(g))
            group_receive_rest(g);
    return status;
}

/* Closes groups, youngest first, because children use their parents. A
 * reference to each group keeps the list unchanged. */
static void close_groups(dscomm_world_t *world, int orderly)
{
    dscomm_group_t *group;

    LIST_FOREACH (group, &world->groups, life.in_world) {
        dscomm_priv_group_hold(group);
        if (!group_is_open(group))
            continue;
        warn_about_works(group);
        if (orderly && group->ops.quiesce)
            group->ops.quiesce(group->impl);
    }
    LIST_FOREACH (group, &world->groups, life.in_world)
        if (group_is_open(group))
            dscomm_priv_group_drop(group);
}

/* Frees all groups, with works that the user has not freed. */
static void free_groups(dscomm_world_t *world)
{
    while (!LIST_EMPTY(&world->groups))
        dscomm_priv_group_destroy(LIST_FIRST(&world->groups));
}

/* Called in a forked child: the parent still uses everything. The memory of
 * backends and stores is not freed, because closing them would change what they
 * share with other processes. The array keeps it reachable for leak checkers.
 */
static void world_forget(dscomm_world_t *world)
{
    static GPtrArray *left_behind;
    dscomm_group_t *group;

    dscomm_priv_profile_close(world);
    pthread_mutex_init(&world->lock, NULL);
    if (!left_behind)
        left_behind = g_ptr_array_new();
    LIST_FOREACH (group, &world->groups, life.in_world) {
        g_ptr_array_add(left_behind, group->impl);
        g_ptr_array_add(left_behind, group->life.store);
    }
    g_ptr_array_add(left_behind, world->meeting.store);
    g_ptr_array_add(left_behind, world->meeting.standby);
    free_groups(world);
    dscomm_priv_world_free(world);
}

static void world_leave(dscomm_world_t *world, int orderly, int64_t deadline)
{
    dscomm_priv_profile_finish(world);
    dscomm_priv_profile_close(world);
    close_groups(world, orderly);
    dscomm_priv_rendezvous_leave(&world->meeting, orderly, deadline);
    dscomm_priv_progress_stop();
    free_groups(world);
    dscomm_priv_world_free(world);
}

/* Leaves a world that has failed. If it failed in a collective that this rank
 * has not begun, such as the last barrier, and no call has returned the failure
 * yet, this one does. The record has the first bytes of a long name. */
static dscomm_status_t world_leave_failed(dscomm_world_t *world,
                                          const dscomm_failure_t *failure,
                                          int64_t deadline)
{
    const dscomm_group_t *group = world->group;
    dscomm_failure_t published = *failure;
    const bool returned =
        dscomm_priv_group_is(group, GROUP_REVOKED | GROUP_STATUS_READ) ||
        (failure->coll >= 0 && failure->sequence <= group->sequence) ||
        strncmp(failure->group, group->identity.name,
                sizeof failure->group - 1) != 0;
    char text[DSCOMM_ERROR_MAX];

    if (group->life.store)
        dscomm_priv_failure_publish(group->life.store, &published);
    world_leave(world, 0, deadline);
    dscomm_priv_failure_sentence(failure, text);
    return returned ? DSCOMM_OK : dscomm_priv_fail_with(failure->status, text);
}

dscomm_status_t dscomm_finalize(dscomm_group_t *group)
{
    dscomm_failure_t failure;
    dscomm_world_t *world;
    dscomm_status_t status;
    int64_t deadline;
    char text[DSCOMM_ERROR_MAX];

    if (!group)
        return DSCOMM_OK;
    world = dscomm_priv_world_withdraw(group);
    if (!world)
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "dscomm_finalize: this is no world, or it was "
                           "finalized before");
    if (dscomm_priv_group_forked(group)) {
        world_forget(world);
        return DSCOMM_OK;
    }
    deadline = dscomm_priv_clock_after(dscomm_priv_clock(), group->timeout_ms);
    dscomm_priv_profile_collect(world);
    if (group->ops.status(group->impl, &failure) != DSCOMM_OK)
        return world_leave_failed(world, &failure, deadline);
    status = world_last_barrier(world, deadline);
    /* what is attached to groups may fail, too, when they end */
    g_strlcpy(text, dscomm_last_error(), sizeof text);
    world_leave(world, status == DSCOMM_OK, deadline);
    return status < 0 ? dscomm_priv_fail_with(status, text) : status;
}
