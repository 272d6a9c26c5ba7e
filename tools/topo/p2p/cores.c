/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between cores, see cores.h. Each core has a thread. The memory of an
 * end is first touched by its own threads, so that it is near them; a copy is
 * made by the threads of the end that it goes to. All threads carry out one
 * task after another, which the main thread describes. */
#include "config.h"

#include "tools/topo/p2p/cores.h"

#include "tools/topo/p2p/near.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

/* Round trips of a cache line for one figure of latency, and such figures. */
#define TRIPS 1000
#define LATENCIES 20
/* Turns of a loop before a thread that waits offers its processor. */
#define SPINS 10000
#define MOST_THREADS 4096
#define CACHE_LINE 64

typedef struct crew crew_t;

typedef struct {
    hwloc_bitmap_t processors; /* of the whole end */
    char *source, *dest; /* of the copies' length each */
    guint first, count; /* its workers */
} end_t;

typedef struct {
    crew_t *crew;
    guint end, member; /* this is which of the end's workers */
    int processor;
    pthread_t thread;
    bool bound;
    gsize wrong; /* bytes of copies */
    double *starts, *stops; /* of repetitions, in microseconds */
} worker_t;

typedef struct {
    guint from, to;
} move_t;

typedef enum { TASK_TOUCH, TASK_COPY, TASK_TRIP, TASK_END } task_t;

struct crew {
    topo_pairs_t *pairs;
    const dscomm_topology_t *topology;
    end_t *ends;
    worker_t *workers;
    guint worker_count, started;
    gsize bytes; /* of all tensors */
    double begun;
    GMutex gate; /* locked until all workers are there */
    bool abandoned; /* one could not be started; by the gate */
    pthread_barrier_t barrier; /* of the workers and the main thread */
    task_t task;
    /* of the task; no two go to the same end */
    const move_t *moves;
    guint move_count;
    guint active; /* workers that it needs */
    _Alignas(CACHE_LINE) atomic_uint arrived;
    _Alignas(CACHE_LINE) atomic_uint line; /* goes to and fro */
};

static void relax(guint *turns)
{
    if (++*turns % SPINS == 0)
        sched_yield();
}

/* Waits until the task's workers are here for the time-th time. */
static void arrive(crew_t *crew, guint time)
{
    guint turns = 0;

    atomic_fetch_add(&crew->arrived, 1);
    while (atomic_load_explicit(&crew->arrived, memory_order_acquire) <
           crew->active * time)
        relax(&turns);
}

static const move_t *move_to(const crew_t *crew, guint end)
{
    for (guint i = 0; i < crew->move_count; i++)
        if (crew->moves[i].to == end)
            return &crew->moves[i];
    return NULL;
}

/* The part of length that a worker copies: its offset and number. */
static gsize part(const worker_t *worker, gsize length, gsize *ret_offset)
{
    const guint count = worker->crew->ends[worker->end].count;

    *ret_offset = length / count * worker->member;
    return worker->member + 1 == count ? length - *ret_offset : length / count;
}

/* The bytes that the memory of an end has. */
static int pattern(guint end)
{
    return (int)(end % 251) + 1;
}

static void touch(const worker_t *worker)
{
    const crew_t *crew = worker->crew;
    const end_t *end = &crew->ends[worker->end];
    gsize offset;
    const gsize count = part(worker, crew->bytes, &offset);

    memset(end->source + offset, pattern(worker->end), count);
    memset(end->dest + offset, 0, count);
}

static void copy_once(const worker_t *worker, const move_t *move)
{
    const crew_t *crew = worker->crew;
    const topo_copies_t *copies = &crew->pairs->copies;
    const gsize length = copies->elements * sizeof(float);
    gsize offset;
    const gsize count = part(worker, length, &offset);

    for (guint i = 0; i < copies->tensors; i++, offset += length)
        memcpy(crew->ends[move->to].dest + offset,
               crew->ends[move->from].source + offset, count);
}

/* Counts bytes of this worker's parts that were not copied. */
static void check(worker_t *worker, const move_t *move)
{
    const crew_t *crew = worker->crew;
    const topo_copies_t *copies = &crew->pairs->copies;
    const gsize length = copies->elements * sizeof(float);
    gsize offset;
    const gsize count = part(worker, length, &offset);

    for (guint i = 0; i < copies->tensors; i++, offset += length)
        for (gsize k = 0; k < count; k++)
            worker->wrong += crew->ends[move->to].dest[offset + k] !=
                             (char)pattern(move->from);
}

static void copy(worker_t *worker)
{
    crew_t *crew = worker->crew;
    const topo_copies_t *copies = &crew->pairs->copies;
    const move_t *move = move_to(crew, worker->end);

    if (!move)
        return;
    for (guint i = 0; i < copies->warmups + copies->iterations; i++) {
        double start;

        arrive(crew, i + 1);
        start = topo_now();
        copy_once(worker, move);
        if (i < copies->warmups)
            continue;
        worker->starts[i - copies->warmups] = start;
        worker->stops[i - copies->warmups] = topo_now();
    }
    check(worker, move);
}

/* Sends a cache line to and fro; the first worker of each end of the move. */
static void trip(worker_t *worker)
{
    crew_t *crew = worker->crew;
    const bool is_first = worker->end == crew->moves->from;
    guint turns = 0, own = is_first ? 0 : 1;

    if (worker->member || (!is_first && worker->end != crew->moves->to))
        return;
    arrive(crew, 1);
    for (guint i = 0; i < LATENCIES; i++) {
        worker->starts[i] = topo_now();
        for (guint k = 0; k < TRIPS; k++, own += 2) {
            while (atomic_load_explicit(&crew->line, memory_order_acquire) !=
                   own)
                relax(&turns);
            atomic_store_explicit(&crew->line, own + 1, memory_order_release);
        }
        worker->stops[i] = topo_now();
    }
}

static void *work(void *arg)
{
    worker_t *worker = arg;
    crew_t *crew = worker->crew;
    hwloc_bitmap_t set;

    g_mutex_lock(&crew->gate);
    g_mutex_unlock(&crew->gate);
    if (crew->abandoned)
        return NULL;
    set = hwloc_bitmap_alloc();
    hwloc_bitmap_only(set, (unsigned)worker->processor);
    worker->bound = hwloc_set_cpubind(crew->topology->hwloc, set,
                                      HWLOC_CPUBIND_THREAD) == 0;
    hwloc_bitmap_free(set);
    for (task_t task = TASK_TOUCH; task != TASK_END;) {
        pthread_barrier_wait(&crew->barrier);
        task = crew->task;
        if (task == TASK_TOUCH)
            touch(worker);
        else if (task == TASK_COPY)
            copy(worker);
        else if (task == TASK_TRIP)
            trip(worker);
        pthread_barrier_wait(&crew->barrier);
    }
    return NULL;
}

/* Has the workers carry out a task. */
static void carry_out(crew_t *crew, task_t task, const move_t *moves,
                      guint move_count)
{
    crew->task = task;
    crew->moves = moves;
    crew->move_count = move_count;
    crew->active = task == TASK_TRIP ? 2 : 0;
    for (guint i = 0; task == TASK_COPY && i < move_count; i++)
        crew->active += crew->ends[moves[i].to].count;
    atomic_store(&crew->arrived, 0);
    atomic_store(&crew->line, 0);
    pthread_barrier_wait(&crew->barrier);
    pthread_barrier_wait(&crew->barrier);
}

/* Notes what the workers of a move's end have measured. */
static void note(crew_t *crew, const move_t *move, topo_way_t way)
{
    const guint iterations = crew->pairs->copies.iterations;
    const end_t *end = &crew->ends[move->to];
    double *times = g_new(double, iterations);

    for (guint i = 0; i < iterations; i++) {
        double start = crew->workers[end->first].starts[i];
        double stop = crew->workers[end->first].stops[i];

        for (guint k = 1; k < end->count; k++) {
            start = MIN(start, crew->workers[end->first + k].starts[i]);
            stop = MAX(stop, crew->workers[end->first + k].stops[i]);
        }
        times[i] = stop - start;
        topo_slice_add(crew->pairs, move->from, move->to, way,
                       start - crew->begun, times[i]);
    }
    topo_pair(crew->pairs, move->from, move->to)->times[way] =
        topo_median(times, iterations);
    g_free(times);
}

static void measure_copies(crew_t *crew, const move_t *moves, guint count,
                           topo_way_t way)
{
    carry_out(crew, TASK_COPY, moves, count);
    for (guint i = 0; i < count; i++)
        note(crew, &moves[i], way);
}

static void measure_latency(crew_t *crew, const move_t *move)
{
    const worker_t *worker = &crew->workers[crew->ends[move->from].first];
    double times[LATENCIES];

    carry_out(crew, TASK_TRIP, move, 1);
    for (guint i = 0; i < LATENCIES; i++)
        times[i] = (worker->stops[i] - worker->starts[i]) / TRIPS / 2;
    topo_pair(crew->pairs, move->from, move->to)->latency =
        topo_median(times, LATENCIES);
}

static void measure(crew_t *crew)
{
    const guint count = crew->pairs->count;
    move_t *moves = g_new(move_t, count);

    carry_out(crew, TASK_TOUCH, NULL, 0);
    for (guint i = 0; i < count * count; i++) {
        const move_t both[] = {{i / count, i % count}, {i % count, i / count}};

        measure_copies(crew, both, 1, TOPO_ALONE);
        if (both->from != both->to)
            measure_latency(crew, both);
        if (both->from < both->to)
            measure_copies(crew, both, 2, TOPO_BOTH);
    }
    for (guint step = 1; step < count; step++) {
        for (guint i = 0; i < count; i++)
            moves[i] = (move_t){i, (i + step) % count};
        measure_copies(crew, moves, count, TOPO_TOGETHER);
    }
    g_free(moves);
}

static char *memory_get(crew_t *crew)
{
    struct sysinfo info;
    const gsize all = crew->bytes * 2 * crew->pairs->count;

    if (sysinfo(&info) == 0 && all > (gsize)info.totalram * info.mem_unit / 2)
        return g_strdup_printf("the copies need %.3g GB, more than half of "
                               "this machine's memory: use smaller --elements, "
                               "or --most",
                               (double)all / 1e9);
    for (guint i = 0; i < 2 * crew->pairs->count; i++) {
        void *memory = mmap(NULL, crew->bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (memory == MAP_FAILED)
            return g_strdup_printf("no memory for the copies: %s; use smaller "
                                   "--elements, or --most",
                                   g_strerror(errno));
        if (i % 2)
            crew->ends[i / 2].dest = memory;
        else
            crew->ends[i / 2].source = memory;
    }
    return NULL;
}

static char *workers_start(crew_t *crew)
{
    const guint room = MAX(crew->pairs->copies.iterations, LATENCIES);
    int error = 0;

    pthread_barrier_init(&crew->barrier, NULL, crew->worker_count + 1);
    g_mutex_lock(&crew->gate);
    while (!error && crew->started < crew->worker_count) {
        worker_t *worker = &crew->workers[crew->started];

        worker->starts = g_new0(double, room);
        worker->stops = g_new0(double, room);
        error = pthread_create(&worker->thread, NULL, work, worker);
        crew->started += !error;
    }
    crew->abandoned = error;
    g_mutex_unlock(&crew->gate);
    return error ? g_strdup_printf("a thread for each core cannot be started: "
                                   "%s",
                                   g_strerror(error))
                 : NULL;
}

/* What the workers have found wrong. */
static char *workers_problem(const crew_t *crew)
{
    for (guint i = 0; i < crew->worker_count; i++) {
        const worker_t *worker = &crew->workers[i];

        if (!worker->bound)
            return g_strdup_printf("a thread cannot be bound to processor %d",
                                   worker->processor);
        if (worker->wrong)
            return g_strdup_printf("%" G_GSIZE_FORMAT " bytes that processor "
                                   "%d has copied are wrong: its memory is "
                                   "damaged",
                                   worker->wrong, worker->processor);
    }
    return NULL;
}

static void workers_end(crew_t *crew)
{
    if (crew->started && !crew->abandoned)
        carry_out(crew, TASK_END, NULL, 0);
    for (guint i = 0; i < crew->started; i++)
        pthread_join(crew->workers[i].thread, NULL);
    pthread_barrier_destroy(&crew->barrier);
}

static char *crew_run(crew_t *crew)
{
    char *problem = workers_start(crew);

    if (!problem) {
        measure(crew);
        problem = workers_problem(crew);
    }
    workers_end(crew);
    return problem;
}

static void crew_free(crew_t *crew)
{
    for (guint i = 0; i < crew->pairs->count; i++) {
        if (crew->ends[i].source)
            munmap(crew->ends[i].source, crew->bytes);
        if (crew->ends[i].dest)
            munmap(crew->ends[i].dest, crew->bytes);
        hwloc_bitmap_free(crew->ends[i].processors);
    }
    for (guint i = 0; i < crew->worker_count; i++) {
        g_free(crew->workers[i].starts);
        g_free(crew->workers[i].stops);
    }
    g_free(crew->workers);
    g_free(crew->ends);
}

/* Finds the ends: sets of processors in which a worker is on each core. */
static GPtrArray *ends_find(const dscomm_topology_t *topology,
                            topo_cores_t kind, guint most)
{
    GPtrArray *sets = g_ptr_array_new();
    GPtrArray *chosen = g_ptr_array_new();
    hwloc_obj_t object = NULL;

    while ((object = kind == TOPO_CORES
                         ? dscomm_priv_topology_next_core(
                               topology, topology->allowed, object)
                         : dscomm_priv_topology_next_node(
                               topology, topology->allowed, object)))
        g_ptr_array_add(sets, object);
    most = MIN(most, sets->len);
    for (guint i = 0; i < most; i++)
        g_ptr_array_add(chosen, sets->pdata[(gsize)i * sets->len / most]);
    g_ptr_array_unref(sets);
    return chosen;
}

static void workers_describe(crew_t *crew)
{
    GArray *workers = g_array_new(FALSE, TRUE, sizeof(worker_t));

    for (guint i = 0; i < crew->pairs->count; i++) {
        end_t *end = &crew->ends[i];
        hwloc_obj_t core = NULL;

        end->first = workers->len;
        while ((core = dscomm_priv_topology_next_core(crew->topology,
                                                      end->processors, core))) {
            worker_t worker = {.crew = crew, .end = i, .member = end->count++};
            hwloc_bitmap_t own = hwloc_bitmap_dup(core->cpuset);

            hwloc_bitmap_and(own, own, end->processors);
            worker.processor = hwloc_bitmap_first(own);
            hwloc_bitmap_free(own);
            g_array_append_val(workers, worker);
        }
    }
    crew->worker_count = workers->len;
    crew->workers = (worker_t *)g_array_free(workers, FALSE);
}

static void paths_find(const crew_t *crew)
{
    const guint count = crew->pairs->count;

    for (guint i = 0; i < count * count; i++)
        crew->pairs->pairs[i].path = topo_near_path(
            topo_near(crew->topology, crew->ends[i / count].processors,
                      crew->ends[i % count].processors));
}

static topo_pairs_t *pairs_of(const GPtrArray *objects, topo_cores_t kind,
                              const topo_copies_t *copies)
{
    GPtrArray *names = g_ptr_array_new();

    for (guint i = 0; i < objects->len; i++) {
        const hwloc_obj_t object = g_ptr_array_index(objects, i);
        const unsigned number =
            kind == TOPO_CORES ? (unsigned)hwloc_bitmap_first(object->cpuset)
                               : object->os_index;

        g_ptr_array_add(
            names,
            g_strdup_printf(kind == TOPO_CORES ? "cpu%u" : "node%u", number));
    }
    g_ptr_array_add(names, NULL);
    return topo_pairs_new(
        kind == TOPO_CORES ? "cores" : "NUMA nodes",
        kind == TOPO_CORES
            ? "memcpy() by the core that the data goes to; latency of a cache "
              "line"
            : "memcpy() by all cores of the node that the data goes to; "
              "latency of a cache line",
        (char **)g_ptr_array_free(names, FALSE), copies);
}

topo_pairs_t *topo_cores(const dscomm_topology_t *topology, topo_cores_t kind,
                         const topo_copies_t *copies, guint most,
                         char **ret_problem)
{
    GPtrArray *objects = ends_find(topology, kind, most);
    crew_t crew = {.topology = topology,
                   .bytes = topo_copies_bytes(copies),
                   .begun = topo_now()};
    char *problem = NULL;

    if (objects->len < 2) {
        g_ptr_array_unref(objects);
        return NULL;
    }
    crew.pairs = pairs_of(objects, kind, copies);
    crew.ends = g_new0(end_t, objects->len);
    for (guint i = 0; i < objects->len; i++) {
        const hwloc_obj_t object = g_ptr_array_index(objects, i);

        crew.ends[i].processors = hwloc_bitmap_dup(object->cpuset);
        hwloc_bitmap_and(crew.ends[i].processors, object->cpuset,
                         topology->allowed);
    }
    g_ptr_array_unref(objects);
    workers_describe(&crew);
    paths_find(&crew);
    problem = memory_get(&crew);
    if (!problem)
        problem = crew_run(&crew);
    crew_free(&crew);
    if (problem)
        topo_pairs_free(crew.pairs);
    *ret_problem = problem;
    return problem ? NULL : crew.pairs;
}
