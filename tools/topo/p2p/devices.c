/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between devices, see devices.h. The last end is the host, whose memory
 * is pinned. Each pair has a stream, on the device that the data comes from;
 * between the host and a device, on that device. Events on the stream measure,
 * so that the host's calls do not count. */
#include "config.h"

#include "tools/topo/p2p/devices.h"

#include "tools/topo/p2p/driver.h"

#include <stdbool.h>
#include <string.h>

#define WORD 4 /* bytes, of which latency is measured */
#define LATENCIES 100
#define ADDRESS_MOST 32
#define STREAM_NON_BLOCKING 1u
/* cuCtxEnablePeerAccess() for one that is enabled already */
#define ALREADY_ENABLED 704
/* and for one more than a device can access; its copies stay staged */
#define TOO_MANY_PEERS 711

typedef struct {
    int device; /* CUdevice */
    void *context; /* NULL: none was retained */
    uint64_t source, dest; /* memory; 0: none */
    const topo_node_t *node; /* NULL: the tree lacks it */
} gpu_t;

typedef struct {
    guint from, to;
} copy_t;

/* The stream of a pair, and events on it. */
typedef struct {
    void *stream;
    void *base; /* an event at a time that the host knows */
    void **events; /* before the first repetition, and after each */
    double base_time;
} pair_stream_t;

typedef struct {
    topo_driver_t driver;
    topo_pairs_t *pairs;
    gpu_t *gpus;
    guint count; /* of devices */
    char *host_source, *host_dest;
    pair_stream_t *streams; /* of pairs */
    gsize bytes;
    double begun;
    char *problem;
} state_t;

/* Notes the first failure; returns whether the call succeeded. */
static bool cuda_ok(state_t *s, const char *what, int code)
{
    if (code && !s->problem)
        s->problem = topo_driver_error(&s->driver, what, code);
    return !code;
}

static bool is_host(const state_t *s, guint end)
{
    return end == s->count;
}

/* The device on whose stream a pair's copies are. */
static const gpu_t *pair_device(const state_t *s, guint from, guint to)
{
    return &s->gpus[is_host(s, from) ? to : from];
}

static pair_stream_t *pair_stream(const state_t *s, guint from, guint to)
{
    return &s->streams[from * s->pairs->count + to];
}

static int pair_copy(const state_t *s, guint from, guint to, gsize offset,
                     gsize bytes, void *stream)
{
    const gpu_t *source = &s->gpus[from], *dest = &s->gpus[to];

    if (is_host(s, from))
        return s->driver.copy_to_device(dest->dest + offset,
                                        s->host_source + offset, bytes, stream);
    if (is_host(s, to))
        return s->driver.copy_to_host(s->host_dest + offset,
                                      source->source + offset, bytes, stream);
    if (from == to)
        return s->driver.copy(dest->dest + offset, source->source + offset,
                              bytes, stream);
    return s->driver.copy_peer(dest->dest + offset, dest->context,
                               source->source + offset, source->context, bytes,
                               stream);
}

/* Copies all tensors. */
static bool pair_copy_tensors(state_t *s, guint from, guint to, void *stream)
{
    const topo_copies_t *copies = &s->pairs->copies;
    const gsize length = copies->elements * sizeof(float);

    for (guint i = 0; i < copies->tensors; i++)
        if (!cuda_ok(s, "cuMemcpyAsync",
                     pair_copy(s, from, to, i * length, length, stream)))
            return false;
    return true;
}

static bool gpu_select(state_t *s, const gpu_t *gpu)
{
    return cuda_ok(s, "cuCtxSetCurrent", s->driver.context_set(gpu->context));
}

/* Puts an event on a pair's stream, after the repetitions so far. */
static bool pair_record(state_t *s, const copy_t *pair, guint repetition)
{
    pair_stream_t *own = pair_stream(s, pair->from, pair->to);

    return repetition < s->pairs->copies.warmups ||
           cuda_ok(s, "cuEventRecord",
                   s->driver.event_record(
                       own->events[repetition - s->pairs->copies.warmups],
                       own->stream));
}

/* Puts all repetitions of pairs on their streams: of each pair in turn, so that
 * all run at the same time. */
static bool pairs_enqueue(state_t *s, const copy_t *list, guint count)
{
    const guint all = s->pairs->copies.warmups + s->pairs->copies.iterations;
    bool done = true;

    for (guint i = 0; done && i <= all; i++)
        for (guint k = 0; done && k < count; k++)
            done = gpu_select(s, pair_device(s, list[k].from, list[k].to)) &&
                   pair_record(s, &list[k], i) &&
                   (i == all ||
                    pair_copy_tensors(
                        s, list[k].from, list[k].to,
                        pair_stream(s, list[k].from, list[k].to)->stream));
    return done;
}

/* Waits for a pair's stream, and notes what its events have measured. */
static bool pair_times_read(state_t *s, guint from, guint to, topo_mode_t mode)
{
    const guint iterations = s->pairs->copies.iterations;
    pair_stream_t *own = pair_stream(s, from, to);
    topo_pair_t *figure = topo_pair(s->pairs, from, to);
    double *times = g_new0(double, iterations);
    bool done =
        gpu_select(s, pair_device(s, from, to)) &&
        cuda_ok(s, "cuStreamSynchronize", s->driver.stream_wait(own->stream));

    for (guint i = 0; done && i < iterations; i++) {
        float start, length;

        done = cuda_ok(s, "cuEventElapsedTime",
                       s->driver.event_elapsed(&start, own->base,
                                               own->events[i])) &&
               cuda_ok(s, "cuEventElapsedTime",
                       s->driver.event_elapsed(&length, own->events[i],
                                               own->events[i + 1]));
        if (done) {
            times[i] = (double)length * 1e3;
            topo_slice_add(s->pairs, from, to, mode,
                           own->base_time + (double)start * 1e3, times[i]);
        }
    }
    figure->times[mode] =
        topo_median(times, iterations, &figure->spreads[mode]);
    g_free(times);
    return done;
}

/* Measures a copy of a few bytes, with the call that starts it and the wait. */
static bool pair_measure_latency(state_t *s, guint from, guint to)
{
    const pair_stream_t *own = pair_stream(s, from, to);
    topo_pair_t *figure = topo_pair(s->pairs, from, to);
    double times[LATENCIES];
    bool done = gpu_select(s, pair_device(s, from, to));

    for (guint i = 0; done && i < LATENCIES; i++) {
        const double start = topo_now();

        done = cuda_ok(s, "cuMemcpyAsync",
                       pair_copy(s, from, to, 0, WORD, own->stream)) &&
               cuda_ok(s, "cuStreamSynchronize",
                       s->driver.stream_wait(own->stream));
        times[i] = topo_now() - start;
    }
    figure->latency = topo_median(times, LATENCIES, &figure->latency_spread);
    return done;
}

/* Clears where copies go, and waits for that. */
static bool dest_clear(state_t *s, guint end)
{
    if (is_host(s, end)) {
        memset(s->host_dest, 0, s->bytes);
        return true;
    }
    return gpu_select(s, &s->gpus[end]) &&
           cuda_ok(s, "cuMemsetD8",
                   s->driver.memory_set(s->gpus[end].dest, 0, s->bytes)) &&
           cuda_ok(s, "cuCtxSynchronize", s->driver.context_wait());
}

/* Reads a word of where copies go. */
static bool dest_read(state_t *s, guint end, gsize offset, char *word)
{
    void *stream;

    if (is_host(s, end)) {
        memcpy(word, s->host_dest + offset, WORD);
        return true;
    }
    stream = pair_stream(s, end, s->count)->stream;
    return gpu_select(s, &s->gpus[end]) &&
           cuda_ok(s, "cuMemcpyDtoHAsync",
                   s->driver.copy_to_host(word, s->gpus[end].dest + offset,
                                          WORD, stream)) &&
           cuda_ok(s, "cuStreamSynchronize", s->driver.stream_wait(stream));
}

/* Looks at the first and last element of each tensor that a pair has copied. */
static bool dest_check(state_t *s, const copy_t *pair)
{
    const gsize length = s->pairs->copies.elements * sizeof(float);
    gsize wrong = 0;
    bool done = true;

    for (guint i = 0; done && i < s->pairs->copies.tensors; i++) {
        char words[2][WORD] = {{0}};

        done = dest_read(s, pair->to, i * length, words[0]) &&
               dest_read(s, pair->to, (i + 1) * length - WORD, words[1]);
        wrong += topo_wrong(words[0], sizeof words, pair->from);
    }
    if (done && wrong)
        s->problem = g_strdup_printf("%s has received other bytes than %s has "
                                     "sent",
                                     s->pairs->names[pair->to],
                                     s->pairs->names[pair->from]);
    return done && !wrong;
}

/* Measures pairs at the same time. No two go to the same end, but with
 * TOPO_TOGETHER, whose copies cannot be verified then. */
static bool pairs_measure(state_t *s, const copy_t *list, guint count,
                          topo_mode_t mode)
{
    bool done = true;

    for (guint i = 0; done && i < count; i++)
        done = dest_clear(s, list[i].to);
    done = done && pairs_enqueue(s, list, count);
    for (guint i = 0; done && i < count; i++)
        done = pair_times_read(s, list[i].from, list[i].to, mode);
    for (guint i = 0; done && mode != TOPO_TOGETHER && i < count; i++)
        done = dest_check(s, &list[i]);
    return done;
}

static bool pairs_measure_together(state_t *s)
{
    copy_t *list = g_new(copy_t, (gsize)s->count * s->count);
    guint count = 0;
    bool done;

    for (guint i = 0; i < s->count * s->count; i++)
        if (i / s->count != i % s->count)
            list[count++] = (copy_t){i / s->count, i % s->count};
    done = pairs_measure(s, list, count, TOPO_TOGETHER);
    g_free(list);
    return done;
}

static bool gpu_can_access(const state_t *s, guint from, guint to)
{
    int can = 0;

    return from != to &&
           !s->driver.can_access(&can, s->gpus[from].device,
                                 s->gpus[to].device) &&
           can;
}

static bool gpu_access_enable(state_t *s, guint from, guint to)
{
    int code;

    if (!gpu_select(s, &s->gpus[from]))
        return false;
    code = s->driver.access_enable(s->gpus[to].context, 0);
    return code == ALREADY_ENABLED || code == TOO_MANY_PEERS ||
           cuda_ok(s, "cuCtxEnablePeerAccess", code);
}

/* Measures between devices of which one can access the other's memory, while
 * it may not, so that copies go through the host; then it may. */
static bool pairs_measure_staged(state_t *s)
{
    bool done = true;

    for (guint i = 0; done && i < s->count * s->count; i++)
        if (gpu_can_access(s, i / s->count, i % s->count)) {
            const copy_t pair = {i / s->count, i % s->count};

            done = pairs_measure(s, &pair, 1, TOPO_STAGED);
        }
    for (guint i = 0; done && i < s->count * s->count; i++)
        if (gpu_can_access(s, i / s->count, i % s->count))
            done = gpu_access_enable(s, i / s->count, i % s->count);
    return done;
}

static void pairs_measure_all(state_t *s)
{
    const guint count = s->pairs->count;

    if (!pairs_measure_staged(s))
        return;
    /* The host has no pair with itself. */
    for (guint i = 0; i < count * count - 1; i++) {
        const copy_t both[] = {{i / count, i % count}, {i % count, i / count}};

        if (!pairs_measure(s, both, 1, TOPO_ALONE) ||
            !pair_measure_latency(s, both->from, both->to) ||
            (both->from < both->to && !pairs_measure(s, both, 2, TOPO_BOTH)))
            return;
    }
    pairs_measure_together(s);
}

static bool stream_open(state_t *s, guint from, guint to)
{
    const guint events = s->pairs->copies.iterations + 1;
    pair_stream_t *own = pair_stream(s, from, to);
    bool done =
        gpu_select(s, pair_device(s, from, to)) &&
        cuda_ok(s, "cuStreamCreate",
                s->driver.stream_create(&own->stream, STREAM_NON_BLOCKING)) &&
        cuda_ok(s, "cuEventCreate", s->driver.event_create(&own->base, 0));

    own->events = g_new0(void *, events);
    for (guint i = 0; done && i < events; i++)
        done = cuda_ok(s, "cuEventCreate",
                       s->driver.event_create(&own->events[i], 0));
    if (!done || !cuda_ok(s, "cuEventRecord",
                          s->driver.event_record(own->base, own->stream)))
        return false;
    done =
        cuda_ok(s, "cuStreamSynchronize", s->driver.stream_wait(own->stream));
    own->base_time = topo_now() - s->begun;
    return done;
}

static void stream_close(state_t *s, guint from, guint to)
{
    pair_stream_t *own = pair_stream(s, from, to);

    if (!own->events)
        return;
    s->driver.context_set(pair_device(s, from, to)->context);
    for (guint i = 0; i <= s->pairs->copies.iterations; i++)
        if (own->events[i])
            s->driver.event_destroy(own->events[i]);
    if (own->base)
        s->driver.event_destroy(own->base);
    if (own->stream)
        s->driver.stream_destroy(own->stream);
    g_free(own->events);
}

static bool gpu_open(state_t *s, guint index)
{
    gpu_t *gpu = &s->gpus[index];

    return cuda_ok(s, "cuDevicePrimaryCtxRetain",
                   s->driver.context_retain(&gpu->context, gpu->device)) &&
           gpu_select(s, gpu) &&
           cuda_ok(s, "cuMemAlloc",
                   s->driver.memory_alloc(&gpu->source, s->bytes)) &&
           cuda_ok(s, "cuMemAlloc",
                   s->driver.memory_alloc(&gpu->dest, s->bytes)) &&
           cuda_ok(s, "cuMemsetD8",
                   s->driver.memory_set(gpu->source,
                                        (unsigned char)topo_pattern(index),
                                        s->bytes)) &&
           cuda_ok(s, "cuCtxSynchronize", s->driver.context_wait());
}

static void gpu_close(state_t *s, guint index)
{
    gpu_t *gpu = &s->gpus[index];

    if (!gpu->context)
        return;
    s->driver.context_set(gpu->context);
    if (gpu->source)
        s->driver.memory_free(gpu->source);
    if (gpu->dest)
        s->driver.memory_free(gpu->dest);
    s->driver.context_set(NULL);
    s->driver.context_release(gpu->device);
}

static bool host_open(state_t *s)
{
    if (!gpu_select(s, &s->gpus[0]) ||
        !cuda_ok(s, "cuMemAllocHost",
                 s->driver.host_alloc((void **)&s->host_source, s->bytes)) ||
        !cuda_ok(s, "cuMemAllocHost",
                 s->driver.host_alloc((void **)&s->host_dest, s->bytes)))
        return false;
    memset(s->host_source, topo_pattern(s->count), s->bytes);
    return true;
}

static bool devices_open(state_t *s)
{
    const guint count = s->pairs->count;

    for (guint i = 0; i < s->count; i++)
        if (!gpu_open(s, i))
            return false;
    if (!host_open(s))
        return false;
    /* The host has no pair with itself. */
    for (guint i = 0; i < count * count - 1; i++)
        if (!stream_open(s, i / count, i % count))
            return false;
    return true;
}

static void devices_close(state_t *s)
{
    const guint count = s->pairs->count;

    for (guint i = 0; i < count * count - 1; i++)
        stream_close(s, i / count, i % count);
    if (s->count)
        s->driver.context_set(s->gpus[0].context);
    if (s->host_source)
        s->driver.host_free(s->host_source);
    if (s->host_dest)
        s->driver.host_free(s->host_dest);
    for (guint i = 0; i < s->count; i++)
        gpu_close(s, i);
}

/* The path between two devices, or to the host. */
static topo_path_t pair_path(const state_t *s, guint from, guint to)
{
    const topo_node_t *a = is_host(s, from) ? NULL : s->gpus[from].node;
    const topo_node_t *b = is_host(s, to) ? NULL : s->gpus[to].node;
    topo_path_t path = {.word = "?",
                        .distance = TOPO_LINKS * 100,
                        .meaning = "a path that is not known"};
    topo_link_t link = {TOPO_SELF, 0};
    char *word;

    if (from != to && (is_host(s, from) || is_host(s, to)))
        return (topo_path_t){
            .word = "HOST",
            .distance = TOPO_PHB * 100 + 50,
            .meaning = "the link between the host's memory and a device",
            .limit = a || b ? topo_path_limit(a ? a : b, NULL) : 0};
    if (from != to && (!a || !b))
        return path;
    if (from != to)
        link = topo_link(a, b);
    word = topo_link_text(link);
    g_strlcpy(path.word, word, sizeof path.word);
    g_free(word);
    path.distance = (int)link.kind * 100 - link.count;
    path.meaning = topo_link_meaning(link.kind);
    if (link.kind > TOPO_NV)
        path.limit = topo_path_limit(a, b);
    return path;
}

/* Finds the devices and their names. */
static char **gpus_find(state_t *s, const topo_tree_t *tree)
{
    char **names = g_new0(char *, s->count + 2);

    s->gpus = g_new0(gpu_t, s->count);
    for (guint i = 0; i < s->count; i++) {
        char address[ADDRESS_MOST] = "";
        gpu_t *gpu = &s->gpus[i];

        if (cuda_ok(s, "cuDeviceGet",
                    s->driver.device_get(&gpu->device, (int)i)) &&
            !s->driver.device_address(address, sizeof address, gpu->device))
            gpu->node = topo_tree_find(tree, address);
        names[i] = g_strdup_printf("cuda%u", i);
    }
    names[s->count] = g_strdup("host");
    return names;
}

static void devices_run(state_t *s, const topo_tree_t *tree,
                        const topo_copies_t *copies)
{
    char **names = gpus_find(s, tree);

    s->pairs = topo_pairs_new(
        "devices",
        "copies on a stream of each pair, timed by events; the host's memory "
        "is pinned; latency of 4 bytes with call and wait",
        "see what else uses it, and whether a link of it runs with fewer lanes "
        "or at a lower speed",
        names, copies);
    for (guint i = 0; i < s->pairs->count * s->pairs->count; i++)
        s->pairs->pairs[i].path =
            pair_path(s, i / s->pairs->count, i % s->pairs->count);
    s->streams =
        g_new0(pair_stream_t, (gsize)s->pairs->count * s->pairs->count);
    if (!s->problem && devices_open(s))
        pairs_measure_all(s);
    devices_close(s);
    g_free(s->streams);
    g_free(s->gpus);
}

topo_pairs_t *topo_devices(const topo_tree_t *tree, const topo_copies_t *copies,
                           char **ret_problem)
{
    state_t s = {.bytes = topo_copies_bytes(copies), .begun = topo_now()};
    int count = 0;

    s.problem = topo_driver_load(&s.driver);
    if (!s.problem)
        cuda_ok(&s, "cuDeviceGetCount", s.driver.device_count(&count));
    if (!s.problem && count < 1)
        s.problem = topo_driver_none();
    if (!s.problem) {
        s.count = (guint)count;
        devices_run(&s, tree, copies);
    }
    if (s.problem)
        g_clear_pointer(&s.pairs, topo_pairs_free);
    *ret_problem = s.problem;
    return s.pairs;
}
