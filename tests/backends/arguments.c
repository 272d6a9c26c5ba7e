/* SPDX-License-Identifier: BSD-3-Clause */
/* Invalid arguments: they are refused on the rank that gives them, with a
 * sentence. Nothing is started, so the group goes on. */
#include "config.h"

#include "tests/backends/conform.h"

#include <stdio.h>

static int32_t in[256], out[256];

static void still_works(void)
{
    exchange_t x = {.group = my.group,
                    .coll = DSCOMM_COLL_ALL_TO_ALL,
                    .dtype = DSCOMM_INT32,
                    .count = 7};

    CHECK_OK(dscomm_group_status(my.group));
    exchange_run(&x);
}

#define REFUSED(call) CHECK_FAILS(call, DSCOMM_ERR_INVALID)

static void test_roots(void)
{
    static const int wrong[] = {-1, 64, 1 << 30};
    char number[32];

    for (size_t i = 0; i < CONFORM_LENGTH(wrong); i++) {
        int root = wrong[i];

        REFUSED(dscomm_broadcast(my.group, in, 4, DSCOMM_INT32, root, NULL));
        snprintf(number, sizeof number, "%d", root);
        check_sentence(number, "root");
        check_sentence("broadcast", "operation");
        REFUSED(dscomm_reduce(my.group, in, out, 4, DSCOMM_INT32, DSCOMM_SUM,
                              root, NULL));
        REFUSED(dscomm_gather(my.group, in, out, 1, DSCOMM_INT32, root, NULL));
        REFUSED(dscomm_scatter(my.group, in, out, 1, DSCOMM_INT32, root, NULL));
        REFUSED(dscomm_gather_v(my.group, in, 0, out, NULL, NULL, DSCOMM_INT32,
                                root, NULL));
        REFUSED(dscomm_scatter_v(my.group, in, NULL, NULL, out, 0, DSCOMM_INT32,
                                 root, NULL));
    }
    still_works();
}

static void test_null_buffers(void)
{
    REFUSED(dscomm_broadcast(my.group, NULL, 1, DSCOMM_INT32, 0, NULL));
    REFUSED(dscomm_all_reduce(my.group, NULL, out, 1, DSCOMM_INT32, DSCOMM_SUM,
                              NULL));
    REFUSED(dscomm_all_reduce(my.group, in, NULL, 1, DSCOMM_INT32, DSCOMM_SUM,
                              NULL));
    REFUSED(dscomm_all_gather(my.group, NULL, out, 1, DSCOMM_INT32, NULL));
    REFUSED(dscomm_all_gather(my.group, in, NULL, 1, DSCOMM_INT32, NULL));
    REFUSED(dscomm_reduce_scatter(my.group, in, NULL, 1, DSCOMM_INT32,
                                  DSCOMM_SUM, NULL));
    REFUSED(dscomm_gather(my.group, in, NULL, 1, DSCOMM_INT32, my.rank, NULL));
    REFUSED(
        dscomm_scatter(my.group, NULL, out, 1, DSCOMM_INT32, my.rank, NULL));
    REFUSED(dscomm_all_to_all(my.group, in, NULL, 1, DSCOMM_INT32, NULL));
    still_works();
}

static void test_null_arrays(void)
{
    size_t counts[64] = {0};

    REFUSED(dscomm_all_gather_v(my.group, in, 0, out, NULL, NULL, DSCOMM_INT32,
                                NULL));
    REFUSED(dscomm_reduce_scatter_v(my.group, in, out, NULL, DSCOMM_INT32,
                                    DSCOMM_SUM, NULL));
    REFUSED(dscomm_gather_v(my.group, in, 0, out, NULL, NULL, DSCOMM_INT32,
                            my.rank, NULL));
    REFUSED(dscomm_scatter_v(my.group, in, NULL, NULL, out, 0, DSCOMM_INT32,
                             my.rank, NULL));
    REFUSED(dscomm_all_to_all_v(my.group, in, counts, NULL, out, NULL, NULL,
                                DSCOMM_INT32, NULL));
    REFUSED(dscomm_all_to_all_v(my.group, in, NULL, NULL, out, counts, NULL,
                                DSCOMM_INT32, NULL));
    /* This rank's own count and its entry in the array contradict each
     * other. */
    REFUSED(dscomm_all_gather_v(my.group, in, 3, out, counts, NULL,
                                DSCOMM_INT32, NULL));
    still_works();
}

/* Blocks that overlap another block in a way that is not in place. */
static void test_overlap(void)
{
    int next = next_rank();
    size_t counts[64] = {0}, displs[64];

    for (int r = 0; r < 64; r++)
        displs[r] = (size_t)r * 2;
    if (my.ranks == 1)
        return;
    counts[next] = 2;
    REFUSED(dscomm_all_to_all_v(my.group, in, counts, NULL, in, counts, NULL,
                                DSCOMM_INT32, NULL));
    for (int r = 0; r < my.ranks; r++)
        counts[r] = 2;
    REFUSED(dscomm_all_gather_v(my.group, out + displs[next], 2, out, counts,
                                displs, DSCOMM_INT32, NULL));
    REFUSED(dscomm_gather_v(my.group, out + displs[next], 2, out, counts, NULL,
                            DSCOMM_INT32, my.rank, NULL));
    REFUSED(dscomm_scatter_v(my.group, in, counts, displs, in + displs[next], 2,
                             DSCOMM_INT32, my.rank, NULL));
    REFUSED(dscomm_reduce_scatter_v(my.group, in, in + displs[next], counts,
                                    DSCOMM_INT32, DSCOMM_SUM, NULL));
    still_works();
}

/* Counts whose bytes overflow must not be taken for small ones. */
static void test_overflow(void)
{
    size_t huge = SIZE_MAX / 4 + 2, counts[64] = {0};

    REFUSED(dscomm_broadcast(my.group, in, huge, DSCOMM_INT32, 0, NULL));
    REFUSED(dscomm_all_reduce(my.group, in, out, huge, DSCOMM_INT64, DSCOMM_SUM,
                              NULL));
    if (my.ranks > 1)
        REFUSED(dscomm_all_gather(my.group, in, out,
                                  SIZE_MAX / (size_t)my.ranks / 4 + 2,
                                  DSCOMM_INT32, NULL));
    counts[my.rank] = huge;
    REFUSED(dscomm_all_gather_v(my.group, in, huge, out, counts, NULL,
                                DSCOMM_INT32, NULL));
    REFUSED(dscomm_send(my.group, in, huge, DSCOMM_INT32, 0, 0));
    still_works();
}

static void test_dtypes(void)
{
    static const int wrong[] = {-1, DSCOMM_DTYPE_COUNT, 1000};

    for (size_t i = 0; i < CONFORM_LENGTH(wrong); i++) {
        dscomm_dtype_t dtype = (dscomm_dtype_t)wrong[i];

        REFUSED(dscomm_broadcast(my.group, in, 1, dtype, 0, NULL));
        REFUSED(
            dscomm_all_reduce(my.group, in, out, 1, dtype, DSCOMM_SUM, NULL));
        REFUSED(dscomm_all_to_all(my.group, in, out, 1, dtype, NULL));
        REFUSED(dscomm_send(my.group, in, 1, dtype, 0, 0));
        REFUSED(dscomm_recv(my.group, in, 1, dtype, 0, 0, NULL, NULL));
    }
    still_works();
}

static void test_messages(void)
{
    dscomm_work_t *work = NULL;

    REFUSED(dscomm_send(my.group, in, 1, DSCOMM_INT32, my.ranks, 0));
    REFUSED(dscomm_send(my.group, in, 1, DSCOMM_INT32, DSCOMM_ANY_SOURCE, 0));
    REFUSED(dscomm_send(my.group, in, 1, DSCOMM_INT32, 0, DSCOMM_ANY_TAG));
    REFUSED(dscomm_send(my.group, in, 1, DSCOMM_INT32, 0, -7));
    REFUSED(dscomm_send(my.group, NULL, 1, DSCOMM_INT32, 0, 0));
    REFUSED(
        dscomm_recv(my.group, in, 1, DSCOMM_INT32, my.ranks, 0, NULL, NULL));
    REFUSED(dscomm_recv(my.group, in, 1, DSCOMM_INT32, -2, 0, NULL, NULL));
    REFUSED(dscomm_recv(my.group, in, 1, DSCOMM_INT32, 0, -2, NULL, NULL));
    REFUSED(dscomm_recv(my.group, NULL, 1, DSCOMM_INT32, 0, 0, NULL, NULL));
    REFUSED(dscomm_isend(my.group, in, 1, DSCOMM_INT32, 0, 0, NULL));
    REFUSED(dscomm_irecv(my.group, in, 1, DSCOMM_INT32, 0, 0, NULL));
    REFUSED(dscomm_irecv(my.group, in, 1, DSCOMM_INT32, -3, 0, &work));
    still_works();
}

static void test_null_group(void)
{
    REFUSED(dscomm_barrier(NULL, NULL));
    REFUSED(
        dscomm_all_reduce(NULL, in, out, 1, DSCOMM_INT32, DSCOMM_SUM, NULL));
    REFUSED(dscomm_send(NULL, in, 1, DSCOMM_INT32, 0, 0));
    REFUSED(dscomm_group_split(NULL, 0, 0, NULL, &(dscomm_group_t *){NULL}));
    REFUSED(dscomm_group_abort(NULL, NULL));
    REFUSED(dscomm_group_status(NULL));
    REFUSED(dscomm_work_wait(NULL, 0));
    REFUSED(dscomm_work_test(NULL));
    check(dscomm_group_capabilities(NULL) == 0, "capabilities of NULL");
}

static void test_world_is_not_freed(void)
{
    CHECK_FAILS(dscomm_group_free(my.world), DSCOMM_ERR_STATE);
    CHECK_OK(dscomm_group_status(my.world));
}

/* The size of a structure that no version ever had. */
static void test_attribute_size(void)
{
    struct {
        dscomm_group_attr_t attr;
        char more[32];
    } grown = {DSCOMM_GROUP_ATTR_INIT, {0}};
    dscomm_group_attr_t none = {0, NULL, NULL, 0, 0};
    dscomm_group_t *group = NULL;

    REFUSED(dscomm_group_split(my.group, 0, 0, &none, &group));
    grown.attr.size = sizeof grown;
    grown.more[5] = 1;
    REFUSED(dscomm_group_split(my.group, 0, 0, &grown.attr, &group));
    check(group == NULL, "a refused call wrote its result");
    grown.more[5] = 0;
    CHECK_OK(dscomm_group_split(my.group, 0, 0, &grown.attr, &group));
    CHECK_OK(dscomm_group_free(group));
}

static const conform_test_t tests[] = {
    {"roots out of range", test_roots},
    {"NULL buffers", test_null_buffers},
    {"NULL and contradictory arrays", test_null_arrays},
    {"buffers that overlap", test_overlap},
    {"byte counts that overflow", test_overflow},
    {"no such dtype", test_dtypes},
    {"messages", test_messages},
    {"NULL group or work", test_null_group},
    {"the world is freed by finalize only", test_world_is_not_freed},
    {"attributes of other versions", test_attribute_size},
    {NULL, NULL},
};
const conform_area_t conform_arguments = {"arguments", NULL, tests};
