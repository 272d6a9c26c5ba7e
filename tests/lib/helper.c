/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread beside a call that cannot go on with works itself. */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/backend.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

typedef struct {
    atomic_int turns, blocked;
    pthread_t self;
} watched_t;

static void turn(void *arg)
{
    watched_t *watched = arg;
    sigset_t mask;

    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    watched->blocked = sigismember(&mask, SIGUSR1) == 1;
    watched->self = pthread_self();
    watched->turns++;
}

int main(void)
{
    watched_t watched = {.turns = 0};
    dscomm_helper_t *helper = dscomm_helper_start(turn, &watched);
    sigset_t mask;
    int turns;

    ok(helper != NULL, "there is a thread");
    while (watched.turns < 5)
        usleep(100);
    dscomm_helper_stop(helper);
    turns = watched.turns;
    ok(!pthread_equal(watched.self, pthread_self()), "it is another one");
    ok(watched.blocked, "signals are blocked there");
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    ok(!sigismember(&mask, SIGUSR1), "and not here");
    usleep(2000);
    is_int(watched.turns, turns, "it has ended when stop returns");
    dscomm_helper_stop(NULL); /* is fine */
    return tap_done();
}
