/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures of dscomm perf compared with values computed by hand: bandwidths,
 * sizes and blocks, percentiles, and parsed sizes. */
#include "config.h"

#include "tests/tap.h"
#include "tools/perf/measure.h"
#include "tools/perf/operations.h"
#include "tools/perf/options.h"
#include "tools/perf/sweep.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static int is_near(double got, double want)
{
    return fabs(got - want) <= 1e-9 * (1 + fabs(want));
}

/* 1,000,000 bytes in 500 us are 2 GB/s; the factors for 4 ranks are those of
 * nccl-tests' doc/PERFORMANCE.md. */
static void test_bandwidths(void)
{
    static const struct {
        const char *name;
        double busbw;
    } rows[] = {
        {"all_reduce", 3},
        {"reduce", 2},
        {"broadcast", 2},
        {"reduce_scatter", 1.5},
        {"all_gather", 1.5},
        {"all_to_all", 1.5},
        {"gather", 1.5},
        {"scatter", 1.5},
        {"sendrecv", 2},
        {"latency", 2},
        {"bandwidth", 2},
        {"all_gather_v", 1.5},
        {"put", 2},
        {"get", 2},
        {"gather_v", 1.5},
        {"scatter_v", 1.5},
        {"all_to_all_v", 1.5},
        {"broadcast_blob", 2},
        {"all_gather_blob", 1.5},
        {"reduce_scatter_v", 1.5},
        {"multi_pair", 4}, /* 2 pairs */
        {"bidirectional", 8},
        {"message_rate", 8},
        {"reduce+broadcast", 3},
    };
    double algbw = perf_algbw(1000000, 500);

    ok(is_near(algbw, 2), "algbw");
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const perf_operation_t *o = perf_operation_find(rows[i].name);
        ok(o && is_near(perf_busbw(o, 4, algbw), rows[i].busbw), "busbw of %s",
           rows[i].name);
    }
    ok(is_near(perf_busbw(perf_operation_find("all_reduce"), 2, 7), 7),
       "all_reduce, 2 ranks: busbw is algbw");
    ok(is_near(perf_busbw(perf_operation_find("all_reduce"), 1, 7), 0),
       "all_reduce, 1 rank: nothing goes over a bus");
}

/* 5 ranks are 2 pairs. A message of each sender takes 0.5 us. */
static void test_rates(void)
{
    static const struct {
        const char *name;
        double rate;
    } rows[] = {
        {"bandwidth", 2e6},     {"put", 2e6},          {"multi_pair", 4e6},
        {"bidirectional", 8e6}, {"message_rate", 8e6}, {"all_reduce", 0},
        {"latency", 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        ok(is_near(perf_message_rate(perf_operation_find(rows[i].name), 5, 0.5),
                   rows[i].rate),
           "messages a second of %s", rows[i].name);
}

static void test_sweep(void)
{
    static const struct {
        const char *text;
        int numbers[5];
    } rows[] = {
        {"2,4,8", {2, 4, 8}}, {"2-4", {2, 3, 4}}, {"4", {4}},
        {"8,1-2", {8, 1, 2}}, {"3-3", {3}},       {"", {0}},
        {",", {0}},           {"2,", {0}},        {"3-2", {0}},
        {"0", {0}},           {"2-x", {0}},       {"1-65", {0}},
        {"5000", {0}},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        int *numbers = perf_sweep_read(rows[i].text, 4096), k = 0;

        while (numbers && numbers[k] && numbers[k] == rows[i].numbers[k])
            k++;
        ok(numbers ? rows[i].numbers[0] && numbers[k] == rows[i].numbers[k]
                   : !rows[i].numbers[0],
           "-n '%s'", rows[i].text);
        g_free(numbers);
    }
}

/* Half of the bytes that each of 4 ranks must read and write, relative to the
 * row's bytes. In a gather, all is read once, and written once by the root; in
 * place, without the root's own quarter. */
static void test_roofs(void)
{
    static const struct {
        const char *name;
        double out, in; /* -1: there is no such place */
    } rows[] = {
        {"all_reduce", (4 + 4) / 8.0, (4 + 4) / 8.0},
        {"reduce", (4 + 1) / 8.0, (4 + 1) / 8.0},
        {"reduce_scatter", (4 + 1) / 8.0, (4 + 1) / 8.0},
        {"broadcast", -1, (1 + 3) / 8.0},
        {"all_gather", (1 + 4) / 8.0, (1 + 3) / 8.0},
        {"gather", (1 + 1) / 8.0, (0.75 + 0.75) / 8},
        {"scatter", (1 + 1) / 8.0, (0.75 + 0.75) / 8},
        {"all_to_all", (4 + 4) / 8.0, -1},
        {"barrier", 0, -1},
        {"sendrecv", (4 + 4) / 8.0, -1},
        {"latency", (1 + 1) / 8.0, -1},
        {"bandwidth", (1 + 1) / 8.0, -1},
        {"multi_pair", (2 + 2) / 8.0, -1},
        {"bidirectional", (4 + 4) / 8.0, -1},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const perf_operation_t *o = perf_operation_find(rows[i].name);
        const double want[] = {rows[i].out, rows[i].in};

        for (perf_place_t place = 0; place < PERF_PLACES; place++)
            ok(o->flags & 1u << place
                   ? is_near(perf_copied(o, 4, place), want[place])
                   : want[place] < 0,
               "%%roof of %s, %s", rows[i].name,
               place == PERF_IN_PLACE ? "in place" : "out of place");
    }
}

/* Size and count of a row, as defined by nccl-tests. */
static void test_sizes(void)
{
    static const struct {
        const char *name;
        int ranks;
        size_t bytes, total, count;
    } rows[] = {
        {"all_reduce", 4, 1003, 250, 250}, {"all_gather", 4, 1003, 248, 62},
        {"reduce_scatter", 3, 100, 24, 8}, {"all_to_all", 4, 8, 0, 0},
        {"sendrecv", 4, 3, 0, 0},          {"barrier", 4, 1000, 0, 0},
        {"scatter_v", 4, 1003, 248, 62},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        size_t arrays[2][4];
        perf_call_t call = {.operation = perf_operation_find(rows[i].name),
                            .ranks = rows[i].ranks,
                            .size = 4,
                            .counts = arrays[0],
                            .displs = arrays[1]};
        perf_call_size(&call, rows[i].bytes);
        ok(call.total == rows[i].total && call.count == rows[i].count,
           "%s of %zu bytes: %zu elements, count %zu", rows[i].name,
           rows[i].bytes, call.total, call.count);
    }
}

/* Blocks of different sizes cover the elements without a gap; the block that
 * one rank sends to another is the one that the other receives. */
static void test_blocks(void)
{
    size_t arrays[2][5], sent = 0, received = 0, at = 0;
    perf_call_t call = {.operation = perf_operation_find("all_gather_v"),
                        .ranks = 4,
                        .size = 1,
                        .counts = arrays[0],
                        .displs = arrays[1]};

    perf_call_size(&call, 100);
    for (int i = 0; i < 4; i++) {
        perf_block_t block = perf_call_block(&call, i);
        is_int((int)block.count, 10 * (i + 1), "rank %d has %d of 100", i,
               10 * (i + 1));
        is_int((int)block.offset, (int)at, "rank %d has no gap before", i);
        at += block.count;
    }
    call.operation = perf_operation_find("all_to_all_v");
    call.ranks = 5;
    for (int i = 0; i < 5; i++) {
        perf_call_size(&call, 107);
        sent += perf_call_exchanged(&call, 3, i).count;
        received += perf_call_exchanged(&call, i, 3).count;
    }
    is_int((int)sent, 105, "all_to_all_v: all is sent");
    is_int((int)received, 105, "all_to_all_v: as much is received");
}

static void test_statistics(void)
{
    double times[100];
    perf_times_t t = {0};

    for (int i = 0; i < 100; i++)
        times[i] = 100 - i;
    perf_times_fill(times, 100, &t);
    ok(t.min == 1 && t.max == 100, "extremes");
    ok(t.p50 == 50 && t.p99 == 99, "median and 99th percentile");
    ok(is_near(t.spread, 100 * (75.0 - 25) / 50), "spread");
    times[0] = 7;
    perf_times_fill(times, 1, &t);
    ok(t.min == 7 && t.p50 == 7 && t.p99 == 7 && t.spread == 0, "one time");
}

static void test_parse_size(void)
{
    static const struct {
        const char *text;
        double bytes; /* -1: no size */
    } rows[] = {
        {"8", 8},
        {"64K", 65536},
        {"1M", 1048576},
        {"1.5k", 1536},
        {"2G", 2147483648.0},
        {"1KiB", 1024},
        {"16B", 16},
        {"1TB", 1099511627776.0},
        {"0", 0},
        {"", -1},
        {"K", -1},
        {"-8", -1},
        {"8X", -1},
        {"1MM", -1},
        {"0x10", -1},
        {"1e", -1},
        {"inf", -1},
        {"nan", -1},
        {"9999999999T", -1},
        {"1 M", -1},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        size_t bytes = 77;
        bool is = perf_parse_size(rows[i].text, &bytes);
        ok(is == (rows[i].bytes >= 0) &&
               (!is || (double)bytes == rows[i].bytes),
           "'%s'", rows[i].text);
    }
}

static void test_next_size(void)
{
    perf_options_t o = {.max = 100, .factor = 4};

    is_int((int)perf_next_size(&o, 8), 32, "by factor");
    is_int((int)perf_next_size(&o, 32), 0, "beyond the largest");
    is_int((int)perf_next_size(&o, 0), 1, "after 0");
    o.factor = 1.5;
    is_int((int)perf_next_size(&o, 1), 2, "a small factor goes on");
    o.step = 46;
    is_int((int)perf_next_size(&o, 8), 54, "by step");
    is_int((int)perf_next_size(&o, 54), 100, "the largest is reached");
}

#define TOUCHED 16 /* pages that a call uses for the first time */
/* The page faults of all calls, of which sanitizers have more, and the calls.
 */
static double faults, calls;

static double faults_now(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_minflt + usage.ru_majflt);
}

static dscomm_status_t pages_touch(const perf_call_t *call,
                                   dscomm_work_t **none)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, TOUCHED * page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const double before = faults_now();

    (void)call;
    (void)none;
    if (memory == MAP_FAILED)
        return DSCOMM_ERR_NO_MEMORY;
    madvise(memory, TOUCHED * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < TOUCHED; i++)
        ((volatile char *)memory)[i * page] = 1;
    munmap(memory, TOUCHED * page);
    faults += faults_now() - before;
    calls++;
    return DSCOMM_OK;
}

static void test_faults(void)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    const perf_options_t options = {.iterations = 400, .warmup = 1};
    perf_run_t run = {.options = &options, .ranks = 1};
    perf_call_t call = {.operation = perf_operation_find("barrier"),
                        .ranks = 1,
                        .aggregate = 1};
    perf_times_t times = {0};

    attr.has_rank = 1;
    attr.world_size = 1;
    if (dscomm_init(&attr, &call.group))
        bail("%s", dscomm_last_error());
    is_int(perf_time(&run, &call, pages_touch, &times), DSCOMM_OK,
           "calls that use new pages");
    ok(times.faults >= TOUCHED && times.faults < faults / calls + 1,
       "page faults in a call: %g", times.faults);
    dscomm_finalize(call.group);
}

int main(void)
{
    test_bandwidths();
    test_rates();
    test_sweep();
    test_roofs();
    test_sizes();
    test_blocks();
    test_statistics();
    test_parse_size();
    test_next_size();
    test_faults();
    return tap_done();
}
