/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the program that is shared in place, and given back. */
#include "tests/backends/shm/fixture.h"

#include "backends/shm/request.h"
#include "lib/base/status.h"

#include <dscomm/backend.h>

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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
    return shm_heap_resolve(b, 0, shm_own_reference(a, memory, bytes), bytes);
}

static void test_shared(void)
{
    unsigned char key[DSCOMM_BACKEND_KEY], *memory = pages_new(PAGES);
    void *registered, *after;
    unsigned char *there;

    fill(memory, 1);
    is_int((long long)shm_own_reference(a, memory, page), 0,
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
    is_int((long long)shm_own_reference(a, memory + page, PAGES * page), 0,
           "but nothing beyond it");
    shm_mem_deregister(a, registered);
    ok(holds(memory, 3), "deregistered: it keeps its bytes");
    is_int((long long)shm_own_reference(a, memory, page), 0,
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
    void *first, *again, *second, *other = NULL;

    fill(memory, 5);
    shm_mem_register(a, memory + 4 * page, 3 * page, key, &second);
    shm_mem_register(a, memory, 2 * page, key, &first);
    ok(shm_own_reference(a, memory, page) &&
           shm_own_reference(a, memory + 4 * page, 3 * page) &&
           !shm_own_reference(a, memory + 2 * page, page),
       "two parts are shared, and not what is between them");
    is_int(shm_mem_register(a, memory, PAGES * page, key, &other),
           DSCOMM_ERR_UNSUPPORTED, "what is shared in part is refused");
    is_int(shm_mem_register(a, memory, page, key, &other),
           DSCOMM_ERR_UNSUPPORTED, "and a part of what is shared");
    ok(!other, "and nothing remains of them");
    shm_mem_register(a, memory, 2 * page, key, &again);
    shm_mem_deregister(a, first);
    ok(shm_own_reference(a, memory, page) != 0,
       "what is registered twice stays shared");
    shm_mem_deregister(a, again);
    ok(!shm_own_reference(a, memory, page) &&
           shm_own_reference(a, memory + 4 * page, page),
       "they end one by one");
    shm_pages_free(a);
    ok(holds(memory, 5) && !shm_own_reference(a, memory + 4 * page, page),
       "or with the group");
    munmap(memory, PAGES * page);
}

/* Neither pages nor edges of an array are seen in memory that is allocated
 * later. */
static void test_zeroed(void)
{
    const size_t bytes = PAGES * page;
    unsigned char key[DSCOMM_BACKEND_KEY], *memory = pages_new(PAGES);
    unsigned char *after;
    void *registered;
    size_t wrong = 0;

    memset(memory, 0xee, bytes);
    shm_mem_register(a, memory + 9, bytes - 18, key, &registered);
    shm_own_reference(a, memory + 9, bytes - 18);
    shm_mem_deregister(a, registered);
    if (shm_mem_alloc(a, bytes, (void **)&after))
        bail("%s", dscomm_last_error());
    for (size_t i = 0; i < bytes; i++)
        wrong += after[i] != 0;
    is_int((long long)wrong, 0, "memory that is allocated later is zeroed");
    shm_mem_free(a, after);
    munmap(memory, bytes);
}

/* mmap() and mremap() fail from a call on; the linker replaces them, for GLib,
 * too, if symbols of libc have no versions. */
static int calls_left = -1;
void *__real_mmap(void *address, size_t bytes, int access, int how, int fd,
                  off_t offset);
__attribute__((visibility("default"))) void *__wrap_mmap(void *address,
                                                         size_t bytes,
                                                         int access, int how,
                                                         int fd, off_t offset);

void *__wrap_mmap(void *address, size_t bytes, int access, int how, int fd,
                  off_t offset)
{
    if (calls_left == 0) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    calls_left -= calls_left > 0;
    return __real_mmap(address, bytes, access, how, fd, offset);
}

/* There is no memory for mappings at some point of a registration, or when it
 * ends: the program's data stay, and the heap does not give the pages out. */
static void test_no_memory(void)
{
    const size_t bytes = (size_t)3 << 20; /* less than a slice */
    unsigned char key[DSCOMM_BACKEND_KEY], *memory = pages_new(bytes / page);
    void *registered = NULL, *after;

    fill(memory, 11);
    calls_left = 0;
    is_int(shm_mem_register(a, memory, bytes, key, &registered),
           DSCOMM_ERR_UNSUPPORTED, "no mapping of the heap: not shared");
    calls_left = -1;
    ok(holds(memory, 11), "the data are as they were");
    is_int(shm_mem_register(a, memory, bytes, key, &registered), DSCOMM_OK,
           "shared at the next attempt");
    calls_left = 0;
    is_int(shm_mem_deregister(a, registered), DSCOMM_ERR_NO_MEMORY,
           "no private pages: it stays registered");
    calls_left = -1;
    ok(strstr(dscomm_last_error(), "no memory for private pages") != NULL,
       "the reason: %s", dscomm_last_error());
    ok(!shm_own_reference(a, memory, page), "nobody reads it in place");
    is_int(shm_mem_alloc(a, bytes, &after), DSCOMM_ERR_NO_MEMORY,
           "the heap does not give its pages out");
    is_int(shm_mem_deregister(a, registered), DSCOMM_OK, "at the next attempt");
    ok(holds(memory, 11), "the data are as they were");
    munmap(memory, bytes);
}

/* Memory that begins and ends within a page: the bytes beside it, and its own
 * in the same pages, stay private. */
static void test_edges(void)
{
    const size_t skip = 100, bytes = 3 * page + 50;
    unsigned char key[DSCOMM_BACKEND_KEY], *memory = pages_new(PAGES);
    unsigned char *there;
    void *registered = NULL;

    fill(memory, 9);
    is_int(shm_mem_register(a, memory + skip, bytes, key, &registered),
           DSCOMM_ERR_UNSUPPORTED, "puts and gets are left to messages");
    ok(registered && holds(memory, 9), "but it is registered");
    there = of_peer(memory + skip, bytes);
    ok(there && !memcmp(there, memory + skip, bytes),
       "the other rank sees all of its bytes");
    ok(!shm_own_reference(a, memory + skip - 1, 2) &&
           !shm_own_reference(a, memory + skip, bytes + 1),
       "and none beside them");
    memory[skip] = 201;
    memory[skip + bytes - 1] = 202;
    memory[page] = 203;
    ok(there[page - skip] == 203 && there[0] != 201,
       "what is written to whole pages is there");
    there = of_peer(memory + skip, bytes);
    ok(there[0] == 201 && there[bytes - 1] == 202,
       "what is written to edges is there with the next reference");
    memset(there, 77, bytes);
    shm_own_written(a, memory + skip, bytes - 1);
    ok(memory[skip - 1] == (unsigned char)((skip - 1) * 31 + 9) &&
           memory[skip] == 77 && memory[page] == 77 &&
           memory[skip + bytes - 2] == 77,
       "what the other rank writes is here");
    is_int(memory[skip + bytes - 1], 202, "but for bytes that were not asked");
    is_int(shm_mem_deregister(a, registered), DSCOMM_OK, "deregistered");
    ok(memory[page] == 77 && memory[skip] == 77, "it keeps its bytes");
    munmap(memory, PAGES * page);
}

/* A send that the other rank has not read yet. */
static void test_used(void)
{
    static unsigned char got[PAGES << 16];
    const size_t bytes = PAGES * page;
    unsigned char key[DSCOMM_BACKEND_KEY], *memory = pages_new(PAGES);
    dscomm_message_t message = {.send = memory, .bytes = bytes, .peer = 1};
    shm_request_t send = {0}, receive = {0};
    void *registered;

    fill(memory, 10);
    shm_mem_register(a, memory, bytes, key, &registered);
    shm_isend(a, &message, &send.head);
    is_int(shm_mem_deregister(a, registered), DSCOMM_ERR_STATE,
           "memory of a send under way stays registered");
    ok(g_str_has_prefix(dscomm_last_error(),
                        "group 'test': an operation that was begun uses the "
                        "memory at "),
       "the reason: %s", dscomm_last_error());
    message = (dscomm_message_t){.recv = got, .bytes = bytes, .peer = 0};
    shm_irecv(b, &message, &receive.head);
    is_int(fixture_message((shm_t *[]){a, b}, &receive.head), DSCOMM_OK,
           "the message comes");
    is_int(fixture_message((shm_t *[]){a, b}, &send.head), DSCOMM_OK,
           "the send ends");
    ok(holds(got, 10), "with what was sent");
    is_int(shm_mem_deregister(a, registered), DSCOMM_OK,
           "then it is deregistered");
    ok(holds(memory, 10), "and as it was");
    munmap(memory, bytes);
}

static void refused(void *address, size_t bytes, const char *what)
{
    unsigned char key[DSCOMM_BACKEND_KEY];
    void *registered = NULL;

    ok(shm_mem_register(a, address, bytes, key, &registered) ==
               DSCOMM_ERR_UNSUPPORTED &&
           !registered,
       "refused: %s", what);
}

/* malloc() may map memory into the hole meanwhile, at its end. */
static void test_hole(void)
{
    const size_t hole = 1000;
    unsigned char *memory = pages_new(hole + 2);

    munmap(memory + page, hole * page);
    refused(memory, 4 * page, "a hole");
    munmap(memory, page);
    munmap(memory + (hole + 1) * page, page);
}

static void test_refused(void)
{
    unsigned char *memory = pages_new(PAGES);
    char *stack = (char *)(((uintptr_t)&memory) & ~(page - 1));
    int fd = memfd_create("test", MFD_CLOEXEC);
    void *file;

    fill(memory, 6);
    refused(memory + 16, page, "no whole page");
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
    /* by number, as sanitizers have functions of these names */
    if (!syscall(SYS_mlock, memory, page)) {
        refused(memory, 2 * page, "a page that is locked");
        syscall(SYS_munlock, memory, page);
    }
    ok(holds(memory, 6), "memory that was refused is as it was");
    munmap(memory, PAGES * page);
    test_hole();
    refused(pages_new(2000), 2000 * page, "more than the heap has room for");
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
    test_zeroed();
    test_no_memory();
    test_edges();
    test_used();
    test_refused();
    test_fork();
    fixture_close(shms, 2);
    return tap_done();
}
