/* SPDX-License-Identifier: BSD-3-Clause */
/* The costs that shm tells of its algorithms, compared with bytes that were
 * counted by hand, copy by copy. */
#include "tests/backends/shm/fixture.h"

#include "lib/base/status.h"

#define RANKS 4
#define KIB 1024u

/* The buffers of the call on this rank. */
typedef enum { OWN, IN_PLACE, HEAP } buffers_t;

static shm_t *shms[RANKS];
static char own[2][512 * KIB];

/* A call of RANKS ranks, root 0, of count bytes. */
typedef struct {
    dscomm_coll_t coll;
    size_t count;
    buffers_t buffers;
    const char *algorithm;
    int steps;
    uint64_t moved, memory, busiest;
} row_t;

static void row_test(const row_t *row, char *heap)
{
    const bool reduces = row->coll == DSCOMM_COLL_REDUCE ||
                         row->coll == DSCOMM_COLL_ALL_REDUCE ||
                         row->coll == DSCOMM_COLL_REDUCE_SCATTER;
    const dscomm_coll_args_t args = {
        .coll = (int)row->coll,
        .op = reduces ? DSCOMM_SUM : -1,
        .element = 1,
        .count = row->count,
        .send = row->buffers == HEAP ? heap : own[0],
        .recv = row->buffers == HEAP       ? heap + 512 * KIB
                : row->buffers == IN_PLACE ? own[0]
                                           : own[1],
    };
    dscomm_native_info_t info = {.size = sizeof info};
    const dscomm_status_t status = shm_native_info(shms[0], &args, &info);
    const bool same = status == DSCOMM_OK && info.steps == row->steps &&
                      info.moved == row->moved && info.memory == row->memory &&
                      info.busiest == row->busiest;

    is_str(info.algorithm, row->algorithm, "the algorithm of %s, %zu bytes",
           dscomm_coll_name(row->coll), row->count);
    ok(same, "and its cost");
    if (!same)
        printf("#   %d steps, %llu, %llu, %llu\n", info.steps,
               (unsigned long long)info.moved, (unsigned long long)info.memory,
               (unsigned long long)info.busiest);
}

/* Each rank is rank 0 in turn, so one rank tells of all. In what follows, a
 * copy of n bytes reads n and writes n.
 *
 * line, 8 bytes: each rank copies 8 to its line and reads 4 x 8 to write 8: 56.
 * all_gather copies 8 in and 4 x 8 out: 80; broadcast one of both.
 *
 * flat, 1000 bytes: a copy, then 4 x 1000 read and 1000 written, by the root
 * alone for reduce: 7000, and 2000 on the others.
 *
 * parts, 256 KiB, so 64 each: a rank copies 3 x 64 to its ring, reads 4 x 64
 * and writes 64: 704; copies all 256 to its result: 1216. It gets 3 x 64 to
 * fold, and 3 x 64 of the result. reduce: only the root copies the result.
 * reduce_scatter of 64 each ends before that. Ranks whose buffers might be in
 * heaps meet first.
 *
 * direct, 256 KiB: a rank reads 4 x 64, writes 64, and copies that 3 times:
 * 704; 3 x 64 come from others, and 3 x 64 go to them. reduce and
 * reduce_scatter copy nothing: 320; three ranks write their 64 to the root.
 *
 * pieces, 64 KiB: who sends copies it in, who receives copies it out;
 * all_gather: one in, three out, and its own, unless it is in place. gather:
 * all four copy in, the root copies three out and its own. scatter: three in,
 * one out each. all_to_all: each three in, three out, and its own.
 *
 * read, 64 KiB of a heap: nothing is copied in. */
static void test_costs(char *heap)
{
    static const row_t rows[] = {
        {DSCOMM_COLL_BARRIER, 0, OWN, "line", 1, 0, 0, 0},
        {DSCOMM_COLL_ALL_REDUCE, 8, OWN, "line", 1, 4 * 24, 4 * 56, 56},
        {DSCOMM_COLL_ALL_GATHER, 8, IN_PLACE, "line", 1, 4 * 24, 4 * 80, 80},
        {DSCOMM_COLL_BROADCAST, 8, IN_PLACE, "line", 1, 24, 4 * 16, 16},
        {DSCOMM_COLL_ALL_REDUCE, 1000, OWN, "flat", 1, 4 * 3000, 4 * 7000,
         7000},
        {DSCOMM_COLL_REDUCE, 1000, OWN, "flat", 1, 3000, 7000 + 3 * 2000, 7000},
        {DSCOMM_COLL_ALL_REDUCE, 256 * KIB, OWN, "parts", 3, 4 * 384 * KIB,
         4 * 1216 * KIB, 1216 * KIB},
        {DSCOMM_COLL_REDUCE, 32 * KIB, OWN, "parts", 2, (4 * 24 + 24) * KIB,
         (4 * 88 + 64) * KIB, 152 * KIB},
        {DSCOMM_COLL_REDUCE, 256 * KIB, OWN, "parts", 3, (4 * 192 + 192) * KIB,
         (4 * 704 + 512) * KIB, 1216 * KIB},
        {DSCOMM_COLL_REDUCE_SCATTER, 8 * KIB, OWN, "parts", 1, 4 * 24 * KIB,
         4 * 88 * KIB, 88 * KIB},
        {DSCOMM_COLL_REDUCE_SCATTER, 64 * KIB, OWN, "parts", 2, 4 * 192 * KIB,
         4 * 704 * KIB, 704 * KIB},
        {DSCOMM_COLL_ALL_REDUCE, 256 * KIB, HEAP, "direct", 2, 4 * 384 * KIB,
         4 * 704 * KIB, 704 * KIB},
        {DSCOMM_COLL_REDUCE, 256 * KIB, HEAP, "direct", 2,
         (4 * 192 + 192) * KIB, 4 * 320 * KIB, 320 * KIB},
        {DSCOMM_COLL_REDUCE_SCATTER, 64 * KIB, HEAP, "direct", 2, 4 * 192 * KIB,
         4 * 320 * KIB, 320 * KIB},
        {DSCOMM_COLL_BROADCAST, 64 * KIB, IN_PLACE, "pieces", 1, 192 * KIB,
         4 * 128 * KIB, 128 * KIB},
        {DSCOMM_COLL_ALL_GATHER, 64 * KIB, IN_PLACE, "pieces", 1, 4 * 192 * KIB,
         4 * 512 * KIB, 512 * KIB},
        {DSCOMM_COLL_ALL_GATHER, 64 * KIB, OWN, "pieces", 1, 4 * 192 * KIB,
         4 * 640 * KIB, 640 * KIB},
        {DSCOMM_COLL_GATHER, 64 * KIB, OWN, "pieces", 1, 192 * KIB,
         (640 + 3 * 128) * KIB, 640 * KIB},
        {DSCOMM_COLL_SCATTER, 64 * KIB, OWN, "pieces", 1, 192 * KIB,
         (512 + 3 * 128) * KIB, 512 * KIB},
        {DSCOMM_COLL_ALL_TO_ALL, 64 * KIB, OWN, "pieces", 1, 4 * 192 * KIB,
         4 * 896 * KIB, 896 * KIB},
        {DSCOMM_COLL_BROADCAST, 64 * KIB, HEAP, "read", 2, 192 * KIB,
         3 * 128 * KIB, 128 * KIB},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        row_test(&rows[i], heap);
}

/* Single copies, 256 KiB: a rank copies 3 x 64 of the others' inputs, reads
 * 4 x 64 and writes 64, and copies 3 x 64 of the others' results: 1088.
 * reduce and reduce_scatter make as many copies through rings. */
static void test_single(void)
{
    static const row_t rows[] = {
        {DSCOMM_COLL_ALL_REDUCE, 256 * KIB, OWN, "read", 3, 4 * 384 * KIB,
         4 * 1088 * KIB, 1088 * KIB},
        {DSCOMM_COLL_REDUCE_SCATTER, 64 * KIB, OWN, "parts", 2, 4 * 192 * KIB,
         4 * 704 * KIB, 704 * KIB},
        {DSCOMM_COLL_REDUCE, 256 * KIB, OWN, "parts", 3, (4 * 192 + 192) * KIB,
         (4 * 704 + 512) * KIB, 1216 * KIB},
    };

    for (int r = 0; r < RANKS; r++) {
        for (int peer = 0; peer < RANKS; peer++)
            shms[r]->peers->pids[peer] = getpid();
        shm_single_publish(shms[r]);
    }
    for (int r = 0; r < RANKS; r++)
        if (shm_single_look(shms[r]))
            bail("single copies: %s", dscomm_last_error());
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        if (shm_single_allowed(shms[0]))
            row_test(&rows[i], NULL);
    if (!shm_single_allowed(shms[0]))
        skip("this process may not read its own memory by process_vm_readv(2)");
}

static void test_own_operator(void)
{
    const dscomm_user_op_t user = {.text = "mine"};
    const dscomm_coll_args_t args = {.coll = DSCOMM_COLL_ALL_REDUCE,
                                     .op = DSCOMM_OP_USER,
                                     .user = &user,
                                     .element = 1,
                                     .count = KIB,
                                     .send = own[0],
                                     .recv = own[1]};
    dscomm_native_info_t info = {.size = sizeof info};

    ok(shm_native_info(shms[0], &args, &info) == DSCOMM_ERR_UNSUPPORTED,
       "it does not tell what an operator of the program reads and writes");
}

/* A peer has written the edges of a buffer that is registered: they are still
 * there after the calls were described. */
static void test_registered(void)
{
    static char memory[1024 * KIB];
    const size_t bytes = sizeof memory - 18;
    char *buffer = memory + 9;
    static const struct {
        dscomm_coll_t coll;
        const char *algorithm;
    } rows[] = {
        {DSCOMM_COLL_ALL_REDUCE, "direct"},
        {DSCOMM_COLL_BROADCAST, "read"},
    };
    char key[DSCOMM_BACKEND_KEY];
    void *registered = NULL;
    unsigned char *place;

    if (shm_mem_register(shms[0], buffer, bytes, key, &registered),
        !registered) {
        skip("pages cannot be registered here");
        return;
    }
    place =
        shm_heap_own(shms[0], shm_own_reference(shms[0], buffer, bytes) - 1);
    place[0] = place[bytes - 1] = 7;
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const bool reduces = rows[i].coll == DSCOMM_COLL_ALL_REDUCE;
        const dscomm_coll_args_t args = {.coll = (int)rows[i].coll,
                                         .op = reduces ? DSCOMM_SUM : -1,
                                         .element = 1,
                                         .count = bytes,
                                         .send = buffer,
                                         .recv = buffer};
        dscomm_native_info_t info = {.size = sizeof info};

        shm_native_info(shms[0], &args, &info);
        is_str(info.algorithm, rows[i].algorithm,
               "the algorithm of %s in registered memory",
               dscomm_coll_name(rows[i].coll));
    }
    ok(place[0] == 7 && place[bytes - 1] == 7,
       "what a peer has written there stays");
    shm_mem_deregister(shms[0], registered);
}

int main(void)
{
    void *heap;

    g_setenv("DSCOMM_SHM_SINGLE_COPY", "yes", TRUE);
    fixture_open(shms, RANKS);
    if (shm_mem_alloc(shms[0], (size_t)1024 * KIB, &heap))
        bail("no heap: %s", dscomm_last_error());
    test_costs(heap);
    test_own_operator();
    test_registered();
    test_single();
    fixture_close(shms, RANKS);
    return tap_done();
}
