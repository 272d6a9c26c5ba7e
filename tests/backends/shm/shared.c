/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the program that is shared in place, and given back. */
#include "tests/backends/shm/fixture.h"

#include <dscomm/backend.h>

#include <sys/mman.h>
#include <sys/wait.h>

#define PAGES 20

static shm_t *a, *b;
static size_t page;

static unsigned char *pages_new(size_t count)
{
    void *memory = mmap(NULL, count * page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        bail("no memory");
    return memory;
}

static void fill(unsigned char *memory, int seed)
{
    for (size_t i = 0; i < PAGES * page; i++)
        memory[i] = (unsigned char)(i * 31 + i / page + (size_t)seed);
}

static bool holds(const unsigned char *memory, int seed)
{
    for (size_t i = 0; i < PAGES * page; i++)
        if (memory[i] != (unsigned char)(i * 31 + i / page + (size_t)seed))
            return false;
    return true;
}

static unsigned char *of_peer(const void *memory, size_t bytes)
{
    return shm_heap_resolve(b, 0, shm_heap_reference(a, memory, bytes), bytes);
}

static void test_shared(void)
{
    unsigned char key[DSCOMM_BACKEND_KEY], *memory = pages_new(PAGES);
    void *registered, *after;
    unsigned char *there;

    fill(memory, 1);
    is_int((long long)shm_heap_reference(a, memory, page), 0,
           "memory of the program is not shared");
    is_int(shm_mem_register(a, memory, PAGES * page, key, &registered),
           DSCOMM_OK, "it can be registered");
    ok(holds(memory, 1), "it has the bytes that it had");
    there = of_peer(memory, PAGES * page);
    ok(there && there != memory && holds(there, 1), "the other rank sees them");
    fill(memory, 2);
    ok(holds(there, 2), "and what is written now");
    fill(there, 3);
    ok(holds(memory, 3), "and the other way round");
    ok(of_peer(memory + 5000, 100) == there + 5000,
       "a part of it has a reference");
    is_int((long long)shm_heap_reference(a, memory + page, PAGES * page), 0,
           "but nothing beyond it");
    shm_mem_deregister(a, registered);
    ok(holds(memory, 3), "deregistered: it keeps its bytes");
    is_int((long long)shm_heap_reference(a, memory, page), 0,
           "and is shared no longer");
    fill(there, 4);
    ok(holds(memory, 3), "not even with who still writes");
    is_int(shm_mem_alloc(a, PAGES * page, &after), DSCOMM_OK,
           "the heap has its place again");
    shm_mem_free(a, after);
    munmap(memory, PAGES * page);
}

/* Registered twice, in parts, in any order. */
static void test_parts(void)
{
    unsigned char key[DSCOMM_BACKEND_KEY], *memory = pages_new(PAGES);
    void *first, *second;

    fill(memory, 5);
    shm_mem_register(a, memory, 2 * page, key, &first);
    shm_mem_register(a, memory + 4 * page, 3 * page, key, &second);
    ok(shm_heap_reference(a, memory, page) &&
           shm_heap_reference(a, memory + 4 * page, 3 * page) &&
           !shm_heap_reference(a, memory + 2 * page, page),
       "two parts are shared, and not what is between them");
    is_int(shm_mem_register(a, memory, PAGES * page, key, &first),
           DSCOMM_ERR_UNSUPPORTED, "what is shared in part is refused");
    shm_mem_register(a, memory + page, page, key, &second);
    shm_mem_deregister(a, memory);
    ok(shm_heap_reference(a, memory, page) != 0,
       "what is registered twice stays shared");
    shm_mem_deregister(a, second);
    ok(!shm_heap_reference(a, memory, page) &&
           shm_heap_reference(a, memory + 4 * page, page),
       "they end one by one");
    shm_shared_free(a);
    ok(holds(memory, 5) && !shm_heap_reference(a, memory + 4 * page, page),
       "or with the group");
    munmap(memory, PAGES * page);
}

static void refused(void *address, size_t bytes, const char *what)
{
    unsigned char key[DSCOMM_BACKEND_KEY];
    void *registered;

    is_int(shm_mem_register(a, address, bytes, key, &registered),
           DSCOMM_ERR_UNSUPPORTED, "refused: %s", what);
}

static void test_refused(void)
{
    unsigned char *memory = pages_new(PAGES);
    char *stack = (char *)(((uintptr_t)&memory) & ~(page - 1));
    int fd = memfd_create("test", MFD_CLOEXEC);
    void *file;

    fill(memory, 6);
    refused(memory + 16, page, "it does not begin with a page");
    refused(memory, page + 16, "it does not end with one");
    refused(stack, page, "a stack");
    if (fd < 0 || ftruncate(fd, (off_t)page))
        bail("no file");
    file = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    refused(file, page, "a file's pages");
    munmap(file, page);
    file = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    refused(file, page, "shared pages");
    munmap(file, page);
    close(fd);
    mprotect(memory + page, page, PROT_READ);
    refused(memory, 3 * page, "a page that cannot be written");
    mprotect(memory + page, page, PROT_READ | PROT_WRITE);
    ok(holds(memory, 6), "memory that was refused is as it was");
    munmap(memory + 2 * page, page);
    refused(memory, 4 * page, "a hole");
    refused(pages_new(2000), 2000 * page, "more than the heap has room for");
    munmap(memory, 2 * page);
}

/* A child has the same pages, and not a copy. */
static void test_fork(void)
{
    unsigned char key[DSCOMM_BACKEND_KEY], *memory = pages_new(PAGES);
    void *registered;
    int status;
    pid_t child;

    fill(memory, 7);
    shm_mem_register(a, memory, PAGES * page, key, &registered);
    child = fork();
    if (child == 0) {
        fill(memory, 8);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        bail("no child");
    ok(holds(memory, 8), "a child writes to the same memory");
    shm_mem_deregister(a, registered);
    munmap(memory, PAGES * page);
}

int main(void)
{
    shm_t *shms[2];

    page = (size_t)sysconf(_SC_PAGESIZE);
    g_setenv("DSCOMM_SHM_HEAP", "4M", TRUE);
    fixture_open(shms, 2);
    a = shms[0];
    b = shms[1];
    test_shared();
    test_parts();
    test_refused();
    test_fork();
    fixture_close(shms, 2);
    return tap_done();
}
