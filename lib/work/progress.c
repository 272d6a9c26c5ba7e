/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress of one group, and of all groups with works. Each waiting thread
 * advances all groups, so that a rank that waits on one group does not delay
 * its peers on another. */
#include "config.h"
#include "lib/work/progress.h"
#include "lib/base/status.h"
#include "lib/group/failure.h"
#include "lib/work/pending.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

#define REST_US 1000 /* if only this group needs the thread */
#define SHORT_REST_US 20 /* if other groups need it too */
/* Pause between checks whether a diagnosis has ended. */
#define CLOSE_PAUSE_US 1000

static atomic_uint custom; /* number of custom works */
static _Thread_local int walking;

/* Takes the lock of a group that will be closed, after the progress thread has
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
    group->works.serve = NULL;
    dscomm_priv_works_cancel(group, DSCOMM_ERR_ABORTED, text);
    dscomm_priv_pending_settle(group);
    dscomm_priv_group_set(group, GROUP_FREED);
    pthread_mutex_unlock(&group->works.lock);
}

const dscomm_group_part_t dscomm_priv_works_part = {
    .on[PART_END] = works_end,
    .on[PART_FREE] = dscomm_priv_works_destroy,
};

unsigned dscomm_priv_progress(dscomm_group_t *group)
{
    uint64_t before = group->works.completed;
    unsigned moved;

    if (!group->works.pending && !group->works.serve)
        return 0;
    moved = group->ops.progress(group->impl);
    if (group->works.serve)
        moved += group->works.serve(group);
    if (moved || group->works.unscanned || group->works.scheduled ||
        group->works.custom)
        dscomm_priv_works_scan(group, false);
    if (moved && group->works.completed == before)
        group->works.completed++;
    return (unsigned)(group->works.completed - before);
}

void dscomm_priv_progress_rest(dscomm_group_t *group, int64_t at_most_ns,
                               int shared)
{
    int64_t us = MIN(at_most_ns / 1000 + 1, shared ? SHORT_REST_US : REST_US);

    if (group->ops.wait)
        group->ops.wait(group->impl, (unsigned)us);
    else
        sched_yield();
}

typedef struct {
    int64_t now; /* time at which deadlines are checked; 0: not checked */
    bool locked;
} walk_t;

/* locked: the caller holds another group's lock, so it must not advance custom
 * works, which take the locks of other groups. */
static unsigned walk_visit(dscomm_group_t *group, void *arg)
{
    const walk_t *walk = arg;
    unsigned completed;

    if (walk->locked && group->works.custom)
        return 0;
    completed = dscomm_priv_progress(group);
    if (!completed)
        dscomm_priv_works_broken(group);
    if (walk->now)
        dscomm_priv_works_expire(group, walk->now);
    return completed;
}

/* Custom works make progress on other groups and so call this again; walking
 * ends the recursion. */
static unsigned progress_walk(const dscomm_group_t *except, int locked,
                              uint64_t unless, int64_t now)
{
    unsigned completed = 0;

    if (walking)
        return 0;
    walking = 1;
    completed = dscomm_priv_pending_walk(
        except, unless, walk_visit, &(walk_t){.now = now, .locked = locked});
    walking = 0;
    return completed;
}

static int progress_others(const dscomm_group_t *group, int locked)
{
    return dscomm_priv_pending_others(group) &&
           progress_walk(group, locked, 0, 0);
}

/* Advances the group's custom works, in a blocking call on the group. There are
 * such works only while the group is pending, and then the call holds its lock.
 * Returns 1 if something moved. */
static int advance_own(dscomm_group_t *group)
{
    const uint64_t before = group->works.completed;

    walking = 1;
    dscomm_priv_works_scan(group, true);
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

/* Custom works take the locks of other groups. This group's lock is released
 * meanwhile: otherwise two threads that do this in opposite order would block
 * each other. */
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
    return !dscomm_priv_pending_none();
}

unsigned dscomm_priv_progress_all(int64_t now)
{
    return progress_walk(NULL, 0, DSCOMM_CAP_CALLER_PROGRESS, now);
}

void dscomm_priv_progress_forked(void)
{
    atomic_store(&custom, 0);
    walking = 0;
}
