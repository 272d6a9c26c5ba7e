/* SPDX-License-Identifier: BSD-3-Clause */
/* The helper thread of calls that cannot make progress on works themselves.
 * There is one a process, from the first such call to the end of the last
 * world. While there are calls it wakes often, and takes turns for those that
 * have lasted a whole pause; otherwise it sleeps. So a short call costs only
 * two lock operations. */
#include "config.h"

#include "lib/base/log.h"
#include "lib/base/thread.h"
#include "lib/work/progress.h"

#include <dscomm/backend.h>

#include <glib.h>

#define PAUSE_NS 50000
#define PAUSES_MOST 20 /* pauses without a call, before it sleeps */
#define DOUBLED_MOST 3 /* doublings of a pause without progress */

/* States of a call. NEW: it began in the current pause; OLD: it has lasted a
 * pause or had a turn; DUE: its turn comes; BUSY: its turn runs. */
enum { NEW, OLD, DUE, BUSY };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came; /* initialised while the thread runs */
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static int running, stopping, asleep;
static dscomm_help_t *calls;
static unsigned begun; /* calls begun so far */
static unsigned
    idle_turns; /* turns since a call began in which nothing moved */

static dscomm_help_t *find_due(void)
{
    dscomm_help_t *call = calls;

    while (call && call->state != DUE)
        call = call->next;
    return call;
}

/* Takes a turn for each call that is due. Calls may begin and end during a
 * turn. Turns without progress make pauses longer: a turn may take the
 * processor from the call that it helps, and is useless while that call only
 * waits. */
static void help_calls(void)
{
    dscomm_help_t *call;
    int moved;

    for (call = calls; call; call = call->next)
        call->state = call->state == NEW ? OLD : DUE;
    while ((call = find_due())) {
        call->state = BUSY;
        pthread_mutex_unlock(&lock);
        moved = call->turn(call->arg);
        pthread_mutex_lock(&lock);
        idle_turns = moved ? 0 : MIN(idle_turns + 1, DOUBLED_MOST);
        call->state = OLD;
        pthread_cond_broadcast(&turned);
    }
}

static void *helper_loop(void *arg)
{
    unsigned seen = 0, pauses = 0;

    pthread_mutex_lock(&lock);
    while (!stopping) {
        pauses = calls || begun != seen ? 0 : pauses + 1;
        seen = begun;
        asleep = pauses > PAUSES_MOST;
        if (!asleep)
            dscomm_priv_cond_until(
                &came, &lock, dscomm_priv_clock() + (PAUSE_NS << idle_turns));
        while (asleep && !stopping)
            pthread_cond_wait(&came, &lock);
        help_calls();
    }
    pthread_mutex_unlock(&lock);
    return arg;
}

static void helper_start(void)
{
    dscomm_priv_cond_init(&came);
    stopping = asleep = 0;
    idle_turns = 0;
    running = dscomm_priv_thread_start(&thread, NULL, helper_loop, NULL) == 0;
    if (!running)
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "no thread could be started to help with messages; they "
                   "move only while a rank waits or tests");
}

void dscomm_help_begin(dscomm_help_t *help)
{
    int wake; /* the thread sleeps, or its pause was made longer */

    pthread_mutex_lock(&lock);
    wake = asleep || (idle_turns && !calls);
    help->state = NEW;
    help->next = calls;
    calls = help;
    begun++;
    if (!running)
        helper_start();
    if (wake)
        pthread_cond_signal(&came);
    asleep = 0;
    idle_turns = 0;
    pthread_mutex_unlock(&lock);
}

void dscomm_help_end(dscomm_help_t *help)
{
    dscomm_help_t **link = &calls;

    pthread_mutex_lock(&lock);
    while (help->state == BUSY)
        pthread_cond_wait(&turned, &lock);
    while (*link && *link != help)
        link = &(*link)->next;
    if (*link)
        *link = help->next;
    pthread_mutex_unlock(&lock);
}

/* Called when no call is under way. */
void dscomm_priv_helper_stop(void)
{
    pthread_mutex_lock(&lock);
    stopping = 1;
    if (running)
        pthread_cond_signal(&came);
    pthread_mutex_unlock(&lock);
    if (!running)
        return;
    pthread_join(thread, NULL);
    pthread_cond_destroy(&came);
    running = 0;
}

void dscomm_priv_helper_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&turned, NULL);
    calls = NULL;
    running = 0;
}
