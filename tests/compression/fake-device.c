/* SPDX-License-Identifier: BSD-3-Clause */
/* See fake-device.h. */
#define _GNU_SOURCE
#include "config.h"

#include "tests/compression/fake-device.h"

#include "compression/arithmetic.h"
#include "compression/codecs/codecs.h"

#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define FAILURE 717
#define PIECES_MAX 1024
#define LATE_US 300 /* at most */

typedef struct {
    char *device, *shadow;
    size_t bytes;
} piece_t;

typedef struct task {
    struct task *next;
    void (*run)(const void *args); /* NULL: the end */
    char args[sizeof(dscomm_device_worker_t) + 64];
} task_t;

struct dscomm_device_queue {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more, done;
    task_t *first, *last; /* that wait */
    unsigned long begun, ended; /* tasks */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static piece_t pieces[PIECES_MAX];
static atomic_int count, failing = -1;
static atomic_size_t copied;

static piece_t *find(const void *pointer)
{
    piece_t *found = NULL;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < PIECES_MAX && !found; i++)
        if ((const char *)pointer >= pieces[i].device &&
            (const char *)pointer < pieces[i].device + pieces[i].bytes)
            found = &pieces[i];
    pthread_mutex_unlock(&lock);
    return found;
}

/* Where the device itself finds what is at pointer. */
static void *shadow(const void *pointer)
{
    const piece_t *piece = find(pointer);

    return piece ? piece->shadow + ((const char *)pointer - piece->device)
                 : (void *)pointer;
}

void *fake_device_alloc(size_t bytes)
{
    int fd = memfd_create("device", MFD_CLOEXEC), i = 0;
    piece_t piece = {.bytes = MAX(bytes, 1)};

    if (fd < 0 || ftruncate(fd, (off_t)piece.bytes))
        return NULL;
    piece.shadow =
        mmap(NULL, piece.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    piece.device = mmap(NULL, piece.bytes, PROT_NONE, MAP_SHARED, fd, 0);
    close(fd);
    pthread_mutex_lock(&lock);
    while (pieces[i].bytes)
        i++;
    pieces[i] = piece;
    pthread_mutex_unlock(&lock);
    count++;
    return piece.device;
}

void fake_device_free(void *memory)
{
    piece_t *piece = find(memory);

    munmap(piece->shadow, piece->bytes);
    munmap(piece->device, piece->bytes);
    pthread_mutex_lock(&lock);
    *piece = (piece_t){0};
    pthread_mutex_unlock(&lock);
    count--;
}

void fake_device_write(void *to, const void *from, size_t bytes)
{
    memcpy(shadow(to), from, bytes);
}

void fake_device_read(void *to, const void *from, size_t bytes)
{
    memcpy(to, shadow(from), bytes);
}

size_t fake_device_copied(void)
{
    return atomic_exchange(&copied, 0);
}

int fake_device_pieces(void)
{
    return count;
}

void fake_device_fail(int calls)
{
    failing = calls;
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

static int put(dscomm_device_queue_t *queue, void (*run)(const void *),
               const void *args, size_t bytes)
{
    task_t *task = g_new0(task_t, 1);
    int code = fails();

    g_assert(bytes <= sizeof task->args);
    task->run = run;
    if (bytes)
        memcpy(task->args, args, bytes);
    if (code) {
        g_free(task);
        return code;
    }
    pthread_mutex_lock(&queue->lock);
    queue->begun++;
    if (queue->first)
        queue->last->next = task;
    else
        queue->first = task;
    queue->last = task;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
    return 0;
}

static int open_queue(int device, dscomm_device_queue_t **ret_queue)
{
    dscomm_device_queue_t *queue = g_new0(dscomm_device_queue_t, 1);

    (void)device;
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
    put(queue, NULL, NULL, 0);
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

static int alloc(dscomm_device_queue_t *queue, size_t bytes, int on_host,
                 void **ret_memory)
{
    int code = fails();

    (void)queue;
    if (!code)
        *ret_memory = on_host ? g_malloc0(bytes) : fake_device_alloc(bytes);
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

typedef struct {
    char *to;
    const char *from;
    size_t to_stride, from_stride, bytes, rows;
} copy_t;

static void run_copy(const void *args)
{
    const copy_t *a = args;

    for (size_t r = 0; r < a->rows; r++)
        memcpy((char *)shadow(a->to) + r * a->to_stride,
               (char *)shadow(a->from) + r * a->from_stride, a->bytes);
}

static int copy(dscomm_device_queue_t *queue, void *to, size_t to_stride,
                const void *from, size_t from_stride, size_t bytes, size_t rows)
{
    copy_t a = {to, from, to_stride, from_stride, bytes, rows};

    copied += bytes * rows;
    return put(queue, run_copy, &a, sizeof a);
}

static void run_clear(const void *args)
{
    const copy_t *a = args;

    memset(shadow(a->to), 0, a->bytes);
}

static int clear(dscomm_device_queue_t *queue, void *memory, size_t bytes)
{
    copy_t a = {.to = memory, .bytes = bytes};

    return put(queue, run_clear, &a, sizeof a);
}

static float element(dscomm_device_format_t format, const void *x, size_t i)
{
    return format == DSCOMM_DEVICE_FLOAT32 ? ((const float *)x)[i]
           : format == DSCOMM_DEVICE_FLOAT16
               ? value_of_half(((const uint16_t *)x)[i])
               : value_of_bfloat(((const uint16_t *)x)[i]);
}

static void set_element(dscomm_device_format_t format, void *x, size_t i,
                        float value)
{
    if (format == DSCOMM_DEVICE_FLOAT32)
        ((float *)x)[i] = value;
    else
        ((uint16_t *)x)[i] =
            format == DSCOMM_DEVICE_FLOAT16 ? half_of(value) : bfloat_of(value);
}

static float said(const char *row, size_t i, float scale)
{
    return row[DSCOMM_DEVICE_HEADER + i / 8] & 0x80 >> i % 8 ? scale : -scale;
}

static float scale_of(const float *u, size_t elements)
{
    static const dscomm_codec_args_t args = {sizeof args, 1, 0, 0};
    double sums[DSCOMM_CODEC_SUMS] = {0};

    for (size_t i = 0; i < elements; i += DSCOMM_CODEC_BLOCK)
        dscomm_priv_codec_onebit.measure(&args, sums, NULL, u + i,
                                         MIN(DSCOMM_CODEC_BLOCK, elements - i));
    return dscomm_priv_codec_onebit.settle(&args, sums, elements);
}

static void encode(const float *u, size_t elements, char *row)
{
    unsigned char *bits = (unsigned char *)row + DSCOMM_DEVICE_HEADER;

    memset(bits, 0, elements / 8 + (elements % 8 != 0));
    for (size_t i = 0; i < elements; i++)
        bits[i / 8] |= (unsigned char)(u[i] < 0 ? 0 : 0x80 >> i % 8);
}

static void run_worker(const void *args)
{
    dscomm_device_worker_t a;
    const float *c;
    float *u, s, scale;
    char *rows;

    memcpy(&a, args, sizeof a);
    c = shadow(a.c);
    u = shadow(a.next);
    rows = shadow(a.rows.first);
    s = *(float *)shadow(a.s);
    for (size_t i = 0; i < a.padded; i++)
        u[i] = (i < a.count ? element(a.format, shadow(a.x), i) : 0) +
               onebit_error(c[i], s);
    scale = scale_of(u, a.padded);
    for (size_t r = 0; r < a.rows.ranks; r++) {
        size_t base = MIN(r * a.rows.chunk, a.padded);

        memcpy(rows + r * a.rows.stride, &scale, sizeof scale);
        encode(u + base, MIN(a.rows.chunk, a.padded - base),
               rows + r * a.rows.stride);
    }
    *(float *)shadow(a.ret_s) = scale;
}

static void run_server(const void *args)
{
    dscomm_device_server_t a;
    char *rows, *row;
    float *c, *s;

    memcpy(&a, args, sizeof a);
    rows = shadow(a.rows.first);
    row = shadow(a.ret_row);
    c = shadow(a.c);
    s = shadow(a.s);
    for (size_t i = 0; i < a.count; i++) {
        float sum = 0;

        for (size_t r = 0; r < a.rows.ranks; r++) {
            const char *from = rows + r * a.rows.stride;
            float scale = *(const float *)(const void *)from * a.factor;

            sum += said(from, i, scale);
        }
        c[i] = onebit_error(c[i], *s) + sum;
    }
    *s = scale_of(c, a.count);
    memcpy(row, s, sizeof *s);
    encode(c, a.count, row);
}

static void run_unpack(const void *args)
{
    dscomm_device_unpack_t a;
    const char *rows;
    void *x;

    memcpy(&a, args, sizeof a);
    rows = shadow(a.rows.first);
    x = shadow(a.ret_x);
    for (size_t i = 0; i < a.count; i++) {
        const char *row = rows + i / a.rows.chunk * a.rows.stride;

        set_element(
            a.format, x, i,
            said(row, i % a.rows.chunk, *(const float *)(const void *)row));
    }
}

static void run_materialise(const void *args)
{
    dscomm_device_materialise_t a;
    float *c, *s;

    memcpy(&a, args, sizeof a);
    c = shadow(a.c);
    s = shadow(a.s);
    for (size_t i = 0; i < a.count; i++)
        c[i] = onebit_error(c[i], *s);
    *s = 0;
}

static void run_take_back(const void *args)
{
    dscomm_device_take_back_t a;
    const char *row;
    float *c;

    memcpy(&a, args, sizeof a);
    c = shadow(a.c);
    row = shadow(a.row);
    for (size_t i = 0; i < a.count; i++) {
        float e = c[i] + said(row, i, *(const float *)(const void *)row);

        c[i] = e - element(a.format, shadow(a.x), i);
    }
}

#define KERNEL(name)                                                           \
    static int name(dscomm_device_queue_t *queue,                              \
                    const dscomm_device_##name##_t *args)                      \
    {                                                                          \
        return put(queue, run_##name, args, sizeof *args);                     \
    }

KERNEL(worker)
KERNEL(server)
KERNEL(unpack)
KERNEL(materialise)
KERNEL(take_back)

static const char *why(void)
{
    return NULL;
}

static const char *text(int code)
{
    return code == FAILURE ? "FAKE_ERROR (717)" : "nothing (0)";
}

static int device(const void *pointer)
{
    return find(pointer) ? 0 : -1;
}

static const dscomm_device_ops_t ops = {
    .abi = DSCOMM_DEVICE_ABI,
    .name = "the fake",
    .why = why,
    .text = text,
    .device = device,
    .open = open_queue,
    .close = close_queue,
    .sync = sync_queue,
    .alloc = alloc,
    .release = release,
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
