/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles that cannot be written: an error, and no signal ends the program. */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/dscomm.h>
#include <dscomm/profiler.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static dscomm_group_t *world;
static char folder[] = "/tmp/dscomm-write-XXXXXX";

/* Makes a profile with trace of some calls. */
static dscomm_profile_t *profile_make(dscomm_profiler_t **ret_profiler,
                                      int verbose)
{
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_profile_t *profile;

    attr.enabled = attr.trace = 1;
    attr.verbose = verbose;
    if (dscomm_profiler_attach(&attr, ret_profiler))
        bail("%s", dscomm_last_error());
    for (int i = 0; i < 1000; i++)
        dscomm_barrier(world, NULL);
    if (dscomm_profiler_snapshot(*ret_profiler, &profile))
        bail("%s", dscomm_last_error());
    return profile;
}

static bool signal_is_pending(int number)
{
    sigset_t pending;

    sigpending(&pending);
    return sigismember(&pending, number);
}

/* Replaces stderr by a pipe that nobody reads; returns the descriptor that it
 * had. */
static int stderr_break(void)
{
    const int before = dup(STDERR_FILENO);
    int ends[2];

    if (pipe(ends))
        bail("no pipe");
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    return before;
}

static void stderr_restore(int before)
{
    dup2(before, STDERR_FILENO);
    close(before);
}

static void pipes(const dscomm_profile_t *profile)
{
    const int before = stderr_break();
    const dscomm_status_t status =
        dscomm_profile_write(profile, DSCOMM_PROFILE_DEEPSPEED, NULL);
    dscomm_profiler_t *verbose;

    dscomm_log(DSCOMM_LOG_ERROR, "test", "nobody reads this");
    dscomm_profile_free(profile_make(&verbose, 1));
    dscomm_profiler_free(verbose);
    stderr_restore(before);
    is_int(status, DSCOMM_ERR_IO, "a pipe that nobody reads");
    ok(!signal_is_pending(SIGPIPE), "leaves no signal");
}

/* A signal that was pending before belongs to the program. */
static void pending(const dscomm_profile_t *profile)
{
    sigset_t one, mask;
    int before, number = 0;

    sigemptyset(&one);
    sigaddset(&one, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &one, &mask);
    pthread_kill(pthread_self(), SIGPIPE);
    before = stderr_break();
    dscomm_profile_write(profile, DSCOMM_PROFILE_SUMMARY, NULL);
    stderr_restore(before);
    ok(signal_is_pending(SIGPIPE) && !sigwait(&one, &number) &&
           number == SIGPIPE,
       "a signal that was pending before stays");
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &one);
    ok(!sigismember(&one, SIGPIPE) && !sigismember(&one, SIGXFSZ),
       "the mask is as before");
}

static void fifo(const dscomm_profile_t *profile)
{
    char *path = g_strdup_printf("%s/fifo", folder);
    int reader;

    if (mkfifo(path, 0600))
        bail("no fifo");
    is_int(dscomm_profile_write(profile, DSCOMM_PROFILE_TRACE, path),
           DSCOMM_ERR_IO, "a FIFO without a reader");
    reader = open(path, O_RDONLY | O_NONBLOCK);
    is_int(dscomm_profile_write(profile, DSCOMM_PROFILE_CSV, path), DSCOMM_OK,
           "one with a reader");
    close(reader);
    unlink(path);
    g_free(path);
}

static void empty(const dscomm_profile_t *profile)
{
    is_int(dscomm_profile_write(profile, DSCOMM_PROFILE_JSON, ""),
           DSCOMM_ERR_INVALID, "an empty path");
    ok(strstr(dscomm_last_error(), "path is empty") != NULL, "%s",
       dscomm_last_error());
}

static void limit(const dscomm_profile_t *profile)
{
    char *path = g_strdup_printf("%s/trace.json", folder);
    struct rlimit before, some;

    getrlimit(RLIMIT_FSIZE, &before);
    some = before;
    some.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &some);
    is_int(dscomm_profile_write(profile, DSCOMM_PROFILE_TRACE, path),
           DSCOMM_ERR_IO, "a file that would be too long");
    setrlimit(RLIMIT_FSIZE, &before);
    ok(strstr(dscomm_last_error(), "File too large") != NULL, "%s",
       dscomm_last_error());
    ok(!rmdir(folder), "leaves nothing behind");
    g_free(path);
}

int main(void)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_profiler_t *profiler;
    dscomm_profile_t *profile;

    attr.has_rank = 1;
    attr.world_size = 1;
    if (!mkdtemp(folder) || dscomm_init(&attr, &world))
        bail("%s", dscomm_last_error());
    profile = profile_make(&profiler, 0);
    dscomm_profiler_free(profiler);
    pipes(profile);
    pending(profile);
    fifo(profile);
    empty(profile);
    limit(profile);
    dscomm_profile_free(profile);
    dscomm_finalize(world);
    return tap_done();
}
