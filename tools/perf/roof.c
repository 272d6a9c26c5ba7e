/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine's limits, see roof.h. Two threads that pass a cache line back and
 * forth measure its time. */
#include "config.h"

#include "tools/perf/roof.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The measurement of a line takes less. */
#define LINE_US 20000
#define LINE_ROUNDS 2000
#define LINE_REPEATS 9
#define LINE_TRIES 5
/* Time limit for a thread, in case the other one is not scheduled. */
#define GIVE_UP_US (LINE_US / 2.0)

typedef struct {
    _Alignas(128) atomic_uint line;
    _Alignas(128) double deadline;
    pthread_barrier_t bound;
} exchange_t;

/* Waits until the line has value; false after the deadline. */
static bool wait_for(exchange_t *x, unsigned value)
{
    unsigned turns = 0;

    while (atomic_load_explicit(&x->line, memory_order_acquire) != value)
        if (++turns % 65536 == 0 && perf_now() > x->deadline)
            return false;
    return true;
}

static void *answer(void *data)
{
    exchange_t *x = data;

    pthread_barrier_wait(&x->bound);
    for (unsigned i = 0; i < LINE_ROUNDS * LINE_REPEATS; i++) {
        if (!wait_for(x, 2 * i + 1))
            return NULL;
        atomic_store_explicit(&x->line, 2 * i + 2, memory_order_release);
    }
    return NULL;
}

/* Returns the shortest time of the repetitions. */
static double exchange_measure(exchange_t *x)
{
    double best = 0;
    unsigned turn = 0;

    for (int repeat = 0; repeat < LINE_REPEATS; repeat++) {
        double time = perf_now();
        for (int i = 0; i < LINE_ROUNDS; i++, turn++) {
            atomic_store_explicit(&x->line, 2 * turn + 1, memory_order_release);
            if (!wait_for(x, 2 * turn + 2))
                return best;
        }
        time = (perf_now() - time) * 1e3 / LINE_ROUNDS / 2;
        if (best == 0 || time < best)
            best = time;
    }
    return best;
}

/* The thread sleeps until it is bound: otherwise it could begin on this
 * processor, which is busy. If it cannot be bound, it ends at the deadline. */
static int start_bound(exchange_t *x, int processor, pthread_t *ret_thread)
{
    cpu_set_t set;
    int error;

    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    pthread_barrier_init(&x->bound, NULL, 2);
    error = pthread_create(ret_thread, NULL, answer, x);
    if (error)
        return error;
    error = pthread_setaffinity_np(*ret_thread, sizeof set, &set);
    pthread_barrier_wait(&x->bound);
    if (error)
        pthread_join(*ret_thread, NULL);
    return error;
}

/* Returns the time of a cache line, one way, between this thread's processor
 * and another one, in nanoseconds; 0 if it cannot be measured. */
static double line_measure(int processor)
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

/* Time of one repetition for a kind of copy and a size, in microseconds; the
 * best repetition counts. */
#define REPEAT_US 2000.0
#define REPEATS 5

typedef struct {
    size_t bytes;
    double time; /* time of one copy while all ranks copy */
} copy_t;

typedef void (*copy_fn)(void *to, const void *from, size_t bytes);

static void copy_plain(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    /* Keeps the compiler from removing the copies, which are never read. */
    __asm__ __volatile__("" : : "r"(to) : "memory");
}

#ifdef __SSE2__
/* Copies with streaming stores; both pointers are aligned to 16. */
static void copy_streaming(void *to, const void *from, size_t bytes)
{
    __m128i *t = to;
    const __m128i *f = from;

    for (; bytes >= 16; bytes -= 16)
        _mm_stream_si128(t++, _mm_load_si128(f++));
    memcpy(t, f, bytes);
    _mm_sfence();
}
#endif

static const copy_fn kinds[] = {
    copy_plain,
#ifdef __SSE2__
    copy_streaming,
#endif
};

void perf_roof_begin(perf_run_t *run)
{
    run->copies = g_array_new(false, false, sizeof(copy_t));
    run->line = perf_roof_line(run);
}

/* Returns the time of one copy in the slowest rank, or a failure. */
static dscomm_status_t time_copies(perf_run_t *run, copy_fn copy, size_t bytes,
                                   size_t times, double *ret_time)
{
    dscomm_status_t status = dscomm_barrier(run->group, NULL);
    double time = perf_now();

    if (status != DSCOMM_OK)
        return status;
    for (size_t i = 0; i < times; i++)
        copy(run->recv, run->send, bytes);
    time = (perf_now() - time) / (double)times;
    return dscomm_all_reduce(run->group, &time, ret_time, 1, DSCOMM_FLOAT64,
                             DSCOMM_MAX, NULL);
}

static dscomm_status_t best_of_kind(perf_run_t *run, copy_fn copy, size_t bytes,
                                    double *best)
{
    double time = 0;
    size_t times;
    dscomm_status_t status = time_copies(run, copy, bytes, 4, &time);

    times = (size_t)CLAMP(REPEAT_US / MAX(time, 1e-3), 1, 1e5);
    for (int i = 0; i < REPEATS && status == DSCOMM_OK; i++) {
        status = time_copies(run, copy, bytes, times, &time);
        if (*best == 0 || time < *best)
            *best = time;
    }
    return status;
}

static dscomm_status_t measure_copy(perf_run_t *run, size_t bytes,
                                    double *ret_time)
{
    double best = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        dscomm_status_t status = best_of_kind(run, kinds[i], bytes, &best);
        if (status != DSCOMM_OK)
            return status;
    }
    *ret_time = best;
    return DSCOMM_OK;
}

static const copy_t *find_copy(const perf_run_t *run, size_t bytes)
{
    for (guint i = 0; i < run->copies->len; i++) {
        const copy_t *copy = &g_array_index(run->copies, copy_t, i);
        if (copy->bytes == bytes)
            return copy;
    }
    return NULL;
}

double perf_roof_time(perf_run_t *run, size_t bytes)
{
    const copy_t *known = find_copy(run, bytes);
    copy_t copy = {bytes, 0};

    if (run->options->no_roof)
        return 0;
    if (!known) {
        perf_progress(run, "copies of %zu bytes", bytes);
        if (bytes > 0 && measure_copy(run, bytes, &copy.time) != DSCOMM_OK)
            return -1;
        g_array_append_val(run->copies, copy);
        known = &copy;
    }
    return run->ranks > 1 ? MAX(known->time, run->line / 1e3) : known->time;
}

double perf_roof_percent(const perf_figure_t *figure)
{
    if (figure->roof <= 0 || figure->times.p50 <= 0)
        return 0;
    return 100 * figure->roof / figure->times.p50;
}

void perf_roof_copy(const perf_run_t *run, size_t *ret_bytes, double *ret_rate)
{
    copy_t largest = {0, 0};

    for (guint i = 0; i < run->copies->len; i++) {
        copy_t copy = g_array_index(run->copies, copy_t, i);
        if (copy.bytes > largest.bytes)
            largest = copy;
    }
    *ret_bytes = largest.bytes;
    *ret_rate = largest.time > 0
                    ? (double)largest.bytes * run->ranks / largest.time / 1e3
                    : 0;
}

bool perf_roof_has_line(const perf_run_t *run)
{
    const perf_rank_t *a = &run->everyone[0];
    const perf_rank_t *b = &run->everyone[run->ranks > 1];

    return run->ranks > 1 && !run->options->no_roof &&
           strcmp(a->host, b->host) == 0 && a->processor >= 0 &&
           b->processor >= 0 && a->processor != b->processor;
}

/* Measures on the processors of ranks 0 and 1, while the other ranks sleep;
 * repeats if the processor of rank 1 is busy. */
double perf_roof_line(const perf_run_t *run)
{
    double line = 0;

    for (int i = 0; i < LINE_TRIES && line == 0 && perf_roof_has_line(run);
         i++) {
        if (dscomm_barrier(run->group, NULL) != DSCOMM_OK)
            return 0;
        if (run->rank == 0)
            line = line_measure(run->everyone[1].processor);
        else
            g_usleep(LINE_US);
        if (dscomm_broadcast(run->group, &line, 1, DSCOMM_FLOAT64, 0, NULL) !=
            DSCOMM_OK)
            return 0;
    }
    return line;
}
