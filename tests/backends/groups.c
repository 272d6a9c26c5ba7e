/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: from lists of ranks, split, mesh, nested, side by side; translation
 * of ranks; freeing. */
#include "config.h"

#include "tests/backends/conform.h"

#include <stdio.h>
#include <string.h>

#define RANKS_MAX 64

/* Makes a few calls and checks their data. */
static void exercise(dscomm_group_t *group)
{
    static const int colls[] = {DSCOMM_COLL_ALL_REDUCE, DSCOMM_COLL_BROADCAST,
                                DSCOMM_COLL_ALL_TO_ALL, DSCOMM_COLL_GATHER};
    int rank = dscomm_group_rank(group), ranks = dscomm_group_size(group);
    message_t in = {.group = group,
                    .peer = (rank + ranks - 1) % ranks,
                    .tag = 1,
                    .bytes = 100};
    message_t out = in;

    for (size_t i = 0; i < CONFORM_LENGTH(colls); i++) {
        exchange_t x = {.group = group,
                        .coll = colls[i],
                        .dtype = DSCOMM_INT32,
                        .root = ranks - 1,
                        .count = 10 + 1000 * (i % 2),
                        .seed = i};

        exchange_run(&x);
    }
    out.peer = (rank + 1) % ranks;
    message_isend(&out);
    message_recv(&in);
    message_end(&out);
}

/* Checks that member i of the group is world rank ranks[i], in both
 * directions. */
static void check_members(dscomm_group_t *group, const int *ranks, int count)
{
    int got = -7;

    check(dscomm_group_size(group) == count, "size %d, want %d",
          dscomm_group_size(group), count);
    for (int i = 0; i < count; i++) {
        CHECK_OK(dscomm_group_to_global(group, i, &got));
        check(got == ranks[i], "member %d is world rank %d, want %d", i, got,
              ranks[i]);
        CHECK_OK(dscomm_group_from_global(group, ranks[i], &got));
        check(got == i, "world rank %d is member %d, want %d", ranks[i], got,
              i);
        if (ranks[i] == my.rank)
            check(dscomm_group_rank(group) == i, "I am %d, want %d",
                  dscomm_group_rank(group), i);
    }
}

static int contains(const int *ranks, int count, int rank)
{
    for (int i = 0; i < count; i++)
        if (ranks[i] == rank)
            return 1;
    return 0;
}

static void run_new(const int *ranks, int count)
{
    int dummy = 0;
    dscomm_group_t *group = (dscomm_group_t *)&dummy;

    if (!CHECK_OK(dscomm_group_new(my.group, ranks, count, NULL, &group)))
        return;
    if (!contains(ranks, count, my.rank)) {
        check(group == NULL, "a rank that is not listed got a group");
        return;
    }
    check_members(group, ranks, count);
    exercise(group);
    CHECK_OK(dscomm_group_free(group));
}

static void test_new_reversed(void)
{
    int ranks[RANKS_MAX];

    for (int i = 0; i < my.ranks; i++)
        ranks[i] = my.ranks - 1 - i;
    run_new(ranks, my.ranks);
}

/* Every third rank, in an order that is neither ascending nor descending. */
static void test_new_permuted(void)
{
    int ranks[RANKS_MAX], count = 0;

    for (int i = 0; i < my.ranks; i++)
        if (i % 3 != 1)
            ranks[count++] = i;
    for (int i = 0; i + 1 < count; i += 2) {
        int other = ranks[i];

        ranks[i] = ranks[i + 1];
        ranks[i + 1] = other;
    }
    run_new(ranks, count);
}

static void test_new_single(void)
{
    for (int i = 0; i < my.ranks && i < 4; i++)
        run_new(&i, 1);
}

/* Ranks that are not listed do something else: they wait for a message, which
 * the members send after they have used the group. Two groups of the same list
 * are distinct, and so is a group of another order. */
static void test_new_by_members(void)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *groups[3] = {NULL, NULL, NULL};
    int ranks[2][RANKS_MAX], count = (my.ranks + 1) / 2, member;

    for (int i = 0; i < count; i++)
        ranks[0][i] = ranks[1][count - 1 - i] = 2 * i;
    attr.members_only = 1;
    member = my.rank % 2 == 0;
    for (int i = 0; i < 3 && member; i++) {
        CHECK_OK(
            dscomm_group_new(my.group, ranks[i / 2], count, &attr, &groups[i]));
        check_members(groups[i], ranks[i / 2], count);
    }
    for (int i = 0; i < 3 && member; i++)
        exercise(groups[2 - i]);
    if (member && my.rank + 1 < my.ranks)
        conform_notify(my.rank + 1);
    if (!member)
        conform_await(my.rank - 1);
    for (int i = 0; i < 3; i++)
        CHECK_OK(dscomm_group_free(groups[i]));
    exercise(my.group);
}

static void test_members_refused(void)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    int dummy = 0, first = 0, both[2] = {0, 1};
    dscomm_group_t *none = (dscomm_group_t *)&dummy, *group = NULL;

    attr.members_only = 1;
    CHECK_FAILS(dscomm_group_split(my.group, 0, 0, &attr, &group),
                DSCOMM_ERR_INVALID);
    check_sentence("members_only", "split");
    if (my.rank > 0) {
        CHECK_OK(dscomm_group_new(my.group, &first, 1, &attr, &none));
        check(none == NULL, "a rank that is not listed got a group");
    }
    attr.timeout_ms = 300;
    if (my.rank == 0 && my.ranks > 1) {
        CHECK_FAILS(dscomm_group_new(my.group, both, 2, &attr, &group),
                    DSCOMM_ERR_TIMEOUT);
        check_sentence("{0,1}#1", "name of the group");
        check_sentence("rank 1", "who did not come");
    }
    exercise(my.group);
}

static void test_split(void)
{
    dscomm_group_t *group = NULL;
    int ranks[RANKS_MAX], count = 0;

    CHECK_OK(dscomm_group_split(my.group, my.rank % 2, -my.rank, NULL, &group));
    if (!check(group != NULL, "no group"))
        return;
    for (int i = my.ranks - 1; i >= 0; i--)
        if (i % 2 == my.rank % 2)
            ranks[count++] = i;
    check_members(group, ranks, count);
    exercise(group);
    CHECK_OK(dscomm_group_free(group));
}

/* Equal keys: the order of the parent. */
static void test_split_equal_keys(void)
{
    dscomm_group_t *group = NULL;
    int ranks[RANKS_MAX];

    CHECK_OK(dscomm_group_split(my.group, 1000000, 5, NULL, &group));
    for (int i = 0; i < my.ranks; i++)
        ranks[i] = i;
    if (check(group != NULL, "no group"))
        check_members(group, ranks, my.ranks);
    exercise(group);
    CHECK_OK(dscomm_group_free(group));
}

static void test_split_no_color(void)
{
    int dummy = 0, outside = my.rank % 3 == 1;
    dscomm_group_t *group = (dscomm_group_t *)&dummy;

    CHECK_OK(dscomm_group_split(my.group, outside ? DSCOMM_NO_COLOR : 2, 0,
                                NULL, &group));
    if (outside) {
        check(group == NULL, "no colour, but a group");
        return;
    }
    exercise(group);
    CHECK_OK(dscomm_group_free(group));
}

/* Checks the group along one dimension of a mesh. */
static void check_mesh(dscomm_group_t *group, const int *dims, int ndims, int d)
{
    int stride = 1, ranks[RANKS_MAX], mine;

    for (int i = d + 1; i < ndims; i++)
        stride *= dims[i];
    mine = my.rank / stride % dims[d];
    for (int i = 0; i < dims[d]; i++)
        ranks[i] = my.rank + (i - mine) * stride;
    check_members(group, ranks, dims[d]);
}

/* dims is the argument, want the expected result. */
static void run_mesh(const int *dims, const int *want, int ndims)
{
    dscomm_group_t *groups[3] = {NULL, NULL, NULL};

    if (!CHECK_OK(dscomm_group_mesh(my.group, dims, ndims, groups)))
        return;
    for (int d = 0; d < ndims; d++) {
        if (!check(groups[d] != NULL, "no group in dimension %d", d))
            continue;
        check_mesh(groups[d], want, ndims, d);
        exercise(groups[d]);
    }
    for (int d = 0; d < ndims; d++)
        CHECK_OK(dscomm_group_free(groups[d]));
}

static void test_mesh(void)
{
    int n = my.ranks, a = n % 2 ? 1 : 2, b = n / a % 2 ? 1 : 2;

    run_mesh((int[]){a, n / a}, (int[]){a, n / a}, 2);
    run_mesh((int[]){-1, a}, (int[]){n / a, a}, 2);
    run_mesh((int[]){a, -1, b}, (int[]){a, n / a / b, b}, 3);
    run_mesh((int[]){-1}, (int[]){n}, 1);
}

static void test_mesh_refused(void)
{
    dscomm_group_t *groups[3] = {NULL, NULL, NULL};

    CHECK_FAILS(dscomm_group_mesh(my.group, (int[]){my.ranks, 2}, 2, groups),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_group_mesh(my.group, (int[]){-1, -1}, 2, groups),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(
        dscomm_group_mesh(my.group, (int[]){-1, my.ranks + 1}, 2, groups),
        DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_group_mesh(my.group, (int[]){0, my.ranks}, 2, groups),
                DSCOMM_ERR_INVALID);
    check(!groups[0] && !groups[1], "a refused call wrote its result");
    exercise(my.group);
}

static void test_new_refused(void)
{
    int ranks[RANKS_MAX + 1] = {0, 0};
    dscomm_group_t *group = NULL;

    CHECK_FAILS(dscomm_group_new(my.group, ranks, 2, NULL, &group),
                DSCOMM_ERR_INVALID);
    ranks[0] = my.ranks;
    CHECK_FAILS(dscomm_group_new(my.group, ranks, 1, NULL, &group),
                DSCOMM_ERR_INVALID);
    ranks[0] = -1;
    CHECK_FAILS(dscomm_group_new(my.group, ranks, 1, NULL, &group),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_group_new(my.group, NULL, 1, NULL, &group),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_group_split(my.group, -5, 0, NULL, &group),
                DSCOMM_ERR_INVALID);
    check(group == NULL, "a refused call wrote its result");
    exercise(my.group);
}

/* Splits groups in halves until one rank is left. All groups are used, then
 * freed, parents first. */
static void test_nested(void)
{
    dscomm_group_t *groups[8] = {my.group};
    int depth = 0, dummy;

    while (dscomm_group_size(groups[depth]) > 1 && depth < 7) {
        dscomm_group_t *parent = groups[depth];
        int half = (dscomm_group_size(parent) + 1) / 2;
        int rank = dscomm_group_rank(parent);

        if (!CHECK_OK(dscomm_group_split(parent, rank / half, 0, NULL,
                                         &groups[depth + 1])))
            break;
        depth++;
    }
    for (int i = depth; i >= 0; i--)
        exercise(groups[i]);
    CHECK_OK(dscomm_group_to_global(groups[depth],
                                    dscomm_group_rank(groups[depth]), &dummy));
    check(dummy == my.rank, "nested: I am world rank %d", dummy);
    for (int i = 1; i <= depth; i++)
        CHECK_OK(dscomm_group_free(groups[i]));
}

/* Several groups with equal and with different members, used alternately. */
static void test_side_by_side(void)
{
    dscomm_group_t *all[4] = {NULL}, *parts[3] = {NULL};

    for (int i = 0; i < 4; i++)
        CHECK_OK(dscomm_group_split(my.group, 0, i % 2 ? -my.rank : my.rank,
                                    NULL, &all[i]));
    for (int i = 0; i < 3; i++)
        CHECK_OK(dscomm_group_split(my.group, my.rank / (i + 1) % 2, 0, NULL,
                                    &parts[i]));
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 4; i++)
            exercise(all[(i + turn) % 4]);
        for (int i = 0; i < 3; i++)
            exercise(parts[i]);
    }
    for (int i = 0; i < 3; i++)
        CHECK_OK(dscomm_group_free(parts[i]));
    for (int i = 3; i >= 0; i--)
        CHECK_OK(dscomm_group_free(all[i]));
}

/* A name and a deadline of the group's own; without them, the parent's. */
static void test_attributes(void)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group = NULL, *plain = NULL;

    attr.name = "tensor";
    attr.timeout_ms = 12345;
    CHECK_OK(dscomm_group_split(my.group, 0, 0, &attr, &group));
    CHECK_OK(dscomm_group_split(group, 0, 0, NULL, &plain));
    check(strcmp(dscomm_group_name(group), "tensor") == 0, "name \"%s\"",
          dscomm_group_name(group));
    check(dscomm_group_timeout(group) == 12345, "timeout %d",
          dscomm_group_timeout(group));
    check(dscomm_group_timeout(plain) == 12345, "inherited timeout %d",
          dscomm_group_timeout(plain));
    check(strncmp(dscomm_group_name(plain), "tensor/", 7) == 0,
          "inherited name \"%s\"", dscomm_group_name(plain));
    check(strcmp(dscomm_group_backend(group), dscomm_group_backend(my.group)) ==
              0,
          "inherited backend \"%s\"", dscomm_group_backend(group));
    CHECK_OK(dscomm_group_free(group));
    exercise(plain);
    CHECK_OK(dscomm_group_free(plain));
    CHECK_OK(dscomm_group_free(NULL));
}

/* Longer than any sentence */
static void test_long_name(void)
{
    static char name[2000];
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group;

    memset(name, 'n', sizeof name - 1);
    attr.name = name;
    CHECK_OK(dscomm_group_split(my.group, 0, my.rank, &attr, &group));
    check(strcmp(dscomm_group_name(group), name) == 0, "the name is cut");
    exercise(group);
    CHECK_OK(dscomm_group_free(group));
}

static void test_backend_refused(void)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group = NULL;

    attr.backend = "no-such-backend";
    CHECK_FAILS(dscomm_group_split(my.group, 0, 0, &attr, &group),
                DSCOMM_ERR_NO_BACKEND);
    check_sentence("no-such-backend", "unknown backend");
    check(group == NULL, "a refused call wrote its result");
}

static void test_translation_refused(void)
{
    dscomm_group_t *group = NULL;
    int rank = 99, color = my.rank == 0 ? 0 : 1;

    CHECK_OK(dscomm_group_split(my.group, color, 0, NULL, &group));
    CHECK_FAILS(dscomm_group_to_global(group, -1, &rank), DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_group_to_global(group, my.ranks, &rank),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_group_from_global(group, my.ranks, &rank),
                DSCOMM_ERR_INVALID);
    if (my.ranks > 1)
        CHECK_FAILS(
            dscomm_group_from_global(group, my.rank == 0 ? 1 : 0, &rank),
            DSCOMM_ERR_NOT_FOUND);
    check(rank == 99, "a refused call wrote %d", rank);
    check(dscomm_group_rank(NULL) == -1 && dscomm_group_size(NULL) == -1,
          "NULL has rank %d, size %d", dscomm_group_rank(NULL),
          dscomm_group_size(NULL));
    CHECK_OK(dscomm_group_free(group));
}

/* Many groups are made and freed, and no resource accumulates. */
static void test_many(void)
{
    int many = my.ranks > 8 ? 10 : 60;

    for (int i = 0; i < many; i++) {
        dscomm_group_t *group = NULL;
        int32_t one = 1, sum = 0;

        CHECK_OK(dscomm_group_split(my.group, my.rank % 2, 0, NULL, &group));
        CHECK_OK(dscomm_all_reduce(group, &one, &sum, 1, DSCOMM_INT32,
                                   DSCOMM_SUM, NULL));
        check(sum == dscomm_group_size(group), "sum %d", sum);
        CHECK_OK(dscomm_group_free(group));
    }
}

/* After abort every call returns the abort and names the rank; freeing still
 * works. */
static void test_abort(void)
{
    int32_t in = 1, out = 0;
    char who[32];
    int culprit = my.ranks / 2;
    dscomm_status_t status = DSCOMM_OK;

    CHECK_OK(dscomm_barrier(my.group, NULL));
    /* abort waits until all ranks have left the barrier */
    if (my.rank != culprit)
        conform_notify(culprit);
    for (int r = 0; r < my.ranks && my.rank == culprit; r++)
        if (r != culprit)
            conform_await(r);
    if (my.rank == culprit)
        CHECK_OK(dscomm_group_abort(my.group, "the pump is dry"));
    for (int i = 0; i < 5000 && status == DSCOMM_OK; i++) {
        status = dscomm_group_status(my.group);
        if (status == DSCOMM_OK)
            conform_pause(2);
    }
    check_status(status, DSCOMM_ERR_ABORTED, "dscomm_group_status");
    CHECK_FAILS(dscomm_all_reduce(my.group, &in, &out, 1, DSCOMM_INT32,
                                  DSCOMM_SUM, NULL),
                DSCOMM_ERR_ABORTED);
    check_sentence("the pump is dry", "reason");
    snprintf(who, sizeof who, "rank %d", culprit);
    check_sentence(who, "culprit");
    CHECK_FAILS(dscomm_barrier(my.group, NULL), DSCOMM_ERR_ABORTED);
    CHECK_FAILS(dscomm_send(my.group, &in, 1, DSCOMM_INT32, 0, 0),
                DSCOMM_ERR_ABORTED);
    CHECK_OK(dscomm_group_status(my.world));
}

/* Works that are outstanding when their group is freed end with ERR_ABORTED, or
 * with ERR_PEER_FAILED if the peer is faster. The parent goes on. */
static void test_free_with_works(void)
{
    dscomm_group_t *group = NULL;
    dscomm_work_t *work = NULL;
    dscomm_status_t status;
    int32_t in = 0;

    if (my.ranks == 1) {
        conform_skip("needs 2 ranks");
        return;
    }
    CHECK_OK(dscomm_group_split(my.group, 0, 0, NULL, &group));
    CHECK_OK(dscomm_irecv(group, &in, 1, DSCOMM_INT32, next_rank(), 0, &work));
    CHECK_FAILS(dscomm_work_test(work), DSCOMM_IN_PROGRESS);
    CHECK_OK(dscomm_barrier(my.group, NULL));
    CHECK_OK(dscomm_group_free(group));
    status = dscomm_work_test(work);
    check(status == DSCOMM_ERR_ABORTED || status == DSCOMM_ERR_PEER_FAILED,
          "%s", dscomm_status_name(status));
    dscomm_work_free(work);
    exercise(my.group);
}

static const conform_test_t tests[] = {
    {"new: reversed", test_new_reversed},
    {"new: some, permuted", test_new_permuted},
    {"new: one rank", test_new_single},
    {"new: refused", test_new_refused},
    {"new: by its members alone", test_new_by_members},
    {"new: by its members alone, refused", test_members_refused},
    {"split by colour and key", test_split},
    {"split with equal keys", test_split_equal_keys},
    {"split: no colour", test_split_no_color},
    {"mesh of 1, 2, 3 dimensions", test_mesh},
    {"mesh: refused", test_mesh_refused},
    {"nested groups", test_nested},
    {"groups side by side", test_side_by_side},
    {"name, deadline, backend", test_attributes},
    {"a long name", test_long_name},
    {"an unknown backend is refused", test_backend_refused},
    {"translation: refused", test_translation_refused},
    {"groups come and go", test_many},
    {"abort", test_abort},
    {"free with works outstanding", test_free_with_works},
    {NULL, NULL},
};
const conform_area_t conform_groups = {"groups", NULL, tests};
