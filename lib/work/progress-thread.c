/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's thread. There is one a process at most, and it works at one of
 * two paces. As the progress thread it makes progress while the program
 * computes (DSCOMM_PROGRESS=thread) or polls descriptors (dscomm_group_fd()),
 * as long as there is a world. As the watchdog it starts with the first work
 * that is not waited for at once, and looks a few times in each deadline, so
 * that no work passes its own unseen. Looking means to do all that a wait would
 * do. */
#include "config.h"
#include "lib/base/settings.h"
#include "lib/base/thread.h"
#include "lib/work/event.h"
#include "lib/work/pending.h"
#include "lib/work/progress.h"

#include <string.h>
#include <unistd.h>

#define NAP_MIN_US 1
#define NAP_MAX_US 256
/* Time between checks of idle groups with a descriptor for failures. */
#define LOOK_MS 50
/* Time between checks of the deadlines of works, of the progress thread. */
#define DEADLINES_MS 10
/* Looks of the watchdog in a deadline. More than GAP_PART in deadline.c, or
 * time between looks would be left out. */
#define LOOKS 8
/* Looks at no works before the watchdog sleeps until there are some. */
#define IDLE_LOOKS 8

typedef enum { PACE_WATCH, PACE_PROGRESS } pace_t;

/* Held while the thread is started or joined, so that no second one is started.
 * Released by users_release() alone. */
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static pthread_t thread;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Initialised with the first thread and never destroyed, because another thread
 * may signal it after the progress thread has ended. */
static pthread_cond_t work_came;
static bool made;
static int stopping;
static pace_t pace;
static atomic_int running;
static atomic_int watching; /* a watchdog may be started */

/* Sleeps until works are started, or groups must be checked for failures.
 * Called with the lock held. */
static void thread_sleep_idle(void)
{
    if (!dscomm_priv_event_wanted()) {
        pthread_cond_wait(&work_came, &lock);
        return;
    }
    if (dscomm_priv_cond_until(&work_came, &lock,
                               dscomm_priv_clock() + LOOK_MS * NS_PER_MS))
        return;
    pthread_mutex_unlock(&lock);
    dscomm_priv_event_look();
    pthread_mutex_lock(&lock);
}

static bool is_watchdog(void)
{
    return pace == PACE_WATCH && !stopping;
}

/* Sleeps until there are works. A work that came before the watchdog asked for
 * notices has sent none, so the deadlines known until then hold again. Called
 * with the lock held. */
static void watchdog_sleep_idle(void)
{
    const int64_t known =
        atomic_exchange(&dscomm_priv_pending_watched_ns, INT64_MAX);

    while (is_watchdog() && dscomm_priv_pending_none() &&
           atomic_load(&dscomm_priv_pending_watched_ns) == INT64_MAX)
        pthread_cond_wait(&work_came, &lock);
    if (is_watchdog() &&
        atomic_load(&dscomm_priv_pending_watched_ns) == INT64_MAX)
        atomic_store(&dscomm_priv_pending_watched_ns, known);
}

/* Sleeps until works must be looked at. looks: how often there were none since
 * the last work; after some, the watchdog sleeps until there are. To start a
 * work is cheap before that, because it wakes nobody. Called with the lock
 * held. */
static void watchdog_sleep(unsigned *looks)
{
    const int64_t began = dscomm_priv_clock();

    *looks = dscomm_priv_pending_none() ? *looks + 1 : 0;
    if (*looks > IDLE_LOOKS) {
        watchdog_sleep_idle();
        *looks = 0;
    }
    while (is_watchdog()) {
        const int64_t pause_ns =
            atomic_load(&dscomm_priv_pending_watched_ns) / LOOKS;
        const int64_t end = began + MAX(pause_ns, NS_PER_MS);

        if (dscomm_priv_clock() >= end)
            return;
        dscomm_priv_cond_until(&work_came, &lock, end);
    }
}

/* Sleeps until a group has works; 0 if the thread must end. */
static int thread_sleep(unsigned *looks)
{
    int go_on;

    pthread_mutex_lock(&lock);
    if (is_watchdog())
        watchdog_sleep(looks);
    while (!stopping && pace == PACE_PROGRESS && dscomm_priv_pending_none())
        thread_sleep_idle();
    go_on = !stopping;
    pthread_mutex_unlock(&lock);
    return go_on;
}

/* Returns the time, in ns, if deadlines must be checked now; else 0. */
static int64_t time_of_deadlines(int64_t *last_ns)
{
    if (dscomm_priv_clock_coarse() - *last_ns < DEADLINES_MS * NS_PER_MS)
        return 0;
    return *last_ns = dscomm_priv_clock();
}

static bool makes_progress(void)
{
    bool progress;

    pthread_mutex_lock(&lock);
    progress = pace == PACE_PROGRESS;
    pthread_mutex_unlock(&lock);
    return progress;
}

static void *thread_loop(void *arg)
{
    useconds_t nap = NAP_MIN_US;
    int64_t last_ns = 0;
    unsigned looks = 0;

    while (thread_sleep(&looks)) {
        if (!makes_progress()) {
            dscomm_priv_progress_all(dscomm_priv_clock());
            continue;
        }
        if (dscomm_priv_progress_all(time_of_deadlines(&last_ns))) {
            nap = NAP_MIN_US;
            continue;
        }
        dscomm_priv_event_look();
        usleep(nap);
        nap = MIN(nap * 2, NAP_MAX_US);
    }
    return arg;
}

/* Notes the deadline of a work, unless the thread is notified of all works.
 * Called with lock held. */
static void deadline_note(int64_t timeout_ns)
{
    if (pace == PACE_WATCH &&
        timeout_ns < atomic_load(&dscomm_priv_pending_watched_ns))
        atomic_store(&dscomm_priv_pending_watched_ns, timeout_ns);
}

/* Sets the pace of the thread that runs or will be started, and wakes it. A
 * progress thread it remains. Returns the deadline that was watched. */
static int64_t pace_set(pace_t wanted)
{
    int64_t known;

    pthread_mutex_lock(&lock);
    known = atomic_load(&dscomm_priv_pending_watched_ns);
    pace = MAX(pace, wanted);
    if (pace == PACE_PROGRESS)
        atomic_store(&dscomm_priv_pending_watched_ns, INT64_MAX);
    if (!made)
        dscomm_priv_cond_init(&work_came);
    made = true;
    pthread_cond_signal(&work_came);
    pthread_mutex_unlock(&lock);
    return known;
}

/* Starts the thread unless it runs. Called with users_lock held. */
static dscomm_status_t thread_run(pace_t wanted)
{
    const int64_t known = pace_set(wanted);
    int error;

    if (atomic_load(&running))
        return DSCOMM_OK;
    stopping = 0;
    error = dscomm_priv_thread_start(&thread, NULL, thread_loop, NULL);
    pthread_mutex_lock(&lock);
    atomic_store(&running, !error);
    if (error) {
        pace = PACE_WATCH;
        deadline_note(known);
    }
    pthread_mutex_unlock(&lock);
    return error
               ? dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                             "cannot start the progress thread: %s; unset "
                             "DSCOMM_PROGRESS, and do not ask for descriptors",
                             strerror(error))
               : DSCOMM_OK;
}

/* Starts the watchdog. Called with users_lock held. */
static void watchdog_start(void)
{
    if (thread_run(PACE_WATCH) == DSCOMM_OK)
        return;
    dscomm_log(DSCOMM_LOG_WARN, "core",
               "no watchdog: no thread can be started; deadlines are checked "
               "by waits and tests alone");
    atomic_store(&watching, 0);
}

/* True if a work's deadline was noted, and there is no thread. */
static bool is_unwatched(void)
{
    bool unwatched;

    pthread_mutex_lock(&lock);
    unwatched = atomic_load(&watching) && !atomic_load(&running) &&
                atomic_load(&dscomm_priv_pending_watched_ns) != INT64_MAX;
    pthread_mutex_unlock(&lock);
    return unwatched;
}

/* Starts the watchdog if it is missing, unless users_lock is held: its holder
 * then does so when it releases it. A work may start in a thread that holds
 * locks of groups, so it cannot wait for that. */
static void watchdog_ensure(void)
{
    while (is_unwatched() && !pthread_mutex_trylock(&users_lock)) {
        if (is_unwatched())
            watchdog_start();
        pthread_mutex_unlock(&users_lock);
    }
}

static void users_release(void)
{
    pthread_mutex_unlock(&users_lock);
    watchdog_ensure();
}

/* Wakes the thread: a work has a shorter deadline than those that it knows, or
 * the first group has got a descriptor. Starts the watchdog with the first
 * work. */
static void thread_wake(int64_t timeout_ns)
{
    if (!atomic_load(&watching) && !atomic_load(&running))
        return;
    pthread_mutex_lock(&lock);
    if (atomic_load(&watching) || atomic_load(&running))
        deadline_note(timeout_ns);
    if (made)
        pthread_cond_signal(&work_came);
    pthread_mutex_unlock(&lock);
    if (!atomic_load(&running))
        watchdog_ensure();
}

dscomm_status_t dscomm_priv_progress_start(void)
{
    int64_t mode, watchdog;
    dscomm_status_t status =
        dscomm_priv_setting_number(SETTING_PROGRESS, &mode);

    if (status == DSCOMM_OK)
        status = dscomm_priv_setting_number(SETTING_WATCHDOG, &watchdog);
    if (status < 0)
        return status;
    dscomm_priv_pending_set_wake(thread_wake);
    pthread_mutex_lock(&users_lock);
    if (mode)
        status = thread_run(PACE_PROGRESS);
    if (status == DSCOMM_OK) {
        users++;
        atomic_store(&watching, watchdog != 0);
    }
    users_release();
    return status;
}

/* Starts the progress thread whatever the settings are; it ends with its last
 * user. */
static dscomm_status_t thread_demand(void)
{
    dscomm_status_t status;

    pthread_mutex_lock(&users_lock);
    status = thread_run(PACE_PROGRESS);
    users_release();
    return status;
}

dscomm_status_t dscomm_group_fd(dscomm_group_t *group, int *ret_fd)
{
    const char *name = "dscomm_group_fd";
    dscomm_status_t status = dscomm_priv_group_alive(group, name);

    if (status < 0)
        return status;
    if (!ret_fd)
        return dscomm_priv_invalid(group, name, "ret_fd is NULL");
    if (group->capabilities & DSCOMM_CAP_CALLER_PROGRESS)
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "%s on group '%s': backend %s makes progress in the "
                           "program's calls alone; if it is MPI's, initialise "
                           "MPI with MPI_THREAD_MULTIPLE",
                           name, group->identity.name, group->module->name);
    if (dscomm_priv_event_fd(group) < 0) {
        status = thread_demand();
        if (status == DSCOMM_OK)
            status = dscomm_priv_event_open(group);
        if (status < 0)
            return status;
        thread_wake(INT64_MAX);
    }
    *ret_fd = dscomm_priv_event_fd(group);
    return DSCOMM_OK;
}

static void thread_end(void)
{
    if (!atomic_load(&running))
        return;
    pthread_mutex_lock(&lock);
    stopping = 1;
    pthread_cond_signal(&work_came);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
}

/* Called with users_lock held, when there is no world any more, and so no
 * work. */
static void threads_end(void)
{
    thread_end();
    pthread_mutex_lock(&lock);
    pace = PACE_WATCH;
    atomic_store(&running, 0);
    atomic_store(&watching, 0);
    atomic_store(&dscomm_priv_pending_watched_ns, INT64_MAX);
    pthread_mutex_unlock(&lock);
    dscomm_priv_helper_stop();
}

void dscomm_priv_progress_stop(void)
{
    pthread_mutex_lock(&users_lock);
    if (--users == 0)
        threads_end();
    users_release();
}

void dscomm_priv_progress_thread_forked(void)
{
    pthread_mutex_init(&users_lock, NULL);
    pthread_mutex_init(&lock, NULL);
    users = 0;
    stopping = 0;
    pace = PACE_WATCH;
    made = false; /* the parent's threads may have used it during the fork */
    atomic_store(&running, 0);
    atomic_store(&watching, 0);
}
