/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between cores, see cores.h. Each core has a thread. The memory of an
 * end is first touched by its own threads, so that it is near them; a copy is
 * made by the threads of the end that it goes to. All threads carry out one
 * task after another, which the main thread describes. */
#include "config.h"

#include "tools/topo/p2p/cores.h"

#include "tools/common/memory.h"
#include "tools/topo/p2p/near.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Round trips of a cache line for one figure of latency, and such figures. */
#define TRIPS 1000
#define LATENCIES 20
/* Turns of a loop before a thread that waits offers its processor. */
#define SPINS 10000
#define CACHE_LINE 64

typedef struct team team_t;

typedef struct {
    hwloc_bitmap_t processors; /* of the whole end */
    char *source, *dest; /* of the copies' length each */
    guint first, count; /* its workers */
} endpoint_t;

typedef struct {
    team_t *team;
    guint end, member; /* this is which of the end's workers */
    int processor;
    pthread_t thread;
    bool bound;
    gsize wrong; /* bytes of copies */
    double *starts, *stops; /* of repetitions, in microseconds */
} worker_t;

typedef struct {
    guint from, to;
} copy_t;

typedef enum { TASK_TOUCH, TASK_COPY, TASK_PING_PONG, TASK_END } task_t;

struct team {
    topo_pairs_t *pairs;
    const dscomm_topology_t *topology;
    endpoint_t *ends;
    worker_t *workers;
    guint worker_count, started;
    gsize bytes; /* of all tensors */
    double begun;
    GMutex start_lock; /* locked until all workers are there */
    bool abandoned; /* one could not be started; by the lock */
    pthread_barrier_t barrier; /* of the workers and the main thread */
    task_t task;
    /* of the task; no two go to the same end */
    const copy_t *copy_list;
    guint copy_count;
    guint active; /* workers that it needs */
    _Alignas(CACHE_LINE) atomic_uint arrived;
    _Alignas(CACHE_LINE) atomic_uint cache_line; /* goes to and fro */
};

static void turns_spin(guint *turns)
{
    if (++*turns % SPINS == 0)
        sched_yield();
}

/* Waits until the task's workers are here for the time-th time. */
static void team_arrive(team_t *team, guint time)
{
    guint turns = 0;

    atomic_fetch_add(&team->arrived, 1);
    while (atomic_load_explicit(&team->arrived, memory_order_acquire) <
           team->active * time)
        turns_spin(&turns);
}

static const copy_t *team_copy_to(const team_t *team, guint end)
{
    for (guint i = 0; i < team->copy_count; i++)
        if (team->copy_list[i].to == end)
            return &team->copy_list[i];
    return NULL;
}

/* The part of length that a worker copies: its offset and number. */
static gsize worker_part(const worker_t *worker, gsize length,
                         gsize *ret_offset)
{
    const guint count = worker->team->ends[worker->end].count;

    *ret_offset = length / count * worker->member;
    return worker->member + 1 == count ? length - *ret_offset : length / count;
}

static void worker_touch(const worker_t *worker)
{
    const team_t *team = worker->team;
    const endpoint_t *end = &team->ends[worker->end];
    gsize offset;
    const gsize count = worker_part(worker, team->bytes, &offset);

    memset(end->source + offset, topo_pattern(worker->end), count);
    memset(end->dest + offset, 0, count);
}

static void worker_copy_once(const worker_t *worker, const copy_t *pair)
{
    const team_t *team = worker->team;
    const topo_copies_t *copies = &team->pairs->copies;
    const gsize length = copies->elements * sizeof(float);
    gsize offset;
    const gsize count = worker_part(worker, length, &offset);

    for (guint i = 0; i < copies->tensors; i++, offset += length)
        memcpy(team->ends[pair->to].dest + offset,
               team->ends[pair->from].source + offset, count);
}

/* Clears this worker's parts of where copies go. */
static void worker_clear(const worker_t *worker)
{
    const team_t *team = worker->team;
    const gsize length = team->pairs->copies.elements * sizeof(float);
    gsize offset;
    const gsize count = worker_part(worker, length, &offset);

    for (guint i = 0; i < team->pairs->copies.tensors; i++, offset += length)
        memset(team->ends[worker->end].dest + offset, 0, count);
}

/* Counts bytes of this worker's parts that were not copied. */
static void worker_check(worker_t *worker, const copy_t *pair)
{
    const team_t *team = worker->team;
    const topo_copies_t *copies = &team->pairs->copies;
    const gsize length = copies->elements * sizeof(float);
    gsize offset;
    const gsize count = worker_part(worker, length, &offset);

    for (guint i = 0; i < copies->tensors; i++, offset += length)
        worker->wrong +=
            topo_wrong(team->ends[pair->to].dest + offset, count, pair->from);
}

static void worker_copy(worker_t *worker)
{
    team_t *team = worker->team;
    const topo_copies_t *copies = &team->pairs->copies;
    const copy_t *pair = team_copy_to(team, worker->end);

    if (!pair)
        return;
    worker_clear(worker);
    for (guint i = 0; i < copies->warmups + copies->iterations; i++) {
        double start;

        team_arrive(team, i + 1);
        start = topo_now();
        worker_copy_once(worker, pair);
        if (i < copies->warmups)
            continue;
        worker->starts[i - copies->warmups] = start;
        worker->stops[i - copies->warmups] = topo_now();
    }
    worker_check(worker, pair);
}

/* Sends a cache line to and fro; the first worker of each end of the pair. */
static void worker_ping_pong(worker_t *worker)
{
    team_t *team = worker->team;
    const bool is_first = worker->end == team->copy_list->from;
    guint turns = 0, own = is_first ? 0 : 1;

    if (worker->member || (!is_first && worker->end != team->copy_list->to))
        return;
    team_arrive(team, 1);
    for (guint i = 0; i < LATENCIES; i++) {
        worker->starts[i] = topo_now();
        for (guint k = 0; k < TRIPS; k++, own += 2) {
            while (atomic_load_explicit(&team->cache_line,
                                        memory_order_acquire) != own)
                turns_spin(&turns);
            atomic_store_explicit(&team->cache_line, own + 1,
                                  memory_order_release);
        }
        worker->stops[i] = topo_now();
    }
}

static void *worker_run(void *arg)
{
    worker_t *worker = arg;
    team_t *team = worker->team;
    hwloc_bitmap_t set;

    g_mutex_lock(&team->start_lock);
    g_mutex_unlock(&team->start_lock);
    if (team->abandoned)
        return NULL;
    set = hwloc_bitmap_alloc();
    hwloc_bitmap_only(set, (unsigned)worker->processor);
    worker->bound = hwloc_set_cpubind(team->topology->hwloc, set,
                                      HWLOC_CPUBIND_THREAD) == 0;
    hwloc_bitmap_free(set);
    for (task_t task = TASK_TOUCH; task != TASK_END;) {
        pthread_barrier_wait(&team->barrier);
        task = team->task;
        if (task == TASK_TOUCH)
            worker_touch(worker);
        else if (task == TASK_COPY)
            worker_copy(worker);
        else if (task == TASK_PING_PONG)
            worker_ping_pong(worker);
        pthread_barrier_wait(&team->barrier);
    }
    return NULL;
}

/* Has the workers carry out a task. */
static void team_carry_out(team_t *team, task_t task, const copy_t *copy_list,
                           guint copy_count)
{
    team->task = task;
    team->copy_list = copy_list;
    team->copy_count = copy_count;
    team->active = task == TASK_PING_PONG ? 2 : 0;
    for (guint i = 0; task == TASK_COPY && i < copy_count; i++)
        team->active += team->ends[copy_list[i].to].count;
    atomic_store(&team->arrived, 0);
    atomic_store(&team->cache_line, 0);
    pthread_barrier_wait(&team->barrier);
    pthread_barrier_wait(&team->barrier);
}

/* Notes what the workers of a pair's end have measured. */
static void times_note(team_t *team, const copy_t *pair, topo_mode_t mode)
{
    const guint iterations = team->pairs->copies.iterations;
    const endpoint_t *end = &team->ends[pair->to];
    topo_pair_t *figure = topo_pair(team->pairs, pair->from, pair->to);
    double *times = g_new(double, iterations);

    for (guint i = 0; i < iterations; i++) {
        double start = team->workers[end->first].starts[i];
        double stop = team->workers[end->first].stops[i];

        for (guint k = 1; k < end->count; k++) {
            start = MIN(start, team->workers[end->first + k].starts[i]);
            stop = MAX(stop, team->workers[end->first + k].stops[i]);
        }
        times[i] = stop - start;
        topo_slice_add(team->pairs, pair->from, pair->to, mode,
                       start - team->begun, times[i]);
    }
    figure->times[mode] =
        topo_median(times, iterations, &figure->spreads[mode]);
    g_free(times);
}

static void team_measure_copies(team_t *team, const copy_t *copy_list,
                                guint count, topo_mode_t mode)
{
    team_carry_out(team, TASK_COPY, copy_list, count);
    for (guint i = 0; i < count; i++)
        times_note(team, &copy_list[i], mode);
}

static void team_measure_latency(team_t *team, const copy_t *pair)
{
    const worker_t *worker = &team->workers[team->ends[pair->from].first];
    topo_pair_t *figure = topo_pair(team->pairs, pair->from, pair->to);
    double times[LATENCIES];

    team_carry_out(team, TASK_PING_PONG, pair, 1);
    for (guint i = 0; i < LATENCIES; i++)
        times[i] = (worker->stops[i] - worker->starts[i]) / TRIPS / 2;
    figure->latency = topo_median(times, LATENCIES, &figure->latency_spread);
}

static void team_measure(team_t *team)
{
    const guint count = team->pairs->count;
    copy_t *copy_list = g_new(copy_t, count);

    team_carry_out(team, TASK_TOUCH, NULL, 0);
    for (guint i = 0; i < count * count; i++) {
        const copy_t both[] = {{i / count, i % count}, {i % count, i / count}};

        team_measure_copies(team, both, 1, TOPO_ALONE);
        if (both->from != both->to)
            team_measure_latency(team, both);
        if (both->from < both->to)
            team_measure_copies(team, both, 2, TOPO_BOTH);
    }
    for (guint step = 1; step < count; step++) {
        for (guint i = 0; i < count; i++)
            copy_list[i] = (copy_t){i, (i + step) % count};
        team_measure_copies(team, copy_list, count, TOPO_TOGETHER);
    }
    g_free(copy_list);
}

static char *memory_get(team_t *team)
{
    const gsize all = team->bytes * 2 * team->pairs->count;

    if (all > tool_memory_available() / 2)
        return g_strdup_printf("the copies need %.3g GB, more than half of "
                               "the memory that is free here: use smaller "
                               "--elements, or --most",
                               (double)all / 1e9);
    for (guint i = 0; i < 2 * team->pairs->count; i++) {
        void *memory = mmap(NULL, team->bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (memory == MAP_FAILED)
            return g_strdup_printf("no memory for the copies: %s; use smaller "
                                   "--elements, or --most",
                                   g_strerror(errno));
        if (i % 2)
            team->ends[i / 2].dest = memory;
        else
            team->ends[i / 2].source = memory;
    }
    return NULL;
}

static char *workers_start(team_t *team)
{
    const guint room = MAX(team->pairs->copies.iterations, LATENCIES);
    int error = 0;

    pthread_barrier_init(&team->barrier, NULL, team->worker_count + 1);
    g_mutex_lock(&team->start_lock);
    while (!error && team->started < team->worker_count) {
        worker_t *worker = &team->workers[team->started];

        worker->starts = g_new0(double, room);
        worker->stops = g_new0(double, room);
        error = pthread_create(&worker->thread, NULL, worker_run, worker);
        team->started += !error;
    }
    team->abandoned = error;
    g_mutex_unlock(&team->start_lock);
    return error ? g_strdup_printf("a thread for each core cannot be started: "
                                   "%s",
                                   g_strerror(error))
                 : NULL;
}

/* The first thing that a worker has found wrong; NULL: none; g_free(). */
static char *workers_problem(const team_t *team)
{
    for (guint i = 0; i < team->worker_count; i++) {
        const worker_t *worker = &team->workers[i];

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

static void workers_end(team_t *team)
{
    if (team->started && !team->abandoned)
        team_carry_out(team, TASK_END, NULL, 0);
    for (guint i = 0; i < team->started; i++)
        pthread_join(team->workers[i].thread, NULL);
    pthread_barrier_destroy(&team->barrier);
}

static char *team_run(team_t *team)
{
    char *problem = workers_start(team);

    if (!problem) {
        team_measure(team);
        problem = workers_problem(team);
    }
    workers_end(team);
    return problem;
}

static void team_free(team_t *team)
{
    for (guint i = 0; i < team->pairs->count; i++) {
        if (team->ends[i].source)
            munmap(team->ends[i].source, team->bytes);
        if (team->ends[i].dest)
            munmap(team->ends[i].dest, team->bytes);
        hwloc_bitmap_free(team->ends[i].processors);
    }
    for (guint i = 0; i < team->worker_count; i++) {
        g_free(team->workers[i].starts);
        g_free(team->workers[i].stops);
    }
    g_free(team->workers);
    g_free(team->ends);
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

static void workers_describe(team_t *team)
{
    GArray *workers = g_array_new(FALSE, TRUE, sizeof(worker_t));

    for (guint i = 0; i < team->pairs->count; i++) {
        endpoint_t *end = &team->ends[i];
        hwloc_obj_t core = NULL;

        end->first = workers->len;
        while ((core = dscomm_priv_topology_next_core(team->topology,
                                                      end->processors, core))) {
            worker_t worker = {.team = team, .end = i, .member = end->count++};
            hwloc_bitmap_t own = hwloc_bitmap_dup(core->cpuset);

            hwloc_bitmap_and(own, own, end->processors);
            worker.processor = hwloc_bitmap_first(own);
            hwloc_bitmap_free(own);
            g_array_append_val(workers, worker);
        }
    }
    team->worker_count = workers->len;
    team->workers = (worker_t *)g_array_free(workers, FALSE);
}

static void paths_find(const team_t *team)
{
    const guint count = team->pairs->count;

    for (guint i = 0; i < count * count; i++)
        team->pairs->pairs[i].path = topo_near_path(
            topo_near(team->topology, team->ends[i / count].processors,
                      team->ends[i % count].processors));
}

static topo_pairs_t *cores_pairs(const GPtrArray *objects, topo_cores_t kind,
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
        "see what else runs on these processors",
        (char **)g_ptr_array_free(names, FALSE), copies);
}

topo_pairs_t *topo_cores(const dscomm_topology_t *topology, topo_cores_t kind,
                         const topo_copies_t *copies, guint most,
                         char **ret_problem)
{
    GPtrArray *objects = ends_find(topology, kind, most);
    team_t team = {.topology = topology,
                   .bytes = topo_copies_bytes(copies),
                   .begun = topo_now()};
    char *problem = NULL;

    if (objects->len < 2) {
        g_ptr_array_unref(objects);
        return NULL;
    }
    team.pairs = cores_pairs(objects, kind, copies);
    team.ends = g_new0(endpoint_t, objects->len);
    for (guint i = 0; i < objects->len; i++) {
        const hwloc_obj_t object = g_ptr_array_index(objects, i);

        team.ends[i].processors = hwloc_bitmap_dup(object->cpuset);
        hwloc_bitmap_and(team.ends[i].processors, object->cpuset,
                         topology->allowed);
    }
    g_ptr_array_unref(objects);
    workers_describe(&team);
    paths_find(&team);
    problem = memory_get(&team);
    if (!problem)
        problem = team_run(&team);
    team_free(&team);
    if (problem)
        topo_pairs_free(team.pairs);
    *ret_problem = problem;
    return problem ? NULL : team.pairs;
}
