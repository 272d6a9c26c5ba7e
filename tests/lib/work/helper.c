/* SPDX-License-Identifier: BSD-3-Clause */
/* The helper thread of calls that cannot make progress on works themselves. */
#include "config.h"

#include "lib/base/process.h"
#include "lib/work/progress.h"
#include "tests/tap.h"

#include <dirent.h>
#include <dscomm/backend.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS 3
#define THREADS 4
#define SHORT_CALLS 20000

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

typedef struct {
    atomic_int begun, turns, blocked;
    pthread_t self;
} watched_t;

static int turn(void *arg)
{
    watched_t *watched = arg;
    sigset_t mask;

    watched->begun++;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    watched->blocked = sigismember(&mask, SIGUSR1) == 1;
    watched->self = pthread_self();
    return ++watched->turns % 2;
}

static int slow_turn(void *arg)
{
    watched_t *watched = arg;

    watched->begun++;
    usleep(5000);
    watched->turns++;
    return 0;
}

/* Makes a call that lasts until it was helped. */
static void make_long_call(watched_t *watched)
{
    dscomm_help_t help = {.turn = turn, .arg = watched};

    dscomm_help_begin(&help);
    while (watched->turns < TURNS)
        usleep(100);
    dscomm_help_end(&help);
}

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;

    while (tasks && readdir(tasks))
        count++;
    if (tasks)
        closedir(tasks);
    return count - 2; /* "." and ".." */
}

/* Waits until the remains of a joined thread are gone. */
static int await_threads(int wanted)
{
    for (int i = 0; i < 10000 && count_threads() != wanted; i++)
        usleep(1000);
    return count_threads();
}

static void test_long_call(void)
{
    watched_t watched = {.turns = 0}, next = {.turns = 0};
    sigset_t mask;
    int turns;

    make_long_call(&watched);
    turns = watched.turns;
    ok(!pthread_equal(watched.self, pthread_self()), "another thread helps");
    ok(watched.blocked, "signals are blocked there");
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    ok(!sigismember(&mask, SIGUSR1), "and not here");
    make_long_call(&next);
    is_int(watched.turns, turns, "it helps no call that has ended");
    usleep(20000); /* it may or may not sleep by now */
    watched.turns = 0;
    make_long_call(&watched);
    ok(pthread_equal(watched.self, next.self), "there is one for all");
}

static void test_turn_at_the_end(void)
{
    watched_t watched = {.turns = 0};
    dscomm_help_t help = {.turn = slow_turn, .arg = &watched};

    dscomm_help_begin(&help);
    while (!watched.begun)
        usleep(100);
    dscomm_help_end(&help);
    is_int(watched.turns, watched.begun, "the end waits for a turn");
}

static void test_short_calls(void)
{
    watched_t watched = {.turns = 0};
    const int before = count_threads();

    for (int i = 0; i < SHORT_CALLS; i++) {
        dscomm_help_t help = {.turn = turn, .arg = &watched};

        dscomm_help_begin(&help);
        dscomm_help_end(&help);
    }
    ok(watched.turns < SHORT_CALLS / 10, "short calls are not helped: %d of %d",
       watched.turns, SHORT_CALLS);
    is_int(await_threads(before), before, "nor do they start threads");
}

static void *call_from_thread(void *arg)
{
    make_long_call(arg);
    return NULL;
}

static void test_several_calls(void)
{
    watched_t watched[THREADS] = {{.turns = 0}}, outer = {.turns = 0};
    dscomm_help_t help = {.turn = turn, .arg = &outer};
    pthread_t threads[THREADS];
    int same = 1;

    dscomm_help_begin(&help);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, call_from_thread, &watched[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    while (outer.turns < TURNS)
        usleep(100);
    dscomm_help_end(&help);
    for (int i = 0; i < THREADS; i++)
        same &= pthread_equal(watched[i].self, outer.self) != 0;
    ok(same, "one thread helps several calls at once");
}

static void test_end(int threads)
{
    watched_t watched = {.turns = 0};

    dscomm_priv_helper_stop();
    is_int(await_threads(threads - 1), threads - 1, "it ends");
    dscomm_priv_helper_stop();
    make_long_call(&watched);
    is_int(await_threads(threads), threads, "the next call has another");
}

static void test_fork(void)
{
    watched_t watched = {.turns = 0};
    dscomm_help_t help = {.turn = turn, .arg = &watched};
    int status = -1;
    pid_t child;

#if defined(__SANITIZE_THREAD__)
    skip("a child of several threads cannot start one under this sanitizer");
    return;
#endif
    dscomm_help_begin(&help);
    child = fork();
    if (child == 0) {
        watched_t own = {.turns = 0};

        alarm(30);
        make_long_call(&own);
        dscomm_priv_helper_stop();
        _exit(await_threads(1) == 1 ? 0 : 1);
    }
    waitpid(child, &status, 0);
    is_int(status, 0, "a forked child has a thread of its own");
    while (watched.turns < TURNS)
        usleep(100);
    dscomm_help_end(&help);
    ok(1, "its parent keeps the other");
}

static void (*const forked[])(void) = {dscomm_priv_helper_forked, NULL};

int main(void)
{
    int threads; /* a sanitizer may have a thread, too */

    dscomm_priv_process_set_forked(forked);
    is_int(dscomm_priv_process_watch(), DSCOMM_OK, "forks are seen");
    test_long_call();
    threads = count_threads();
    test_turn_at_the_end();
    test_short_calls();
    test_several_calls();
    test_end(threads);
    test_fork();
    dscomm_priv_helper_stop();
    return tap_done();
}
