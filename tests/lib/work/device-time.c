/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of a device, with the driver of tests/lib/device/driver.c: each copy
 * takes it a quarter of a millisecond, and an all_reduce on the host's copy of
 * a device's buffer has two. */
#include "config.h"

#include "tests/tap.h"

#include <dlfcn.h>
#include <dscomm/dscomm.h>
#include <dscomm/profiler.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define COUNT 100
#define PAIRS 16 /* of events, for one group */
#define WORKS 16 /* for which a group gets memory at a time */

static dscomm_group_t *world;
static float *buffer; /* of the device */
static int *no_events, *delay, *events; /* the driver's */

static int reports;
static int64_t last_ns;
static dscomm_op_info_t last;
static uint64_t last_token;

static uint64_t on_begin(const dscomm_op_info_t *info, void *arg)
{
    (void)arg;
    return 100 + info->sequence;
}

static void on_device(const dscomm_op_info_t *info, int64_t nanoseconds,
                      uint64_t token, void *arg)
{
    (void)arg;
    reports++;
    last = *info;
    last_ns = nanoseconds;
    last_token = token;
}

static void reduce_on(dscomm_group_t *group)
{
    if (dscomm_all_reduce(group, buffer, buffer, COUNT, DSCOMM_FLOAT32,
                          DSCOMM_SUM, NULL))
        bail("%s", dscomm_last_error());
}

static void reduce(void)
{
    reduce_on(world);
}

static void hooks_on(void)
{
    const dscomm_hooks_t hooks = {
        .size = sizeof hooks, .begin = on_begin, .device = on_device};

    reports = 0;
    is_int(dscomm_hooks_set(&hooks), DSCOMM_OK, "hooks");
}

static void calls(void)
{
    const uint64_t before = dscomm_group_sequence(world);
    float host[COUNT] = {0};
    dscomm_work_t *work;

    hooks_on();
    reduce();
    ok(reports == 1 && last_ns == 500000, "two copies, half a millisecond");
    ok(last.group == world && last.coll == DSCOMM_COLL_ALL_REDUCE &&
           last.bytes == 4 * COUNT && last_token == 101 + before,
       "of this operation");
    dscomm_all_reduce(world, host, host, COUNT, DSCOMM_FLOAT32, DSCOMM_SUM,
                      NULL);
    is_int(reports, 1, "none of the host's buffers");
    dscomm_broadcast(world, buffer, COUNT, DSCOMM_FLOAT32, 0, &work);
    dscomm_work_wait(work, -1);
    dscomm_work_free(work);
    ok(reports == 2 && last.coll == DSCOMM_COLL_BROADCAST, "of a work");
    dscomm_irecv(world, buffer, COUNT, DSCOMM_FLOAT32, 0, 1, &work);
    dscomm_send(world, host, COUNT, DSCOMM_FLOAT32, 0, 1);
    dscomm_work_wait(work, -1);
    dscomm_work_free(work);
    ok(reports == 3 && last.coll == DSCOMM_COLL_RECV && last_ns == 250000,
       "of a receive: one copy");
    dscomm_hooks_set(NULL);
}

/* Nothing waits for events. */
static void late(void)
{
    hooks_on();
    *delay = 2;
    reduce();
    is_int(reports, 0, "an event that is not complete");
    reduce();
    ok(reports == 1 && last_ns == 500000, "is reported by a later operation");
    dscomm_hooks_set(NULL);
    is_int(reports, 1, "or,");
    dscomm_hooks_set(NULL);
    is_int(reports, 2, "the last one, when the hooks are removed");
    *delay = 0;
}

static dscomm_group_t *group_new(void)
{
    dscomm_group_t *group;

    if (dscomm_group_split(world, 0, 0, NULL, &group))
        bail("%s", dscomm_last_error());
    return group;
}

static void bounds(void)
{
    dscomm_group_t *group = group_new();
    const int before = *events;

    hooks_on();
    *delay = 1000000;
    for (int i = 0; i < 2 * PAIRS; i++)
        reduce_on(group);
    ok(!reports && *events == before + 2 * PAIRS, "events are bounded");
    *delay = 0;
    dscomm_hooks_set(NULL);
    dscomm_group_free(group);
    is_int(*events, before, "and destroyed with their group");
}

static void refused(void)
{
    dscomm_group_t *group = group_new();

    *no_events = 1;
    hooks_on();
    is_int(dscomm_all_reduce(group, buffer, buffer, COUNT, DSCOMM_FLOAT32,
                             DSCOMM_SUM, NULL),
           DSCOMM_OK, "a device without events");
    is_int(reports, 0, "has no times");
    *no_events = 0;
    dscomm_hooks_set(NULL);
    dscomm_group_free(group);
}

/* The group gets another stream while a work is pending. */
static void streams(void)
{
    dscomm_group_t *group = group_new();
    float host[COUNT] = {0};
    dscomm_work_t *work;
    char stream;

    hooks_on();
    dscomm_irecv(group, buffer, COUNT, DSCOMM_FLOAT32, 0, 1, &work);
    is_int(dscomm_group_set_stream(group, &stream), DSCOMM_OK, "a new stream");
    dscomm_send(group, host, COUNT, DSCOMM_FLOAT32, 0, 1);
    dscomm_work_wait(work, -1);
    dscomm_work_free(work);
    is_int(reports, 1, "an operation is timed on one stream");
    dscomm_hooks_set(NULL);
    dscomm_group_free(group);
}

static bool no_works; /* there is no memory for works */

__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment,
                                                           size_t size)
{
    static void *(*real)(size_t alignment, size_t size);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "aligned_alloc");
    return no_works ? NULL : real(alignment, size);
}

/* Calls for which there is no work give their times back. */
static void dropped(void)
{
    dscomm_group_t *group = group_new();
    dscomm_work_t *works[WORKS], *work;
    int count = 0, refused = 0;
    float host;

    do {
        if (dscomm_irecv(group, &host, 1, DSCOMM_FLOAT32, 0, 1, &works[count]))
            bail("%s", dscomm_last_error());
        no_works = true;
    } while (++count < WORKS);
    hooks_on();
    for (int i = 0; i < PAIRS; i++)
        refused += dscomm_irecv(group, buffer, COUNT, DSCOMM_FLOAT32, 0, 2,
                                &work) == DSCOMM_ERR_NO_MEMORY;
    no_works = false;
    is_int(refused, PAIRS, "no memory for works");
    reduce_on(group);
    is_int(reports, 1, "and the next operation is timed");
    dscomm_hooks_set(NULL);
    dscomm_group_free(group);
    while (count)
        dscomm_work_free(works[--count]);
}

static void profile(void)
{
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_profile_row_t row = {.size = sizeof row};
    dscomm_profiler_t *profiler;
    dscomm_profile_t *made;

    attr.enabled = 1;
    if (dscomm_profiler_attach(&attr, &profiler))
        bail("%s", dscomm_last_error());
    *delay = 1;
    for (int i = 0; i < 3; i++)
        reduce();
    *delay = 0;
    dscomm_profiler_detach(profiler);
    if (dscomm_profiler_snapshot(profiler, &made))
        bail("%s", dscomm_last_error());
    is_int(dscomm_profile_row(made, DSCOMM_PROFILE_BY_SIZE, 0, &row), DSCOMM_OK,
           "a profile");
    ok(row.count == 3 && row.device_count == 3 && row.device_ns == 1500000,
       "has the device's times");
    dscomm_profile_free(made);
    dscomm_profiler_free(profiler);
}

static void *symbol(void *driver, const char *name)
{
    void *found = dlsym(driver, name);

    if (!found)
        bail("the driver has no %s", name);
    return found;
}

int main(void)
{
    const char *build = getenv("abs_top_builddir");
    int (*alloc)(uint64_t * pointer, size_t size);
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    uint64_t pointer = 0;
    char *path = NULL;
    void *driver;

    if (asprintf(&path, "%s/tests/lib/device/.libs/libcuda.so.1",
                 build ? build : ".") < 0 ||
        access(path, F_OK)) {
        skip("the stand-in for CUDA is no shared library");
        return tap_done();
    }
    driver = dlopen(path, RTLD_NOW);
    if (!driver)
        bail("%s", dlerror());
    free(path);
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
        skip("libc does not find a loaded library by its SONAME");
        return tap_done();
    }
    *(void **)&alloc = symbol(driver, "cuMemAlloc_v2");
    alloc(&pointer, COUNT * sizeof *buffer);
    buffer = (float *)(uintptr_t)pointer;
    no_events = symbol(driver, "fake_cuda_no_events");
    delay = symbol(driver, "fake_cuda_event_delay");
    events = symbol(driver, "fake_cuda_events");
    attr.has_rank = 1;
    attr.world_size = 1;
    if (dscomm_init(&attr, &world))
        bail("%s", dscomm_last_error());
    calls();
    late();
    bounds();
    refused();
    streams();
    dropped();
    profile();
    dscomm_finalize(world);
    is_int(*events, 0, "all events are destroyed");
    return tap_done();
}
