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

#define LATENCY_BYTES 4
#define LATENCIES 100
#define ADDRESS_MOST 32
#define NAME_MOST 128
#define STREAM_NON_BLOCKING 1u
/* cuCtxEnablePeerAccess() for one that is enabled already */
#define ALREADY_ENABLED 704

typedef struct {
    int device; /* CUdevice */
    void *context; /* NULL: none was retained */
    uint64_t source, dest; /* memory; 0: none */
    const topo_node_t *node; /* NULL: the tree lacks it */
} gpu_t;

/* Copies of a pair while they are measured. */
typedef struct {
    void *stream;
    void *base; /* an event at a time that the host knows */
    void **events; /* before the first repetition, and after each */
    double base_time;
} lane_t;

typedef struct {
    topo_driver_t driver;
    topo_pairs_t *pairs;
    gpu_t *gpus;
    guint count; /* of devices */
    char *host_source, *host_dest;
    lane_t *lanes; /* of pairs */
    gsize bytes;
    double begun;
    char *problem;
} state_t;

/* Notes the first failure; returns whether the call succeeded. */
static bool try(state_t *s, const char *what, int code)
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
static const gpu_t *owner(const state_t *s, guint from, guint to)
{
    return &s->gpus[is_host(s, from) ? to : from];
}

static lane_t *lane_of(const state_t *s, guint from, guint to)
{
    return &s->lanes[from * s->pairs->count + to];
}

static int copy(const state_t *s, guint from, guint to, gsize offset,
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
static bool copy_all(state_t *s, guint from, guint to, void *stream)
{
    const topo_copies_t *copies = &s->pairs->copies;
    const gsize length = copies->elements * sizeof(float);

    for (guint i = 0; i < copies->tensors; i++)
        if (!try(s, "cuMemcpyAsync",
                 copy(s, from, to, i * length, length, stream)))
            return false;
    return true;
}

static bool set_device(state_t *s, const gpu_t *gpu)
{
    return try(s, "cuCtxSetCurrent", s->driver.context_set(gpu->context));
}

/* Puts a pair's repetitions onto its stream. */
static bool lane_fill(state_t *s, guint from, guint to)
{
    const topo_copies_t *copies = &s->pairs->copies;
    lane_t *lane = lane_of(s, from, to);
    bool done = set_device(s, owner(s, from, to));

    for (guint i = 0; done && i < copies->warmups; i++)
        done = copy_all(s, from, to, lane->stream);
    for (guint i = 0; done && i <= copies->iterations; i++) {
        done = try(s, "cuEventRecord",
                   s->driver.event_record(lane->events[i], lane->stream));
        if (done && i < copies->iterations)
            done = copy_all(s, from, to, lane->stream);
    }
    return done;
}

/* Waits for a pair's stream, and notes what its events have measured. */
static bool lane_read(state_t *s, guint from, guint to, topo_way_t way)
{
    const guint iterations = s->pairs->copies.iterations;
    lane_t *lane = lane_of(s, from, to);
    double *times = g_new0(double, iterations);
    bool done =
        set_device(s, owner(s, from, to)) &&
        try(s, "cuStreamSynchronize", s->driver.stream_wait(lane->stream));

    for (guint i = 0; done && i < iterations; i++) {
        float start, length;

        done =
            try(s, "cuEventElapsedTime",
                s->driver.event_elapsed(&start, lane->base, lane->events[i])) &&
            try(s, "cuEventElapsedTime",
                s->driver.event_elapsed(&length, lane->events[i],
                                        lane->events[i + 1]));
        times[i] = (double)length * 1e3;
        if (done)
            topo_slice_add(s->pairs, from, to, way,
                           lane->base_time + (double)start * 1e3, times[i]);
    }
    topo_pair(s->pairs, from, to)->times[way] = topo_median(times, iterations);
    g_free(times);
    return done;
}

/* Measures a copy of a few bytes, with the call that starts it and the wait. */
static bool measure_latency(state_t *s, guint from, guint to)
{
    const lane_t *lane = lane_of(s, from, to);
    double times[LATENCIES];
    bool done = set_device(s, owner(s, from, to));

    for (guint i = 0; done && i < LATENCIES; i++) {
        const double start = topo_now();

        done =
            try(s, "cuMemcpyAsync",
                copy(s, from, to, 0, LATENCY_BYTES, lane->stream)) &&
            try(s, "cuStreamSynchronize", s->driver.stream_wait(lane->stream));
        times[i] = topo_now() - start;
    }
    topo_pair(s->pairs, from, to)->latency = topo_median(times, LATENCIES);
    return done;
}

static char pattern(guint end)
{
    return (char)(end % 251 + 1);
}

/* Looks at the last word that the pair has copied. */
static bool check(state_t *s, guint from, guint to)
{
    char word[LATENCY_BYTES] = {0}, want[LATENCY_BYTES];
    const gsize offset = s->bytes - LATENCY_BYTES;
    bool done = true;

    memset(want, pattern(from), sizeof want);
    if (is_host(s, to))
        memcpy(word, s->host_dest + offset, sizeof word);
    else
        done = set_device(s, &s->gpus[to]) &&
               try(s, "cuMemcpyDtoHAsync",
                   s->driver.copy_to_host(word, s->gpus[to].dest + offset,
                                          sizeof word,
                                          lane_of(s, to, s->count)->stream)) &&
               try(s, "cuStreamSynchronize",
                   s->driver.stream_wait(lane_of(s, to, s->count)->stream));
    if (done && memcmp(word, want, sizeof word) != 0)
        s->problem =
            g_strdup_printf("%s has received other bytes than %s has "
                            "sent",
                            s->pairs->names[to], s->pairs->names[from]);
    return !s->problem;
}

static bool measure_alone(state_t *s, guint from, guint to, topo_way_t way)
{
    return lane_fill(s, from, to) && lane_read(s, from, to, way) &&
           check(s, from, to);
}

static bool measure_both(state_t *s, guint a, guint b)
{
    return lane_fill(s, a, b) && lane_fill(s, b, a) &&
           lane_read(s, a, b, TOPO_BOTH) && lane_read(s, b, a, TOPO_BOTH);
}

/* All pairs of different devices at once. */
static bool measure_together(state_t *s)
{
    bool done = true;

    for (guint i = 0; done && i < s->count * s->count; i++)
        if (i / s->count != i % s->count)
            done = lane_fill(s, i / s->count, i % s->count);
    for (guint i = 0; done && i < s->count * s->count; i++)
        if (i / s->count != i % s->count)
            done = lane_read(s, i / s->count, i % s->count, TOPO_TOGETHER);
    return done;
}

static bool can_access(const state_t *s, guint from, guint to)
{
    int can = 0;

    return from != to &&
           !s->driver.can_access(&can, s->gpus[from].device,
                                 s->gpus[to].device) &&
           can;
}

static bool access_enable(state_t *s, guint from, guint to)
{
    int code;

    if (!set_device(s, &s->gpus[from]))
        return false;
    code = s->driver.access_enable(s->gpus[to].context, 0);
    return code == ALREADY_ENABLED || try(s, "cuCtxEnablePeerAccess", code);
}

/* Measures between devices of which one can access the other's memory, while
 * it may not, so that copies go through the host; then it may. */
static bool measure_staged(state_t *s)
{
    bool done = true;

    for (guint i = 0; done && i < s->count * s->count; i++)
        if (can_access(s, i / s->count, i % s->count))
            done = measure_alone(s, i / s->count, i % s->count, TOPO_STAGED);
    for (guint i = 0; done && i < s->count * s->count; i++)
        if (can_access(s, i / s->count, i % s->count))
            done = access_enable(s, i / s->count, i % s->count);
    return done;
}

static void measure(state_t *s)
{
    const guint count = s->pairs->count;

    if (!measure_staged(s))
        return;
    for (guint i = 0; i < count * count - 1; i++) {
        const guint from = i / count, to = i % count;

        if (!measure_alone(s, from, to, TOPO_ALONE) ||
            !measure_latency(s, from, to) ||
            (from < to && !measure_both(s, from, to)))
            return;
    }
    measure_together(s);
}

static bool lane_new(state_t *s, guint from, guint to)
{
    const guint events = s->pairs->copies.iterations + 1;
    lane_t *lane = lane_of(s, from, to);
    bool done =
        set_device(s, owner(s, from, to)) &&
        try(s, "cuStreamCreate",
            s->driver.stream_create(&lane->stream, STREAM_NON_BLOCKING)) &&
        try(s, "cuEventCreate", s->driver.event_create(&lane->base, 0));

    lane->events = g_new0(void *, events);
    for (guint i = 0; done && i < events; i++)
        done = try(s, "cuEventCreate",
                   s->driver.event_create(&lane->events[i], 0));
    if (!done || !try(s, "cuEventRecord",
                      s->driver.event_record(lane->base, lane->stream)))
        return false;
    done = try(s, "cuStreamSynchronize", s->driver.stream_wait(lane->stream));
    lane->base_time = topo_now() - s->begun;
    return done;
}

static void lane_free(state_t *s, guint from, guint to)
{
    lane_t *lane = lane_of(s, from, to);

    if (!lane->events)
        return;
    s->driver.context_set(owner(s, from, to)->context);
    for (guint i = 0; i <= s->pairs->copies.iterations; i++)
        if (lane->events[i])
            s->driver.event_destroy(lane->events[i]);
    if (lane->base)
        s->driver.event_destroy(lane->base);
    if (lane->stream)
        s->driver.stream_destroy(lane->stream);
    g_free(lane->events);
}

static bool gpu_open(state_t *s, guint index)
{
    gpu_t *gpu = &s->gpus[index];

    return try(s, "cuDevicePrimaryCtxRetain",
               s->driver.context_retain(&gpu->context, gpu->device)) &&
           set_device(s, gpu) &&
           try(s, "cuMemAlloc (smaller --elements need less memory)",
               s->driver.memory_alloc(&gpu->source, s->bytes)) &&
           try(s, "cuMemAlloc (smaller --elements need less memory)",
               s->driver.memory_alloc(&gpu->dest, s->bytes)) &&
           try(s, "cuMemsetD8",
               s->driver.memory_set(gpu->source, (unsigned char)pattern(index),
                                    s->bytes));
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
    if (!set_device(s, &s->gpus[0]) ||
        !try(s, "cuMemAllocHost",
             s->driver.host_alloc((void **)&s->host_source, s->bytes)) ||
        !try(s, "cuMemAllocHost",
             s->driver.host_alloc((void **)&s->host_dest, s->bytes)))
        return false;
    memset(s->host_source, pattern(s->count), s->bytes);
    return true;
}

static bool open_all(state_t *s)
{
    const guint count = s->pairs->count;

    for (guint i = 0; i < s->count; i++)
        if (!gpu_open(s, i))
            return false;
    if (!host_open(s))
        return false;
    /* The host has no pair with itself. */
    for (guint i = 0; i < count * count - 1; i++)
        if (!lane_new(s, i / count, i % count))
            return false;
    return true;
}

static void close_all(state_t *s)
{
    const guint count = s->pairs->count;

    for (guint i = 0; i < count * count - 1; i++)
        lane_free(s, i / count, i % count);
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
static topo_path_t path_of(const state_t *s, guint from, guint to)
{
    const topo_node_t *a = is_host(s, from) ? NULL : s->gpus[from].node;
    const topo_node_t *b = is_host(s, to) ? NULL : s->gpus[to].node;
    topo_path_t path = {"?", TOPO_LINKS * 100, "a path that is not known", 0};
    topo_link_t link = {TOPO_SELF, 0};
    char *word;

    if (from != to && (is_host(s, from) || is_host(s, to)))
        return (topo_path_t){"HOST", TOPO_PHB * 100 + 50,
                             "the link between the host's memory and a device",
                             a || b ? topo_path_limit(a ? a : b, NULL) : 0};
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

        if (try(s, "cuDeviceGet", s->driver.device_get(&gpu->device, (int)i)) &&
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
        names, copies);
    for (guint i = 0; i < s->pairs->count * s->pairs->count; i++)
        s->pairs->pairs[i].path =
            path_of(s, i / s->pairs->count, i % s->pairs->count);
    s->lanes = g_new0(lane_t, (gsize)s->pairs->count * s->pairs->count);
    if (!s->problem && open_all(s))
        measure(s);
    close_all(s);
    g_free(s->lanes);
    g_free(s->gpus);
}

topo_pairs_t *topo_devices(const topo_tree_t *tree, const topo_copies_t *copies,
                           char **ret_problem)
{
    state_t s = {.bytes = topo_copies_bytes(copies), .begun = topo_now()};
    int count = 0;

    s.problem = topo_driver_load(&s.driver);
    if (!s.problem)
        try(&s, "cuDeviceGetCount", s.driver.device_count(&count));
    if (!s.problem && count < 1)
        s.problem = g_strdup("CUDA shows no device to this process");
    if (!s.problem) {
        s.count = (guint)count;
        devices_run(&s, tree, copies);
    }
    if (s.problem)
        g_clear_pointer(&s.pairs, topo_pairs_free);
    *ret_problem = s.problem;
    return s.pairs;
}
