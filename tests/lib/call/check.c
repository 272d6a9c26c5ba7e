/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments: every public call refuses invalid ones, with a sentence. */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/dscomm.h>

static dscomm_group_t *world;
static float a[8], b[8];
static size_t one[1] = {1}, two[1] = {2}, huge[1] = {SIZE_MAX / 2};
static size_t big[1] = {SIZE_MAX / 4};
static size_t far_away[1] = {SIZE_MAX / 2};

#define BIG (SIZE_MAX / 4)
#define BAD_DTYPE ((dscomm_dtype_t)99)
#define BAD_OP ((dscomm_op_t)-7)

#define W world
#define F DSCOMM_FLOAT32
#define B DSCOMM_INT8
#define S DSCOMM_SUM

/* Makes a call that must fail, and checks its sentence for words. */
#define REFUSED(want, words, call)                                             \
    do {                                                                       \
        is_int((call), (want), "%s", #call);                                   \
        ok(strstr(dscomm_last_error(), (words)) != NULL, "  says \"%s\": %s",  \
           (words), dscomm_last_error());                                      \
    } while (0)
#define INVALID(words, call) REFUSED(DSCOMM_ERR_INVALID, words, call)

static void check_collectives(void)
{
    INVALID("group is NULL", dscomm_broadcast(NULL, a, 1, F, 0, NULL));
    INVALID("is NULL", dscomm_broadcast(W, NULL, 1, F, 0, NULL));
    INVALID("no dtype", dscomm_broadcast(W, a, 1, BAD_DTYPE, 0, NULL));
    INVALID("root 1", dscomm_broadcast(W, a, 1, F, 1, NULL));
    INVALID("root -1", dscomm_broadcast(W, a, 1, F, -1, NULL));
    INVALID("memory can hold", dscomm_broadcast(W, a, BIG, F, 0, NULL));
    INVALID("buffer is NULL", dscomm_broadcast(W, NULL, BIG, B, 0, NULL));

    INVALID("group is NULL", dscomm_reduce(NULL, a, b, 1, F, S, 0, NULL));
    INVALID("send buffer", dscomm_reduce(W, NULL, b, 1, F, S, 0, NULL));
    INVALID("recv buffer", dscomm_reduce(W, a, NULL, 1, F, S, 0, NULL));
    INVALID("root 9", dscomm_reduce(W, a, b, 1, F, S, 9, NULL));
    INVALID("no operator", dscomm_reduce(W, a, b, 1, F, BAD_OP, 0, NULL));
    INVALID("premul_sum",
            dscomm_reduce(W, a, b, 1, F, DSCOMM_PREMUL_SUM, 0, NULL));

    INVALID("group is NULL", dscomm_all_reduce(NULL, a, b, 1, F, S, NULL));
    INVALID("send buffer", dscomm_all_reduce(W, NULL, b, 1, F, S, NULL));
    INVALID("recv buffer", dscomm_all_reduce(W, a, NULL, 1, F, S, NULL));
    INVALID("99 is no dtype",
            dscomm_all_reduce(W, a, b, 1, BAD_DTYPE, S, NULL));
    INVALID("no operator", dscomm_all_reduce(W, a, b, 1, F, BAD_OP, NULL));
    INVALID("does not apply to float32",
            dscomm_all_reduce(W, a, b, 1, F, DSCOMM_BXOR, NULL));
    INVALID("does not apply to bool",
            dscomm_all_reduce(W, a, b, 1, DSCOMM_BOOL, DSCOMM_AVG, NULL));
    INVALID("premul_sum",
            dscomm_all_reduce(W, a, b, 1, F, DSCOMM_PREMUL_SUM, NULL));
    INVALID("memory can hold", dscomm_all_reduce(W, a, b, BIG, F, S, NULL));
    INVALID("overlap", dscomm_all_reduce(W, a, a + 1, 4, F, S, NULL));
    INVALID("does not apply to int32",
            dscomm_all_reduce_premul_sum(W, a, b, 1, DSCOMM_INT32, 2, NULL));
    INVALID("group is NULL",
            dscomm_all_reduce_premul_sum(NULL, a, b, 1, F, 2, NULL));
    INVALID("root 2", dscomm_reduce_premul_sum(W, a, b, 1, F, 2, 2, NULL));
    INVALID("recv buffer",
            dscomm_reduce_scatter_premul_sum(W, a, NULL, 1, F, 2, NULL));

    INVALID("group is NULL", dscomm_all_gather(NULL, a, b, 1, F, NULL));
    INVALID("send buffer", dscomm_all_gather(W, NULL, b, 1, F, NULL));
    INVALID("overlap", dscomm_all_gather(W, a + 1, a, 2, F, NULL));
    INVALID("group is NULL", dscomm_reduce_scatter(NULL, a, b, 1, F, S, NULL));
    INVALID("overlap", dscomm_reduce_scatter(W, a, a + 1, 2, F, S, NULL));
    INVALID("premul_sum",
            dscomm_reduce_scatter(W, a, b, 1, F, DSCOMM_PREMUL_SUM, NULL));
    INVALID("root 1", dscomm_gather(W, a, b, 1, F, 1, NULL));
    INVALID("recv buffer", dscomm_gather(W, a, NULL, 1, F, 0, NULL));
    INVALID("root 1", dscomm_scatter(W, a, b, 1, F, 1, NULL));
    INVALID("send buffer", dscomm_scatter(W, NULL, b, 1, F, 0, NULL));
    INVALID("never in place", dscomm_all_to_all(W, a, a, 1, F, NULL));
    INVALID("group is NULL", dscomm_all_to_all(NULL, a, b, 1, F, NULL));
    INVALID("group is NULL", dscomm_barrier(NULL, NULL));
}

static void check_v(void)
{
    INVALID("recv_counts is NULL",
            dscomm_all_gather_v(W, a, 1, b, NULL, NULL, F, NULL));
    INVALID("this rank's own",
            dscomm_all_gather_v(W, a, 1, b, two, NULL, F, NULL));
    INVALID("memory can hold",
            dscomm_all_gather_v(W, a, 1, b, huge, NULL, F, NULL));
    INVALID("recv_displs[0]",
            dscomm_all_gather_v(W, a, 1, b, one, far_away, F, NULL));
    INVALID("buffer is NULL",
            dscomm_all_gather_v(W, NULL, BIG, NULL, big, NULL, B, NULL));
    INVALID("recv_counts is NULL",
            dscomm_reduce_scatter_v(W, a, b, NULL, F, S, NULL));
    INVALID("send buffer",
            dscomm_reduce_scatter_v(W, NULL, b, one, F, S, NULL));
    INVALID("no operator",
            dscomm_reduce_scatter_v(W, a, b, one, F, BAD_OP, NULL));
    INVALID("recv_counts is NULL",
            dscomm_gather_v(W, a, 1, b, NULL, NULL, F, 0, NULL));
    INVALID("root 3", dscomm_gather_v(W, a, 1, b, one, NULL, F, 3, NULL));
    REFUSED(DSCOMM_ERR_MISMATCH, "expects 2",
            dscomm_gather_v(W, a, 1, b, two, NULL, F, 0, NULL));
    INVALID("send_counts is NULL",
            dscomm_scatter_v(W, a, NULL, NULL, b, 1, F, 0, NULL));
    INVALID("send_counts is NULL",
            dscomm_all_to_all_v(W, a, NULL, NULL, b, one, NULL, F, NULL));
    INVALID("recv_counts is NULL",
            dscomm_all_to_all_v(W, a, one, NULL, b, NULL, NULL, F, NULL));
    INVALID("never in place",
            dscomm_all_to_all_v(W, a, one, NULL, a, one, NULL, F, NULL));
    INVALID("overlap", dscomm_all_gather_v(W, a + 1, 2, a, two, NULL, F, NULL));
    INVALID("overlap", dscomm_gather_v(W, a, 2, a, two, one, F, 0, NULL));
    INVALID("overlap", dscomm_scatter_v(W, a, two, NULL, a + 1, 2, F, 0, NULL));
    INVALID("overlap", dscomm_reduce_scatter_v(W, a, a + 1, two, F, S, NULL));
    INVALID("group is NULL",
            dscomm_all_to_all_v(NULL, a, one, NULL, b, one, NULL, F, NULL));
}

static void check_messages(void)
{
    dscomm_work_t *work;

    INVALID("group is NULL", dscomm_send(NULL, a, 1, F, 0, 0));
    INVALID("buffer is NULL", dscomm_send(W, NULL, 1, F, 0, 0));
    INVALID("rank 1 is not", dscomm_send(W, a, 1, F, 1, 0));
    INVALID("rank -1 is not", dscomm_send(W, a, 1, F, DSCOMM_ANY_SOURCE, 0));
    INVALID("tag -1 is not", dscomm_send(W, a, 1, F, 0, DSCOMM_ANY_TAG));
    INVALID("no dtype", dscomm_send(W, a, 1, BAD_DTYPE, 0, 0));
    INVALID("memory can hold", dscomm_send(W, a, BIG, F, 0, 0));
    INVALID("buffer is NULL", dscomm_send(W, NULL, BIG, B, 0, 0));
    INVALID("rank 1 is not", dscomm_recv(W, a, 1, F, 1, 0, NULL, NULL));
    INVALID("tag -2 is not", dscomm_recv(W, a, 1, F, 0, -2, NULL, NULL));
    INVALID("ret_work is NULL", dscomm_isend(W, a, 1, F, 0, 0, NULL));
    INVALID("ret_work is NULL", dscomm_irecv(W, a, 1, F, 0, 0, NULL));
    INVALID("group is NULL", dscomm_irecv(NULL, a, 1, F, 0, 0, &work));
}

static void check_works(void)
{
    dscomm_work_t *works[2] = {NULL, NULL};
    size_t index;

    INVALID("work is NULL", dscomm_work_wait(NULL, 0));
    INVALID("work is NULL", dscomm_work_test(NULL));
    INVALID("works is NULL", dscomm_work_wait_all(NULL, 1, 0));
    INVALID("works is NULL", dscomm_work_wait_any(NULL, 1, 0, &index));
    INVALID("all works are NULL", dscomm_work_wait_any(works, 2, 0, &index));
    INVALID("ret_index is NULL", dscomm_work_wait_any(works, 2, 0, NULL));
    is_int(dscomm_work_wait_all(works, 2, 0), DSCOMM_OK, "no works at all");
    INVALID("work is NULL", dscomm_work_received(NULL, NULL, NULL, NULL));
    ok(!dscomm_work_group(NULL) && dscomm_work_sequence(NULL) == 0,
       "a NULL work has neither group nor number");
    dscomm_work_free(NULL);
    INVALID("group is NULL", dscomm_coalesce_begin(NULL));
    INVALID("group is NULL", dscomm_coalesce_end(NULL, NULL));
    REFUSED(DSCOMM_ERR_STATE, "no coalesce_begin",
            dscomm_coalesce_end(W, NULL));
}

static void check_groups(void)
{
    const int ranks[2] = {0, 0}, wrong[1] = {1}, dims[2] = {2, 2};
    const int none[1] = {0}, open[2] = {-1, -1};
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group, *groups[2];
    int rank;

    INVALID("group is NULL", dscomm_group_new(NULL, ranks, 1, NULL, &group));
    INVALID("ranks is NULL", dscomm_group_new(W, NULL, 1, NULL, &group));
    INVALID("a list of 0", dscomm_group_new(W, ranks, 0, NULL, &group));
    INVALID("a list of 2", dscomm_group_new(W, ranks, 2, NULL, &group));
    INVALID("ranks[0] is 1", dscomm_group_new(W, wrong, 1, NULL, &group));
    INVALID("ret_group is NULL", dscomm_group_new(W, ranks, 1, NULL, NULL));
    attr.size = 3;
    INVALID("attr.size is 3", dscomm_group_new(W, ranks, 1, &attr, &group));
    attr.size = sizeof attr;
    attr.timeout_ms = -5;
    INVALID("timeout_ms is -5", dscomm_group_new(W, ranks, 1, &attr, &group));
    INVALID("color is negative", dscomm_group_split(W, -2, 0, NULL, &group));
    INVALID("ret_group is NULL", dscomm_group_split(W, 0, 0, NULL, NULL));
    INVALID("group is NULL", dscomm_group_split(NULL, 0, 0, NULL, &group));
    INVALID("does not equal", dscomm_group_mesh(W, dims, 2, groups));
    INVALID("dims[0] is 0", dscomm_group_mesh(W, none, 1, groups));
    INVALID("dims[1] is -1", dscomm_group_mesh(W, open, 2, groups));
    INVALID("ndims is 0, not in 1", dscomm_group_mesh(W, dims, 0, groups));
    INVALID("mesh: dims is NULL", dscomm_group_mesh(W, NULL, 1, groups));
    INVALID("ret_groups is NULL", dscomm_group_mesh(W, dims, 2, NULL));
    INVALID("group is NULL", dscomm_group_mesh(NULL, dims, 2, groups));
    REFUSED(DSCOMM_ERR_STATE, "is the world", dscomm_group_free(W));
    is_int(dscomm_group_free(NULL), DSCOMM_OK, "freeing NULL");
    INVALID("group is NULL", dscomm_group_abort(NULL, NULL));
    INVALID("group is NULL", dscomm_group_status(NULL));
    INVALID("group is NULL", dscomm_group_to_global(NULL, 0, &rank));
    INVALID("ret_rank is NULL", dscomm_group_to_global(W, 0, NULL));
    INVALID("rank 1 of group", dscomm_group_to_global(W, 1, &rank));
    INVALID("world rank 1", dscomm_group_from_global(W, 1, &rank));
    REFUSED(DSCOMM_ERR_UNSUPPORTED, "no CUDA driver",
            dscomm_group_set_stream(W, NULL));
    is_int(dscomm_group_rank(NULL), -1, "rank of NULL");
    is_int(dscomm_group_size(NULL), -1, "size of NULL");
    ok(dscomm_group_capabilities(NULL) == 0, "capabilities of NULL");
}

static void check_rest(void)
{
    dscomm_hooks_t hooks = {.size = 1};
    void *memory, *blob;
    size_t size;

    INVALID("timeout_ms is -3", dscomm_monitored_barrier(W, -3));
    INVALID("group is NULL", dscomm_monitored_barrier(NULL, 0));
    INVALID("root 4", dscomm_broadcast_blob(W, a, 1, 4, &blob, &size));
    INVALID("blob is NULL", dscomm_broadcast_blob(W, NULL, 1, 0, &blob, &size));
    INVALID("output is NULL", dscomm_broadcast_blob(W, a, 1, 0, NULL, &size));
    INVALID("output is NULL", dscomm_all_gather_blob(W, a, 1, &blob, NULL));
    INVALID("group is NULL", dscomm_all_gather_blob(NULL, a, 1, &blob, &size));
    dscomm_blob_free(NULL);
    INVALID("group is NULL", dscomm_mem_alloc(NULL, 1, &memory));
    INVALID("ret_memory is NULL", dscomm_mem_alloc(W, 1, NULL));
    INVALID("size is 0", dscomm_mem_alloc(W, 0, &memory));
    REFUSED(DSCOMM_ERR_NO_MEMORY, "out of range",
            dscomm_mem_alloc(W, SIZE_MAX, &memory));
    INVALID("not what dscomm_mem_alloc", dscomm_mem_free(W, a));
    is_int(dscomm_mem_free(W, NULL), DSCOMM_OK, "freeing no memory");
    INVALID("size is 1", dscomm_hooks_set(&hooks));
}

static void check_empty(void)
{
    is_int(dscomm_all_reduce(W, NULL, NULL, 0, F, S, NULL), DSCOMM_OK,
           "count 0 needs no buffers: all_reduce");
    is_int(dscomm_broadcast(W, NULL, 0, F, 0, NULL), DSCOMM_OK, "broadcast");
    is_int(dscomm_all_to_all(W, NULL, NULL, 0, F, NULL), DSCOMM_OK,
           "all_to_all");
    is_int(dscomm_all_gather(W, NULL, NULL, 0, F, NULL), DSCOMM_OK,
           "all_gather");
    is_int(dscomm_all_gather(W, a, a, 2, F, NULL), DSCOMM_OK,
           "all_gather in place");
    is_int(dscomm_reduce_scatter(W, a, a, 2, F, S, NULL), DSCOMM_OK,
           "reduce_scatter in place");
    is_int(dscomm_all_gather_v(W, a + 1, 2, a, two, one, F, NULL), DSCOMM_OK,
           "all_gather_v in place");
    is_int(dscomm_reduce_scatter_v(W, a, a, two, F, S, NULL), DSCOMM_OK,
           "reduce_scatter_v in place");
}

int main(void)
{
    if (dscomm_init(NULL, &world))
        bail("%s", dscomm_last_error());
    check_collectives();
    check_v();
    check_messages();
    check_works();
    check_groups();
    check_rest();
    check_empty();
    is_int(dscomm_finalize(world), DSCOMM_OK, "finalize");
    return tap_done();
}
