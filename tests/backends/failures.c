/* SPDX-License-Identifier: BSD-3-Clause */
/* The failure record of a group that has ended: it is the same on all ranks.
 * The groups have the world's ranks in reverse order, so that numbers in group
 * and world differ. */
#include "config.h"

#include "tests/backends/conform.h"

#include <string.h>
#include <unistd.h>

#define RANKS_MAX 1024
#define BRIEF_MS 2500 /* long enough to make the group on a busy machine */

static int64_t pids[RANKS_MAX]; /* of the world's ranks */
/* of each rank */
static char hosts[RANKS_MAX][DSCOMM_FAILURE_HOST_MAX];

/* Makes a group that ends in this test; NULL on failure. brief: its deadline
 * passes soon. */
static dscomm_group_t *make_group(int brief)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    char host[DSCOMM_FAILURE_HOST_MAX] = "";
    const int64_t pid = getpid();
    dscomm_group_t *group;

    attr.name = "fragile";
    attr.timeout_ms = brief ? BRIEF_MS : 0;
    gethostname(host, 65);
    CHECK_OK(dscomm_all_gather(my.world, host, hosts, sizeof host, DSCOMM_UINT8,
                               NULL));
    CHECK_OK(dscomm_all_gather(my.world, &pid, pids, 1, DSCOMM_INT64, NULL));
    if (!CHECK_OK(dscomm_group_split(my.group, 0, -my.rank, &attr, &group)))
        return NULL;
    CHECK_FAILS(dscomm_group_failure(group, &(dscomm_failure_t){.size = 64}),
                DSCOMM_ERR_NOT_FOUND);
    CHECK_OK(dscomm_barrier(my.world, NULL));
    return group;
}

/* Waits until the group has ended, and reads its failure record. */
static dscomm_failure_t await_end(dscomm_group_t *group)
{
    dscomm_failure_t failure = DSCOMM_FAILURE_INIT;

    for (int i = 0; i < 10000; i++) {
        if (dscomm_group_status(group) != DSCOMM_OK)
            break;
        conform_pause(2);
    }
    CHECK_OK(dscomm_group_failure(group, &failure));
    return failure;
}

static void check_failure(const dscomm_failure_t *failure,
                          dscomm_status_t status, dscomm_failure_kind_t kind,
                          int culprit)
{
    check_status(failure->status, status, "status: %s", failure->detail);
    check(failure->kind == kind, "kind %d: %s", failure->kind, failure->detail);
    check(failure->rank == culprit, "rank %d: %s", failure->rank,
          failure->detail);
    check(failure->group_rank == my.ranks - 1 - culprit, "its number %d",
          failure->group_rank);
    check(failure->pid == 0 || failure->pid == pids[culprit], "pid %lld",
          (long long)failure->pid);
    check(failure->pid == 0 || !strcmp(failure->host, hosts[culprit]),
          "host %s", failure->host);
    check(!strcmp(failure->group, "fragile"), "group %s", failure->group);
}

/* Structs of older and newer callers. */
static void check_sizes(const dscomm_group_t *group,
                        const dscomm_failure_t *whole)
{
    struct {
        dscomm_failure_t failure;
        char more[8];
    } newer = {.more = "0123456"};
    dscomm_failure_t older = DSCOMM_FAILURE_INIT;

    older.size = offsetof(dscomm_failure_t, coll);
    CHECK_OK(dscomm_group_failure(group, &older));
    check(older.rank == whole->rank && older.coll == -1 && !*older.detail,
          "an older struct gets what it knows");
    newer.failure.size = sizeof newer;
    CHECK_OK(dscomm_group_failure(group, &newer.failure));
    check(!strcmp(newer.failure.detail, whole->detail) && !newer.more[0],
          "a newer struct gets zeros");
    older.size = 0;
    CHECK_FAILS(dscomm_group_failure(group, &older), DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_group_failure(group, NULL), DSCOMM_ERR_INVALID);
    check(strstr(dscomm_last_error(), "ret_failure must not be NULL") != NULL,
          "%s", dscomm_last_error());
}

static void test_abort(void)
{
    dscomm_group_t *group = make_group(0);
    const int culprit = my.ranks / 2;
    dscomm_failure_t failure;

    if (my.rank == culprit)
        CHECK_OK(dscomm_group_abort(group, "the pump is dry"));
    failure = await_end(group);
    check_failure(&failure, DSCOMM_ERR_ABORTED, DSCOMM_FAILURE_ABORTED,
                  culprit);
    check(failure.pid == pids[culprit], "the pid is known");
    check(!strcmp(failure.detail, "the pump is dry"), "detail %s",
          failure.detail);
    check(failure.coll == -1 && failure.sequence == 0, "no collective");
    check_sizes(group, &failure);
    CHECK_OK(dscomm_group_free(group));
}

/* The last rank waits for a message that rank 0 never sends. */
static void test_silence(void)
{
    dscomm_group_t *group = make_group(1);
    dscomm_failure_t failure;
    int32_t nothing;

    if (my.ranks == 1) {
        conform_skip("one rank waits for nobody");
    } else {
        if (my.rank == my.ranks - 1)
            CHECK_FAILS(dscomm_recv(group, &nothing, 1, DSCOMM_INT32,
                                    my.ranks - 1, 7, NULL, NULL),
                        DSCOMM_ERR_TIMEOUT);
        failure = await_end(group);
        check_failure(&failure, DSCOMM_ERR_TIMEOUT, DSCOMM_FAILURE_SILENT, 0);
    }
    CHECK_OK(dscomm_barrier(my.world, NULL));
    CHECK_OK(dscomm_group_free(group));
}

/* The last rank makes another call than the others. The culprit is the last
 * rank, or the rank with which it was compared; the detail names both. */
static void test_mismatch(void)
{
    dscomm_group_t *group = make_group(0);
    const int other = my.ranks - 1;
    int32_t in[2] = {0}, out[2];
    dscomm_failure_t failure;
    char words[64];

    if (my.ranks < 3 ||
        !(dscomm_group_capabilities(group) & DSCOMM_CAP_MISMATCH_DETECTION)) {
        conform_skip("three ranks and a backend that sees mismatches");
    } else {
        CHECK_FAILS(dscomm_all_reduce(group, in, out, my.rank == other ? 2 : 1,
                                      DSCOMM_INT32, DSCOMM_SUM, NULL),
                    DSCOMM_ERR_MISMATCH);
        failure = await_end(group);
        check_failure(&failure, DSCOMM_ERR_MISMATCH, DSCOMM_FAILURE_MISMATCH,
                      failure.rank >= 0 && failure.rank < other ? failure.rank
                                                                : other);
        check(failure.coll == DSCOMM_COLL_ALL_REDUCE && failure.sequence == 1,
              "collective %d #%llu", failure.coll,
              (unsigned long long)failure.sequence);
        snprintf(words, sizeof words, "(rank %d of the world, pid %lld on ",
                 other, (long long)pids[other]);
        check(strstr(failure.detail, words) != NULL, "%s", failure.detail);
    }
    CHECK_OK(dscomm_barrier(my.world, NULL));
    CHECK_OK(dscomm_group_free(group));
}

static const conform_test_t tests[] = {
    {"of an abort", test_abort},
    {"of a time-out", test_silence},
    {"of a mismatch", test_mismatch},
    {NULL, NULL},
};
const conform_area_t conform_failures = {"failures", NULL, tests};
