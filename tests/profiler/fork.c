/* SPDX-License-Identifier: BSD-3-Clause */
/* Forked children of a process whose other thread is in the profiler: they can
 * call all of it, and leave a world. */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/dscomm.h>
#include <dscomm/profiler.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKS 100
#define CHILD_SECONDS 20 /* until a child that hangs is killed */

static atomic_bool done;

/* Adds texts until there is no room for more, and goes on searching them. */
static void *name_ranges(void *arg)
{
    char text[32];

    (void)arg;
    for (int i = 0; !atomic_load(&done); i++) {
        snprintf(text, sizeof text, "text %d", i);
        dscomm_profiler_tag(text);
    }
    return NULL;
}

static void *attach_and_free(void *arg)
{
    dscomm_profiler_t *profiler;

    while (!atomic_load(&done))
        if (dscomm_profiler_attach(arg, &profiler) == DSCOMM_OK)
            dscomm_profiler_free(profiler);
    return NULL;
}

/* The child: uses what it inherited, then joins a world of its own. */
static void use(dscomm_group_t *world, dscomm_profiler_t *inherited)
{
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_profiler_t *profiler;
    dscomm_profile_t *profile;

    alarm(CHILD_SECONDS);
    dscomm_profiler_tag("child");
    dscomm_profiler_range_begin("child");
    dscomm_profiler_range_end();
    dscomm_profiler_free(inherited);
    attr.enabled = attr.trace = 1;
    if (dscomm_profiler_attach(&attr, &profiler) < 0) {
        /* the parent's other thread had attached one */
        dscomm_hooks_set(NULL);
        if (dscomm_profiler_attach(&attr, &profiler) < 0)
            _exit(1);
    }
    dscomm_profiler_range_begin("traced");
    dscomm_profiler_range_end();
    if (dscomm_profiler_snapshot(profiler, &profile) < 0)
        _exit(2);
    dscomm_profile_free(profile);
    dscomm_profiler_free(profiler);
    dscomm_finalize(world);
    _exit(0);
}

/* The number of children that ended as they should. */
static int fork_beside(void *(*other)(void *arg), void *arg,
                       dscomm_group_t *world, dscomm_profiler_t *profiler)
{
    int status, good = 0;
    pthread_t thread;

    atomic_store(&done, false);
    if (pthread_create(&thread, NULL, other, arg))
        bail("no thread");
    for (int i = 0; i < FORKS; i++) {
        const pid_t pid = fork();

        if (!pid)
            use(world, profiler);
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
            break;
        good += WIFEXITED(status) && !WEXITSTATUS(status);
        if (WIFSIGNALED(status))
            break; /* the others would hang, too */
    }
    atomic_store(&done, true);
    pthread_join(thread, NULL);
    return good;
}

int main(void)
{
    dscomm_profiler_attr_t trace = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_profiler_t *profiler;
    dscomm_group_t *world;

    trace.enabled = trace.trace = 1;
    attr.has_rank = 1;
    attr.world_size = 1;
    if (dscomm_init(&attr, &world) || dscomm_profiler_attach(NULL, &profiler))
        bail("%s", dscomm_last_error());
    is_int(fork_beside(name_ranges, NULL, world, profiler), FORKS,
           "children of a process whose other thread adds texts");
    dscomm_profiler_free(profiler);
    is_int(fork_beside(attach_and_free, &trace, world, NULL), FORKS,
           "children of a process whose other thread attaches profilers");
    dscomm_finalize(world);
    return tap_done();
}
