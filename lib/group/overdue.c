/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocking collectives that their backend cannot end, such as those of an MPI.
 * A thread looks whether one takes longer than the group's deadline. Then it
 * can only say so, and dump the flight recorder: nothing ends the call. */
#include "config.h"

#include "lib/base/settings.h"
#include "lib/base/thread.h"
#include "lib/group/failure.h"
#include "lib/group/recorded.h"
#include "lib/group/world.h"
#include "lib/recorder/dump.h"

#include <dscomm/log.h>
#include <stdio.h>

#define LOOKS 8 /* in a deadline */
#define PAUSE_MOST_NS (60000 * NS_PER_MS) /* between looks */

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static pthread_cond_t changed;
static LIST_HEAD(, dscomm_group) watched = LIST_HEAD_INITIALIZER(watched);
static const dscomm_group_t *reporting; /* group that the thread reports on */
static pthread_t thread;
static bool made, started, stopping;

/* Describes the first rank of this machine that has ended, or has not made the
 * call. */
static void late_describe(const dscomm_group_t *group, uint64_t sequence,
                          char *text, size_t size)
{
    dscomm_recorded_group_t *seen = dscomm_priv_recorded_open(group);
    char who[DSCOMM_CREATION_RANK_MAX];
    uint32_t number;

    g_strlcpy(text, "no rank of this machine is known to be late", size);
    for (int r = 0; seen && r < group->size; r++) {
        const int rank = group->identity.world_ranks[r];
        const dscomm_recorder_slot_t *slot =
            dscomm_priv_recorded_slot(seen, rank, &number);
        const bool dead = slot && dscomm_priv_recorder_state(slot) == SLOT_DEAD;

        if (!slot || (!dead && dscomm_priv_recorded_may_have_called(seen, rank,
                                                                    sequence)))
            continue;
        dscomm_backend_rank(group, rank, dscomm_priv_recorded_pid(seen, rank),
                            who);
        snprintf(text, size, "%s %s", who,
                 dead ? "has died" : "has not made this call");
        break;
    }
    dscomm_priv_recorded_close(seen);
}

/* Called without the lock: a dump takes its time. */
static void overdue_report(dscomm_group_t *group, const dscomm_recorded_t *call)
{
    char what[256], late[DSCOMM_CREATION_RANK_MAX + 32], name[48];

    dscomm_priv_recorder_describe(group->recorder, call, what, sizeof what);
    late_describe(group, call->sequence, late, sizeof late);
    dscomm_log(DSCOMM_LOG_ERROR, "core",
               "%s of group '%s' (rank %d of %d) has not come back within %d "
               "ms: %s; backend %s has no deadline for it and cannot end it: "
               "see DSCOMM_WATCHDOG in dscomm-env(7)",
               what, group->identity.name, group->rank, group->size,
               group->timeout_ms, late, group->module->name);
    snprintf(name, sizeof name, "overdue-%llu",
             (unsigned long long)call->sequence);
    dscomm_priv_group_dump(group, name);
}

/* Whether the group's call has become overdue since the last look. */
static bool is_overdue(dscomm_group_t *group, int64_t now,
                       dscomm_recorded_t *ret_call)
{
    dscomm_group_overdue_t *overdue = &group->overdue;
    const uint64_t running = atomic_load(&overdue->running);

    if (running != overdue->seen) {
        overdue->seen = running;
        overdue->since_ns = now;
        overdue->reported = false;
        return false;
    }
    if (!running || overdue->reported ||
        now - overdue->since_ns < group->timeout_ms * NS_PER_MS)
        return false;
    overdue->reported = true;
    return dscomm_priv_recorder_read(group->recorder, running, ret_call);
}

/* Reports on the first group whose call has become overdue; false if there is
 * none. Called with the lock, which it releases meanwhile. */
static bool report_one(int64_t now)
{
    dscomm_group_t *group;
    dscomm_recorded_t call;

    LIST_FOREACH (group, &watched, overdue.in_list)
        if (is_overdue(group, now, &call))
            break;
    if (!group)
        return false;
    reporting = group;
    pthread_mutex_unlock(&lock);
    overdue_report(group, &call);
    pthread_mutex_lock(&lock);
    reporting = NULL;
    pthread_cond_broadcast(&changed);
    return true;
}

static void *thread_loop(void *arg)
{
    dscomm_group_t *group;

    pthread_mutex_lock(&lock);
    while (!stopping) {
        const int64_t now = dscomm_priv_clock();
        int64_t pause_ns = PAUSE_MOST_NS;

        if (report_one(now))
            continue;
        LIST_FOREACH (group, &watched, overdue.in_list)
            pause_ns = MIN(pause_ns, group->timeout_ms * NS_PER_MS / LOOKS);
        dscomm_priv_cond_until(&changed, &lock, now + MAX(pause_ns, NS_PER_MS));
    }
    pthread_mutex_unlock(&lock);
    return arg;
}

/* Called with start_lock held. */
static void thread_start(void)
{
    if (!made)
        dscomm_priv_cond_init(&changed);
    made = true;
    stopping = false;
    started = !dscomm_priv_thread_start(&thread, NULL, thread_loop, NULL);
    if (!started)
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "no thread can be started that watches blocking calls");
}

/* Called with start_lock held. */
static void thread_stop(void)
{
    pthread_mutex_lock(&lock);
    stopping = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    started = false;
}

void dscomm_priv_overdue_watch(dscomm_group_t *group)
{
    int64_t watchdog = 0;

    if (!group->ops.run || group->size == 1 ||
        !(group->capabilities & DSCOMM_CAP_SEPARATE_MATCHING) ||
        dscomm_priv_setting_number(SETTING_WATCHDOG, &watchdog) < 0 ||
        !watchdog)
        return;
    pthread_mutex_lock(&start_lock);
    pthread_mutex_lock(&lock);
    LIST_INSERT_HEAD(&watched, group, overdue.in_list);
    group->overdue.listed = true;
    if (started)
        pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    if (!started)
        thread_start();
    pthread_mutex_unlock(&start_lock);
}

static void overdue_forget(dscomm_group_t *group)
{
    if (!group->overdue.listed)
        return;
    pthread_mutex_lock(&start_lock);
    pthread_mutex_lock(&lock);
    LIST_REMOVE(group, overdue.in_list);
    group->overdue.listed = false;
    while (reporting == group)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (LIST_EMPTY(&watched) && started)
        thread_stop();
    pthread_mutex_unlock(&start_lock);
}

const dscomm_group_part_t dscomm_priv_overdue_part = {
    .on[PART_CLOSE] = overdue_forget,
};

void dscomm_priv_overdue_forked(void)
{
    dscomm_group_t *group;

    pthread_mutex_init(&start_lock, NULL);
    pthread_mutex_init(&lock, NULL);
    LIST_FOREACH (group, &watched, overdue.in_list)
        group->overdue.listed = false;
    LIST_INIT(&watched);
    made = started = false;
    reporting = NULL;
}
