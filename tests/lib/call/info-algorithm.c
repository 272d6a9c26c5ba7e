/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's information on algorithms and choices. */
#include "config.h"

#include <dscomm/info.h>
#include <limits.h>
#include <stdint.h>

#include "tests/lib/work/ranks.h"

/* Returns 1 if coll has an algorithm of that name. */
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

/* The spans of a collective are adjacent, from 0 to the end, and are the same
 * whichever size is asked for. */
static void check_spans(int ranks, int nodes, dscomm_coll_t coll,
                        dscomm_dtype_t dtype)
{
    dscomm_choice_info_t info = {.size = sizeof info}, middle = info;
    uint64_t next = 0;
    int right = 1;

    do {
        if (dscomm_choice_info(ranks, nodes, coll, dtype, DSCOMM_SUM, next,
                               &info) < 0)
            bail("%s", dscomm_last_error());
        right &= info.from == next && info.to >= next;
        right &= is_listed((int)coll, info.by_default);
        right &= dscomm_choice_info(ranks, nodes, coll, dtype, DSCOMM_SUM,
                                    info.from + (info.to - info.from) / 2,
                                    &middle) == DSCOMM_OK;
        right &= middle.from == info.from && middle.to == info.to;
        right &= middle.by_default == info.by_default;
        next = info.to + 1;
    } while (right && info.to != UINT64_MAX);
    ok(right, "%s of %s, %d ranks on %d nodes: all sizes have one",
       dscomm_coll_name(coll), dscomm_dtype_name(dtype), ranks, nodes);
}

static const char *setting_at(dscomm_dtype_t dtype, uint64_t bytes)
{
    dscomm_choice_info_t info = {.size = sizeof info};

    if (dscomm_choice_info(4, 1, DSCOMM_COLL_ALL_REDUCE, dtype, DSCOMM_SUM,
                           bytes, &info) < 0)
        bail("%s", dscomm_last_error());
    return info.by_setting;
}

static void test_choices(void)
{
    static const int ranks[] = {2, 3, 8, 17, INT_MAX};
    static const int nodes[] = {1, 2, 4, 4, INT_MAX - 1};
    dscomm_choice_info_t info = {.size = sizeof info};

    for (int i = 0; i < (int)(sizeof ranks / sizeof *ranks); i++)
        for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++) {
            check_spans(ranks[i], 1, (dscomm_coll_t)coll, DSCOMM_FLOAT32);
            check_spans(ranks[i], nodes[i], (dscomm_coll_t)coll,
                        DSCOMM_FLOAT32);
            check_spans(ranks[i], 1, (dscomm_coll_t)coll, DSCOMM_BFLOAT16);
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
    check_spans(4, 1, DSCOMM_COLL_ALL_REDUCE, DSCOMM_FLOAT32);
    setenv("DSCOMM_ALGORITHM", "all_reduce:sing", 1);
    is_int(dscomm_choice_info(4, 1, DSCOMM_COLL_BARRIER, DSCOMM_UINT8,
                              DSCOMM_SUM, 0, &info),
           DSCOMM_ERR_ENVIRONMENT, "a setting that makes no sense");
    unsetenv("DSCOMM_ALGORITHM");
}

/* The limits of two levels that dscomm(7) states. */
static void test_nodes(void)
{
    static const struct {
        int ranks, nodes, coll;
        uint64_t bytes;
        const char *want; /* NULL: anything else */
        uint64_t to; /* 0: not checked */
    } rows[] = {
        {7, 2, DSCOMM_COLL_ALL_REDUCE, 0, "two_level", 65536},
        {7, 2, DSCOMM_COLL_ALL_REDUCE, 65536, "two_level", 65536},
        {7, 2, DSCOMM_COLL_ALL_REDUCE, 65537, NULL, 0},
        {8, 2, DSCOMM_COLL_ALL_REDUCE, 0, "two_level", 8192},
        {8, 2, DSCOMM_COLL_ALL_REDUCE, 8192, "two_level", 8192},
        {8, 2, DSCOMM_COLL_ALL_REDUCE, 8193, NULL, 0},
        {9, 2, DSCOMM_COLL_ALL_REDUCE, 524288, "two_level", 524288},
        {9, 2, DSCOMM_COLL_ALL_REDUCE, 524289, NULL, 0},
        {17, 2, DSCOMM_COLL_ALL_REDUCE, 4096, "two_level", 4096},
        {17, 2, DSCOMM_COLL_ALL_REDUCE, 4097, NULL, 0},
        {4, 2, DSCOMM_COLL_BROADCAST, 262143, NULL, 262143},
        {4, 2, DSCOMM_COLL_BROADCAST, 262144, "two_level", UINT64_MAX},
        {8, 1, DSCOMM_COLL_ALL_REDUCE, 0, NULL, 0},
        {8, 8, DSCOMM_COLL_ALL_REDUCE, 0, NULL, 0},
        /* fewer than two ranks a node */
        {8, 5, DSCOMM_COLL_ALL_REDUCE, 0, NULL, 0},
        {8, 4, DSCOMM_COLL_BARRIER, 0, "two_level", UINT64_MAX},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dscomm_choice_info_t info = {.size = sizeof info};

        if (dscomm_choice_info(rows[i].ranks, rows[i].nodes,
                               (dscomm_coll_t)rows[i].coll, DSCOMM_FLOAT32,
                               DSCOMM_SUM, rows[i].bytes, &info) < 0)
            bail("%s", dscomm_last_error());
        ok(!strcmp(info.by_default, "two_level") == (rows[i].want != NULL),
           "%s of %llu bytes, %d ranks on %d nodes: %s",
           dscomm_coll_name((dscomm_coll_t)rows[i].coll),
           (unsigned long long)rows[i].bytes, rows[i].ranks, rows[i].nodes,
           info.by_default);
        if (rows[i].to)
            ok(info.to == rows[i].to, "  to %llu", (unsigned long long)info.to);
    }
}

/* A rule that cannot be applied. */
static void test_passed(void)
{
    static const struct {
        const char *rules;
        int ranks, nodes, coll, dtype;
        const char *setting, *passed, *why;
    } rows[] = {
        {"all_reduce:two_level", 8, 1, DSCOMM_COLL_ALL_REDUCE, DSCOMM_FLOAT32,
         NULL, "two_level", "it needs several nodes"},
        {"all_reduce:two_level", 8, 8, DSCOMM_COLL_ALL_REDUCE, DSCOMM_FLOAT32,
         NULL, "two_level", "it needs several nodes"},
        {"all_reduce:two_level", 8, 2, DSCOMM_COLL_ALL_REDUCE, DSCOMM_FLOAT32,
         "two_level", NULL, NULL},
        {"all_reduce:two_level", 8, 2, DSCOMM_COLL_ALL_REDUCE, DSCOMM_FLOAT16,
         NULL, "two_level", "it needs a type"},
        {"all_reduce:ring", 8, 1, DSCOMM_COLL_ALL_REDUCE, DSCOMM_FLOAT16, NULL,
         "ring", "it needs a type"},
        {"all_gather:recursive_doubling", 6, 1, DSCOMM_COLL_ALL_GATHER,
         DSCOMM_FLOAT32, NULL, "recursive_doubling", "power of two"},
        {"all_gather:recursive_doubling", 4, 1, DSCOMM_COLL_ALL_GATHER,
         DSCOMM_FLOAT32, "recursive_doubling", NULL, NULL},
        {"barrier:two_level,barrier:linear", 2, 1, DSCOMM_COLL_BARRIER,
         DSCOMM_UINT8, "linear", "two_level", "it needs several nodes"},
        {"barrier:linear,barrier:two_level", 2, 1, DSCOMM_COLL_BARRIER,
         DSCOMM_UINT8, "linear", NULL, NULL},
        {"all_reduce:1-2:two_level", 8, 1, DSCOMM_COLL_ALL_REDUCE,
         DSCOMM_FLOAT32, NULL, NULL, NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dscomm_choice_info_t info = {.size = sizeof info};

        setenv("DSCOMM_ALGORITHM", rows[i].rules, 1);
        if (dscomm_choice_info(
                rows[i].ranks, rows[i].nodes, (dscomm_coll_t)rows[i].coll,
                (dscomm_dtype_t)rows[i].dtype, DSCOMM_SUM, 4096, &info) < 0)
            bail("%s", dscomm_last_error());
        is_str(info.by_setting, rows[i].setting, "%s on %d of %d: serves",
               rows[i].rules, rows[i].ranks, rows[i].nodes);
        is_str(info.passed_over, rows[i].passed, "  passed over");
        ok(!info.why == !rows[i].why &&
               (!info.why || strstr(info.why, rows[i].why)),
           "  why: %s", info.why ? info.why : "nothing");
    }
    unsetenv("DSCOMM_ALGORITHM");
}

static void test_refused(void)
{
    static const struct {
        int ranks, nodes, coll, dtype, op;
        const char *word;
    } wrong[] = {
        {1, 1, DSCOMM_COLL_BARRIER, DSCOMM_INT8, DSCOMM_SUM, "ranks is 1"},
        {2, 0, DSCOMM_COLL_BARRIER, DSCOMM_INT8, DSCOMM_SUM, "nodes is 0"},
        {2, 3, DSCOMM_COLL_BARRIER, DSCOMM_INT8, DSCOMM_SUM, "nodes is 3"},
        {2, 1, DSCOMM_COLL_SEND, DSCOMM_INT8, DSCOMM_SUM, "no collective"},
        {2, 1, -1, DSCOMM_INT8, DSCOMM_SUM, "no collective"},
        {2, 1, DSCOMM_COLL_BARRIER, DSCOMM_DTYPE_COUNT, DSCOMM_SUM, "no dtype"},
        {2, 1, DSCOMM_COLL_REDUCE, DSCOMM_FLOAT32, DSCOMM_BXOR, "not apply"},
        {2, 1, DSCOMM_COLL_REDUCE, DSCOMM_INT8, DSCOMM_OP_COUNT, "not apply"},
    };
    dscomm_choice_info_t info = {.size = sizeof info};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        is_int(dscomm_choice_info(wrong[i].ranks, wrong[i].nodes,
                                  (dscomm_coll_t)wrong[i].coll,
                                  (dscomm_dtype_t)wrong[i].dtype,
                                  (dscomm_op_t)wrong[i].op, 0, &info),
               DSCOMM_ERR_INVALID, "case %zu is refused", i);
        ok(strstr(dscomm_last_error(), wrong[i].word) != NULL,
           "the sentence: %s", dscomm_last_error());
    }
    is_int(dscomm_choice_info(2, 1, DSCOMM_COLL_GATHER, DSCOMM_INT8,
                              (dscomm_op_t)-1, 0, &info),
           DSCOMM_OK, "no operator where nothing is reduced");
    is_int(dscomm_choice_info(2, 1, DSCOMM_COLL_GATHER, DSCOMM_INT8, DSCOMM_SUM,
                              0, NULL),
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

/* Calls that are refused, with a word of the sentence. The test's backend
 * describes nothing. */
static void native_body(rank_t *self)
{
    static const struct {
        int coll, root;
        size_t count;
        dscomm_status_t status;
        const char *word;
    } rows[] = {
        {DSCOMM_COLL_ALL_REDUCE, -1, 1, DSCOMM_ERR_UNSUPPORTED,
         "does not tell how it runs this all_reduce"},
        {DSCOMM_COLL_ALL_REDUCE, -1, 8192, DSCOMM_ERR_UNSUPPORTED,
         "an algorithm of the library"},
        {DSCOMM_COLL_ALL_GATHER_V, -1, 1, DSCOMM_ERR_UNSUPPORTED,
         "does not tell how it runs this all_gather_v"},
        {DSCOMM_COLL_REDUCE, 3, 1, DSCOMM_ERR_INVALID, "the ranks are 0 to 2"},
        {DSCOMM_COLL_ALL_REDUCE, -1, SIZE_MAX / 16, DSCOMM_ERR_INVALID,
         "cannot be counted"},
        {DSCOMM_COLL_RECV, -1, 1, DSCOMM_ERR_INVALID, "is no collective"},
    };
    dscomm_native_info_t info = {.size = sizeof info, .steps = 7};
    char bytes[2] = {0};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const dscomm_status_t status = dscomm_group_native_info(
            self->world, (dscomm_coll_t)rows[i].coll, bytes, bytes + 1,
            rows[i].count, DSCOMM_INT8, DSCOMM_SUM, rows[i].root, &info);

        CHECK(self, status == rows[i].status);
        CHECK(self, strstr(dscomm_last_error(), rows[i].word));
    }
    CHECK(self, info.steps == 7);
    CHECK(self, dscomm_group_native_info(
                    self->world, DSCOMM_COLL_ALL_REDUCE, bytes, bytes, 1,
                    DSCOMM_INT8, DSCOMM_SUM, -1, NULL) == DSCOMM_ERR_INVALID);
    CHECK(self, dscomm_group_native_info(NULL, DSCOMM_COLL_ALL_REDUCE, bytes,
                                         bytes, 1, DSCOMM_INT8, DSCOMM_SUM, -1,
                                         &info) == DSCOMM_ERR_INVALID);
}

static void group_body(rank_t *self)
{
    const dscomm_coll_t sum = DSCOMM_COLL_ALL_REDUCE;
    const char *name = NULL;
    char text[64] = "x";

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
    CHECK(self, !dscomm_group_tuning(self->world, text, sizeof text) && !*text);
    CHECK(self, dscomm_group_tuning(self->world, text, 0) < 0);
    CHECK(self, dscomm_group_tuning(NULL, text, sizeof text) < 0);
    CHECK(self, dscomm_group_algorithm(NULL, sum, DSCOMM_INT8, DSCOMM_SUM, 1, 0,
                                       &name) == DSCOMM_ERR_INVALID);
    CHECK(self, dscomm_group_algorithm(self->world, DSCOMM_COLL_RECV,
                                       DSCOMM_INT8, DSCOMM_SUM, 1, 0,
                                       &name) == DSCOMM_ERR_INVALID);
    CHECK(self, !name);
}

/* Expected lines of the log about rules. */
typedef struct {
    pthread_mutex_t lock;
    int lines;
    char first[512], last[512];
} log_lines_t;

static void receive_line(dscomm_log_level_t level, const char *domain,
                         const char *message, void *arg)
{
    log_lines_t *logged = arg;

    if (level != DSCOMM_LOG_WARN || strcmp(domain, "core") ||
        !strstr(message, "DSCOMM_ALGORITHM"))
        return;
    pthread_mutex_lock(&logged->lock);
    if (logged->lines++ == 0)
        snprintf(logged->first, sizeof logged->first, "%s", message);
    snprintf(logged->last, sizeof logged->last, "%s", message);
    pthread_mutex_unlock(&logged->lock);
}

static void passed_body(rank_t *self)
{
    float one = 1, sum = 0;
    uint16_t narrow_one = 0x3f80, narrow_sum = 0;
    int8_t byte = 0;

    for (int i = 0; i < 3; i++) {
        CHECK(self, !dscomm_all_reduce(self->world, &one, &sum, 1,
                                       DSCOMM_FLOAT32, DSCOMM_SUM, NULL));
        CHECK(self, sum == (float)self->size);
        CHECK(self,
              !dscomm_broadcast(self->world, &byte, 1, DSCOMM_INT8, 0, NULL));
        CHECK(self, !dscomm_all_reduce(self->world, &narrow_one, &narrow_sum, 1,
                                       DSCOMM_BFLOAT16, DSCOMM_SUM, NULL));
        CHECK(self, narrow_sum == 0x4040); /* 3 */
    }
}

/* All ranks are on one node; partial sums of bfloat16 cannot be sums again. */
static void test_logged(void)
{
    log_lines_t logged = {.lock = PTHREAD_MUTEX_INITIALIZER};

    setenv("DSCOMM_ALGORITHM",
           "broadcast:linear,all_reduce:two_level,all_reduce:ring", 1);
    dscomm_log_set_handler(receive_line, &logged);
    ranks_run(3, 10000, passed_body, "a rule that cannot serve");
    dscomm_log_set_handler(NULL, NULL);
    unsetenv("DSCOMM_ALGORITHM");
    is_int(logged.lines, 2, "each is logged once: %s", logged.first);
    ok(strstr(logged.first,
              "rule 2 of DSCOMM_ALGORITHM, all_reduce:two_level") &&
           strstr(logged.first, ": it needs several nodes") &&
           strstr(logged.first, "; ring serves instead"),
       "with its name, the reason, and what serves");
    ok(strstr(logged.last, "rule 3 of DSCOMM_ALGORITHM, all_reduce:ring") &&
           strstr(logged.last, "; what the backend has serves instead"),
       "so is one behind it: %s", logged.last);
}

int main(void)
{
    ranks_use_modules();
    test_list();
    test_choices();
    test_nodes();
    test_passed();
    test_refused();
    setenv("DSCOMM_ALGORITHM", "all_reduce:8K-:ring,all_gather_v:4097-:linear",
           1);
    ranks_run(3, 10000, group_body, "what a group uses");
    ranks_run(3, 10000, native_body, "what its backend does not tell");
    test_logged();
    return tap_done();
}
