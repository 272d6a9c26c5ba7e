/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls on buffers of a device, which is emulated by tests/lib/device/driver.c.
 * The argument says when the process loads CUDA: "before" the world is made,
 * "after", or "never". Each rank that has passed prints "content", then the
 * number of copies that CUDA has made for the blocking all_reduce out of place,
 * and the number for messages. */
#include "config.h"

#include <dscomm/dscomm.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 1000
#define RANKS_MAX 8

typedef dscomm_work_t **works_t;

static dscomm_group_t *world;
static int rank, ranks;
static int (*take)(uint64_t *pointer, size_t bytes);
static int (*to_host)(void *dest, uint64_t source, size_t bytes);
static int (*to_device)(uint64_t dest, const void *source, size_t bytes);
static int (*push)(void *context);
static int (*pop)(void **context);
static int (*retain)(void **context, int device);
static int (*attribute)(void *value, int which, uint64_t pointer);
static void (*later)(void *stream, uint64_t pointer, uint32_t value,
                     size_t words);
static unsigned *copies;
static size_t *pinned, *pinned_most;

static void need(int cond, const char *what)
{
    if (cond)
        return;
    fprintf(stderr, "rank %d: not so: %s (%s)\n", rank, what,
            dscomm_last_error());
    exit(3);
}

/* The emulated driver is there at once; a real device first needs a context. */
static void begin_with_device(void *handle)
{
    int (*init)(unsigned flags);
    void *context = NULL;

    *(void **)&init = dlsym(handle, "cuInit");
    need(init && retain && !init(0) && !retain(&context, 0) && !push(context),
         "a context");
}

static void load(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);

    need(handle != NULL, "there is a libcuda");
    *(void **)&take = dlsym(handle, "cuMemAlloc_v2");
    *(void **)&to_host = dlsym(handle, "cuMemcpyDtoH_v2");
    *(void **)&to_device = dlsym(handle, "cuMemcpyHtoD_v2");
    *(void **)&push = dlsym(handle, "cuCtxPushCurrent_v2");
    *(void **)&pop = dlsym(handle, "cuCtxPopCurrent_v2");
    *(void **)&retain = dlsym(handle, "cuDevicePrimaryCtxRetain");
    *(void **)&attribute = dlsym(handle, "cuPointerGetAttribute");
    *(void **)&later = dlsym(handle, "fake_cuda_later");
    copies = dlsym(handle, "fake_cuda_copies");
    pinned = dlsym(handle, "fake_cuda_pinned");
    pinned_most = dlsym(handle, "fake_cuda_pinned_most");
    if (!copies)
        begin_with_device(handle);
}

/* Makes a context current, for the program's own copies only. */
static void enter(uint64_t pointer)
{
    void *context = NULL;

    need(!attribute(&context, 1, pointer) &&
             (context || !retain(&context, 0)) && !push(context),
         "a context");
}

static void leave(void)
{
    void *context;

    pop(&context);
}

/* Makes count numbers on the device, or in host memory if there is none. */
static int32_t *place(size_t count, int32_t first, int32_t step)
{
    int32_t *values = malloc(count * sizeof *values);
    uint64_t pointer = 0;

    need(values != NULL, "memory");
    for (size_t i = 0; i < count; i++)
        values[i] = first + step * (int32_t)i;
    if (!take)
        return values;
    need(!take(&pointer, count * sizeof *values), "memory of the device");
    enter(pointer);
    need(!to_device(pointer, values, count * sizeof *values), "a copy to it");
    leave();
    free(values);
    return (int32_t *)(uintptr_t)pointer;
}

static int32_t at(const int32_t *numbers, size_t index)
{
    int32_t value = 0;

    if (!take)
        return numbers[index];
    enter((uintptr_t)(numbers + index));
    need(!to_host(&value, (uintptr_t)(numbers + index), sizeof value),
         "a copy from the device");
    leave();
    return value;
}

static int32_t sum_of(size_t index)
{
    int32_t sum = 0;

    for (int r = 0; r < ranks; r++)
        sum += 1000 * r + (int32_t)index;
    return sum;
}

/* Compares the first, a middle one and the last of count numbers. */
#define SAME(numbers, count, want, what)                                       \
    for (size_t k_ = 0; k_ < 3; k_++) {                                        \
        size_t i = k_ * ((count)-1) / 2;                                       \
        need(at(numbers, i) == (want), what);                                  \
    }

static void finish(dscomm_work_t *work)
{
    if (work)
        DSCOMM_CHECK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(work);
}

static void reduce(works_t works)
{
    int32_t *in = place(COUNT, 1000 * rank, 1), *out = place(COUNT, -1, 0);
    int32_t *all = place(COUNT * RANKS_MAX, 1000 * rank, 1);

    DSCOMM_CHECK(dscomm_all_reduce(world, in, out, COUNT, DSCOMM_INT32,
                                   DSCOMM_SUM, works));
    finish(works ? *works : NULL);
    SAME(out, COUNT, sum_of(i), "all_reduce");
    DSCOMM_CHECK(dscomm_reduce(world, in, in, COUNT, DSCOMM_INT32, DSCOMM_SUM,
                               1, works));
    finish(works ? *works : NULL);
    if (rank == 1)
        SAME(in, COUNT, sum_of(i), "reduce in place");
    DSCOMM_CHECK(dscomm_reduce_scatter(world, all, out, COUNT, DSCOMM_INT32,
                                       DSCOMM_MAX, works));
    finish(works ? *works : NULL);
    SAME(out, COUNT, 1000 * (ranks - 1) + rank * COUNT + (int32_t)i,
         "reduce_scatter");
    DSCOMM_CHECK(dscomm_all_reduce(world, out, out, COUNT, DSCOMM_INT32,
                                   DSCOMM_AVG, works));
    finish(works ? *works : NULL);
    SAME(out, COUNT, 1000 * (ranks - 1) + (ranks - 1) * COUNT / 2 + (int32_t)i,
         "all_reduce in place, average");
}

static void move(works_t works)
{
    int32_t *one = place(COUNT, 1000 * rank, 1);
    int32_t *all = place(COUNT * RANKS_MAX, -7, 0);
    const size_t blocks = (size_t)ranks;

    DSCOMM_CHECK(
        dscomm_all_gather(world, one, all, COUNT, DSCOMM_INT32, works));
    finish(works ? *works : NULL);
    SAME(all, COUNT * blocks, (int32_t)(1000 * (i / COUNT) + i % COUNT),
         "all_gather");
    DSCOMM_CHECK(
        dscomm_scatter(world, all, one, COUNT, DSCOMM_INT32, 0, works));
    finish(works ? *works : NULL);
    SAME(one, COUNT, 1000 * rank + (int32_t)i, "scatter");
    DSCOMM_CHECK(dscomm_all_to_all(world, all, place(COUNT * RANKS_MAX, 0, 0),
                                   1, DSCOMM_INT32, works));
    finish(works ? *works : NULL);
    DSCOMM_CHECK(dscomm_broadcast(world, one, COUNT, DSCOMM_INT32, 1, works));
    finish(works ? *works : NULL);
    SAME(one, COUNT, 1000 + (int32_t)i, "broadcast");
}

/* Gaps between the blocks are not changed. */
static void gather_with_gaps(works_t works)
{
    int32_t *all = place(3 * RANKS_MAX, -7, 0), *one = place(2, rank, 10);
    size_t counts[RANKS_MAX], displs[RANKS_MAX];

    for (size_t r = 0; r < (size_t)ranks; r++) {
        counts[r] = 2;
        displs[r] = 3 * r;
    }
    DSCOMM_CHECK(dscomm_all_gather_v(world, one, 2, all, counts, displs,
                                     DSCOMM_INT32, works));
    finish(works ? *works : NULL);
    for (size_t i = 0; i < (size_t)(3 * ranks - 1); i++)
        need(at(all, i) == (i % 3 == 2 ? -7 : (int32_t)(i / 3 + 10 * (i % 3))),
             "all_gather_v");
}

static unsigned copied(unsigned since)
{
    return copies ? *copies - since : 0;
}

/* The beginning of a message that is too long. */
static void truncated(const int32_t *out, int32_t *in)
{
    dscomm_work_t *work;

    if (rank == 0)
        DSCOMM_CHECK(dscomm_send(world, out, COUNT, DSCOMM_INT32, 1, 5));
    if (rank != 1)
        return;
    DSCOMM_CHECK(dscomm_irecv(world, in, 7, DSCOMM_INT32, 0, 5, &work));
    need(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT) == DSCOMM_ERR_TRUNCATED,
         "a message that is too long");
    dscomm_work_free(work);
    need(at(in, 0) == 0 && at(in, 6) == 6 && at(in, 7) == 1000 + 7,
         "its beginning");
}

/* Returns the number of copies that were made for messages. */
static unsigned messages(void)
{
    const int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
    int32_t *out = place(COUNT, 1000 * rank, 1), *in = place(COUNT, -7, 0);
    size_t bytes = 0;
    dscomm_work_t *works[2];
    unsigned before = copied(0), all;

    DSCOMM_CHECK(
        dscomm_irecv(world, in, COUNT, DSCOMM_INT32, prev, 3, &works[0]));
    DSCOMM_CHECK(
        dscomm_isend(world, out, COUNT / 2, DSCOMM_INT32, next, 3, &works[1]));
    finish(works[0]);
    finish(works[1]);
    all = copied(before);
    SAME(in, COUNT, (i < COUNT / 2 ? 1000 * prev + (int32_t)i : -7),
         "a message that is shorter than its buffer");
    if (rank == 0)
        DSCOMM_CHECK(dscomm_send(world, out, 5, DSCOMM_INT32, 1, 4));
    if (rank == 1) {
        DSCOMM_CHECK(
            dscomm_recv(world, in, 9, DSCOMM_INT32, 0, 4, NULL, &bytes));
        need(bytes == 5 * sizeof *in && at(in, 4) == 4, "a blocking message");
    }
    truncated(out, place(COUNT, 1000, 1));
    return all;
}

/* Calls wait for work on the group's stream, and not for work on another
 * stream. */
static void streams(works_t works)
{
    static char stream, other;
    int32_t *in = place(COUNT, 1, 0), *out = place(COUNT, -1, 0);
    int32_t *aside = place(1, 1, 0);

    if (!take) {
        need(dscomm_group_set_stream(world, &stream) == DSCOMM_ERR_UNSUPPORTED,
             "no stream without CUDA");
        return;
    }
    if (!later) /* only the emulated device can delay work */
        return;
    DSCOMM_CHECK(dscomm_group_set_stream(world, &stream));
    later(&stream, (uintptr_t)in, 5, COUNT);
    later(&other, (uintptr_t)aside, 7, 1);
    DSCOMM_CHECK(dscomm_all_reduce(world, in, out, COUNT, DSCOMM_INT32,
                                   DSCOMM_SUM, works));
    finish(works ? *works : NULL);
    SAME(out, COUNT, 5 * ranks, "an all_reduce behind its stream");
    need(at(aside, 0) == 1, "other streams are left alone");
    later(&stream, (uintptr_t)out, -9, COUNT);
    DSCOMM_CHECK(dscomm_broadcast(world, out, COUNT, DSCOMM_INT32, 0, works));
    finish(works ? *works : NULL);
    SAME(out, COUNT, -9, "a broadcast behind its stream");
    DSCOMM_CHECK(dscomm_group_set_stream(world, NULL));
}

#define MANY 48
/* bytes of one buffer; three times the limit of pinned memory */
#define LONG ((size_t)16 << 20)

/* The pinned host memory stays below its limit, and is released; checked if the
 * emulated driver stages messages. */
static void bounded(unsigned staged)
{
    const int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
    static dscomm_work_t *works[MANY];
    char *in;

    if (!staged)
        return;
    in = (char *)place(LONG / sizeof(int32_t), rank, 0);
    for (int i = 0; i < MANY; i++)
        DSCOMM_CHECK(
            dscomm_irecv(world, in, LONG, DSCOMM_INT8, prev, i, &works[i]));
    for (int i = 0; i < MANY; i++)
        DSCOMM_CHECK(dscomm_send(world, in, 1, DSCOMM_INT8, next, i));
    for (int i = 0; i < MANY; i++)
        finish(works[i]);
    need(*pinned_most > 8 * LONG && *pinned_most <= 16 * LONG,
         "as much is pinned as may be");
    need(*pinned <= 8 * (LONG + 4096), "most of it is given back");
}

static void refuse(void)
{
    int32_t *numbers = place(4, 0, 0);
    dscomm_status_t want = take ? DSCOMM_ERR_UNSUPPORTED : DSCOMM_OK;
    dscomm_work_t *work;

    DSCOMM_CHECK(dscomm_coalesce_begin(world));
    need(dscomm_all_reduce(world, numbers, numbers, 4, DSCOMM_INT32, DSCOMM_SUM,
                           NULL) == want,
         "coalesced");
    DSCOMM_CHECK(dscomm_coalesce_end(world, &work));
    finish(work);
}

int main(int argc, char **argv)
{
    const char *when = argc > 1 ? argv[1] : "never";
    dscomm_work_t *work;
    int32_t *in, *out;
    unsigned before, others;

    if (!strcmp(when, "before"))
        load();
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    rank = dscomm_group_rank(world);
    ranks = dscomm_group_size(world);
    if (!strcmp(when, "after"))
        load();
    in = place(COUNT, 0, 1);
    out = place(COUNT, 0, 0);
    before = copied(0);
    DSCOMM_CHECK(dscomm_all_reduce(world, in, out, COUNT, DSCOMM_INT32,
                                   DSCOMM_SUM, NULL));
    before = copied(before);
    reduce(NULL);
    reduce(&work);
    move(NULL);
    move(&work);
    gather_with_gaps(NULL);
    gather_with_gaps(&work);
    others = messages();
    streams(NULL);
    streams(&work);
    bounded(others);
    refuse();
    need(take || !dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD),
         "CUDA is not loaded");
    DSCOMM_CHECK(dscomm_finalize(world));
    printf("content %u\ncopies %u\n", before, others);
    return 0;
}
