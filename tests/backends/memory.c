/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers from dscomm_mem_alloc(), in every collective, on all ranks or on
 * some. */
#include "config.h"

#include "tests/backends/conform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void run_colls(int allocated)
{
    static const size_t counts[] = {0, 1, 9, 600, 40001, 33001};

    for (int coll = 0; coll < DSCOMM_COLL_BARRIER; coll++)
        for (size_t i = 0; i < CONFORM_LENGTH(counts); i++) {
            exchange_t x = {.group = my.group,
                            .coll = coll,
                            .dtype = i % 2 ? DSCOMM_FLOAT32 : DSCOMM_INT8,
                            .root = (int)i % my.ranks,
                            .count = conform_scale(counts[i]),
                            .seed = i + 3,
                            .allocated = allocated};

            exchange_run(&x);
            x.in_place = 1;
            x.offset = i % 2 ? 4 : 1;
            exchange_run(&x);
        }
}

static void test_all(void)
{
    run_colls(1);
}

static void test_some(void)
{
    run_colls(my.rank % 2);
    run_colls(my.rank == my.ranks - 1);
}

/* Several works at a time on such memory. */
static void test_works(void)
{
    exchange_t x[6];

    memset(x, 0, sizeof x);
    for (int i = 0; i < 6; i++) {
        x[i].group = my.group;
        x[i].coll = i % 2 ? DSCOMM_COLL_ALL_REDUCE : DSCOMM_COLL_ALL_GATHER;
        x[i].dtype = DSCOMM_FLOAT32;
        x[i].count = conform_scale(20000);
        x[i].seed = (uint64_t)i;
        x[i].allocated = (i + my.rank) % 3 != 0;
        exchange_start(&x[i], 1);
    }
    for (int i = 5; i >= 0; i--)
        exchange_end(&x[i]);
}

/* The memory is page aligned, zeroed, writable to the last byte, and can be
 * allocated again after free. */
static void test_properties(void)
{
    static const size_t sizes[] = {1, 4095, 4096, 70000, 3 << 20};

    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < CONFORM_LENGTH(sizes); i++) {
            unsigned char *memory = NULL;
            size_t set = 0;

            if (!CHECK_OK(
                    dscomm_mem_alloc(my.group, sizes[i], (void **)&memory)))
                continue;
            check((uintptr_t)memory % 4096 == 0, "%zu bytes at %p", sizes[i],
                  (void *)memory);
            for (size_t k = 0; k < sizes[i]; k++)
                set += memory[k] != 0;
            check(set == 0, "%zu of %zu bytes are not zero", set, sizes[i]);
            memset(memory, 0xff, sizes[i]);
            CHECK_OK(dscomm_mem_free(my.group, memory));
        }
}

/* Ranks allocate different numbers of blocks, and free them in another
 * order. */
static void test_many(void)
{
    enum { MANY = 40 };
    void *memory[MANY] = {NULL};
    exchange_t x = {.group = my.group,
                    .coll = DSCOMM_COLL_ALL_REDUCE,
                    .dtype = DSCOMM_INT32,
                    .count = 3000,
                    .allocated = 1};
    int mine = MANY - my.rank % 8;

    for (int i = 0; i < mine; i++) {
        CHECK_OK(
            dscomm_mem_alloc(my.group, 5000 + (size_t)i * 100, &memory[i]));
        if (memory[i])
            memset(memory[i], i, 5000 + (size_t)i * 100);
    }
    exchange_run(&x);
    for (int i = 0; i < mine; i += 2)
        CHECK_OK(dscomm_mem_free(my.group, memory[i]));
    x.seed++;
    exchange_run(&x);
    for (int i = 1; i < mine; i += 2) {
        const unsigned char *bytes = memory[i];

        check(!bytes || (bytes[0] == i && bytes[4999 + i * 100] == i),
              "memory %d was changed", i);
        CHECK_OK(dscomm_mem_free(my.group, memory[i]));
    }
}

/* The sentence of a full shared heap names this rank by its number in the
 * group, also if the heap is one of the ranks on this host alone. */
static void test_refused(void)
{
    char rank[32];
    int own = 0;
    void *memory = &own;

    CHECK_FAILS(dscomm_mem_free(my.group, &own), DSCOMM_ERR_INVALID);
    CHECK_OK(dscomm_mem_free(my.group, NULL));
    CHECK_FAILS(dscomm_mem_alloc(my.group, SIZE_MAX / 2, &memory),
                DSCOMM_ERR_NO_MEMORY);
    snprintf(rank, sizeof rank, "rank %d (", my.rank);
    check(!strstr(dscomm_last_error(), "shared heap") ||
              strncmp(dscomm_last_error(), rank, strlen(rank)) == 0,
          "not rank %d: %s", my.rank, dscomm_last_error());
    check(memory == &own, "a refused call wrote its result");
    CHECK_OK(dscomm_barrier(my.group, NULL));
}

/* Such memory as buffers of messages. */
static void test_messages(void)
{
    size_t bytes = conform_scale(100000);
    const int next = next_rank(), prev = prev_rank();
    unsigned char *in = NULL, *out = NULL;
    dscomm_work_t *work = NULL;

    CHECK_OK(dscomm_mem_alloc(my.group, bytes, (void **)&in));
    CHECK_OK(dscomm_mem_alloc(my.group, bytes, (void **)&out));
    if (check(in && out, "no memory")) {
        memset(out, my.rank + 1, bytes);
        CHECK_OK(
            dscomm_irecv(my.group, in, bytes, DSCOMM_UINT8, prev, 0, &work));
        CHECK_OK(dscomm_send(my.group, out, bytes, DSCOMM_UINT8, next, 0));
        CHECK_OK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
        check(in[0] == prev + 1 && in[bytes - 1] == prev + 1, "contents");
        dscomm_work_free(work);
    }
    CHECK_OK(dscomm_barrier(my.group, NULL));
    CHECK_OK(dscomm_mem_free(my.group, in));
    CHECK_OK(dscomm_mem_free(my.group, out));
}

/* Freeing the group frees what was allocated on it. */
static void test_freed_with_group(void)
{
    dscomm_group_t *group = NULL;
    void *memory = NULL;

    for (int i = 0; i < 5; i++) {
        CHECK_OK(dscomm_group_split(my.group, 0, 0, NULL, &group));
        CHECK_OK(dscomm_mem_alloc(group, 1 << 20, &memory));
        CHECK_OK(dscomm_group_free(group));
    }
}

static const conform_test_t tests[] = {
    {"every collective", test_all},
    {"every collective, on some ranks only", test_some},
    {"works", test_works},
    {"aligned and zeroed", test_properties},
    {"many at a time", test_many},
    {"refused", test_refused},
    {"messages", test_messages},
    {"freed with its group", test_freed_with_group},
    {NULL, NULL},
};
const conform_area_t conform_memory = {"memory", NULL, tests};
