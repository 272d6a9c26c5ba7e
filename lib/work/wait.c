/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting works and waiting for them: spins first; then also checks the clock,
 * the group's state and other groups, and sleeps if the backend can be woken.
 */
#include "config.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/group/world.h"
#include "lib/work/pending.h"
#include "lib/work/progress.h"

#include <sched.h>
#include <stdbool.h>

#define SPINS 256
/* If other ranks need the processor: polls before the wait lets them run, and
 * polls between which it does so before it sleeps. */
#define SPINS_OVERSUBSCRIBED 2
#define YIELDS_OVERSUBSCRIBED 100

/* The object of a wait: the end of one work, or of all collectives started on
 * the group. */
typedef struct {
    dscomm_group_t *group;
    dscomm_work_t *work; /* NULL: all collectives */
} goal_t;

static dscomm_work_t *first_collective(const dscomm_group_t *group)
{
    dscomm_work_t *work = group->works.pending;

    while (work && work->call.type != CALL_COLLECTIVE)
        work = work->next;
    return work;
}

/* Returns the work that must still be waited for, or NULL. A collective without
 * an owner is freed when it ends, so only the pending list shows whether it has
 * ended. */
static dscomm_work_t *goal_work(const goal_t *goal)
{
    if (!goal->work)
        return first_collective(goal->group);
    return dscomm_priv_work_done(goal->work) ? NULL : goal->work;
}

static bool is_oversubscribed(const dscomm_group_t *group)
{
    const dscomm_world_t *world = group->identity.world;

    return world && world->meeting.oversubscribed;
}

/* The poll of a backend may yield the processor (Open MPI's does), for
 * milliseconds. */
int dscomm_priv_work_spins(const dscomm_group_t *group)
{
    return is_oversubscribed(group) ? SPINS_OVERSUBSCRIBED : SPINS;
}

/* Lets other ranks run if they need the processor; false: they had the
 * processor often enough, so this one sleeps. most: dscomm_priv_work_spins().
 */
static bool wait_yields(int spins, int most)
{
    if (most >= SPINS || spins >= most + YIELDS_OVERSUBSCRIBED)
        return false;
    sched_yield();
    return true;
}

static void wait_locked(const goal_t *goal, int timeout_ms)
{
    dscomm_group_t *group = goal->group;
    const int most = dscomm_priv_work_spins(group);
    int64_t now, end = 0;
    int spins = 0;

    if (timeout_ms)
        group->works.wait_last = 0;
    for (;;) {
        dscomm_work_t *work;

        if (dscomm_priv_progress(group))
            spins = 0;
        work = goal_work(goal);
        if (!work)
            return;
        if (timeout_ms == 0) {
            dscomm_priv_work_over(work, dscomm_priv_clock_coarse());
            dscomm_priv_progress_others(group);
            return;
        }
        if (++spins < most) {
            dscomm_priv_cpu_relax();
            continue;
        }
        now = dscomm_priv_clock();
        if (!end)
            end = dscomm_priv_clock_after(now, timeout_ms);
        if (dscomm_priv_work_over(work, now) || now >= end)
            return;
        dscomm_priv_progress_others(group);
        if (!wait_yields(spins, most))
            dscomm_priv_progress_rest(group, end - now,
                                      dscomm_priv_pending_others(group));
    }
}

void dscomm_priv_works_drain(dscomm_group_t *group)
{
    const goal_t goal = {group, NULL};

    if (goal_work(&goal))
        wait_locked(&goal, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_priv_pending_settle(group);
}

void dscomm_priv_works_await(dscomm_group_t *group)
{
    if (!dscomm_priv_group_is(group, GROUP_PENDING))
        return;
    pthread_mutex_lock(&group->works.lock);
    dscomm_priv_works_drain(group);
    pthread_mutex_unlock(&group->works.lock);
}

/* Waits until work is complete, at most timeout_ms. May release the lock while
 * it waits. */
static void work_wait_locked(dscomm_work_t *work, int timeout_ms)
{
    const goal_t goal = {work->group, work};

    if (dscomm_priv_work_done(work))
        return;
    wait_locked(&goal, timeout_ms);
    dscomm_priv_pending_settle(goal.group);
}

/* Returns the status of a complete work; the sentence of a failure becomes
 * dscomm_last_error(). */
static dscomm_status_t work_result(dscomm_work_t *work)
{
    dscomm_status_t status =
        atomic_load_explicit(&work->status, memory_order_acquire);

    if (status < 0)
        dscomm_priv_fail_with(status, work->text ? work->text
                                                 : dscomm_strerror(status));
    return status;
}

static void work_wait(dscomm_work_t *work, int timeout_ms)
{
    dscomm_group_t *group = work->group;

    pthread_mutex_lock(&group->works.lock);
    work_wait_locked(work, timeout_ms);
    pthread_mutex_unlock(&group->works.lock);
}

/* Adds the time since began to the time that the caller has waited for work,
 * and calls the hook if work is complete. The time after the end of work is no
 * wait for it: the caller may get the processor or the lock late. */
static void work_add_wait(dscomm_work_t *work, int64_t began)
{
    const bool done = dscomm_priv_work_done(work);
    const int64_t end = done ? work->span.ended_ns : dscomm_priv_clock();

    work->span.waited_ns += MAX(end - began, 0);
    if (done && work->span.waited_ns)
        dscomm_priv_hook_waited(work);
}

/* work_wait() for a work whose waits are timed. */
static void work_wait_timed(dscomm_work_t *work, int timeout_ms)
{
    const int64_t began = dscomm_priv_clock();

    work_wait(work, timeout_ms);
    work_add_wait(work, began);
}

dscomm_status_t dscomm_priv_work_wait(dscomm_work_t *work, int timeout_ms)
{
    if (dscomm_priv_work_done(work)) {
        if (G_UNLIKELY(work->span.waited_ns))
            dscomm_priv_hook_waited(work);
    } else if (G_UNLIKELY(dscomm_priv_work_is_timed(work))) {
        work_wait_timed(work, timeout_ms);
    } else {
        work_wait(work, timeout_ms);
    }
    return work_result(work);
}

/* Starts call. held: the work belongs to a blocking call. */
static dscomm_status_t start_locked(dscomm_group_t *group,
                                    const dscomm_work_kind_t *kind,
                                    const dscomm_call_t *call, int held,
                                    dscomm_work_t **ret_work)
{
    dscomm_work_t *work;
    dscomm_status_t status = dscomm_priv_work_new(group, kind, call, &work);

    if (status < 0)
        return status;
    work->held = held;
    status = dscomm_priv_work_launch(work);
    if (status < 0)
        dscomm_priv_work_discard(work);
    else
        *ret_work = work;
    return status;
}

dscomm_status_t dscomm_priv_work_start(dscomm_group_t *group,
                                       const dscomm_work_kind_t *kind,
                                       const dscomm_call_t *call,
                                       dscomm_work_t **ret_work)
{
    dscomm_status_t status;

    pthread_mutex_lock(&group->works.lock);
    status = start_locked(group, kind, call, 0, ret_work);
    pthread_mutex_unlock(&group->works.lock);
    return status;
}

/* The lock is held from start to end, so no other thread sees the work. Only a
 * long wait releases it. */
dscomm_status_t dscomm_priv_work_block(dscomm_group_t *group,
                                       const dscomm_work_kind_t *kind,
                                       const dscomm_call_t *call,
                                       dscomm_request_t *ret_request)
{
    dscomm_work_t *work;
    dscomm_status_t status;

    pthread_mutex_lock(&group->works.lock);
    status = start_locked(group, kind, call, 1, &work);
    if (status == DSCOMM_OK) {
        work_wait_locked(work, DSCOMM_TIMEOUT_DEFAULT);
        status = work_result(work);
        if (ret_request)
            *ret_request = work->request;
        dscomm_priv_work_discard(work);
    }
    pthread_mutex_unlock(&group->works.lock);
    return status;
}

static dscomm_status_t work_check(const dscomm_work_t *work, const char *name,
                                  int timeout_ms)
{
    if (timeout_ms < DSCOMM_TIMEOUT_DEFAULT)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: timeout_ms is %d; give milliseconds, 0 or "
                           "DSCOMM_TIMEOUT_DEFAULT",
                           name, timeout_ms);
    if (!work)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: work is NULL", name);
    if (dscomm_priv_group_forked(work->group))
        return dscomm_priv_group_usable(work->group, name);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_work_wait(dscomm_work_t *work, int timeout_ms)
{
    dscomm_status_t status = work_check(work, "dscomm_work_wait", timeout_ms);

    return status < 0 ? status : dscomm_priv_work_wait(work, timeout_ms);
}

dscomm_status_t dscomm_work_test(dscomm_work_t *work)
{
    dscomm_status_t status = work_check(work, "dscomm_work_test", 0);

    return status < 0 ? status : dscomm_priv_work_wait(work, 0);
}

static dscomm_status_t works_check(dscomm_work_t *const *works, size_t count,
                                   const char *name, int timeout_ms)
{
    dscomm_status_t status = DSCOMM_OK;
    size_t i;

    if (!works && count)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: works is NULL", name);
    for (i = 0; i < count && status == DSCOMM_OK; i++)
        if (works[i])
            status = work_check(works[i], name, timeout_ms);
    return status;
}

dscomm_status_t dscomm_work_wait_all(dscomm_work_t *const *works, size_t count,
                                     int timeout_ms)
{
    const char *name = "dscomm_work_wait_all";
    dscomm_status_t status, first = DSCOMM_OK;
    dscomm_work_t *failed = NULL;
    int64_t end;
    size_t i;

    status = works_check(works, count, name, timeout_ms);
    if (status < 0)
        return status;
    end = dscomm_priv_clock_after(dscomm_priv_clock(), timeout_ms);
    for (i = 0; i < count; i++) {
        if (!works[i])
            continue;
        status = dscomm_priv_work_wait(works[i], dscomm_priv_clock_left(end));
        if (status == DSCOMM_IN_PROGRESS)
            return status;
        if (status < 0 && !failed) {
            failed = works[i];
            first = status;
        }
    }
    return failed ? work_result(failed) : first;
}

/* Makes progress for one of several works. slow: checks clock and state too. */
static int work_visit(dscomm_work_t *work, int slow, int64_t now)
{
    dscomm_group_t *group = work->group;

    if (dscomm_priv_work_done(work))
        return 1;
    pthread_mutex_lock(&group->works.lock);
    dscomm_priv_progress(group);
    if (slow && !dscomm_priv_work_done(work))
        dscomm_priv_work_over(work, now);
    dscomm_priv_pending_settle(group);
    pthread_mutex_unlock(&group->works.lock);
    return dscomm_priv_work_done(work);
}

/* Sleeps briefly, on the group of the first work. */
static void works_rest(dscomm_work_t *const *works, size_t count)
{
    size_t i;

    for (i = 0; i < count && !works[i]; i++)
        ;
    pthread_mutex_lock(&works[i]->group->works.lock);
    if (!dscomm_priv_work_done(works[i]))
        dscomm_priv_progress_rest(works[i]->group, NS_PER_MS, 1);
    pthread_mutex_unlock(&works[i]->group->works.lock);
}

/* Returns the index of a complete work, or count. */
static size_t works_visit(dscomm_work_t *const *works, size_t count, int slow,
                          int64_t now)
{
    size_t i;

    for (i = 0; i < count; i++)
        if (works[i] && work_visit(works[i], slow, now))
            return i;
    return count;
}

/* The time until now is not time without progress. */
static void wait_begin(dscomm_group_t *group)
{
    pthread_mutex_lock(&group->works.lock);
    group->works.wait_last = 0;
    pthread_mutex_unlock(&group->works.lock);
}

static dscomm_status_t wait_any(dscomm_work_t *const *works, size_t count,
                                int timeout_ms, size_t *ret_index)
{
    const int64_t began = dscomm_priv_clock();
    const int64_t end = dscomm_priv_clock_after(began, timeout_ms);
    int64_t now = began;
    int spins = 0, most = timeout_ms ? SPINS : 0;
    size_t i;

    for (i = 0; timeout_ms && i < count; i++) {
        if (!works[i])
            continue;
        wait_begin(works[i]->group);
        most = MIN(most, dscomm_priv_work_spins(works[i]->group));
    }
    while ((i = works_visit(works, count, spins >= most, now)) == count) {
        if (++spins < most)
            continue;
        dscomm_backend_progress_others(NULL);
        now = dscomm_priv_clock();
        if (now >= end)
            return DSCOMM_IN_PROGRESS;
        if (!wait_yields(spins, most))
            works_rest(works, count);
    }
    if (dscomm_priv_work_is_timed(works[i]))
        work_add_wait(works[i], began);
    *ret_index = i;
    return work_result(works[i]);
}

dscomm_status_t dscomm_work_wait_any(dscomm_work_t *const *works, size_t count,
                                     int timeout_ms, size_t *ret_index)
{
    const char *name = "dscomm_work_wait_any";
    dscomm_status_t status = works_check(works, count, name, timeout_ms);
    size_t i;

    if (status < 0)
        return status;
    if (!ret_index)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: ret_index is NULL", name);
    for (i = 0; i < count; i++)
        if (works[i])
            return wait_any(works, count, timeout_ms, ret_index);
    return dscomm_fail(DSCOMM_ERR_INVALID, "%s: all works are NULL", name);
}

void dscomm_work_free(dscomm_work_t *work)
{
    dscomm_group_t *group;

    if (!work || dscomm_priv_group_forked(work->group))
        return;
    group = work->group;
    dscomm_priv_group_hold(group);
    pthread_mutex_lock(&group->works.lock);
    if (dscomm_priv_work_done(work))
        dscomm_priv_work_discard(work);
    else
        work->zombie = 1;
    pthread_mutex_unlock(&group->works.lock);
    dscomm_priv_group_release(group);
}

dscomm_status_t dscomm_work_received(const dscomm_work_t *work, int *ret_source,
                                     int *ret_tag, size_t *ret_bytes)
{
    dscomm_status_t status =
        work_check(work, "dscomm_work_received", DSCOMM_TIMEOUT_DEFAULT);

    if (status < 0)
        return status;
    status = atomic_load_explicit(&work->status, memory_order_acquire);
    if (work->call.type != CALL_MESSAGE || !work->call.p2p.receive ||
        (status != DSCOMM_OK && status != DSCOMM_ERR_TRUNCATED))
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "dscomm_work_received: the work is no completed "
                           "receive; wait for it first");
    if (ret_source)
        *ret_source = work->request.source;
    if (ret_tag)
        *ret_tag = work->request.tag;
    if (ret_bytes)
        *ret_bytes = work->request.bytes;
    return DSCOMM_OK;
}

dscomm_group_t *dscomm_work_group(const dscomm_work_t *work)
{
    return work && !dscomm_priv_group_is(work->group, GROUP_FREED) ? work->group
                                                                   : NULL;
}

uint64_t dscomm_work_sequence(const dscomm_work_t *work)
{
    if (!work || work->call.type == CALL_CUSTOM ||
        work->call.type == CALL_ACCESS)
        return 0;
    return work->call.type == CALL_MESSAGE ? work->call.p2p.sequence
                                           : work->call.coll.sequence;
}
