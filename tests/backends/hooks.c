/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that a profiler gets: each operation once at its beginning and once
 * at its end. */
#include "config.h"

#include "tests/backends/conform.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EVENTS_MAX 64

typedef struct {
    dscomm_op_info_t begins[EVENTS_MAX], ends[EVENTS_MAX];
    uint64_t tokens[EVENTS_MAX];
    dscomm_status_t statuses[EVENTS_MAX];
    int begun, ended;
} record_t;

static uint64_t on_begin(const dscomm_op_info_t *info, void *arg)
{
    record_t *record = arg;

    if (info->group != my.group || record->begun == EVENTS_MAX)
        return 0;
    record->begins[record->begun] = *info;
    return 1000 + (uint64_t)record->begun++;
}

static void on_end(const dscomm_op_info_t *info, dscomm_status_t status,
                   uint64_t token, void *arg)
{
    record_t *record = arg;

    if (info->group != my.group || record->ended == EVENTS_MAX)
        return;
    record->ends[record->ended] = *info;
    record->statuses[record->ended] = status;
    record->tokens[record->ended++] = token;
}

static record_t record;

static void install(void)
{
    dscomm_hooks_t hooks = {
        .size = sizeof hooks, .begin = on_begin, .end = on_end, .arg = &record};

    memset(&record, 0, sizeof record);
    CHECK_OK(dscomm_hooks_set(&hooks));
}

/* Runs one blocking collective, and checks the calls of the hooks. */
static void run_coll(int coll)
{
    exchange_t x = {.group = my.group,
                    .coll = coll,
                    .dtype = DSCOMM_INT32,
                    .op = DSCOMM_MAX,
                    .root = my.ranks - 1,
                    .count = 6};
    int spread = coll == DSCOMM_COLL_ALL_GATHER ||
                 coll == DSCOMM_COLL_REDUCE_SCATTER ||
                 coll == DSCOMM_COLL_GATHER || coll == DSCOMM_COLL_SCATTER ||
                 coll == DSCOMM_COLL_ALL_TO_ALL;
    const dscomm_op_info_t *seen = &record.begins[0];
    const char *name = dscomm_coll_name(coll);

    install();
    exchange_run(&x);
    CHECK_OK(dscomm_hooks_set(NULL));
    if (!check(record.begun == 1 && record.ended == 1, "%s: %d begun, %d ended",
               name, record.begun, record.ended))
        return;
    check(seen->coll == coll && seen->dtype == DSCOMM_INT32 &&
              seen->count == 6 && seen->async == 0 && seen->tag == -1,
          "%s: coll %d dtype %d count %zu async %d tag %d", name, seen->coll,
          seen->dtype, seen->count, seen->async, seen->tag);
    check(seen->bytes == 24 * (size_t)(spread ? my.ranks : 1), "%s: %zu bytes",
          name, seen->bytes);
    check(seen->op == (exchange_reduces(coll) ? (int)DSCOMM_MAX : -1) &&
              seen->root == (exchange_rooted(coll) ? my.ranks - 1 : -1),
          "%s: op %d root %d", name, seen->op, seen->root);
    check(record.tokens[0] == 1000 && record.statuses[0] == DSCOMM_OK,
          "%s: token %llu status %d", name,
          (unsigned long long)record.tokens[0], record.statuses[0]);
    check(seen->size >= sizeof *seen && record.ends[0].coll == coll &&
              record.ends[0].sequence == seen->sequence,
          "%s: end", name);
}

static void test_collectives(void)
{
    static const int colls[] = {
        DSCOMM_COLL_BROADCAST,      DSCOMM_COLL_REDUCE,
        DSCOMM_COLL_ALL_REDUCE,     DSCOMM_COLL_ALL_GATHER,
        DSCOMM_COLL_REDUCE_SCATTER, DSCOMM_COLL_GATHER,
        DSCOMM_COLL_SCATTER,        DSCOMM_COLL_ALL_TO_ALL,
    };

    for (size_t i = 0; i < CONFORM_LENGTH(colls); i++)
        run_coll(colls[i]);
}

/* An all_to_all_v counts all that a rank sends, whatever it sends to itself;
 * the other calls with counts count a rank's own part. */
static void test_counts(void)
{
    const size_t all = (size_t)my.ranks * 3, own = (size_t)my.rank;
    int32_t *in = calloc(all, sizeof *in), *out = calloc(all, sizeof *out);
    size_t *counts = calloc((size_t)my.ranks, sizeof *counts), n = 0;

    for (int r = 0; r < my.ranks; r++)
        counts[r] = r == my.rank ? 0 : 3;
    install();
    CHECK_OK(dscomm_all_to_all_v(my.group, in, counts, NULL, out, counts, NULL,
                                 DSCOMM_INT32, NULL));
    for (int r = 0; r < my.ranks; r++)
        n += counts[r] = (size_t)r % 3;
    CHECK_OK(dscomm_all_gather_v(my.group, in, own % 3, out, counts, NULL,
                                 DSCOMM_INT32, NULL));
    CHECK_OK(dscomm_hooks_set(NULL));
    check(record.ended == 2 && record.ends[0].count == all - 3 &&
              record.ends[0].bytes == 4 * (all - 3),
          "all_to_all_v: %zu elements, %zu bytes", record.ends[0].count,
          record.ends[0].bytes);
    check(record.ends[1].count == own % 3 &&
              record.ends[1].bytes == 4 * (own % 3),
          "all_gather_v: %zu elements of %zu, %zu bytes", record.ends[1].count,
          n, record.ends[1].bytes);
    free(in);
    free(out);
    free(counts);
}

/* A work's end hook is called when completion is detected, with the token of
 * its begin hook. */
static void test_works(void)
{
    exchange_t x[3];

    install();
    memset(x, 0, sizeof x);
    for (int i = 0; i < 3; i++) {
        x[i] = (exchange_t){.group = my.group,
                            .coll = DSCOMM_COLL_ALL_REDUCE,
                            .dtype = DSCOMM_INT32,
                            .count = 5 + (size_t)i};
        exchange_start(&x[i], 1);
    }
    check(record.begun == 3, "%d begun", record.begun);
    for (int i = 2; i >= 0; i--)
        exchange_wait(&x[i]);
    check(record.ended == 3, "%d ended", record.ended);
    for (int i = 0; i < 3; i++) {
        size_t which = record.tokens[i] - 1000;

        check(which < 3 && record.ends[i].count == 5 + which &&
                  record.ends[i].async == 1,
              "end %d: token %zu, count %zu", i, which, record.ends[i].count);
        exchange_end(&x[i]);
    }
    CHECK_OK(dscomm_hooks_set(NULL));
}

static void test_messages(void)
{
    message_t in = message_with(prev_rank(), 8, 12, 0);
    message_t out = message_with(next_rank(), 8, 12, 0);

    install();
    message_isend(&out);
    message_recv(&in);
    message_end(&out);
    CHECK_OK(dscomm_hooks_set(NULL));
    if (!check(record.begun == 2 && record.ended == 2, "%d begun, %d ended",
               record.begun, record.ended))
        return;
    check(record.begins[0].coll == DSCOMM_COLL_SEND &&
              record.begins[0].root == out.peer && record.begins[0].tag == 8 &&
              record.begins[0].async == 1 && record.begins[0].bytes == 12,
          "send: coll %d peer %d tag %d", record.begins[0].coll,
          record.begins[0].root, record.begins[0].tag);
    check(record.begins[1].coll == DSCOMM_COLL_RECV &&
              record.begins[1].root == in.peer && record.begins[1].op == -1 &&
              record.begins[1].async == 0,
          "receive: coll %d peer %d", record.begins[1].coll,
          record.begins[1].root);
}

/* A refused call causes no hook call. Only one table can be installed. */
static void test_refused(void)
{
    dscomm_hooks_t other = {
        .size = sizeof other, .begin = on_begin, .end = on_end, .arg = &record};
    int data = 0;

    install();
    CHECK_FAILS(dscomm_hooks_set(&other), DSCOMM_ERR_STATE);
    CHECK_FAILS(
        dscomm_broadcast(my.group, &data, 1, DSCOMM_INT32, my.ranks, NULL),
        DSCOMM_ERR_INVALID);
    check(record.begun == record.ended, "%d begun, %d ended", record.begun,
          record.ended);
    CHECK_OK(dscomm_hooks_set(NULL));
    CHECK_OK(dscomm_hooks_set(NULL));
}

static int64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

typedef struct {
    int64_t began_ns, whole_ns, sum_ns; /* whole_ns: from begin to end */
    int seen, negative;
} phases_t;

static uint64_t phases_begin(const dscomm_op_info_t *info, void *arg)
{
    phases_t *phases = arg;

    if (info->phases)
        phases->seen = -1; /* too early */
    phases->began_ns = clock_ns();
    return 0;
}

static void phases_end(const dscomm_op_info_t *info, dscomm_status_t status,
                       uint64_t token, void *arg)
{
    phases_t *phases = arg;

    (void)status, (void)token;
    phases->whole_ns = clock_ns() - phases->began_ns;
    phases->sum_ns = 0;
    for (int i = 0; info->phases && i < DSCOMM_PHASE_COUNT; i++) {
        phases->seen += i == 0;
        phases->sum_ns += info->phases[i];
        phases->negative += info->phases[i] < 0;
    }
}

/* Phases divide the time of a collective, whatever the backend tells of it. */
static void test_phases(void)
{
    static const size_t counts[] = {1, 5000, 100000};
    static phases_t phases;
    dscomm_hooks_t hooks = {.size = sizeof hooks,
                            .begin = phases_begin,
                            .end = phases_end,
                            .arg = &phases,
                            .flags = DSCOMM_HOOKS_PHASES};
    int32_t *in = calloc(counts[2], sizeof *in);
    int32_t *out = calloc(counts[2], sizeof *out);
    dscomm_work_t *work;

    CHECK_OK(dscomm_hooks_set(&hooks));
    for (size_t i = 0; i < 6; i++) {
        const size_t count = counts[i / 2];

        phases = (phases_t){0};
        CHECK_OK(dscomm_all_reduce(my.group, in, out, count, DSCOMM_INT32,
                                   DSCOMM_SUM, i % 2 ? &work : NULL));
        if (i % 2) {
            CHECK_OK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
            dscomm_work_free(work);
        }
        check(phases.seen == 1 && !phases.negative && phases.sum_ns > 0 &&
                  phases.sum_ns <= phases.whole_ns,
              "%zu elements: seen %d, sum %lld of %lld ns", count, phases.seen,
              (long long)phases.sum_ns, (long long)phases.whole_ns);
    }
    CHECK_OK(dscomm_hooks_set(NULL));
    free(in);
    free(out);
}

/* An operation that began under a table ends with it. */
static void test_removed_in_flight(void)
{
    int32_t in = 0, out = 4;
    dscomm_work_t *work = NULL;

    install();
    CHECK_OK(
        dscomm_irecv(my.group, &in, 1, DSCOMM_INT32, prev_rank(), 0, &work));
    CHECK_OK(dscomm_hooks_set(NULL));
    CHECK_OK(dscomm_send(my.group, &out, 1, DSCOMM_INT32, next_rank(), 0));
    CHECK_OK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(work);
    check(record.begun == 1 && record.ended == 1, "%d begun, %d ended",
          record.begun, record.ended);
}

static void test_names(void)
{
    check(strcmp(dscomm_coll_name(DSCOMM_COLL_ALL_TO_ALL_V), "all_to_all_v") ==
              0,
          "%s", dscomm_coll_name(DSCOMM_COLL_ALL_TO_ALL_V));
    check(strcmp(dscomm_coll_name(DSCOMM_COLL_COUNT), "invalid") == 0 &&
              strcmp(dscomm_coll_name(-1), "invalid") == 0,
          "no collective");
}

static const conform_test_t tests[] = {
    {"collectives", test_collectives},
    {"counts", test_counts},
    {"works", test_works},
    {"messages", test_messages},
    {"refused calls, one table at a time", test_refused},
    {"removed while an operation runs", test_removed_in_flight},
    {"phases", test_phases},
    {"names", test_names},
    {NULL, NULL},
};
const conform_area_t conform_hooks = {"hooks", NULL, tests};
