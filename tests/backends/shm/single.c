/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads that are read out of the sender's memory. Both ranks are this
 * process, which may read itself. */
#include "tests/backends/shm/fixture.h"

#include "backends/shm/p2p.h"
#include "lib/base/status.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define BYTES 100000

static shm_t *shms[2];
static char from[BYTES], to[BYTES];

static void group_open(const char *setting)
{
    g_setenv("DSCOMM_SHM_SINGLE_COPY", setting, TRUE);
    fixture_open(shms, 2);
    for (int r = 0; r < 2; r++) {
        for (int peer = 0; peer < 2; peer++)
            shms[r]->peers->pids[peer] = getpid();
        shm_single_publish(shms[r]);
    }
}

static void look(void)
{
    for (int r = 0; r < 2; r++)
        is_int(shm_single_look(shms[r]), DSCOMM_OK, "rank %d looks", r);
}

static void test_read(void)
{
    const uint64_t offset = 77;
    uint64_t reference;

    group_open("yes");
    ok(!shm_single_allowed(shms[0]), "before ranks have looked, none may");
    look();
    ok(shm_single_allowed(shms[0]) && shm_single_allowed(shms[1]),
       "then all may read each other's memory");
    for (int i = 0; i < BYTES; i++)
        from[i] = (char)(i * 3 + 1);
    is_int((long long)shm_reference(shms[0], from, 1000, true), 0,
           "a short payload has no reference");
    reference = shm_reference(shms[0], from, BYTES, true);
    ok(reference != 0, "a long one has");
    is_int(shm_reference_read(shms[1], 0, reference, offset, to, BYTES - offset,
                              false),
           DSCOMM_OK, "it is read");
    ok(!memcmp(to, from + offset, BYTES - offset) && !to[BYTES - offset],
       "as it is");
    ok(shm_reference_held(shms[1], 0), "its owner is there");
    shm_leave(shms[0], SHM_LEFT);
    ok(!shm_reference_held(shms[1], 0), "and then not any more");
    fixture_close(shms, 2);
}

static void test_gone(void)
{
    const size_t bytes = 65536;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t reference;

    group_open("yes");
    look();
    reference = shm_reference(shms[0], memory, bytes, true);
    munmap(memory, bytes);
    ok(!shm_reference_try(shms[1], 0, reference, to, bytes),
       "memory that is gone cannot be read");
    is_int(shm_reference_read(shms[1], 0, reference, 0, to, bytes, false),
           DSCOMM_ERR_IO, "which ends a collective");
    ok(strstr(dscomm_last_error(), "65536 bytes of its memory cannot be read: "
                                   "Bad address") != NULL,
       "the reason: %s", dscomm_last_error());
    ok(shm_is_revoked(shms[0]), "and the group");
    fixture_close(shms, 2);
}

/* Memory that the kernel lets nobody read goes through the ring. */
static void test_unreadable(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 16 * page;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    group_open("yes");
    look();
    mprotect(memory, page, PROT_NONE);
    is_int((long long)shm_reference(shms[0], memory, bytes, false), 0,
           "memory whose first page cannot be read has no reference");
    ok(shm_reference(shms[0], memory + page, bytes - page, false) != 0,
       "but the rest of it has");
    mprotect(memory + bytes - page, page, PROT_NONE);
    is_int((long long)shm_reference(shms[0], memory + 2 * page,
                                    bytes - 2 * page, false),
           0, "nor has memory whose last page cannot be read");
    munmap(memory, bytes);
    fixture_close(shms, 2);
}

/* A rank that gives a call up may use its memory again at once. */
static void test_void(void)
{
    uint64_t reference;

    group_open("yes");
    look();
    reference = shm_reference(shms[0], from, BYTES, true);
    shm_single_void(shms[0]);
    ok(!shm_reference_held(shms[1], 0),
       "what a rank has given up does not count");
    is_int((long long)shm_reference(shms[0], from, BYTES, true), 0,
           "and it gives out nothing more");
    is_int(shm_reference_read(shms[1], 0, reference, 0, to, BYTES, false),
           DSCOMM_ERR_PEER_FAILED, "a collective that needs it ends");
    ok(strstr(dscomm_last_error(), "it has given up the call") != NULL,
       "the reason");
    fixture_close(shms, 2);
}

/* Memory that was freed after its message was announced is asked for. */
static void test_asked_for(void)
{
    const size_t bytes = 400000;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static char received[400000];
    const dscomm_message_t out = {.send = memory, .bytes = bytes, .peer = 1},
                           in = {.recv = received, .bytes = bytes, .peer = 0};
    shm_request_t sent = {0}, got = {0};

    group_open("yes");
    look();
    memset(memory, 9, bytes);
    shm_isend(shms[0], &out, &sent.head);
    mprotect(memory, bytes, PROT_NONE); /* not to be read by others */
    shm_irecv(shms[1], &in, &got.head);
    shm_p2p_progress(shms[1]);
    mprotect(memory, bytes, PROT_READ);
    for (int i = 0; i < 1000 && got.head.status == DSCOMM_IN_PROGRESS; i++) {
        shm_p2p_progress(shms[0]);
        shm_p2p_progress(shms[1]);
    }
    is_int(got.head.status, DSCOMM_OK, "a message that cannot be read arrives");
    ok(received[0] == 9 && received[bytes - 1] == 9, "as it is");
    munmap(memory, bytes);
    fixture_close(shms, 2);
}

static void test_refused(void)
{
    group_open("no");
    look();
    ok(!shm_single_allowed(shms[0]), "with no, none may");
    is_int((long long)shm_reference(shms[0], from, BYTES, false), 0,
           "nothing has a reference");
    fixture_close(shms, 2);
    group_open("yes");
    shms[0]->word++; /* what rank 1 reads is something else */
    look();
    ok(!shm_single_allowed(shms[0]) && !shm_single_allowed(shms[1]),
       "if one may not read another, all use the rings");
    is_int((long long)shm_reference(shms[0], from, BYTES, false), 0,
           "nothing has a reference");
    fixture_close(shms, 2);
    group_open("auto");
    look();
    is_int((long long)shm_reference(shms[0], from, BYTES, false), 0,
           "with auto, nothing before a trial");
    shms[0]->trial.single = 4096;
    ok(shm_reference(shms[0], from, 4096, false) &&
           !shm_reference(shms[0], from, 4096, true),
       "then what is long enough, one way or not");
    fixture_close(shms, 2);
}

/* Returns 0 or an errno: a sandbox may forbid the system call, and an emulator
 * may lack it. */
static int read_self(void)
{
    char byte = 1, copy = 0;
    struct iovec theirs = {&byte, 1}, mine = {&copy, 1};

    return process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0) == 1 ? 0 : errno;
}

int main(void)
{
    const int error = read_self();

    if (error)
        skip_all("no process may read memory of another: %s", strerror(error));
    test_read();
    test_gone();
    test_unreadable();
    test_void();
    test_asked_for();
    test_refused();
    return tap_done();
}
