/* SPDX-License-Identifier: BSD-3-Clause */
/* Dumps of the flight recorder on a signal (DSCOMM_DUMP_SIGNAL). The handler
 * only posts a semaphore; a thread, which no hanging call can stop, writes the
 * file. The thread exists while there is a world. The handler stays, because a
 * signal that comes late should not end the process. */
#include "config.h"

#include "lib/base/settings.h"
#include "lib/base/thread.h"
#include "lib/group/world.h"
#include "lib/recorder/dump.h"

#include <dscomm/log.h>

#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* If all ranks of a host get the signal, the first one writes the dump for
 * them; a later signal asks for another one. */
#define SAME_SIGNAL_NS 1000000000

/* Held while the thread is started or joined. */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;
static atomic_bool stopping;
static sem_t wanted;
static bool made; /* wanted is initialised */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list */
static SLIST_HEAD(, dscomm_world) dumped;

static void signal_handle(int number)
{
    const int error = errno;

    (void)number;
    sem_post(&wanted);
    errno = error;
}

/* Whether this process writes the dump of memory for a signal that came at
 * now_ns: no other one writes it, which may have read the clock just after. */
static bool memory_take(dscomm_recorder_memory_t *memory, int64_t now_ns)
{
    int64_t last;

    if (!memory)
        return true;
    last = atomic_load(&memory->signalled_ns);
    return (last - now_ns >= SAME_SIGNAL_NS ||
            now_ns - last >= SAME_SIGNAL_NS) &&
           atomic_compare_exchange_strong(&memory->signalled_ns, &last, now_ns);
}

static void world_dump(dscomm_world_t *world)
{
    const char *folder = dscomm_priv_setting_text(SETTING_DUMP);
    const int64_t now_ns = dscomm_priv_moment().real_ns;
    dscomm_recorder_slot_t *slot = world->recorder.slot
                                       ? world->recorder.slot
                                       : &dscomm_priv_recorder_spare;
    char identity[DSCOMM_WORLD_ID + 64], name[40];
    const char *problem;

    if (!folder || !memory_take(world->recorder.memory, now_ns))
        return;
    snprintf(identity, sizeof identity, "%s.%lld.%" PRId64, world->meeting.id,
             (long long)getpid(), now_ns);
    snprintf(name, sizeof name, "signal-%" PRId64, now_ns / 1000000);
    problem = dscomm_priv_recorder_dump(folder, identity, name,
                                        &world->recorder, slot);
    if (problem)
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "flight recorder: no dump was written: %s", problem);
}

static void *thread_loop(void *arg)
{
    dscomm_world_t *world;

    for (;;) {
        while (sem_wait(&wanted))
            continue;
        if (atomic_load(&stopping))
            return arg;
        pthread_mutex_lock(&lock);
        SLIST_FOREACH (world, &dumped, in_dumped)
            world_dump(world);
        pthread_mutex_unlock(&lock);
    }
}

/* The number of DSCOMM_DUMP_SIGNAL, or 0. */
static int signal_number(void)
{
    static const int numbers[] = {0, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    int64_t value = 0;

    if (dscomm_priv_setting_number(SETTING_DUMP_SIGNAL, &value) < 0)
        return 0;
    return numbers[value];
}

/* Installs the handler, unless the program has one. */
static const char *handler_install(int number)
{
    struct sigaction action = {.sa_handler = signal_handle,
                               .sa_flags = SA_RESTART};
    struct sigaction before;

    sigaction(number, NULL, &before);
    if (before.sa_handler == signal_handle)
        return NULL;
    if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        return "the program handles that signal itself";
    sigfillset(&action.sa_mask);
    return sigaction(number, &action, NULL) ? strerror(errno) : NULL;
}

/* Starts the thread; returns NULL, or why not. Signals that nobody has waited
 * for are forgotten. */
static const char *watch_start(int number)
{
    const char *problem;
    int error;

    if (!dscomm_priv_setting_text(SETTING_DUMP))
        return "DSCOMM_DUMP names no folder";
    if (!made)
        sem_init(&wanted, 0, 0);
    made = true;
    problem = handler_install(number);
    if (problem)
        return problem;
    while (!sem_trywait(&wanted))
        continue;
    atomic_store(&stopping, false);
    error = dscomm_priv_thread_start(&thread, NULL, thread_loop, NULL);
    return error ? strerror(error) : NULL;
}

static void watch_stop(void)
{
    atomic_store(&stopping, true);
    sem_post(&wanted);
    pthread_join(thread, NULL);
}

void dscomm_priv_world_dump_begin(dscomm_world_t *world)
{
    const int number = signal_number();
    const char *problem = NULL;

    if (!number)
        return;
    pthread_mutex_lock(&start_lock);
    if (SLIST_EMPTY(&dumped))
        problem = watch_start(number);
    if (!problem) {
        pthread_mutex_lock(&lock);
        SLIST_INSERT_HEAD(&dumped, world, in_dumped);
        world->is_dumped = true;
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_unlock(&start_lock);
    if (problem)
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "flight recorder: DSCOMM_DUMP_SIGNAL has no effect: %s",
                   problem);
}

void dscomm_priv_world_dump_end(dscomm_world_t *world)
{
    if (!world->is_dumped)
        return;
    pthread_mutex_lock(&start_lock);
    pthread_mutex_lock(&lock);
    SLIST_REMOVE(&dumped, world, dscomm_world, in_dumped);
    pthread_mutex_unlock(&lock);
    if (SLIST_EMPTY(&dumped))
        watch_stop();
    pthread_mutex_unlock(&start_lock);
}

void dscomm_priv_world_dump_forked(void)
{
    dscomm_world_t *world;

    pthread_mutex_init(&start_lock, NULL);
    pthread_mutex_init(&lock, NULL);
    SLIST_FOREACH (world, &dumped, in_dumped)
        world->is_dumped = false;
    SLIST_INIT(&dumped);
    made = false;
}
