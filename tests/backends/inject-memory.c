/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes memory allocation fail: the functions here replace libc's, also for the
 * libraries, and fail when the test says so. */
#define _GNU_SOURCE
#include "config.h"

#include "tests/backends/inject-memory.h"
#include "tests/backends/inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define VISIBLE __attribute__((visibility("default"))) INJECT_UNWATCHED

static void *(*real_malloc)(size_t size);
static void *(*real_calloc)(size_t count, size_t size);
static void *(*real_realloc)(void *old, size_t size);
static void *(*real_aligned)(size_t alignment, size_t size);
static int (*real_memalign)(void **ret, size_t alignment, size_t size);

/* Not 0 in a function that AddressSanitizer calls in each new thread: a failure
 * there would end the process. */
static _Thread_local int exempt;

INJECT_UNWATCHED static int fails(void)
{
    if (exempt || !inject_memory_fails())
        return 0;
    errno = ENOMEM;
    return 1;
}

/* Finds a function of libc. The dynamic loader may allocate memory before its
 * own function is found. */
static void *look_up(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (!found)
        abort();
    return found;
}

VISIBLE int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
    static int (*real)(pthread_t thread, pthread_attr_t * attr);
    int status;

    if (!real)
        *(void **)&real = look_up("pthread_getattr_np");
    exempt = 1;
    status = real(thread, attr);
    exempt = 0;
    return status;
}

VISIBLE void *malloc(size_t size)
{
    if (!real_malloc)
        *(void **)&real_malloc = look_up("malloc");
    return fails() ? NULL : real_malloc(size);
}

VISIBLE void *calloc(size_t count, size_t size)
{
    static char early[4096];
    static size_t taken;
    static int looking;

    if (!real_calloc && looking) {
        void *memory = early + taken;

        taken += (count * size + 15) & ~(size_t)15;
        return taken <= sizeof early ? memory : NULL;
    }
    if (!real_calloc) {
        looking = 1;
        *(void **)&real_calloc = look_up("calloc");
    }
    return fails() ? NULL : real_calloc(count, size);
}

VISIBLE void *realloc(void *old, size_t size)
{
    if (!real_realloc)
        *(void **)&real_realloc = look_up("realloc");
    return fails() ? NULL : real_realloc(old, size);
}

VISIBLE void *aligned_alloc(size_t alignment, size_t size)
{
    if (!real_aligned)
        *(void **)&real_aligned = look_up("aligned_alloc");
    return fails() ? NULL : real_aligned(alignment, size);
}

VISIBLE int posix_memalign(void **ret, size_t alignment, size_t size)
{
    if (!real_memalign)
        *(void **)&real_memalign = look_up("posix_memalign");
    return fails() ? ENOMEM : real_memalign(ret, alignment, size);
}

/* A program that also has inject.c takes that one. */
VISIBLE __attribute__((weak)) void *mmap(void *at, size_t size, int access,
                                         int flags, int fd, off_t offset)
{
    return fails() ? MAP_FAILED
                   : inject_map(at, size, access, flags, fd, offset);
}

void inject_memory_prepare(void)
{
    free(malloc(1));
    free(calloc(1, 1));
    free(realloc(NULL, 1));
    *(void **)&real_aligned = look_up("aligned_alloc");
    *(void **)&real_memalign = look_up("posix_memalign");
}
