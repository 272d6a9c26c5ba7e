/* SPDX-License-Identifier: BSD-3-Clause */
/* The verification of dscomm perf: its expected values are compared with
 * arithmetic done here or by hand, and it must count wrong elements. */
#include "config.h"

#include "tests/tap.h"
#include "tools/perf/operations.h"
#include "tools/perf/verify.h"

#include <string.h>

#define ELEMENTS 20000
#define RANKS_MAX 17

static char send[ELEMENTS * 8], recv[ELEMENTS * 8];

static perf_call_t call_new(const char *name, int ranks, dscomm_dtype_t dtype,
                            dscomm_op_t op)
{
    static size_t counts[RANKS_MAX], displs[RANKS_MAX];

    return (perf_call_t){.operation = perf_operation_find(name),
                         .ranks = ranks,
                         .dtype = dtype,
                         .size = dscomm_dtype_size(dtype),
                         .op = op,
                         .counts = counts,
                         .displs = displs};
}

/* Codes by the formats' definitions: OCP's E4M3 and E5M2, IEEE 754's binary16,
 * the upper half of binary32. */
static void test_encode(void)
{
    static const struct {
        dscomm_dtype_t dtype;
        int64_t value;
        uint64_t code;
    } rows[] = {
        {DSCOMM_FLOAT8_E4M3, 0, 0},
        {DSCOMM_FLOAT8_E4M3, 1, 0x38},
        {DSCOMM_FLOAT8_E4M3, -1, 0xb8},
        {DSCOMM_FLOAT8_E4M3, 15, 0x57},
        {DSCOMM_FLOAT8_E4M3, 256, 0x78},
        {DSCOMM_FLOAT8_E5M2, 1, 0x3c},
        {DSCOMM_FLOAT8_E5M2, 7, 0x47},
        {DSCOMM_FLOAT8_E5M2, 32768, 0x78},
        {DSCOMM_FLOAT16, 1, 0x3c00},
        {DSCOMM_FLOAT16, -2, 0xc000},
        {DSCOMM_FLOAT16, 2047, 0x67ff},
        {DSCOMM_BFLOAT16, 1, 0x3f80},
        {DSCOMM_BFLOAT16, 255, 0x437f},
        {DSCOMM_FLOAT32, 3, 0x40400000},
        {DSCOMM_FLOAT64, -1, 0xbff0000000000000},
        {DSCOMM_INT8, -1, 0xff},
        {DSCOMM_UINT16, 0x1234, 0x1234},
        {DSCOMM_INT64, -2, 0xfffffffffffffffe},
        {DSCOMM_BOOL, 7, 1},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint64_t got = 0;
        uint8_t bytes[8];
        size_t size = dscomm_dtype_size(rows[i].dtype);

        perf_encode(rows[i].dtype, rows[i].value, bytes);
        for (size_t k = 0; k < size; k++)
            got |= (uint64_t)
                       bytes[G_BYTE_ORDER == G_LITTLE_ENDIAN ? k : size - 1 - k]
                   << 8 * k;
        ok(got == rows[i].code, "%s: %lld is 0x%llx, not 0x%llx",
           dscomm_dtype_name(rows[i].dtype), (long long)rows[i].value,
           (unsigned long long)rows[i].code, (unsigned long long)got);
    }
}

/* float32 and int32: summed here in another order. */
static void test_sums(void)
{
    static float in[PERF_PERIOD], want[PERF_PERIOD], got[PERF_PERIOD];
    const perf_call_t call =
        call_new("all_reduce", 5, DSCOMM_FLOAT32, DSCOMM_SUM);
    int zeros = 0, fractions = 0;

    for (int rank = 4; rank >= 0; rank--) {
        perf_pattern(&call, 3, rank, in);
        for (size_t i = 0; i < PERF_PERIOD; i++) {
            want[i] += in[i];
            zeros += in[i] == 0;
            fractions += want[i] != (float)(int)want[i] || want[i] > 16777216;
        }
    }
    perf_reduced(&call, 3, got);
    ok(memcmp(got, want, sizeof got) == 0, "float32 sum");
    is_int(zeros, 0, "no input is 0");
    is_int(fractions, 0, "every partial sum is exact");
}

static void test_integers(void)
{
    static int32_t in[3][PERF_PERIOD], got[PERF_PERIOD];
    static const dscomm_op_t ops[] = {DSCOMM_SUM, DSCOMM_PRODUCT, DSCOMM_MIN,
                                      DSCOMM_MAX, DSCOMM_AVG,     DSCOMM_BXOR};

    for (size_t k = 0; k < G_N_ELEMENTS(ops); k++) {
        const perf_call_t call =
            call_new("all_reduce", 3, DSCOMM_INT32, ops[k]);
        int wrong = 0;

        for (int rank = 0; rank < 3; rank++)
            perf_pattern(&call, 1, rank, in[rank]);
        perf_reduced(&call, 1, got);
        for (size_t i = 0; i < PERF_PERIOD; i++) {
            int64_t a = in[0][i], b = in[1][i], c = in[2][i];
            int64_t want[] = {
                a + b + c,
                (int64_t)((uint64_t)a * (uint64_t)b * (uint64_t)c),
                MIN(a, MIN(b, c)),
                MAX(a, MAX(b, c)),
                (a + b + c) / 3,
                a ^ b ^ c};
            wrong += got[i] != (int32_t)want[k];
        }
        is_int(wrong, 0, "int32 %s", dscomm_op_name(ops[k]));
    }
}

/* 17 ranks of 8-bit floats: numbers to 8 (E5M2) or 16 (E4M3) are exact, and no
 * sum may be larger. */
static void test_small_floats(void)
{
    static const struct {
        dscomm_dtype_t dtype;
        int largest;
    } rows[] = {{DSCOMM_FLOAT8_E4M3, 16}, {DSCOMM_FLOAT8_E5M2, 8}};
    static uint8_t in[PERF_PERIOD], one, zero;

    for (size_t k = 0; k < G_N_ELEMENTS(rows); k++) {
        const perf_call_t call =
            call_new("all_reduce", 17, rows[k].dtype, DSCOMM_SUM);
        int sums[64] = {0}, others = 0, largest = 0;

        perf_encode(rows[k].dtype, 1, &one);
        perf_encode(rows[k].dtype, 0, &zero);
        for (int rank = 0; rank < 17; rank++) {
            perf_pattern(&call, 1, rank, in);
            for (int i = 0; i < 64; i++) {
                sums[i] += in[i] == one;
                others += in[i] != one && in[i] != zero;
            }
        }
        for (int i = 0; i < 64; i++)
            largest = MAX(largest, sums[i]);
        is_int(others, 0, "%s, 17 ranks: ones and zeros",
               dscomm_dtype_name(rows[k].dtype));
        is_int(largest, rows[k].largest, "%s, 17 ranks: largest sum",
               dscomm_dtype_name(rows[k].dtype));
    }
}

/* Averages of 8-bit floats on so many ranks: with any order of the ranks, no
 * sum on the way is larger than the largest exact number. */
static void test_small_averages(void)
{
    static const struct {
        dscomm_dtype_t dtype;
        int ranks, largest;
    } rows[] = {{DSCOMM_FLOAT8_E4M3, 16, 16}, {DSCOMM_FLOAT8_E4M3, 17, 16},
                {DSCOMM_FLOAT8_E5M2, 8, 8},   {DSCOMM_FLOAT8_E5M2, 9, 8},
                {DSCOMM_FLOAT8_E5M2, 16, 8},  {DSCOMM_FLOAT8_E5M2, 17, 8}};
    static uint8_t in[PERF_PERIOD], got[PERF_PERIOD];

    for (size_t k = 0; k < G_N_ELEMENTS(rows); k++) {
        const perf_call_t call =
            call_new("all_reduce", rows[k].ranks, rows[k].dtype, DSCOMM_AVG);
        /* sums of the positive numbers, and of the negative ones */
        int above[PERF_PERIOD] = {0}, below[PERF_PERIOD] = {0};
        int large = 0, others = 0, wrong = 0, differing = 0;
        uint8_t codes[5], code;

        for (int value = -2; value <= 2; value++)
            perf_encode(rows[k].dtype, value, &codes[value + 2]);
        for (int rank = 0; rank < call.ranks; rank++) {
            perf_pattern(&call, 1, rank, in);
            for (int i = 0; i < PERF_PERIOD; i++) {
                const uint8_t *found = memchr(codes, in[i], sizeof codes);
                const int value = found ? (int)(found - codes) - 2 : 0;

                others += !found;
                above[i] += MAX(value, 0);
                below[i] += MIN(value, 0);
            }
        }
        perf_reduced(&call, 1, got);
        for (int i = 0; i < PERF_PERIOD; i++) {
            large += MAX(above[i], -below[i]) > rows[k].largest;
            perf_encode(call.dtype, (above[i] + below[i]) / call.ranks, &code);
            wrong += got[i] != code;
            differing += above[i] > 0;
        }
        is_int(others, 0, "%s, average of %d ranks: inputs from -2 to 2",
               dscomm_dtype_name(call.dtype), call.ranks);
        is_int(large, 0, "%s, average of %d ranks: every sum is exact",
               dscomm_dtype_name(call.dtype), call.ranks);
        is_int(wrong, 0, "%s, average of %d ranks: results",
               dscomm_dtype_name(call.dtype), call.ranks);
        is_int(differing, PERF_PERIOD,
               "%s, average of %d ranks: not all inputs are 0",
               dscomm_dtype_name(call.dtype), call.ranks);
    }
}

/* After perf_fill() and a right call no element is wrong; elements that are
 * then changed are counted, one by one. */
static void test_count(void)
{
    static char reduced[PERF_PERIOD * 8];
    perf_call_t call = call_new("all_reduce", 2, DSCOMM_FLOAT16, DSCOMM_SUM);

    perf_call_size(&call, ELEMENTS * call.size);
    perf_call_place(&call, PERF_OUT_OF_PLACE, send, recv);
    perf_fill(&call, 9);
    is_int(perf_count_wrong(&call, 9), ELEMENTS, "nothing was received");
    perf_reduced(&call, 9, reduced);
    for (size_t i = 0; i < ELEMENTS; i++)
        memcpy(recv + i * call.size, reduced + i % PERF_PERIOD * call.size,
               call.size);
    is_int(perf_count_wrong(&call, 9), 0, "all is right");
    ok(perf_count_wrong(&call, 10) > ELEMENTS / 2, "of another seed it is not");
    recv[0] ^= 1;
    recv[(ELEMENTS - 1) * call.size] ^= 1;
    recv[PERF_PERIOD * call.size + 1] ^= 0x40;
    is_int(perf_count_wrong(&call, 9), 3, "three elements are wrong");
}

/* A block in the place of another is wrong, whatever its size. */
static void test_displaced(void)
{
    static char block[PERF_PERIOD * 4];
    perf_call_t call = call_new("all_gather", 2, DSCOMM_INT32, DSCOMM_SUM);
    size_t half = 1024;

    perf_call_size(&call, 2 * half * call.size);
    perf_call_place(&call, PERF_OUT_OF_PLACE, send, recv);
    perf_fill(&call, 1);
    for (int rank = 0; rank < 2; rank++) {
        perf_pattern(&call, 1, rank, block);
        memcpy(recv + (size_t)rank * half * 4, block, half * 4);
    }
    is_int(perf_count_wrong(&call, 1), 0, "all_gather: all is right");
    memcpy(recv + half * 4, recv, half * 4);
    is_int(perf_count_wrong(&call, 1), (int)half, "all_gather: a block twice");
}

/* In place, the input is where the operation expects it. */
static void test_in_place(void)
{
    perf_call_t call = call_new("all_gather", 4, DSCOMM_UINT8, DSCOMM_SUM);

    call.rank = 2;
    perf_call_size(&call, 400);
    perf_call_place(&call, PERF_IN_PLACE, send, recv);
    ok(call.send == recv + 200 && call.recv == recv, "all_gather");
    call.operation = perf_operation_find("reduce_scatter");
    perf_call_place(&call, PERF_IN_PLACE, send, recv);
    ok(call.send == send && call.recv == send + 200, "reduce_scatter");
    call.operation = perf_operation_find("scatter");
    call.root = 1;
    perf_call_place(&call, PERF_IN_PLACE, send, recv);
    ok(call.send == send && call.recv == send + 200, "scatter, any root");
    call.operation = perf_operation_find("gather");
    perf_call_place(&call, PERF_IN_PLACE, send, recv);
    ok(call.send == recv + 200 && call.recv == recv, "gather, any root");
    call.operation = perf_operation_find("reduce");
    perf_call_place(&call, PERF_IN_PLACE, send, recv);
    ok(call.send == send && call.recv == send, "reduce, any root");
    call.operation = perf_operation_find("all_reduce");
    perf_call_place(&call, PERF_IN_PLACE, send, recv);
    ok(call.send == call.recv, "all_reduce");
}

int main(void)
{
    test_encode();
    test_sums();
    test_integers();
    test_small_floats();
    test_small_averages();
    test_count();
    test_displaced();
    test_in_place();
    return tap_done();
}
