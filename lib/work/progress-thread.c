/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress thread: makes progress while the program computes
 * (DSCOMM_PROGRESS=thread) or polls descriptors (dscomm_group_fd()). There is
 * one a process, as long as there is a world. */
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
/* Time between checks of the deadlines of works. */
#define DEADLINES_MS 10

/* Held while the thread is started or joined, so that no second one is started.
 */
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static pthread_t thread;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Initialised with the first thread and never destroyed, because another thread
 * may signal it after the progress thread has ended. */
static pthread_cond_t work_came;
static bool made;
static int stopping;
static atomic_int running;

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

/* Sleeps until a group has works; 0 if the thread must end. */
static int thread_sleep(void)
{
    int go_on;

    pthread_mutex_lock(&lock);
    while (!stopping && dscomm_priv_pending_none())
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

static void *thread_loop(void *arg)
{
    useconds_t nap = NAP_MIN_US;
    int64_t last_ns = 0;

    while (thread_sleep()) {
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

/* Wakes the thread: a group has works, or the first group has got a descriptor.
 */
static void thread_wake(void)
{
    if (!atomic_load_explicit(&running, memory_order_relaxed))
        return;
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&work_came);
    pthread_mutex_unlock(&lock);
}

/* Starts the thread unless it runs. Called with users_lock held. */
static dscomm_status_t thread_run(void)
{
    int error;

    if (atomic_load(&running))
        return DSCOMM_OK;
    stopping = 0;
    if (!made)
        dscomm_priv_cond_init(&work_came);
    made = true;
    error = dscomm_priv_thread_start(&thread, NULL, thread_loop, NULL);
    if (error)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "cannot start the progress thread: %s; unset "
                           "DSCOMM_PROGRESS, and do not ask for descriptors",
                           strerror(error));
    atomic_store(&running, 1);
    dscomm_priv_pending_set_wake(thread_wake);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_progress_start(void)
{
    int64_t mode;
    dscomm_status_t status =
        dscomm_priv_setting_number(SETTING_PROGRESS, &mode);

    if (status < 0)
        return status;
    pthread_mutex_lock(&users_lock);
    if (mode)
        status = thread_run();
    users += status == DSCOMM_OK;
    pthread_mutex_unlock(&users_lock);
    return status;
}

/* Starts the thread whatever the settings are; it ends with its last user. */
static dscomm_status_t thread_demand(void)
{
    dscomm_status_t status;

    pthread_mutex_lock(&users_lock);
    status = thread_run();
    pthread_mutex_unlock(&users_lock);
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
        thread_wake();
    }
    *ret_fd = dscomm_priv_event_fd(group);
    return DSCOMM_OK;
}

static void thread_end(void)
{
    pthread_mutex_lock(&lock);
    stopping = 1;
    pthread_cond_signal(&work_came);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    atomic_store(&running, 0);
}

void dscomm_priv_progress_stop(void)
{
    pthread_mutex_lock(&users_lock);
    if (--users == 0) {
        if (atomic_load(&running))
            thread_end();
        dscomm_priv_helper_stop();
    }
    pthread_mutex_unlock(&users_lock);
}

void dscomm_priv_progress_thread_forked(void)
{
    pthread_mutex_init(&users_lock, NULL);
    pthread_mutex_init(&lock, NULL);
    users = 0;
    stopping = 0;
    made = false; /* the parent's threads may have used it during the fork */
    atomic_store(&running, 0);
}
