/* SPDX-License-Identifier: BSD-3-Clause */
/* See fake-device.h. */
#define _GNU_SOURCE
#include "config.h"

#include "tests/compression/fake-device.h"
#include "tests/compression/fake-kernels.h"

#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FAILURE 717
#define LATE_US 300 /* at most */

typedef struct task {
    struct task *next;
    void (*run)(const void *args); /* NULL: the end */
    char args[sizeof(dscomm_device_worker_t) + 64];
} task_t;

struct dscomm_device_queue {
    int device;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more, done;
    task_t *first, *last; /* that wait */
    unsigned long begun, ended; /* tasks */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int launches, failing = -1, full, refused, lateness, marks;
static pthread_cond_t let_go = PTHREAD_COND_INITIALIZER;
static int held; /* with lock */
static atomic_size_t copied, read_elsewhere;
_Thread_local int fake_device_unmappable;

/* A queue that is stopped before a copy, until something happens elsewhere;
 * with lock. */
#define IN_VAIN_S 20
static struct {
    int device, copies; /* -1: none; to the host, before that one */
    fake_event_t until;
    int happened, met;
} stop = {.device = -1};

void fake_device_stop(int device, int copies, fake_event_t until)
{
    pthread_mutex_lock(&lock);
    stop.device = device;
    stop.copies = copies;
    stop.until = until;
    stop.happened = stop.met = 0;
    pthread_mutex_unlock(&lock);
}

int fake_device_met(void)
{
    int met;

    pthread_mutex_lock(&lock);
    met = stop.met;
    stop.device = -1;
    pthread_cond_broadcast(&let_go);
    pthread_mutex_unlock(&lock);
    return met;
}

void fake_device_happens(fake_event_t event, const void *pointer)
{
    int device = fake_device_number(pointer);

    pthread_mutex_lock(&lock);
    stop.happened |=
        stop.device >= 0 && event == stop.until && device != stop.device;
    pthread_cond_broadcast(&let_go);
    pthread_mutex_unlock(&lock);
}

/* Before a copy to the host, or from what is another's. */
static void obey(int device)
{
    struct timespec end;
    int late = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += IN_VAIN_S;
    pthread_mutex_lock(&lock);
    if (stop.device == device && stop.copies-- == 0) {
        while (!stop.happened && !late && stop.device == device)
            late = pthread_cond_timedwait(&let_go, &lock, &end);
        stop.met = stop.happened || (late && stop.until == FAKE_NEVER);
    }
    pthread_mutex_unlock(&lock);
}

size_t fake_device_read_elsewhere(void)
{
    return atomic_exchange(&read_elsewhere, 0);
}

size_t fake_device_copied(void)
{
    return atomic_exchange(&copied, 0);
}

int fake_device_launches(void)
{
    return atomic_exchange(&launches, 0);
}

void fake_device_hold(int hold)
{
    pthread_mutex_lock(&lock);
    held = hold;
    pthread_cond_broadcast(&let_go);
    pthread_mutex_unlock(&lock);
}

void fake_device_held(void)
{
    pthread_mutex_lock(&lock);
    while (held)
        pthread_cond_wait(&let_go, &lock);
    pthread_mutex_unlock(&lock);
}

int fake_device_fail(int calls)
{
    return atomic_exchange(&failing, calls);
}

void fake_device_full(int is_full)
{
    full = is_full;
}

int fake_device_refused(void)
{
    return atomic_exchange(&refused, 0);
}

static int fails(void)
{
    return failing >= 0 && failing-- == 0 ? FAILURE : 0;
}

static task_t *next_task(dscomm_device_queue_t *queue)
{
    task_t *task;

    pthread_mutex_lock(&queue->lock);
    while (!queue->first)
        pthread_cond_wait(&queue->more, &queue->lock);
    task = queue->first;
    queue->first = task->next;
    pthread_mutex_unlock(&queue->lock);
    return task;
}

static void *serve_queue(void *argument)
{
    dscomm_device_queue_t *queue = argument;
    unsigned salt = 1;

    for (;;) {
        task_t *task = next_task(queue);
        int is_last = !task->run;

        salt = salt * 1103515245u + 12345u;
        usleep(salt >> 16 & 1 ? salt >> 17 & (LATE_US - 1) : 0);
        if (!is_last)
            task->run(task->args);
        g_free(task);
        pthread_mutex_lock(&queue->lock);
        queue->ended++;
        pthread_cond_broadcast(&queue->done);
        pthread_mutex_unlock(&queue->lock);
        if (is_last)
            return NULL;
    }
}

static void put_surely(dscomm_device_queue_t *queue, void (*run)(const void *),
                       const void *args, size_t bytes)
{
    task_t *task = g_new0(task_t, 1);

    g_assert(bytes <= sizeof task->args);
    task->run = run;
    if (bytes)
        memcpy(task->args, args, bytes);
    pthread_mutex_lock(&queue->lock);
    queue->begun++;
    if (queue->first)
        queue->last->next = task;
    else
        queue->first = task;
    queue->last = task;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
}

static int put(dscomm_device_queue_t *queue, void (*run)(const void *),
               const void *args, size_t bytes)
{
    int code = fails();

    if (!code)
        put_surely(queue, run, args, bytes);
    return code;
}

static int open_queue(int device, dscomm_device_queue_t **ret_queue)
{
    dscomm_device_queue_t *queue = g_new0(dscomm_device_queue_t, 1);

    queue->device = device;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->more, NULL);
    pthread_cond_init(&queue->done, NULL);
    pthread_create(&queue->thread, NULL, serve_queue, queue);
    *ret_queue = queue;
    return 0;
}

static void wait_for(dscomm_device_queue_t *queue)
{
    unsigned long all;

    pthread_mutex_lock(&queue->lock);
    all = queue->begun;
    while (queue->ended < all)
        pthread_cond_wait(&queue->done, &queue->lock);
    pthread_mutex_unlock(&queue->lock);
}

static void close_queue(dscomm_device_queue_t *queue)
{
    put_surely(queue, NULL, NULL, 0);
    pthread_join(queue->thread, NULL);
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->more);
    pthread_cond_destroy(&queue->done);
    g_free(queue);
}

static int sync_queue(dscomm_device_queue_t *queue)
{
    wait_for(queue);
    return fails();
}

/* One queue opens it, and another one waits for that; the second one to look
 * frees it. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    int is_open;
} gate_t;

static void run_open(const void *args)
{
    gate_t *gate = *(gate_t *const *)args;

    pthread_mutex_lock(&gate->lock);
    gate->is_open = 1;
    pthread_cond_signal(&gate->opened);
    pthread_mutex_unlock(&gate->lock);
}

static void run_pass(const void *args)
{
    gate_t *gate = *(gate_t *const *)args;

    pthread_mutex_lock(&gate->lock);
    while (!gate->is_open)
        pthread_cond_wait(&gate->opened, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    pthread_mutex_destroy(&gate->lock);
    pthread_cond_destroy(&gate->opened);
    g_free(gate);
}

static int order(dscomm_device_queue_t *first, dscomm_device_queue_t *later)
{
    int code = fails();
    gate_t *gate;

    /* What the default stream does is done at once. */
    if (code || !first || !later)
        return code;
    gate = g_new0(gate_t, 1);
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->opened, NULL);
    put_surely(later, run_pass, &gate, sizeof gate);
    put_surely(first, run_open, &gate, sizeof gate);
    return 0;
}

static int follow(dscomm_device_queue_t *queue, void *stream)
{
    return order(stream, queue);
}

static int lead(dscomm_device_queue_t *queue, void *stream)
{
    return order(queue, stream);
}

static void *idle(dscomm_device_queue_t *queue)
{
    return queue;
}

/* Where a queue was when it was marked last. */
typedef struct {
    atomic_ulong wanted, come;
    atomic_int late; /* looks at it that still find nothing */
} mark_t;

static void run_mark(const void *args)
{
    mark_t *mark = *(mark_t *const *)args;

    mark->come++;
}

static int mark_queue(dscomm_device_queue_t *queue, void **event)
{
    mark_t *mark = *event ? *event : g_new0(mark_t, 1);
    int code = fails();

    *event = mark;
    marks++;
    if (code)
        return code;
    mark->wanted++;
    mark->late = lateness;
    put_surely(queue, run_mark, &mark, sizeof mark);
    return 0;
}

static int reached(dscomm_device_queue_t *queue, void *event, int *ret_reached)
{
    mark_t *mark = event;

    (void)queue;
    *ret_reached = mark->come == mark->wanted && mark->late-- <= 0;
    return *ret_reached ? fails() : 0;
}

static void run_unmark(const void *args)
{
    g_free(*(mark_t *const *)args);
}

static void unmark(dscomm_device_queue_t *queue, void *event)
{
    put_surely(queue, run_unmark, &event, sizeof event);
}

void fake_device_late(int looks)
{
    lateness = looks;
}

int fake_device_marks(void)
{
    return atomic_exchange(&marks, 0);
}

void *fake_device_stream_new(void)
{
    dscomm_device_queue_t *queue;

    open_queue(0, &queue);
    return queue;
}

void fake_device_stream_free(void *stream)
{
    close_queue(stream);
}

void fake_device_wait(void *stream)
{
    wait_for(stream);
}

typedef struct {
    void *to;
    const void *from;
    size_t bytes;
} move_t;

static void run_write(const void *args)
{
    const move_t *a = args;

    memcpy(fake_device_shadow(a->to), a->from, a->bytes);
    g_free((void *)a->from);
}

void fake_device_write_on(void *stream, void *to, const void *from,
                          size_t bytes)
{
    move_t a = {to, g_malloc(bytes), bytes};

    memcpy((void *)a.from, from, bytes);
    put_surely(stream, run_write, &a, sizeof a);
}

static void run_read(const void *args)
{
    const move_t *a = args;

    memcpy(a->to, fake_device_shadow(a->from), a->bytes);
}

void fake_device_read_on(void *stream, void *to, const void *from, size_t bytes)
{
    move_t a = {to, from, bytes};

    put_surely(stream, run_read, &a, sizeof a);
}

static int alloc(dscomm_device_queue_t *queue, size_t bytes, int on_host,
                 void **ret_memory)
{
    int code = full ? FAILURE : fails();

    refused += full != 0;

    if (!code)
        *ret_memory = on_host ? g_malloc0(bytes)
                              : fake_device_alloc_on(queue->device, bytes);
    return code;
}

static void release(dscomm_device_queue_t *queue, int on_host, void *memory)
{
    wait_for(queue);
    if (on_host)
        g_free(memory);
    else
        fake_device_free(memory);
}

static int lend(dscomm_device_queue_t *queue, void *memory,
                dscomm_device_card_t *ret_card)
{
    int code = fails();

    (void)queue;
    return code ? code : fake_device_lend(memory, ret_card);
}

static int map(dscomm_device_queue_t *queue, const dscomm_device_card_t *card,
               void **ret_memory)
{
    int code = fake_device_unmappable ? FAILURE : fails();
    void *memory = code ? NULL : fake_device_map(queue->device, card);

    if (memory)
        *ret_memory = memory;
    return code || memory ? code : FAILURE;
}

static void unmap(dscomm_device_queue_t *queue, void *memory)
{
    wait_for(queue);
    fake_device_free(memory);
}

typedef struct {
    char *to;
    const char *from;
    size_t to_stride, from_stride, bytes, rows;
} copy_t;

static void run_copy(const void *args)
{
    const copy_t *a = args;
    int from = fake_device_number(a->from), to = fake_device_number(a->to);

    if (from >= 0 && (to < 0 || fake_device_is_mapped(a->from)))
        obey(from);
    for (size_t r = 0; r < a->rows; r++)
        memcpy((char *)fake_device_shadow(a->to) + r * a->to_stride,
               (char *)fake_device_shadow(a->from) + r * a->from_stride,
               a->bytes);
    if (from < 0)
        fake_device_happens(FAKE_UP, a->to);
}

static int copy(dscomm_device_queue_t *queue, void *to, size_t to_stride,
                const void *from, size_t from_stride, size_t bytes, size_t rows)
{
    copy_t a = {to, from, to_stride, from_stride, bytes, rows};

    if (fake_device_number(to) < 0 || fake_device_number(from) < 0)
        copied += bytes * rows;
    if (fake_device_is_mapped(from))
        read_elsewhere += bytes * rows;
    return put(queue, run_copy, &a, sizeof a);
}

static void run_clear(const void *args)
{
    const copy_t *a = args;

    memset(fake_device_shadow(a->to), 0, a->bytes);
}

static int clear(dscomm_device_queue_t *queue, void *memory, size_t bytes)
{
    copy_t a = {.to = memory, .bytes = bytes};

    return put(queue, run_clear, &a, sizeof a);
}

#define KERNEL(name)                                                           \
    static int name(dscomm_device_queue_t *queue,                              \
                    const dscomm_device_##name##_t *args, size_t jobs)         \
    {                                                                          \
        int code = fails();                                                    \
                                                                               \
        launches++;                                                            \
        for (size_t i = 0; i < jobs && !code; i++)                             \
            put_surely(queue, fake_device_##name, args + i, sizeof *args);     \
        return code;                                                           \
    }

KERNEL(worker)
KERNEL(server)
KERNEL(unpack)

static int materialise(dscomm_device_queue_t *queue,
                       const dscomm_device_materialise_t *args)
{
    return put(queue, fake_device_materialise, args, sizeof *args);
}

static int take_back(dscomm_device_queue_t *queue,
                     const dscomm_device_take_back_t *args)
{
    return put(queue, fake_device_take_back, args, sizeof *args);
}

static const char *why(void)
{
    return NULL;
}

static const char *text(int code)
{
    return code == FAILURE ? "FAKE_ERROR (717)" : "nothing (0)";
}

static const dscomm_device_ops_t ops = {
    .abi = DSCOMM_DEVICE_ABI,
    .name = "the fake",
    .why = why,
    .text = text,
    .device = fake_device_number,
    .current = fake_device_chosen,
    .open = open_queue,
    .close = close_queue,
    .sync = sync_queue,
    .follow = follow,
    .lead = lead,
    .idle = idle,
    .mark = mark_queue,
    .reached = reached,
    .unmark = unmark,
    .alloc = alloc,
    .release = release,
    .lend = lend,
    .map = map,
    .unmap = unmap,
    .copy = copy,
    .clear = clear,
    .worker = worker,
    .server = server,
    .unpack = unpack,
    .materialise = materialise,
    .take_back = take_back,
};

const int fake_device_real = 0;

const dscomm_device_ops_t *fake_device_table(void)
{
    return &ops;
}
