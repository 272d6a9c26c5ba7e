/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads that pass a cache line back and forth, see line.h. */
#include "config.h"

#include "tools/perf/line.h"
#include "tools/perf/perf.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define ROUNDS 2000
#define REPEATS 9
/* Time limit for a thread, in case the other one does not get to run. */
#define GIVE_UP_US (PERF_LINE_US / 2.0)

typedef struct {
    _Alignas(128) atomic_uint line;
    _Alignas(128) double deadline;
} exchange_t;

/* Waits until the line holds value; FALSE after the deadline. */
static gboolean wait_for(exchange_t *x, unsigned value)
{
    unsigned turns = 0;

    while (atomic_load_explicit(&x->line, memory_order_acquire) != value)
        if (++turns % 65536 == 0 && perf_now() > x->deadline)
            return FALSE;
    return TRUE;
}

static void *answer(void *data)
{
    exchange_t *x = data;

    for (unsigned i = 0; i < ROUNDS * REPEATS; i++) {
        if (!wait_for(x, 2 * i + 1))
            return NULL;
        atomic_store_explicit(&x->line, 2 * i + 2, memory_order_release);
    }
    return NULL;
}

/* The shortest time of the repetitions. */
static double exchange_measure(exchange_t *x)
{
    double best = 0;
    unsigned turn = 0;

    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double time = perf_now();
        for (int i = 0; i < ROUNDS; i++, turn++) {
            atomic_store_explicit(&x->line, 2 * turn + 1, memory_order_release);
            if (!wait_for(x, 2 * turn + 2))
                return best;
        }
        time = (perf_now() - time) * 1e3 / ROUNDS / 2;
        if (best == 0 || time < best)
            best = time;
    }
    return best;
}

/* The thread is bound before it runs: otherwise it would start on this
 * processor, which is busy. */
static int start_bound(exchange_t *x, int processor, pthread_t *ret_thread)
{
    pthread_attr_t attr;
    cpu_set_t set;
    int error;

    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    pthread_attr_init(&attr);
    error = pthread_attr_setaffinity_np(&attr, sizeof set, &set);
    if (!error)
        error = pthread_create(ret_thread, &attr, answer, x);
    pthread_attr_destroy(&attr);
    return error;
}

double perf_line_measure(int processor)
{
    exchange_t x = {.line = 0};
    pthread_t thread;
    double line;

    x.deadline = perf_now() + GIVE_UP_US;
    if (start_bound(&x, processor, &thread) != 0)
        return 0;
    line = exchange_measure(&x);
    pthread_join(thread, NULL);
    return line;
}
