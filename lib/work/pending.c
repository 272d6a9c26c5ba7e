/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of all groups of the process that have works. */
#include "config.h"
#include "lib/work/pending.h"
#include "lib/base/clock.h"

#include <stdbool.h>

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, dscomm_group) list;
static atomic_uint listed;
static _Atomic(dscomm_pending_wake_t) wake_thread;
_Atomic int64_t dscomm_priv_pending_watched_ns = INT64_MAX;

void dscomm_priv_pending_set_wake(dscomm_pending_wake_t function)
{
    atomic_store(&wake_thread, function);
}

void dscomm_priv_pending_watch(int64_t timeout_ns)
{
    dscomm_pending_wake_t wake;

    if (timeout_ns >= atomic_load(&dscomm_priv_pending_watched_ns))
        return;
    wake = atomic_load_explicit(&wake_thread, memory_order_relaxed);
    if (wake)
        wake(timeout_ns);
}

static void pending_insert(dscomm_group_t *group)
{
    dscomm_priv_group_set(group, GROUP_PENDING);
    pthread_mutex_lock(&list_lock);
    LIST_INSERT_HEAD(&list, group, works.in_list);
    atomic_fetch_add(&listed, 1);
    pthread_mutex_unlock(&list_lock);
}

void dscomm_priv_pending_add(dscomm_group_t *group, bool watch)
{
    if (!dscomm_priv_group_is(group, GROUP_PENDING))
        pending_insert(group);
    if (!watch || group->works.watched)
        return;
    group->works.watched = true;
    if (!(group->capabilities & DSCOMM_CAP_CALLER_PROGRESS))
        dscomm_priv_pending_watch(
            dscomm_priv_clock_after(0, group->timeout_ms));
}

/* True if group must leave the list. */
static bool is_settled(const dscomm_group_t *group)
{
    return dscomm_priv_group_is(group, GROUP_PENDING) &&
           !group->works.pending && !group->works.expiring &&
           !group->works.serve;
}

/* Removes the group from the list. Called with both locks. Clearing
 * GROUP_PENDING returns the group to its own thread, so the backend must not be
 * used after it. */
static void pending_settle(dscomm_group_t *group)
{
    if (!is_settled(group))
        return;
    group->works.watched = false;
    LIST_REMOVE(group, works.in_list);
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

int dscomm_priv_pending_others(const dscomm_group_t *group)
{
    unsigned own = group && dscomm_priv_group_is(group, GROUP_PENDING);

    return atomic_load_explicit(&listed, memory_order_relaxed) > own;
}

bool dscomm_priv_pending_none(void)
{
    return atomic_load(&listed) == 0;
}

/* The list's lock is released during visit. A group stays on the list while its
 * lock is held or it is expiring, so next is still valid when the list is
 * locked again. */
unsigned dscomm_priv_pending_walk(const dscomm_group_t *except, uint64_t unless,
                                  unsigned (*visit)(dscomm_group_t *group,
                                                    void *arg),
                                  void *arg)
{
    dscomm_group_t *group, *next;
    unsigned completed = 0;

    pthread_mutex_lock(&list_lock);
    for (group = LIST_FIRST(&list); group; group = next) {
        next = LIST_NEXT(group, works.in_list);
        if (group == except || group->capabilities & unless ||
            pthread_mutex_trylock(&group->works.lock))
            continue;
        pthread_mutex_unlock(&list_lock);
        completed += visit(group, arg);
        pthread_mutex_lock(&list_lock);
        next = LIST_NEXT(group, works.in_list);
        pending_settle(group);
        pthread_mutex_unlock(&group->works.lock);
    }
    pthread_mutex_unlock(&list_lock);
    return completed;
}

void dscomm_priv_pending_forked(void)
{
    pthread_mutex_init(&list_lock, NULL);
    LIST_INIT(&list);
    atomic_store(&listed, 0);
    atomic_store(&dscomm_priv_pending_watched_ns, INT64_MAX);
}
