/* SPDX-License-Identifier: BSD-3-Clause */
/* Byte blobs whose length only their owner knows. */
#include "config.h"

#include "tests/backends/conform.h"

#include <stdlib.h>
#include <string.h>

static const size_t sizes[] = {0, 1, 40, 63, 64, 65, 5000, 300000};

static void run_broadcast(int root, size_t size)
{
    unsigned char *mine = malloc(size + 1), *want = malloc(size + 1);
    void *blob = NULL;
    size_t got = (size_t)-1;
    int here = my.rank == root;

    if (check(mine && want, "no memory")) {
        pattern_bytes(want, 1, size + (uint64_t)root, 0, size);
        memcpy(mine, want, size);
        CHECK_OK(dscomm_broadcast_blob(my.group, here ? mine : NULL,
                                       here ? size : 0, root, &blob, &got));
        check(got == size, "%zu bytes, want %zu", got, size);
        check(got != size || size == 0 ||
                  (blob && memcmp(blob, want, size) == 0),
              "%zu bytes differ", size);
        dscomm_blob_free(blob);
    }
    free(mine);
    free(want);
}

static void test_broadcast(void)
{
    for (size_t i = 0; i < CONFORM_LENGTH(sizes); i++)
        for (int root = 0; root < my.ranks && root < 5; root++)
            run_broadcast(root, sizes[i]);
}

/* The length that rank contributes; every third rank contributes nothing. */
static size_t length(int rank, size_t size)
{
    return rank % 3 == 1 ? 0 : size + (size_t)rank;
}

static void run_all_gather(size_t size, int all_empty)
{
    size_t mine = all_empty ? 0 : length(my.rank, size), at = 0;
    size_t got[64] = {0};
    unsigned char *in = malloc(mine + 1), *want = malloc(size + 64);
    void *blob = NULL;

    if (!check(in && want, "no memory"))
        goto out;
    pattern_bytes(in, 1, (uint64_t)my.rank, 0, mine);
    if (!CHECK_OK(dscomm_all_gather_blob(my.group, mine ? in : NULL, mine,
                                         &blob, got)))
        goto out;
    for (int r = 0; r < my.ranks; r++) {
        size_t bytes = all_empty ? 0 : length(r, size);

        check(got[r] == bytes, "rank %d: %zu bytes, want %zu", r, got[r],
              bytes);
        pattern_bytes(want, 1, (uint64_t)r, 0, bytes);
        check(bytes == 0 || memcmp((char *)blob + at, want, bytes) == 0,
              "rank %d's %zu bytes differ", r, bytes);
        at += bytes;
    }
    dscomm_blob_free(blob);
out:
    free(in);
    free(want);
}

static void test_all_gather(void)
{
    for (size_t i = 0; i < CONFORM_LENGTH(sizes); i++)
        run_all_gather(conform_scale(sizes[i]), 0);
}

static void test_empty(void)
{
    run_all_gather(0, 1);
    run_broadcast(my.ranks - 1, 0);
    dscomm_blob_free(NULL);
}

static void test_refused(void)
{
    int dummy;
    void *blob = &dummy;
    size_t size = 7;

    CHECK_FAILS(dscomm_broadcast_blob(my.group, "a", 1, my.ranks, &blob, &size),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_broadcast_blob(my.group, "a", 1, -1, &blob, &size),
                DSCOMM_ERR_INVALID);
    check(blob == &dummy && size == 7, "a refused call wrote its results");
    run_broadcast(0, 10);
}

static const conform_test_t tests[] = {
    {"broadcast_blob", test_broadcast},
    {"all_gather_blob", test_all_gather},
    {"empty blobs", test_empty},
    {"refused", test_refused},
    {NULL, NULL},
};
const conform_area_t conform_blobs = {"blobs", NULL, tests};
