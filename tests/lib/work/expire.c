/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress thread diagnoses a late call, which may take a while. Other
 * threads use the group meanwhile, and it is closed only after the diagnosis.
 * The group, its backend and the diagnosis are fakes. */
#include "config.h"

#include "lib/base/clock.h"
#include "lib/diagnosis/diagnosis.h"
#include "lib/schedule/algorithm.h"
#include "lib/schedule/collective.h"
#include "lib/schedule/run.h"
#include "lib/work/pending.h"
#include "lib/work/progress.h"
#include "tests/tap.h"

#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_MS 1000
#define LIMIT_S 20 /* time limit for events in other threads */

static sem_t begun, allowed; /* a diagnosis */
static atomic_int closed;

/* Replace the functions that query the store. */
dscomm_diagnosis_t *__wrap_dscomm_priv_diagnosis_new(const dscomm_work_t *work);
void __wrap_dscomm_priv_diagnosis_free(dscomm_diagnosis_t *diagnosis);
dscomm_status_t
__wrap_dscomm_priv_diagnosis_look(dscomm_diagnosis_t *diagnosis,
                                  dscomm_failure_t *ret_failure);
dscomm_status_t
__wrap_dscomm_priv_diagnosis_timeout(dscomm_diagnosis_t *diagnosis,
                                     dscomm_failure_t *ret_failure);

dscomm_diagnosis_t *__wrap_dscomm_priv_diagnosis_new(const dscomm_work_t *work)
{
    return (dscomm_diagnosis_t *)work;
}

void __wrap_dscomm_priv_diagnosis_free(dscomm_diagnosis_t *diagnosis)
{
    (void)diagnosis;
}

dscomm_status_t __wrap_dscomm_priv_diagnosis_look(dscomm_diagnosis_t *diagnosis,
                                                  dscomm_failure_t *ret_failure)
{
    (void)diagnosis, (void)ret_failure;
    return DSCOMM_OK;
}

dscomm_status_t
__wrap_dscomm_priv_diagnosis_timeout(dscomm_diagnosis_t *diagnosis,
                                     dscomm_failure_t *ret_failure)
{
    (void)diagnosis, (void)ret_failure;
    sem_post(&begun);
    while (sem_wait(&allowed) && errno == EINTR)
        ;
    return DSCOMM_OK;
}

static dscomm_status_t get_status(void *impl, dscomm_failure_t *ret_failure)
{
    (void)impl, (void)ret_failure;
    return DSCOMM_OK;
}

static void close_impl(void *impl)
{
    (void)impl;
    atomic_store(&closed, 1);
}

static const dscomm_backend_ops_t ops = {
    .size = sizeof ops,
    .status = get_status,
    .close = close_impl,
};

static const dscomm_algorithm_t algorithm = {.name = "any"};
static const dscomm_schedule_t schedule = {.algorithm = &algorithm, .ranks = 2};
/* Without messages. */
static dscomm_run_t run = {.schedule = &schedule, .port = {.ops = &ops}};
static dscomm_group_t group;
static dscomm_work_t work;
static char name[] = "g";

static void make_group(void)
{
    memset(&work, 0, sizeof work);
    work.group = &group;
    work.status = work.request.status = DSCOMM_IN_PROGRESS;
    memset(&group, 0, sizeof group);
    group.ops = ops;
    group.identity.name = name;
    group.size = 2;
    work.run = &run;
    work.call.algorithm = &algorithm;
    work.kind = dscomm_priv_collective_kind(&work.call);
    group.timeout_ms = TIMEOUT_MS;
    group.works.pending = &work;
    atomic_init(&group.life.uses, 1);
    /* it is the test's, and must not be freed */
    atomic_init(&group.life.holds, 2);
    pthread_mutex_init(&group.works.lock, NULL);
    pthread_mutex_lock(&group.works.lock);
    dscomm_priv_pending_add(&group, true);
    pthread_mutex_unlock(&group.works.lock);
}

/* Does what the progress thread does, with a clock that runs fast, until the
 * deadline has passed. */
static void *expire(void *arg)
{
    int64_t now = dscomm_priv_clock();

    pthread_mutex_lock(&group.works.lock);
    for (int i = 0; i < 6 && group.works.pending; i++) {
        dscomm_priv_works_expire(&group, now);
        now += TIMEOUT_MS / 4 * NS_PER_MS;
    }
    dscomm_priv_pending_settle(&group);
    pthread_mutex_unlock(&group.works.lock);
    return arg;
}

static void *drop(void *arg)
{
    dscomm_priv_group_drop(&group);
    return arg;
}

/* Returns an absolute time limit for semaphores and locks. */
static struct timespec limit_from_now(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LIMIT_S;
    return until;
}

static pthread_t start_diagnosis(void)
{
    const struct timespec until = limit_from_now();
    pthread_t thread;

    make_group();
    if (pthread_create(&thread, NULL, expire, NULL))
        bail("no thread");
    if (sem_timedwait(&begun, &until))
        bail("no diagnosis");
    return thread;
}

/* Completes the work from another thread during the diagnosis. */
static void complete_meanwhile(void)
{
    const struct timespec until = limit_from_now();
    const bool taken = pthread_mutex_timedlock(&group.works.lock, &until) == 0;

    ok(taken, "another thread takes the group's lock during a diagnosis");
    if (!taken)
        return;
    group.works.pending = NULL;
    group.works.completed++;
    dscomm_priv_pending_settle(&group);
    ok(dscomm_priv_group_is(&group, GROUP_PENDING),
       "the group stays in the list meanwhile");
    pthread_mutex_unlock(&group.works.lock);
}

static void test_lock(void)
{
    pthread_t thread = start_diagnosis();

    complete_meanwhile();
    sem_post(&allowed);
    pthread_join(thread, NULL);
    ok(!dscomm_priv_group_is(&group, GROUP_PENDING),
       "it leaves the list afterwards");
}

static void test_drop(void)
{
    pthread_t thread = start_diagnosis(), dropper;

    complete_meanwhile();
    if (pthread_create(&dropper, NULL, drop, NULL))
        bail("no thread");
    usleep(100000);
    ok(!atomic_load(&closed), "a diagnosis keeps the group open");
    sem_post(&allowed);
    pthread_join(thread, NULL);
    pthread_join(dropper, NULL);
    ok(atomic_load(&closed), "it is closed afterwards");
}

static const dscomm_group_part_t *const parts[] = {&dscomm_priv_works_part,
                                                   NULL};

int main(void)
{
    dscomm_priv_group_parts = parts;
    sem_init(&begun, 0, 0);
    sem_init(&allowed, 0, 0);
    test_lock();
    test_drop();
    return tap_done();
}
