/* SPDX-License-Identifier: BSD-3-Clause */
/* The flight recorder: writing, reading, and its memory. */
#include "config.h"

#include "lib/recorder/dump.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static dscomm_recorder_slot_t slot;

static dscomm_coll_args_t make(uint64_t sequence, size_t count)
{
    return (dscomm_coll_args_t){.coll = DSCOMM_COLL_REDUCE,
                                .dtype = DSCOMM_INT64,
                                .op = DSCOMM_MAX,
                                .root = 3,
                                .count = count,
                                .element = 8,
                                .sequence = sequence,
                                .fingerprint = 0xfedcba98};
}

static uint64_t call(uint64_t sequence, size_t count, unsigned flags)
{
    const dscomm_coll_args_t args = make(sequence, count);

    return dscomm_priv_recorder_collective(&slot, 7, 5, &args, flags);
}

static void test_collective(void)
{
    const uint64_t serial = call(41, 6, RECORDED_ASYNC);
    dscomm_recorded_t got;

    ok(dscomm_priv_recorder_read(&slot, serial, &got), "a call is read");
    is_int((long)got.sequence, 41, "sequence");
    is_int((long)got.count, 6, "count");
    is_int(got.fingerprint, 0xfedcba98, "fingerprint");
    is_int(got.group, 7, "group");
    is_int(got.peer, 3, "root");
    is_int(got.tag, -1, "no tag");
    is_int(got.coll, DSCOMM_COLL_REDUCE, "collective");
    is_int(got.dtype, DSCOMM_INT64, "dtype");
    is_int(got.op, DSCOMM_MAX, "operator");
    is_int(got.flags, RECORDED_ASYNC, "flags");
    ok(got.called && !got.ended && !got.status, "called, and not ended");
    dscomm_priv_recorder_end(&slot, serial, 48, DSCOMM_OK);
    dscomm_priv_recorder_read(&slot, serial, &got);
    is_int((long)got.ended, RECORDER_ENDED, "ended, but the time is not read");
    ok(!dscomm_priv_recorder_read(&slot, serial + 1, &got), "no later call");
    ok(!dscomm_priv_recorder_read(&slot, 0, &got), "call 0 is none");
}

static void test_end(void)
{
    uint64_t serial = call(42, 512, RECORDED_STARTED);
    dscomm_recorded_t got;

    dscomm_priv_recorder_end(&slot, serial, 4096, DSCOMM_OK);
    dscomm_priv_recorder_read(&slot, serial, &got);
    ok(got.ended >= got.called && !got.status, "a long call has its time");
    serial = call(43, 1, RECORDED_STARTED);
    dscomm_priv_recorder_end(&slot, serial, 8, DSCOMM_ERR_TIMEOUT);
    dscomm_priv_recorder_read(&slot, serial, &got);
    ok(got.ended >= got.called, "and so has a failed one");
    is_int(got.status, DSCOMM_ERR_TIMEOUT, "with its status");
    is_int(got.flags, RECORDED_STARTED, "its flags stay");
}

static void test_message(void)
{
    const dscomm_message_t message = {.bytes = 24, .peer = -1, .tag = 9};
    dscomm_recorded_t got;

    ok(dscomm_priv_recorder_read(
           &slot,
           dscomm_priv_recorder_message(&slot, 8, DSCOMM_COLL_RECV, &message,
                                        DSCOMM_UINT8, 24, 5, 0),
           &got),
       "a message is read");
    is_int(got.coll, DSCOMM_COLL_RECV, "recv");
    is_int(got.peer, -1, "from any source");
    is_int(got.tag, 9, "tag");
    is_int(got.op, -1, "no operator");
    is_int(got.group, 8, "group");
}

/* Calls without operands have a description, too. */
static void test_other(void)
{
    const dscomm_message_t none = {.peer = -1, .tag = -1};
    const struct {
        int coll;
        const char *name, *text;
    } cases[] = {{RECORDED_CUSTOM, "custom", "custom work"},
                 {DSCOMM_COLL_BARRIER, "barrier", "barrier() #0"}};
    dscomm_recorded_t got;
    char text[80];

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        dscomm_priv_recorder_read(
            &slot,
            dscomm_priv_recorder_message(&slot, 8, cases[i].coll, &none,
                                         DSCOMM_UINT8, 0, 0, RECORDED_INTERNAL),
            &got);
        is_str(dscomm_priv_recorder_operation(got.coll), cases[i].name, "name");
        is_str(dscomm_priv_recorder_describe(&slot, &got, text, sizeof text),
               cases[i].text, "description");
    }
}

/* The last RECORDER_CALLS are kept, and the end of an older one changes
 * none. */
static void test_wrap(void)
{
    const uint64_t first = call(1, 1, 0);
    dscomm_recorded_t got;
    uint64_t last = 0;

    for (int i = 0; i < RECORDER_CALLS; i++)
        last = call(2 + (uint64_t)i, 1, 0);
    ok(!dscomm_priv_recorder_read(&slot, first, &got), "an old call is gone");
    ok(dscomm_priv_recorder_read(&slot, first + 1, &got) && got.sequence == 2,
       "the oldest");
    is_int((long)(last - first), RECORDER_CALLS, "serials have no gap");
    dscomm_priv_recorder_end(&slot, first, 8, DSCOMM_OK);
    dscomm_priv_recorder_end(&slot, first, 4096, DSCOMM_ERR_IO);
    dscomm_priv_recorder_read(&slot, last, &got);
    ok(!got.ended && !got.status, "a late end changes no other call");
}

static void test_detail(void)
{
    const size_t counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    dscomm_coll_args_t args = make(3, 4);
    dscomm_recorder_detail_t detail;
    dscomm_recorded_t got;
    uint64_t serial;

    args.coll = DSCOMM_COLL_REDUCE_SCATTER_V;
    args.recv_counts = counts;
    serial = dscomm_priv_recorder_collective(&slot, 7, 9, &args, 0);
    dscomm_priv_recorder_read(&slot, serial, &got);
    ok(dscomm_priv_recorder_read_detail(&slot, &got, &detail), "a detail");
    ok(detail.ncounts == 9 && detail.sum == 45 && detail.counts[7] == 8,
       "has the counts");
    for (int i = 0; i < 3 * RECORDER_DETAILS; i++)
        dscomm_priv_recorder_collective(&slot, 7, 9, &args, 0);
    ok(!dscomm_priv_recorder_read_detail(&slot, &got, &detail),
       "an old one is gone");
}

static void test_groups(void)
{
    dscomm_recorder_group_t got;
    const uint32_t first =
        dscomm_priv_recorder_group(&slot, "world", "w", 1, 4, "shm");
    uint32_t last = 0;

    ok(dscomm_priv_recorder_read_group(&slot, first, &got), "a group");
    is_str(got.name, "world", "name");
    is_str(got.id, "w", "id");
    is_str(got.backend, "shm", "backend");
    ok(got.rank == 1 && got.size == 4, "rank and size");
    for (int i = 0; i < RECORDER_GROUPS; i++)
        last = dscomm_priv_recorder_group(&slot, "g", "w.1", 0, 2, "shm");
    ok(!dscomm_priv_recorder_read_group(&slot, first, &got), "an old one");
    ok(dscomm_priv_recorder_read_group(&slot, last, &got), "the last one");
    ok(!dscomm_priv_recorder_read_group(&slot, 0, &got), "group 0 is none");
}

#define THREADS 4
#define THREAD_CALLS 20000

static atomic_int ready, done;

/* Each call's numbers are all equal. */
static void *write_calls(void *arg)
{
    dscomm_coll_args_t args = {.root = 0};

    atomic_fetch_add(&ready, 1);
    while (atomic_load(&ready) <= THREADS)
        ;
    for (int i = 1; i <= THREAD_CALLS; i++) {
        args.sequence = args.count = (size_t)i;
        args.fingerprint = (uint32_t)i;
        args.root = i;
        dscomm_priv_recorder_end(
            &slot,
            dscomm_priv_recorder_collective(&slot, (uint32_t)i, 1, &args, 0), 8,
            DSCOMM_OK);
    }
    atomic_fetch_add(&done, 1);
    return arg;
}

static void test_threads(void)
{
    const uint64_t before = atomic_load(&slot.calls);
    pthread_t threads[THREADS];
    long read = 0, torn = 0;
    dscomm_recorded_t got;
    uint64_t last;

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, write_calls, NULL);
    while (atomic_load(&ready) < THREADS)
        ;
    atomic_fetch_add(&ready, 1);
    do {
        last = atomic_load(&slot.calls);
        for (uint64_t s = last > RECORDER_CALLS ? last - RECORDER_CALLS : 0;
             s <= last; s++) {
            if (s <= before || !dscomm_priv_recorder_read(&slot, s, &got))
                continue;
            read++;
            torn += got.count != got.sequence || got.group != got.sequence ||
                    got.fingerprint != got.sequence ||
                    (uint64_t)got.peer != got.sequence;
        }
    } while (atomic_load(&done) < THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ok(!torn, "%ld of %ld calls read were of two threads", torn, read);
    is_int((long)(atomic_load(&slot.calls) - before), THREADS * THREAD_CALLS,
           "each call has its serial");
}

/* The child takes a slot, makes one call, and is killed. */
static void child_run(int64_t parent)
{
    const dscomm_coll_args_t args = make(77, 1);
    dscomm_recorder_t recorder = DSCOMM_RECORDER_INIT;

    if (dscomm_priv_recorder_find(parent, RECORDER_WRITE, &recorder) ||
        dscomm_priv_recorder_claim(&recorder, 1, "w", 6, 8))
        _exit(1);
    dscomm_priv_recorder_collective(recorder.slot, 1, 8, &args, 0);
    raise(SIGKILL);
}

/* Whether the kernel may write at pointer. */
static bool is_writable(void *pointer)
{
    char byte = 0;
    bool writable;
    int pipes[2];

    if (pipe(pipes) || write(pipes[1], &byte, 1) != 1)
        bail("no pipe");
    writable = read(pipes[0], pointer, 1) == 1;
    close(pipes[0]);
    close(pipes[1]);
    return writable;
}

static void test_access(void)
{
    dscomm_recorder_t owner, found, view;

    ok(!dscomm_priv_recorder_create("job", &owner) &&
           !dscomm_priv_recorder_claim(&owner, 0, "w", 0, 1) &&
           !dscomm_priv_recorder_find(getpid(), RECORDER_READ, &found) &&
           !dscomm_priv_recorder_view(&found, RECORDER_READ, &view),
       "memory is opened for reading");
    ok(is_writable(&owner.memory->dumps), "its owner may write");
    ok(!is_writable(&found.memory->dumps), "a reader may not");
    ok(!is_writable(&view.memory->slot[0].rank), "nor in slots");
    is_str(view.memory->slot[0].world, "w", "which are seen");
    dscomm_priv_recorder_close(&view);
    ok(dscomm_priv_recorder_view(&found, RECORDER_WRITE, &view) != NULL,
       "a reader gets no writable view");
    dscomm_priv_recorder_close(&found);
    dscomm_priv_recorder_close(&owner);
}

static void test_memory(void)
{
    dscomm_recorder_t recorder = DSCOMM_RECORDER_INIT, view;
    const int64_t parent = getpid();
    const dscomm_recorder_slot_t *left;
    dscomm_recorder_t again, more;
    dscomm_recorded_t got;
    int status;
    pid_t pid;

    ok(!dscomm_priv_recorder_create("job", &recorder), "memory is made");
    is_str(recorder.memory->job, "job", "for a job");
    pid = fork();
    if (pid == 0)
        child_run(parent);
    waitpid(pid, &status, 0);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
       "another process has used it, and was killed");
    ok(!dscomm_priv_recorder_view(&recorder, RECORDER_READ, &view),
       "all slots are seen");
    is_int(view.slots, 2, "as many as were taken or come before");
    left = &view.memory->slot[1];
    is_int(atomic_load(&left->pid), pid, "its record is there");
    is_int(left->rank, 6, "rank");
    is_int(left->size, 8, "of the world");
    is_str(left->world, "w", "its identity");
    ok(dscomm_priv_recorder_read(left, 1, &got) && got.sequence == 77 &&
           !got.ended,
       "the call in which it was");
    ok(!dscomm_priv_recorder_claim(&recorder, 1, "w", 0, 2) &&
           recorder.number == 1,
       "a dead process's slot may be taken");
    ok(!dscomm_priv_recorder_read(left, 1, &got), "and is empty then");
    dscomm_priv_recorder_find(parent, RECORDER_WRITE, &again);
    ok(!dscomm_priv_recorder_claim(&again, 1, "x", 0, 2) && again.number == 0,
       "the next free one");
    dscomm_priv_recorder_find(parent, RECORDER_WRITE, &more);
    ok(!dscomm_priv_recorder_claim(&more, 1, "y", 0, 2) && more.number == 2,
       "one more if there is none");
    dscomm_priv_recorder_close(&view);
    dscomm_priv_recorder_close(&again);
    dscomm_priv_recorder_close(&more);
    dscomm_priv_recorder_close(&recorder);
    ok(!recorder.memory && !recorder.slot && recorder.fd == -1, "closed");
    ok(dscomm_priv_recorder_find(parent, RECORDER_WRITE, &recorder) != NULL,
       "and gone");
}

/* Printing reads nothing beyond the memory, whatever a rank has written. */
static void test_print(const dscomm_recorder_t *recorder)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    dscomm_priv_recorder_print(recorder, NULL, file);
    fclose(file);
    ok(strstr(text, "jjjj\", \"host\"") && strstr(text, "\"rank\": 2"),
       "and the end of its name");
    free(text);
}

/* Files that are no memory of a recorder are refused. */
static void test_foreign(void)
{
    dscomm_recorder_t recorder = DSCOMM_RECORDER_INIT, other;
    const int fd = memfd_create("dscomm-recorder", MFD_CLOEXEC);

    ok(dscomm_priv_recorder_find(getpid(), RECORDER_WRITE, &recorder) != NULL,
       "an empty file");
    close(fd);
    ok(dscomm_priv_recorder_open(getpid(), fd, RECORDER_WRITE, &recorder) !=
           NULL,
       "a closed one");
    ok(!recorder.memory, "nothing is opened");
    ok(!dscomm_priv_recorder_create("", &other), "memory");
    other.memory->version++;
    ok(dscomm_priv_recorder_find(getpid(), RECORDER_WRITE, &recorder) != NULL,
       "another version");
    other.memory->version--;
    other.memory->slot_bytes++;
    ok(dscomm_priv_recorder_find(getpid(), RECORDER_WRITE, &recorder) != NULL,
       "slots of another size");
    other.memory->slot_bytes--;
    ok(!dscomm_priv_recorder_find(getpid(), RECORDER_WRITE, &recorder),
       "all is right");
    memset(other.memory->job, 'j', sizeof other.memory->job);
    ok(!dscomm_priv_recorder_claim(&recorder, 0, "w", 2, 4), "a slot");
    dscomm_priv_recorder_close(&recorder);
    test_print(&other);
    dscomm_priv_recorder_close(&other);
}

/* The kernel would end a process that exceeds the limit. */
static void test_limit(void)
{
    const rlim_t slots[] = {0, sizeof(dscomm_recorder_slot_t)};
    dscomm_recorder_t recorder = DSCOMM_RECORDER_INIT;
    struct rlimit before, some;

    getrlimit(RLIMIT_FSIZE, &before);
    some = before;
    for (int i = 0; i < 2; i++) {
        some.rlim_cur = sizeof *recorder.memory + slots[i];
        setrlimit(RLIMIT_FSIZE, &some);
        ok(!dscomm_priv_recorder_create("", &recorder), "memory");
        ok((dscomm_priv_recorder_claim(&recorder, 0, "w", 0, 2) == NULL) ==
               (i > 0),
           "room for %d slots", i);
        ok(dscomm_priv_recorder_claim(&recorder, 1, "w", 0, 2) != NULL,
           "and for no more");
        dscomm_priv_recorder_close(&recorder);
    }
    some.rlim_cur = 100;
    setrlimit(RLIMIT_FSIZE, &some);
    ok(dscomm_priv_recorder_create("", &recorder) != NULL, "none at all");
    setrlimit(RLIMIT_FSIZE, &before);
}

/* The bytes of address space of this process. */
static long mapped(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long pages = 0;

    if (!file || fscanf(file, "%ld", &pages) != 1)
        bail("/proc/self/statm cannot be read");
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* A rank maps its own slot, whatever its number is. */
static void test_mapping(void)
{
    dscomm_recorder_t recorder = DSCOMM_RECORDER_INIT;
    const long before = mapped();
    long more;

    dscomm_priv_recorder_create("", &recorder);
    dscomm_priv_recorder_claim(&recorder, 1000, "w", 1000, 2000);
    more = mapped() - before;
    ok(more > 64 << 10 && more < 512 << 10, "a rank maps %ld bytes", more);
    dscomm_priv_recorder_close(&recorder);
}

static int files_count(const char *folder)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    int count = 0;

    while (dir && g_dir_read_name(dir))
        count++;
    if (dir)
        g_dir_close(dir);
    return count;
}

/* Returns the only file of folder, with its path; g_free(). */
static char *only_file(const char *folder)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    const char *name = dir ? g_dir_read_name(dir) : NULL;
    char *path = name ? g_build_filename(folder, name, NULL) : NULL;

    if (dir && name && g_dir_read_name(dir))
        g_clear_pointer(&path, g_free);
    if (dir)
        g_dir_close(dir);
    return path;
}

/* A failure has one file; a file that a dead process has begun does
 * not hide it, and one that a living process writes is left to it. */
static void test_dump(void)
{
    dscomm_recorder_t recorder = DSCOMM_RECORDER_INIT;
    char folder[] = "/tmp/dscomm-dump-XXXXXX";
    struct rlimit before, some;
    const char *problem;
    char *path, *part, *text;
    int fd;

    if (!mkdtemp(folder))
        bail("no folder can be made");
    dscomm_priv_recorder_create("a job/7", &recorder);
    dscomm_priv_recorder_claim(&recorder, 0, "w", 0, 1);
    for (int i = 0; i < 2; i++)
        ok(!dscomm_priv_recorder_dump(folder, "w", "w.1", &recorder, NULL),
           "a dump");
    path = only_file(folder);
    ok(path && strstr(path, "/dscomm-a_job_7-"), "%s", path ? path : "none");
    if (!path)
        bail("not one file");
    unlink(path);
    part = g_strconcat(path, NULL);
    strcpy(strrchr(part, '.'), ".part");
    g_file_set_contents(part, "{\"half", -1, NULL);
    fd = open(part, O_WRONLY | O_CLOEXEC);
    flock(fd, LOCK_EX);
    problem = dscomm_priv_recorder_dump(folder, "w", "w.1", &recorder, NULL);
    ok(problem && strstr(problem, "another process") && access(path, F_OK),
       "another process is writing it, and does not end");
    close(fd);
    ok(!dscomm_priv_recorder_dump(folder, "w", "w.1", &recorder, NULL) &&
           access(part, F_OK),
       "a dead one has left the file");
    ok(g_file_get_contents(path, &text, NULL, NULL) &&
           g_str_has_prefix(text, "{\"dscomm_dump\"") &&
           g_str_has_suffix(text, "}]}\n"),
       "it is whole");
    unlink(path);
    mkfifo(part, 0600);
    ok(dscomm_priv_recorder_dump(folder, "w", "w.1", &recorder, NULL) != NULL,
       "no file can be written");
    unlink(part);
    for (int i = 0; i < 4; i++)
        dscomm_priv_recorder_dump(folder, i & 1 ? "w" : "v",
                                  i & 2 ? "w.1" : "w.2", &recorder, NULL);
    is_int(files_count(folder), 4, "each failure has its own");
    getrlimit(RLIMIT_FSIZE, &before);
    some = before;
    some.rlim_cur = 100;
    setrlimit(RLIMIT_FSIZE, &some);
    problem = dscomm_priv_recorder_dump(folder, "w", "w.3", &recorder, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    ok(problem != NULL, "a file would be too long");
    g_free(text);
    g_free(part);
    g_free(path);
    path = g_strdup_printf("rm -r %s", folder);
    if (system(path))
        printf("# %s is left\n", folder);
    g_free(path);
    dscomm_priv_recorder_close(&recorder);
}

/* 3 ticks a ns. */
static void test_ticks(void)
{
    const dscomm_moment_t from = {.ticks = 300, .monotonic_ns = 1000};
    const dscomm_moment_t to = {.ticks = 3300, .monotonic_ns = 2000};

    is_int(dscomm_priv_ticks_to_ns(300, &from, &to), 1000, "the first moment");
    is_int(dscomm_priv_ticks_to_ns(3300, &from, &to), 2000, "the second");
    is_int(dscomm_priv_ticks_to_ns(1800, &from, &to), 1500, "between");
    is_int(dscomm_priv_ticks_to_ns(3600, &from, &to), 2100, "after");
    is_int(dscomm_priv_ticks_to_ns(3600, &from, &from), 1000, "no time passed");
}

/* The child takes a slot with ticks of the other clock, and makes a call. */
static void counting_child_run(int64_t parent)
{
    const dscomm_coll_args_t args = make(1, 1);
    dscomm_recorder_t recorder = DSCOMM_RECORDER_INIT;

    dscomm_priv_ticks_counted = !dscomm_priv_ticks_counted;
    if (dscomm_priv_recorder_find(parent, RECORDER_WRITE, &recorder) ||
        dscomm_priv_recorder_claim(&recorder, 0, "w", 0, 1))
        _exit(1);
    g_usleep(50000);
    dscomm_priv_recorder_collective(recorder.slot, 1, 1, &args, 0);
    _exit(0);
}

/* Times are right whichever clock their process has chosen. */
static void test_clock(bool counted)
{
    dscomm_recorder_t recorder = DSCOMM_RECORDER_INIT;
    const int64_t parent = getpid(), before = g_get_real_time();
    const char *called;
    char *text = NULL;
    size_t size = 0;
    int64_t us = 0;
    FILE *file;
    pid_t pid;

    dscomm_priv_ticks_counted = counted;
    dscomm_priv_recorder_create("job", &recorder);
    pid = fork();
    if (pid == 0)
        counting_child_run(parent);
    waitpid(pid, NULL, 0);
    g_usleep(50000);
    file = open_memstream(&text, &size);
    dscomm_priv_recorder_print(&recorder, NULL, file);
    fclose(file);
    called = strstr(text, "\"called_ns\": ");
    if (called)
        us = g_ascii_strtoll(called + 13, NULL, 10) / 1000;
    ok(us >= before + 49000 && us <= g_get_real_time() - 49000,
       "a call of a process with another clock: %lld us after the start",
       (long long)(us - before));
    free(text);
    dscomm_priv_recorder_close(&recorder);
}

int main(void)
{
    test_clock(false);
    test_clock(true);
    dscomm_priv_ticks_counted = false;
    dscomm_priv_ticks_choose();
    test_ticks();
    test_collective();
    test_end();
    test_message();
    test_other();
    test_wrap();
    test_detail();
    test_groups();
    test_threads();
    test_memory();
    test_access();
    test_foreign();
    test_limit();
    test_mapping();
    test_dump();
    return tap_done();
}
