/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of groups with works, in the whole process: whoever waits walks it,
 * so that a rank that waits on one group does not hold up its peers on
 * another. */
#include "config.h"
#include "lib/work/progress.h"
#include "lib/work/deadline.h"
#include "lib/work/event.h"
#include "lib/base/status.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

#define REST_US 1000 /* where nothing else needs this thread */
#define SHORT_REST_US 20 /* where it does */
/* Between two looks whether a diagnosis is over. */
#define CLOSE_PAUSE_US 1000

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static dscomm_group_t *list;
static atomic_uint listed;
static atomic_uint custom; /* works that are their callers' own */
static _Thread_local int walking;

void dscomm_priv_pending_add(dscomm_group_t *group)
{
    if (group->works.listed)
        return;
    dscomm_priv_group_set(group, GROUP_PENDING);
    pthread_mutex_lock(&list_lock);
    group->works.listed = 1;
    group->works.prev = NULL;
    group->works.next = list;
    if (list)
        list->works.prev = group;
    list = group;
    atomic_fetch_add_explicit(&listed, 1, memory_order_relaxed);
    pthread_mutex_unlock(&list_lock);
    dscomm_priv_progress_wake();
}

/* Whether group leaves the list. */
static bool is_settled(const dscomm_group_t *group)
{
    return group->works.listed && !group->works.pending &&
           !group->works.expiring;
}

/* With both locks held. Clearing GROUP_PENDING hands the group back to its own
 * thread: nothing of the backend is touched after it. */
static void pending_settle(dscomm_group_t *group)
{
    if (!is_settled(group))
        return;
    group->works.listed = 0;
    if (group->works.prev)
        group->works.prev->works.next = group->works.next;
    else
        list = group->works.next;
    if (group->works.next)
        group->works.next->works.prev = group->works.prev;
    atomic_fetch_sub_explicit(&listed, 1, memory_order_relaxed);
    dscomm_priv_group_clear(group, GROUP_PENDING);
}

void dscomm_priv_pending_settle(dscomm_group_t *group)
{
    if (!is_settled(group))
        return;
    pthread_mutex_lock(&list_lock);
    pending_settle(group);
    pthread_mutex_unlock(&list_lock);
}

/* Takes the lock of a group that is to be closed, after the progress thread has
 * ended its diagnosis. */
static void lock_to_close(dscomm_group_t *group)
{
    pthread_mutex_lock(&group->works.lock);
    while (group->works.expiring) {
        pthread_mutex_unlock(&group->works.lock);
        g_usleep(CLOSE_PAUSE_US);
        pthread_mutex_lock(&group->works.lock);
    }
}

static void works_end(dscomm_group_t *group)
{
    char text[DSCOMM_ERROR_MAX];

    snprintf(text, sizeof text,
             "group '%s' was freed while the work was running",
             group->identity.name);
    lock_to_close(group);
    dscomm_priv_works_cancel(group, DSCOMM_ERR_ABORTED, text);
    dscomm_priv_pending_settle(group);
    dscomm_priv_group_set(group, GROUP_FREED);
    pthread_mutex_unlock(&group->works.lock);
}

const dscomm_group_part_t dscomm_priv_works_part = {
    .end = works_end,
    .free = dscomm_priv_works_destroy,
};

static void works_scan(dscomm_group_t *group)
{
    dscomm_work_t *work, *next;

    group->works.unscanned = 0;
    for (work = group->works.pending; work; work = next) {
        next = work->next;
        dscomm_priv_work_advance(work);
        if (work->request.status != DSCOMM_IN_PROGRESS)
            dscomm_priv_work_retire(work, work->request.status, NULL);
    }
}

unsigned dscomm_priv_progress(dscomm_group_t *group)
{
    uint64_t before = group->works.completed;
    unsigned moved;

    if (!group->works.pending)
        return 0;
    moved = group->ops.progress(group->impl);
    if (moved || group->works.unscanned || group->works.scheduled ||
        group->works.custom)
        works_scan(group);
    if (moved && group->works.completed == before)
        group->works.completed++;
    return (unsigned)(group->works.completed - before);
}

int dscomm_priv_progress_broken(dscomm_group_t *group)
{
    char text[DSCOMM_ERROR_MAX];
    dscomm_status_t status;

    if (group->ops.status(group->impl, NULL, 0) == DSCOMM_OK)
        return 0;
    works_scan(group);
    status = dscomm_priv_group_revoked(group, text, sizeof(text));
    dscomm_priv_works_cancel(group, status, text);
    return 1;
}

void dscomm_priv_progress_rest(dscomm_group_t *group, int64_t at_most_ns,
                               int hurry)
{
    int64_t us = MIN(at_most_ns / 1000 + 1, hurry ? SHORT_REST_US : REST_US);

    if (group->ops.wait)
        group->ops.wait(group->impl, (unsigned)us);
    else
        sched_yield();
}

int dscomm_priv_progress_wanted(const dscomm_group_t *group)
{
    unsigned own = group && dscomm_priv_group_is(group, GROUP_PENDING);

    return atomic_load_explicit(&listed, memory_order_relaxed) > own;
}

/* Only groups that nobody is working on; the list's lock is not held meanwhile.
 * A group stays on the list as long as its lock is held or it is expiring, so
 * next is still right when the list's lock is taken again. locked: the caller
 * has another group's lock, and so must not come to works that are their
 * callers' own. unless: capabilities of groups to be left out. now: deadlines
 * pass, unless it is 0.
 */
static unsigned walk_list(const dscomm_group_t *except, int locked,
                          uint64_t unless, int64_t now)
{
    dscomm_group_t *group, *next;
    unsigned completed = 0;

    pthread_mutex_lock(&list_lock);
    for (group = list; group; group = next) {
        next = group->works.next;
        if (group == except || group->capabilities & unless ||
            pthread_mutex_trylock(&group->works.lock))
            continue;
        if (locked && group->works.custom) {
            pthread_mutex_unlock(&group->works.lock);
            continue;
        }
        pthread_mutex_unlock(&list_lock);
        completed += dscomm_priv_progress(group);
        if (!completed)
            dscomm_priv_progress_broken(group);
        if (now)
            dscomm_priv_works_expire(group, now);
        pthread_mutex_lock(&list_lock);
        next = group->works.next;
        pending_settle(group);
        pthread_mutex_unlock(&group->works.lock);
    }
    pthread_mutex_unlock(&list_lock);
    return completed;
}

/* What a work of its caller's own does on other groups comes here again. */
static unsigned walk(const dscomm_group_t *except, int locked, uint64_t unless,
                     int64_t now)
{
    unsigned completed = 0;

    if (walking)
        return 0;
    walking = 1;
    completed = walk_list(except, locked, unless, now);
    walking = 0;
    return completed;
}

static int progress_others(const dscomm_group_t *group, int locked)
{
    return dscomm_priv_progress_wanted(group) && walk(group, locked, 0, 0);
}

/* In a call that waits. The group has works of its callers' own only while it
 * is pending, and then that call has its lock. 1: something moved. */
static int advance_own(dscomm_group_t *group)
{
    dscomm_work_t *work, *next;
    const uint64_t before = group->works.completed;

    walking = 1;
    for (work = group->works.pending; work; work = next) {
        next = work->next;
        if (work->call.type != CALL_CUSTOM)
            continue;
        dscomm_priv_work_advance(work);
        if (work->request.status != DSCOMM_IN_PROGRESS)
            dscomm_priv_work_retire(work, work->request.status, NULL);
    }
    walking = 0;
    return group->works.completed != before;
}

int dscomm_backend_progress_others(dscomm_group_t *group)
{
    int moved = 0;

    if (group && group->works.custom && !walking)
        moved = advance_own(group);
    return progress_others(group, 0) || moved;
}

void dscomm_priv_progress_custom(int more)
{
    atomic_fetch_add_explicit(&custom, (unsigned)more, memory_order_relaxed);
}

/* A work of its caller's own takes the locks of other groups. Whoever held this
 * one meanwhile could meet another thread that does the same the other way
 * round. */
void dscomm_priv_progress_others(dscomm_group_t *group)
{
    if (!atomic_load_explicit(&custom, memory_order_relaxed)) {
        progress_others(group, 1);
        return;
    }
    pthread_mutex_unlock(&group->works.lock);
    progress_others(group, 0);
    pthread_mutex_lock(&group->works.lock);
}

int dscomm_backend_has_works(void)
{
    return !dscomm_priv_progress_idle();
}

unsigned dscomm_priv_progress_all(int64_t now)
{
    return walk(NULL, 0, DSCOMM_CAP_CALLER_PROGRESS, now);
}

int dscomm_priv_progress_idle(void)
{
    return atomic_load_explicit(&listed, memory_order_relaxed) == 0;
}

void dscomm_priv_progress_forked(void)
{
    pthread_mutex_init(&list_lock, NULL);
    list = NULL;
    atomic_store(&listed, 0);
    atomic_store(&custom, 0);
    walking = 0;
    dscomm_priv_event_forked();
    dscomm_priv_progress_thread_forked();
}
