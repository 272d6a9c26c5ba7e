/* SPDX-License-Identifier: BSD-3-Clause */
/* What the library tells about algorithms and choices. */
#include "config.h"

#include <dscomm/info.h>
#include <limits.h>
#include <stdint.h>

#include "tests/lib/ranks.h"

/* 1 where coll has an algorithm of that name. */
static int is_listed(int coll, const char *name)
{
    dscomm_algorithm_info_t info = {.size = sizeof info};

    for (size_t i = 0; dscomm_algorithm_info(i, &info) == DSCOMM_OK; i++)
        if (info.coll == coll && !strcmp(info.name, name))
            return 1;
    return 0;
}

static void test_list(void)
{
    dscomm_algorithm_info_t info = {.size = sizeof info};
    int last = 0, ordered = 1, seen[DSCOMM_COLL_COUNT] = {0};
    size_t count = 0;

    for (; dscomm_algorithm_info(count, &info) == DSCOMM_OK; count++) {
        ordered &= info.coll >= last && info.coll < DSCOMM_COLL_SEND;
        last = info.coll;
        seen[info.coll] = 1;
    }
    ok(ordered, "algorithms are in the order of collectives");
    for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++)
        ok(seen[coll], "%s has one", dscomm_coll_name((dscomm_coll_t)coll));
    is_int(dscomm_algorithm_info(count, &info), DSCOMM_ERR_NOT_FOUND,
           "nothing follows the last");
    is_int(dscomm_algorithm_info(SIZE_MAX, &info), DSCOMM_ERR_NOT_FOUND,
           "nor much later");
    ok(is_listed(DSCOMM_COLL_ALL_REDUCE, "ring"), "ring is an all_reduce");
    ok(!is_listed(DSCOMM_COLL_BROADCAST, "ring"), "and no broadcast");
    is_int(dscomm_algorithm_info(0, NULL), DSCOMM_ERR_INVALID, "no info");
    info.size = 0;
    is_int(dscomm_algorithm_info(0, &info), DSCOMM_ERR_INVALID, "no size");
}

/* The spans of a collective follow each other without a gap, from 0 to the end,
 * and are told from wherever one asks. */
static void check_spans(int ranks, dscomm_coll_t coll, dscomm_dtype_t dtype)
{
    dscomm_choice_info_t info = {.size = sizeof info}, middle = info;
    uint64_t next = 0;
    int right = 1;

    do {
        if (dscomm_choice_info(ranks, coll, dtype, DSCOMM_SUM, next, &info) < 0)
            bail("%s", dscomm_last_error());
        right &= info.from == next && info.to >= next;
        right &= is_listed((int)coll, info.by_default);
        right &= dscomm_choice_info(ranks, coll, dtype, DSCOMM_SUM,
                                    info.from + (info.to - info.from) / 2,
                                    &middle) == DSCOMM_OK;
        right &= middle.from == info.from && middle.to == info.to;
        right &= middle.by_default == info.by_default;
        next = info.to + 1;
    } while (right && info.to != UINT64_MAX);
    ok(right, "%s of %s, %d ranks: all sizes have one", dscomm_coll_name(coll),
       dscomm_dtype_name(dtype), ranks);
}

static const char *setting_at(dscomm_dtype_t dtype, uint64_t bytes)
{
    dscomm_choice_info_t info = {.size = sizeof info};

    if (dscomm_choice_info(4, DSCOMM_COLL_ALL_REDUCE, dtype, DSCOMM_SUM, bytes,
                           &info) < 0)
        bail("%s", dscomm_last_error());
    return info.by_setting;
}

static void test_choices(void)
{
    static const int ranks[] = {2, 3, 8, 17, INT_MAX};
    dscomm_choice_info_t info = {.size = sizeof info};

    for (int i = 0; i < (int)(sizeof ranks / sizeof *ranks); i++)
        for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++) {
            check_spans(ranks[i], (dscomm_coll_t)coll, DSCOMM_FLOAT32);
            check_spans(ranks[i], (dscomm_coll_t)coll, DSCOMM_BFLOAT16);
        }
    setenv("DSCOMM_ALGORITHM",
           "all_reduce:64K-1M:ring,all_reduce:1048577-2M:native", 1);
    is_str(setting_at(DSCOMM_FLOAT32, 65535), NULL, "below a range");
    is_str(setting_at(DSCOMM_FLOAT32, 65536), "ring", "where it begins");
    is_str(setting_at(DSCOMM_FLOAT32, 1048576), "ring", "where it ends");
    is_str(setting_at(DSCOMM_FLOAT32, 1048577), "native", "the next rule");
    is_str(setting_at(DSCOMM_FLOAT32, 2097153), NULL, "beyond both");
    is_str(setting_at(DSCOMM_BFLOAT16, 65536), NULL,
           "what would round on the way is left out");
    check_spans(4, DSCOMM_COLL_ALL_REDUCE, DSCOMM_FLOAT32);
    setenv("DSCOMM_ALGORITHM", "all_reduce:sing", 1);
    is_int(dscomm_choice_info(4, DSCOMM_COLL_BARRIER, DSCOMM_UINT8, DSCOMM_SUM,
                              0, &info),
           DSCOMM_ERR_ENVIRONMENT, "a setting that makes no sense");
    unsetenv("DSCOMM_ALGORITHM");
}

static void test_refused(void)
{
    static const struct {
        int ranks, coll, dtype, op;
        const char *word;
    } wrong[] = {
        {1, DSCOMM_COLL_BARRIER, DSCOMM_INT8, DSCOMM_SUM, "ranks is 1"},
        {2, DSCOMM_COLL_SEND, DSCOMM_INT8, DSCOMM_SUM, "no collective"},
        {2, -1, DSCOMM_INT8, DSCOMM_SUM, "no collective"},
        {2, DSCOMM_COLL_BARRIER, DSCOMM_DTYPE_COUNT, DSCOMM_SUM, "no dtype"},
        {2, DSCOMM_COLL_REDUCE, DSCOMM_FLOAT32, DSCOMM_BXOR, "not apply"},
        {2, DSCOMM_COLL_REDUCE, DSCOMM_INT8, DSCOMM_OP_COUNT, "not apply"},
    };
    dscomm_choice_info_t info = {.size = sizeof info};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        is_int(dscomm_choice_info(wrong[i].ranks, (dscomm_coll_t)wrong[i].coll,
                                  (dscomm_dtype_t)wrong[i].dtype,
                                  (dscomm_op_t)wrong[i].op, 0, &info),
               DSCOMM_ERR_INVALID, "case %zu is refused", i);
        ok(strstr(dscomm_last_error(), wrong[i].word) != NULL,
           "the sentence: %s", dscomm_last_error());
    }
    is_int(dscomm_choice_info(2, DSCOMM_COLL_GATHER, DSCOMM_INT8,
                              (dscomm_op_t)-1, 0, &info),
           DSCOMM_OK, "no operator where nothing is reduced");
    is_int(dscomm_choice_info(2, DSCOMM_COLL_GATHER, DSCOMM_INT8, DSCOMM_SUM, 0,
                              NULL),
           DSCOMM_ERR_INVALID, "no info");
}

static const char *runs(rank_t *self, dscomm_coll_t coll, dscomm_dtype_t dtype,
                        size_t count, int async)
{
    const char *name = "";

    CHECK(self, !dscomm_group_algorithm(self->world, coll, dtype, DSCOMM_SUM,
                                        count, async, &name));
    return name;
}

#define IS(self, got, want) CHECK(self, !strcmp(got, want))

static void group_body(rank_t *self)
{
    const dscomm_coll_t sum = DSCOMM_COLL_ALL_REDUCE;
    const char *name = NULL;

    IS(self, runs(self, sum, DSCOMM_FLOAT32, 2047, 0), "native");
    IS(self, runs(self, sum, DSCOMM_FLOAT32, 2048, 0), "ring");
    IS(self, runs(self, sum, DSCOMM_FLOAT32, 2048, 1), "ring");
    IS(self, runs(self, sum, DSCOMM_BFLOAT16, 4096, 0), "native");
    /* 3 blocks of 1366 bytes are beyond 4 KiB, 1365 are not */
    IS(self, runs(self, DSCOMM_COLL_ALL_GATHER_V, DSCOMM_INT8, 1365, 0),
       "native");
    IS(self, runs(self, DSCOMM_COLL_ALL_GATHER_V, DSCOMM_INT8, 1366, 0),
       "linear");
    CHECK(self, dscomm_group_sequence(self->world) == 0);
    CHECK(self,
          dscomm_group_algorithm(self->world, sum, DSCOMM_INT8, DSCOMM_SUM, 1,
                                 0, NULL) == DSCOMM_ERR_INVALID);
    CHECK(self, dscomm_group_algorithm(NULL, sum, DSCOMM_INT8, DSCOMM_SUM, 1, 0,
                                       &name) == DSCOMM_ERR_INVALID);
    CHECK(self, dscomm_group_algorithm(self->world, DSCOMM_COLL_RECV,
                                       DSCOMM_INT8, DSCOMM_SUM, 1, 0,
                                       &name) == DSCOMM_ERR_INVALID);
    CHECK(self, !name);
}

int main(void)
{
    ranks_use_modules();
    test_list();
    test_choices();
    test_refused();
    setenv("DSCOMM_ALGORITHM", "all_reduce:8K-:ring,all_gather_v:4097-:linear",
           1);
    ranks_run(3, 10000, group_body, "what a group uses");
    return tap_done();
}
