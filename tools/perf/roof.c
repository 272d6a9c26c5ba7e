/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine's limits, see roof.h. */
#include "config.h"

#include "tools/perf/line.h"
#include "tools/perf/roof.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Of one kind of copy and one size; the best of the repetitions counts. */
#define REPEAT_US 2000.0
#define REPEATS 5
#define LINE_TRIES 5

typedef struct {
    size_t bytes;
    double time; /* of one copy, all ranks at once */
} copy_t;

struct perf_roof {
    GArray *copies; /* copy_t */
    double line; /* nanoseconds; 0: not known */
};

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

    for (size_t i = 0; i < bytes / 16; i++)
        _mm_stream_si128(&t[i], _mm_load_si128(&f[i]));
    _mm_sfence();
}
#endif

static const copy_fn kinds[] = {
    copy_plain,
#ifdef __SSE2__
    copy_streaming,
#endif
};

perf_roof_t *perf_roof_new(perf_run_t *run)
{
    perf_roof_t *roof = g_new0(perf_roof_t, 1);

    roof->copies = g_array_new(FALSE, FALSE, sizeof(copy_t));
    roof->line = perf_roof_line(run);
    return roof;
}

void perf_roof_free(perf_roof_t *roof)
{
    if (!roof)
        return;
    g_array_free(roof->copies, TRUE);
    g_free(roof);
}

double perf_roof_first_line(const perf_roof_t *roof)
{
    return roof->line;
}

/* The time of one copy in the slowest rank, or a failure. */
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

static const copy_t *find_copy(const perf_roof_t *roof, size_t bytes)
{
    for (guint i = 0; i < roof->copies->len; i++) {
        const copy_t *copy = &g_array_index(roof->copies, copy_t, i);
        if (copy->bytes == bytes)
            return copy;
    }
    return NULL;
}

double perf_roof_time(perf_run_t *run, size_t bytes)
{
    perf_roof_t *roof = run->roof;
    const copy_t *known = find_copy(roof, bytes);
    copy_t copy = {bytes, 0};

    if (!known) {
        perf_progress(run, "copies of %zu bytes", bytes);
        if (bytes > 0 && measure_copy(run, bytes, &copy.time) != DSCOMM_OK)
            return -1;
        g_array_append_val(roof->copies, copy);
        known = &copy;
    }
    return run->ranks > 1 ? MAX(known->time, roof->line / 1e3) : known->time;
}

double perf_roof_percent(const perf_figure_t *figure)
{
    if (figure->roof <= 0 || figure->times.p50 <= 0)
        return 0;
    return 100 * figure->roof / figure->times.p50;
}

void perf_roof_copy(const perf_run_t *run, size_t *ret_bytes, double *ret_rate)
{
    const perf_roof_t *roof = run->roof;
    copy_t largest = {0, 0};

    for (guint i = 0; i < roof->copies->len; i++) {
        copy_t copy = g_array_index(roof->copies, copy_t, i);
        if (copy.bytes > largest.bytes)
            largest = copy;
    }
    *ret_bytes = largest.bytes;
    *ret_rate = largest.time > 0
                    ? (double)largest.bytes * run->ranks / largest.time / 1e3
                    : 0;
}

gboolean perf_roof_has_line(const perf_run_t *run)
{
    const perf_rank_t *a = &run->everyone[0];
    const perf_rank_t *b = &run->everyone[run->ranks > 1];

    return run->ranks > 1 && strcmp(a->host, b->host) == 0 &&
           a->processor >= 0 && b->processor >= 0 &&
           a->processor != b->processor;
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
            line = perf_line_measure(run->everyone[1].processor);
        else
            g_usleep(PERF_LINE_US);
        if (dscomm_broadcast(run->group, &line, 1, DSCOMM_FLOAT64, 0, NULL) !=
            DSCOMM_OK)
            return 0;
    }
    return line;
}
