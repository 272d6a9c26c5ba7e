/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts, gets and signals. */
#include "config.h"

#include "tests/backends/conform.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* True if this backend serves no accesses, which it says; the test is skipped.
 */
static int is_refused(void)
{
    dscomm_mem_t *mem;
    char byte;

    if (!(dscomm_group_capabilities(my.group) & DSCOMM_CAP_SEPARATE_MATCHING))
        return 0;
    CHECK_FAILS(dscomm_mem_register(my.group, &byte, 1, &mem),
                DSCOMM_ERR_UNSUPPORTED);
    check_sentence("DSCOMM_MPI_BLOCKING=no", "MPI's blocking collectives");
    conform_skip("MPI's blocking collectives serve no accesses");
    return 1;
}

/* Registered memory of each rank, and all keys. */
typedef struct {
    unsigned char *bytes;
    size_t size;
    dscomm_mem_t *mem;
    unsigned char *keys;
} shared_t;

static const void *key_of(const shared_t *shared, int rank)
{
    return shared->keys + (size_t)rank * DSCOMM_MEM_KEY_BYTES;
}

/* Owners of memory. */
enum { OF_PROCESS, OF_GROUP, PAGES_OF_PROCESS };

static size_t whole_pages(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (size + page - 1) / page * page;
}

static void *pages_new(size_t size)
{
    return aligned_alloc((size_t)sysconf(_SC_PAGESIZE), whole_pages(size));
}

/* Registered by all ranks. */
static void shared_make(shared_t *shared, size_t size, int whose)
{
    unsigned char key[DSCOMM_MEM_KEY_BYTES] = {0};

    memset(shared, 0, sizeof *shared);
    shared->size = size;
    shared->keys = malloc((size_t)my.ranks * sizeof key);
    if (whose == OF_GROUP)
        CHECK_OK(dscomm_mem_alloc(my.group, size, (void **)&shared->bytes));
    else if (whose == PAGES_OF_PROCESS)
        shared->bytes = pages_new(size = whole_pages(size));
    else
        shared->bytes = malloc(size);
    memset(shared->bytes, 0, size);
    CHECK_OK(dscomm_mem_register(my.group, shared->bytes, size, &shared->mem));
    CHECK_OK(dscomm_mem_key(shared->mem, key));
    CHECK_OK(dscomm_all_gather(my.group, key, shared->keys, sizeof key,
                               DSCOMM_UINT8, NULL));
}

static void shared_drop(shared_t *shared, int whose)
{
    CHECK_OK(dscomm_barrier(my.group, NULL));
    CHECK_OK(dscomm_mem_deregister(shared->mem));
    if (whose == OF_GROUP)
        CHECK_OK(dscomm_mem_free(my.group, shared->bytes));
    else
        free(shared->bytes);
    free(shared->keys);
}

static uint64_t stream_of(int from, int to, size_t size)
{
    return mix((uint64_t)from * 1000 + (uint64_t)to) + size;
}

static int is_stream(const unsigned char *bytes, int from, int to, size_t size)
{
    unsigned char *want = malloc(size);
    int same;

    pattern_bytes(want, 1, stream_of(from, to, size), 0, size);
    same = memcmp(want, bytes, size) == 0;
    free(want);
    return same;
}

static const size_t sizes[] = {1, 8, 1000, 4096, 70001, 600000};

/* Each rank puts a block of its own into the memory of every rank, itself
 * included, and signals; the signals tell that the blocks are there. */
static void test_put(int whose)
{
    if (is_refused())
        return;
    for (size_t i = 0; i < CONFORM_LENGTH(sizes); i++) {
        const size_t size = conform_scale(sizes[i]);
        unsigned char *block = malloc(size);
        shared_t shared;

        shared_make(&shared, size * (size_t)my.ranks, whose);
        for (int r = 0; r < my.ranks; r++) {
            pattern_bytes(block, 1, stream_of(my.rank, r, size), 0, size);
            CHECK_OK(dscomm_put(my.group, block, size, key_of(&shared, r),
                                (size_t)my.rank * size, NULL));
            CHECK_OK(dscomm_signal(my.group, r, NULL));
        }
        for (int r = 0; r < my.ranks; r++) {
            CHECK_OK(dscomm_signal_wait(my.group, r, DSCOMM_TIMEOUT_DEFAULT));
            check(is_stream(shared.bytes + (size_t)r * size, r, my.rank, size),
                  "%zu bytes of rank %d are wrong", size, r);
        }
        shared_drop(&shared, whose);
        free(block);
    }
}

static void test_get(int whose)
{
    if (is_refused())
        return;
    for (size_t i = 0; i < CONFORM_LENGTH(sizes); i++) {
        const size_t size = conform_scale(sizes[i]);
        unsigned char *block = malloc(size);
        shared_t shared;

        shared_make(&shared, size * (size_t)my.ranks, whose);
        for (int r = 0; r < my.ranks; r++)
            pattern_bytes(shared.bytes + (size_t)r * size, 1,
                          stream_of(my.rank, r, size), 0, size);
        CHECK_OK(dscomm_barrier(my.group, NULL));
        for (int r = 0; r < my.ranks; r++) {
            CHECK_OK(dscomm_get(my.group, block, size, key_of(&shared, r),
                                (size_t)my.rank * size, NULL));
            check(is_stream(block, r, my.rank, size),
                  "%zu bytes of rank %d are wrong", size, r);
        }
        shared_drop(&shared, whose);
        free(block);
    }
}

/* Puts and gets of different lengths under way at a time, in both directions,
 * with messages and a collective between; the works end in another order. */
static void test_works(int whose)
{
    enum { MANY = 24 };
    const size_t most = conform_scale(50000);
    dscomm_work_t *puts[MANY] = {NULL}, *gets[MANY] = {NULL}, *sum = NULL;
    unsigned char *out, *in;
    int32_t mine = my.rank, total = -1;
    shared_t shared;

    if (is_refused())
        return;
    out = malloc(MANY * most);
    in = calloc(MANY, most);
    shared_make(&shared, 2 * MANY * most, whose);
    pattern_bytes(shared.bytes + MANY * most, 1,
                  stream_of(my.rank, 0, MANY * most), 0, MANY * most);
    pattern_bytes(out, 1, stream_of(my.rank, next_rank(), MANY * most), 0,
                  MANY * most);
    CHECK_OK(dscomm_barrier(my.group, NULL));
    CHECK_OK(dscomm_all_reduce(my.group, &mine, &total, 1, DSCOMM_INT32,
                               DSCOMM_SUM, &sum));
    for (size_t i = 0; i < MANY; i++) {
        const size_t size = i % 3 ? most : i;

        CHECK_OK(dscomm_put(my.group, out + i * most, size,
                            key_of(&shared, next_rank()), i * most, &puts[i]));
        CHECK_OK(dscomm_get(my.group, in + i * most, most,
                            key_of(&shared, prev_rank()), (MANY + i) * most,
                            &gets[i]));
    }
    for (size_t i = MANY; i-- > 0;) {
        CHECK_OK(dscomm_work_wait(gets[i], DSCOMM_TIMEOUT_DEFAULT));
        CHECK_OK(dscomm_work_wait(puts[i], DSCOMM_TIMEOUT_DEFAULT));
        dscomm_work_free(gets[i]);
        dscomm_work_free(puts[i]);
    }
    conform_finish(&sum, 1);
    check(total == my.ranks * (my.ranks - 1) / 2, "the sum is %d", total);
    check(is_stream(in, prev_rank(), 0, MANY * most), "the gets are wrong");
    CHECK_OK(dscomm_barrier(my.group, NULL));
    pattern_bytes(out, 1, stream_of(prev_rank(), my.rank, MANY * most), 0,
                  MANY * most);
    for (size_t i = 0; i < MANY; i++) {
        const size_t size = i % 3 ? most : i;

        check(memcmp(shared.bytes + i * most, out + i * most, size) == 0,
              "put %zu is wrong", i);
    }
    shared_drop(&shared, whose);
    free(out);
    free(in);
}

/* A buffer that one rank fills and the next one empties when it has a signal.
 * Its places are given back by messages. */
static void test_pipe(int whose)
{
    enum { ROUNDS = 200, DEPTH = 3 };
    const size_t size = conform_scale(9000);
    dscomm_work_t *put[DEPTH] = {NULL}, *signal = NULL, *back = NULL;
    char token = 0, given = 0;
    unsigned char *block;
    shared_t shared;

    if (is_refused())
        return;
    block = malloc(size * DEPTH);
    shared_make(&shared, size * DEPTH, whose);
    for (int i = 0; i < ROUNDS + DEPTH; i++) {
        const size_t place = (size_t)(i % DEPTH);

        /* The round before the last DEPTH is read, and its place is given
         * back. */
        if (i >= DEPTH) {
            CHECK_OK(dscomm_signal_wait(my.group, prev_rank(),
                                        DSCOMM_TIMEOUT_DEFAULT));
            check(is_stream(shared.bytes + place * size, prev_rank(), i - DEPTH,
                            size),
                  "round %d is wrong", i - DEPTH);
            CHECK_OK(dscomm_isend(my.group, &token, 1, DSCOMM_INT8, prev_rank(),
                                  0, &back));
            CHECK_OK(dscomm_recv(my.group, &given, 1, DSCOMM_INT8, next_rank(),
                                 0, NULL, NULL));
            conform_finish(&back, 1);
            conform_finish(&put[place], 1);
        }
        if (i >= ROUNDS)
            continue;
        pattern_bytes(block + place * size, 1, stream_of(my.rank, i, size), 0,
                      size);
        CHECK_OK(dscomm_put(my.group, block + place * size, size,
                            key_of(&shared, next_rank()), place * size,
                            &put[place]));
        CHECK_OK(dscomm_signal(my.group, next_rank(), &signal));
        conform_finish(&signal, 1);
    }
    shared_drop(&shared, whose);
    free(block);
}

/* The owner of the memory waits in other calls meanwhile: a probe, and a
 * barrier that the origin enters last. */
static void test_busy_owner(int whose)
{
    const size_t size = conform_scale(200000);
    unsigned char *block;
    char token = 0;
    shared_t shared;

    if (is_refused())
        return;
    block = malloc(size);
    shared_make(&shared, size * (size_t)my.ranks, whose);
    if (my.rank == 0) {
        for (int r = 0; r < my.ranks; r++) {
            pattern_bytes(block, 1, stream_of(0, r, size), 0, size);
            CHECK_OK(
                dscomm_put(my.group, block, size, key_of(&shared, r), 0, NULL));
            if (r)
                CHECK_OK(dscomm_send(my.group, &token, 1, DSCOMM_INT8, r, 0));
        }
    } else {
        CHECK_OK(dscomm_probe(my.group, 0, 0, DSCOMM_TIMEOUT_DEFAULT, NULL));
        CHECK_OK(
            dscomm_recv(my.group, &token, 1, DSCOMM_INT8, 0, 0, NULL, NULL));
        check(is_stream(shared.bytes, 0, my.rank, size), "the put is wrong");
    }
    if (my.rank == 0)
        for (int r = 0; r < my.ranks; r++) {
            CHECK_OK(
                dscomm_get(my.group, block, size, key_of(&shared, r), 0, NULL));
            check(is_stream(block, 0, r, size), "the get is wrong");
        }
    CHECK_OK(dscomm_barrier(my.group, NULL));
    shared_drop(&shared, whose);
    free(block);
}

/* The owner makes no call, where the backend reaches the memory itself. */
static void test_idle_owner(void)
{
    const size_t size = conform_scale(200000);
    const int allocated =
        strcmp(dscomm_group_backend(my.group), "shm") ? OF_PROCESS : OF_GROUP;
    unsigned char *block;
    char token = 1;
    shared_t shared;

    if (!allocated && strcmp(dscomm_group_backend(my.group), "ibverbs") != 0) {
        conform_skip("this backend serves accesses by messages");
        return;
    }
    block = malloc(size);
    shared_make(&shared, size + 1, allocated);
    for (int r = 1; r < my.ranks && my.rank == 0; r++) {
        CHECK_OK(dscomm_send(my.group, &token, 1, DSCOMM_INT8, r, 0));
        pattern_bytes(block, 1, stream_of(0, r, size), 0, size);
        CHECK_OK(
            dscomm_put(my.group, block, size, key_of(&shared, r), 0, NULL));
        memset(block, 0, size);
        CHECK_OK(
            dscomm_get(my.group, block, size, key_of(&shared, r), 0, NULL));
        check(is_stream(block, 0, r, size), "the get is wrong");
        CHECK_OK(
            dscomm_put(my.group, &token, 1, key_of(&shared, r), size, NULL));
    }
    if (my.rank) {
        CHECK_OK(
            dscomm_recv(my.group, &token, 1, DSCOMM_INT8, 0, 0, NULL, NULL));
        for (int ms = 0; ms < 20000 && !__atomic_load_n(shared.bytes + size,
                                                        __ATOMIC_ACQUIRE);
             ms++)
            usleep(1000);
        check(shared.bytes[size] == 1 &&
                  is_stream(shared.bytes, 0, my.rank, size),
              "the put is wrong, or has not come without a call");
    }
    shared_drop(&shared, allocated);
    free(block);
}

/* Signals are counted; one that has not come is no failure of the group. */
static void test_signals(void)
{
    enum { MANY = 50 };

    for (int i = 0; i < MANY; i++)
        CHECK_OK(dscomm_signal(my.group, next_rank(), NULL));
    for (int i = 0; i < MANY; i++)
        CHECK_OK(
            dscomm_signal_wait(my.group, prev_rank(), DSCOMM_TIMEOUT_DEFAULT));
    CHECK_OK(dscomm_barrier(my.group, NULL));
    CHECK_FAILS(dscomm_signal_wait(my.group, prev_rank(), 20),
                DSCOMM_ERR_TIMEOUT);
    check_sentence("no signal of rank", "a signal that does not come");
    CHECK_OK(dscomm_barrier(my.group, NULL));
    CHECK_OK(dscomm_signal(my.group, next_rank(), NULL));
    CHECK_OK(dscomm_signal_wait(my.group, prev_rank(), DSCOMM_TIMEOUT_DEFAULT));
}

/* Several registrations of one memory, and of parts that overlap. */
static void test_registrations(void)
{
    enum { MANY = 20 };
    unsigned char bytes[1000] = {0}, seen = 0;
    unsigned char keys[MANY][DSCOMM_MEM_KEY_BYTES];
    dscomm_mem_t *mems[MANY] = {NULL};

    if (is_refused())
        return;
    for (size_t i = 0; i < MANY; i++) {
        CHECK_OK(dscomm_mem_register(my.group, bytes + i, sizeof bytes - i,
                                     &mems[i]));
        CHECK_OK(dscomm_mem_key(mems[i], keys[i]));
    }
    for (size_t i = 0; i < MANY; i += 2)
        CHECK_OK(dscomm_mem_deregister(mems[i]));
    for (size_t i = 1; i < MANY; i += 2) {
        const unsigned char value = (unsigned char)(i + 7);

        CHECK_OK(dscomm_put(my.group, &value, 1, keys[i], 100, NULL));
        CHECK_OK(dscomm_get(my.group, &seen, 1, keys[1], 99 + i, NULL));
        check(seen == value && bytes[100 + i] == value, "memory %zu", i);
        CHECK_FAILS(
            dscomm_put(my.group, &value, 1, keys[i], sizeof bytes - i, NULL),
            DSCOMM_ERR_INVALID);
    }
    for (size_t i = 1; i < MANY; i += 2)
        CHECK_OK(dscomm_mem_deregister(mems[i]));
    CHECK_OK(dscomm_barrier(my.group, NULL));
}

/* Memory that a put cannot change is refused, and the group goes on. */
static void test_read_only(void)
{
    const size_t page = whole_pages(1);
    char *memory = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    dscomm_mem_t *mem = NULL;

    if (is_refused())
        return;
    check(memory != MAP_FAILED && !mprotect(memory + page, page, PROT_READ),
          "memory that may not be written");
    CHECK_FAILS(dscomm_mem_register(my.group, memory, 3 * page, &mem),
                DSCOMM_ERR_INVALID);
    check_sentence("PROT_WRITE", "memory that may only be read");
    check(!mem, "nothing is registered");
    CHECK_OK(dscomm_mem_register(my.group, memory, page, &mem));
    CHECK_OK(dscomm_mem_deregister(mem));
    mprotect(memory + page, page, PROT_NONE);
    CHECK_FAILS(dscomm_mem_register(my.group, memory + 2 * page - 1, 1, &mem),
                DSCOMM_ERR_INVALID);
    munmap(memory, 3 * page);
    CHECK_OK(dscomm_barrier(my.group, NULL));
}

/* A key of memory that is no more is refused, and the group goes on. */
static void test_stale_key(void)
{
    const size_t size = conform_scale(100000);
    dscomm_work_t *work = NULL;
    unsigned char *block;
    shared_t shared;

    if (is_refused())
        return;
    if (strcmp(dscomm_group_backend(my.group), "ibverbs") == 0) {
        conform_skip("the device ends a connection by which a key of no memory "
                     "is used");
        return;
    }
    block = calloc(1, size);
    shared_make(&shared, size, 0);
    CHECK_OK(dscomm_barrier(my.group, NULL));
    CHECK_OK(dscomm_mem_deregister(shared.mem));
    shared.mem = NULL;
    CHECK_OK(dscomm_barrier(my.group, NULL));
    for (int i = 0; i < 3; i++) {
        CHECK_FAILS(dscomm_put(my.group, block, size,
                               key_of(&shared, next_rank()), 0, NULL),
                    DSCOMM_ERR_INVALID);
        check_sentence("deregistered", "a put with the key of no memory");
        CHECK_OK(dscomm_get(my.group, block, size, key_of(&shared, next_rank()),
                            0, &work));
        CHECK_FAILS(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT),
                    DSCOMM_ERR_INVALID);
        dscomm_work_free(work);
    }
    shared_drop(&shared, 0);
    free(block);
}

static void test_arguments(void)
{
    unsigned char key[DSCOMM_MEM_KEY_BYTES], bytes[64] = {0};
    dscomm_mem_t *mem = NULL, *other = NULL;
    dscomm_group_t *group = NULL;

    if (is_refused())
        return;
    CHECK_FAILS(dscomm_mem_register(NULL, bytes, 1, &mem), DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_mem_register(my.group, NULL, 1, &mem),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_mem_register(my.group, bytes, 0, &mem),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_mem_register(my.group, bytes, SIZE_MAX, &mem),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_mem_register(my.group, bytes, 1, NULL),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_mem_key(NULL, key), DSCOMM_ERR_INVALID);
    CHECK_OK(dscomm_mem_register(my.group, bytes, sizeof bytes, &mem));
    CHECK_FAILS(dscomm_mem_key(mem, NULL), DSCOMM_ERR_INVALID);
    CHECK_OK(dscomm_mem_key(mem, key));
    CHECK_OK(dscomm_mem_deregister(NULL));

    CHECK_FAILS(dscomm_put(NULL, bytes, 1, key, 0, NULL), DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_put(my.group, NULL, 1, key, 0, NULL),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_put(my.group, bytes, 1, NULL, 0, NULL),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_put(my.group, bytes, 2, key, 63, NULL),
                DSCOMM_ERR_INVALID);
    check_sentence("not in the memory of 64 bytes", "a range");
    CHECK_FAILS(dscomm_get(my.group, bytes, 1, key, SIZE_MAX, NULL),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_get(my.group, bytes, SIZE_MAX, key, 0, NULL),
                DSCOMM_ERR_INVALID);
    CHECK_OK(dscomm_put(my.group, NULL, 0, key, 64, NULL));
    CHECK_FAILS(dscomm_signal(my.group, my.ranks, NULL), DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_signal(my.group, -1, NULL), DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_signal_wait(my.group, DSCOMM_ANY_SOURCE, 0),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_signal_wait(my.group, 0, -7), DSCOMM_ERR_INVALID);

    CHECK_OK(dscomm_group_split(my.group, 0, my.rank, NULL, &group));
    if (group) {
        CHECK_FAILS(dscomm_put(group, bytes, 1, key, 0, NULL),
                    DSCOMM_ERR_INVALID);
        check_sentence("another group", "a key");
        CHECK_OK(dscomm_mem_register(group, bytes, sizeof bytes, &other));
        CHECK_OK(dscomm_group_free(group));
        CHECK_FAILS(dscomm_mem_key(other, key), DSCOMM_ERR_INVALID);
        CHECK_FAILS(dscomm_mem_deregister(other), DSCOMM_ERR_INVALID);
        check_sentence("was finalized or freed before", "its memory");
    }
    for (size_t i = 0; i < 8; i++) {
        unsigned char damaged[DSCOMM_MEM_KEY_BYTES];

        memcpy(damaged, key, sizeof key);
        damaged[i] ^= 0x81;
        if (i < 4 || my.ranks < 0x81)
            CHECK_FAILS(dscomm_get(my.group, bytes, 1, damaged, 0, NULL),
                        DSCOMM_ERR_INVALID);
    }
    CHECK_OK(dscomm_mem_deregister(mem));
    CHECK_OK(dscomm_barrier(my.group, NULL));
}

/* Three calls on registered buffers: one out of place, one in place, and one
 * that moves data. Returns the number of wrong results. */
static int registered_calls(int32_t *in, int32_t *out, size_t count)
{
    const int32_t ranks = my.ranks, sum = ranks * (ranks - 1) / 2;
    int wrong = 0;

    for (size_t i = 0; i < count; i++)
        in[i] = (int32_t)i + my.rank;
    CHECK_OK(dscomm_all_reduce(my.group, in, out, count, DSCOMM_INT32,
                               DSCOMM_SUM, NULL));
    for (size_t i = 0; i < count; i++)
        wrong += out[i] != ranks * (int32_t)i + sum;
    CHECK_OK(dscomm_all_reduce(my.group, out, out, count, DSCOMM_INT32,
                               DSCOMM_SUM, NULL));
    for (size_t i = 0; i < count; i++)
        wrong += out[i] != ranks * (ranks * (int32_t)i + sum);
    CHECK_OK(dscomm_all_gather(my.group, in, out, count, DSCOMM_INT32, NULL));
    for (size_t i = 0; i < count * (size_t)ranks; i++)
        wrong += out[i] != (int32_t)(i % count + i / count);
    return wrong;
}

/* Buffers that are whole pages, or begin and end within them; registered by
 * all ranks, or by one alone. Bytes beside them stay as they are. */
static void registered_buffers(int skip, size_t count)
{
    const size_t ranks = (size_t)my.ranks;
    const size_t bytes = count * sizeof(int32_t), room = bytes + 2 * 8192;
    int32_t *in = pages_new(room), *out = pages_new(ranks * room);
    int32_t *from = in + skip, *to = out + skip;
    int wrong = 0;

    memset(in, 0, room);
    memset(out, 0, ranks * room);
    for (int all = 0; all < 2; all++) {
        dscomm_mem_t *mems[2] = {NULL, NULL};

        if (all || my.rank == 0) {
            CHECK_OK(dscomm_mem_register(
                my.group, from, skip ? bytes : whole_pages(bytes), &mems[0]));
            CHECK_OK(dscomm_mem_register(
                my.group, to, skip ? ranks * bytes : whole_pages(ranks * bytes),
                &mems[1]));
        }
        for (int turn = 0; turn < 3; turn++)
            wrong += registered_calls(from, to, count);
        CHECK_OK(dscomm_mem_deregister(mems[0]));
        CHECK_OK(dscomm_mem_deregister(mems[1]));
        for (size_t i = 0; i < count; i++)
            wrong += from[i] != (int32_t)i + my.rank;
        for (size_t i = 0; i < count * ranks; i++)
            wrong += to[i] != (int32_t)(i % count + i / count);
        for (int i = 0; i < skip; i++)
            wrong += in[i] != 0 || out[i] != 0 ||
                     from[count + (size_t)i] != 0 ||
                     to[count * ranks + (size_t)i] != 0;
    }
    check(!wrong, "%d numbers are wrong", wrong);
    CHECK_OK(dscomm_barrier(my.group, NULL));
    free(in);
    free(out);
}

static void test_collectives(int skip)
{
    static const size_t counts[] = {70000, 3000, 20001, 300};

    for (size_t i = 0; i < sizeof counts / sizeof *counts && !is_refused(); i++)
        registered_buffers(skip, counts[i]);
}

const conform_area_t conform_access = {
    "access",
    (const conform_case_t[]){
        {"put, memory of the process", test_put, OF_PROCESS},
        {"put, memory of the group", test_put, OF_GROUP},
        {"put, pages of the process", test_put, PAGES_OF_PROCESS},
        {"get, memory of the process", test_get, OF_PROCESS},
        {"get, memory of the group", test_get, OF_GROUP},
        {"get, pages of the process", test_get, PAGES_OF_PROCESS},
        {"works, memory of the process", test_works, OF_PROCESS},
        {"works, memory of the group", test_works, OF_GROUP},
        {"works, pages of the process", test_works, PAGES_OF_PROCESS},
        {"pipe, memory of the process", test_pipe, OF_PROCESS},
        {"pipe, memory of the group", test_pipe, OF_GROUP},
        {"pipe, pages of the process", test_pipe, PAGES_OF_PROCESS},
        {"owner in other calls, memory of the process", test_busy_owner,
         OF_PROCESS},
        {"owner in other calls, memory of the group", test_busy_owner,
         OF_GROUP},
        {"owner in other calls, pages of the process", test_busy_owner,
         PAGES_OF_PROCESS},
        {"collectives, pages of the process", test_collectives, 0},
        {"collectives, memory of the process", test_collectives, 25},
        {0},
    },
    (const conform_test_t[]){
        {"owner that makes no call", test_idle_owner},
        {"signals", test_signals},
        {"registrations", test_registrations},
        {"memory that may not be written", test_read_only},
        {"stale key", test_stale_key},
        {"arguments", test_arguments},
        {0},
    },
};
