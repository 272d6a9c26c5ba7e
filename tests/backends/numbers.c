/* SPDX-License-Identifier: BSD-3-Clause */
/* Special cases of reductions: NaN, infinities, signed zeros, single rounding,
 * truncated averages, equal bits everywhere. */
#include "config.h"

#include "tests/backends/conform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const dscomm_dtype_t floats[] = {
    DSCOMM_FLOAT16, DSCOMM_BFLOAT16,    DSCOMM_FLOAT32,
    DSCOMM_FLOAT64, DSCOMM_FLOAT8_E4M3, DSCOMM_FLOAT8_E5M2,
};

/* NaN, infinity and -0 as bits; E4M3 has no infinity. */
static const struct {
    uint64_t nan, infinity, sign;
} special[] = {
    {0x7e00, 0x7c00, 0x8000},
    {0x7fc0, 0x7f80, 0x8000},
    {0x7fc00000, 0x7f800000, 0x80000000},
    {UINT64_C(0x7ff8) << 48, UINT64_C(0x7ff) << 52, UINT64_C(1) << 63},
    {0x7f, 0, 0x80},
    {0x7e, 0x7c, 0x80},
};

static uint64_t bits_of(dscomm_dtype_t dtype, const void *value)
{
    return pattern_bits_get(value, dscomm_dtype_size(dtype));
}

static int is_nan_bits(size_t f, uint64_t bits)
{
    bits &= ~special[f].sign;
    return special[f].infinity ? bits > special[f].infinity
                               : bits == special[f].nan;
}

/* All-reduces one element: mine on rank who, other on the other ranks. */
static uint64_t reduce_one(size_t f, dscomm_op_t op, int who, uint64_t mine,
                           uint64_t other)
{
    uint64_t in = 0, out = 0;

    pattern_bits_put(&in, dscomm_dtype_size(floats[f]),
                     my.rank == who ? mine : other);
    CHECK_OK(dscomm_all_reduce(my.group, &in, &out, 1, floats[f], op, NULL));
    return bits_of(floats[f], &out);
}

static uint64_t code_of(size_t f, double number)
{
    uint64_t value = 0;

    pattern_put(floats[f], &value, 0, number);
    return bits_of(floats[f], &value);
}

static uint64_t one(size_t f)
{
    return code_of(f, 1);
}

static void test_nan(void)
{
    static const dscomm_op_t ops[] = {DSCOMM_SUM, DSCOMM_PRODUCT, DSCOMM_MIN,
                                      DSCOMM_MAX, DSCOMM_AVG};

    for (size_t f = 0; f < CONFORM_LENGTH(floats); f++)
        for (size_t i = 0; i < CONFORM_LENGTH(ops); i++)
            for (int who = 0; who < my.ranks && who < 4; who++) {
                uint64_t got =
                    reduce_one(f, ops[i], who, special[f].nan, one(f));

                check(is_nan_bits(f, got), "%s of NaN in %s gives 0x%llx",
                      dscomm_op_name(ops[i]), dscomm_dtype_name(floats[f]),
                      (unsigned long long)got);
            }
}

static void test_infinity(void)
{
    for (size_t f = 0; f < CONFORM_LENGTH(floats); f++) {
        uint64_t inf = special[f].infinity, got;
        const char *name = dscomm_dtype_name(floats[f]);

        if (inf == 0)
            continue;
        got = reduce_one(f, DSCOMM_SUM, my.ranks - 1, inf, one(f));
        check(got == inf, "%s: sum with infinity", name);
        got = reduce_one(f, DSCOMM_MAX, 0, inf, one(f));
        check(got == inf, "%s: max with infinity", name);
        got = reduce_one(f, DSCOMM_MIN, 0, inf, one(f));
        check(got == (my.ranks == 1 ? inf : one(f)), "%s: min with infinity",
              name);
        got = reduce_one(f, DSCOMM_MIN, 0, inf | special[f].sign, one(f));
        check(got == (inf | special[f].sign), "%s: min with -infinity", name);
        got = reduce_one(f, DSCOMM_SUM, 0, inf, inf | special[f].sign);
        check(my.ranks == 1 ? got == inf : is_nan_bits(f, got),
              "%s: infinity minus infinity", name);
    }
}

/* A result beyond the largest number is infinity; in E4M3 it is NaN (OCP, not
 * saturating) or the largest number, because types.h does not define that
 * further. */
static void test_overflow(void)
{
    static const double largest[] = {65504, 0, 0, 0, 448, 57344};

    for (size_t f = 0; f < CONFORM_LENGTH(floats); f++) {
        uint64_t value, got;

        if (largest[f] == 0 || my.ranks == 1)
            continue;
        value = code_of(f, largest[f]);
        got = reduce_one(f, DSCOMM_SUM, 0, value, value);
        check(floats[f] == DSCOMM_FLOAT8_E4M3
                  ? is_nan_bits(f, got) || got == value
                  : got == special[f].infinity || got == value,
              "%s: overflow gives 0x%llx", dscomm_dtype_name(floats[f]),
              (unsigned long long)got);
        got = reduce_one(f, DSCOMM_AVG, 0, value, value);
        check(got == value, "%s: the average of the largest numbers is 0x%llx",
              dscomm_dtype_name(floats[f]), (unsigned long long)got);
    }
}

static void test_signed_zero(void)
{
    for (size_t f = 0; f < CONFORM_LENGTH(floats); f++) {
        uint64_t minus = special[f].sign, got;
        const char *name = dscomm_dtype_name(floats[f]);

        for (int who = 0; who < my.ranks && who < 3; who++) {
            got = reduce_one(f, DSCOMM_MIN, who, minus, 0);
            check(got == minus, "%s: min of 0 and -0 is 0x%llx", name,
                  (unsigned long long)got);
            got = reduce_one(f, DSCOMM_MAX, who, minus, 0);
            check(got == (my.ranks == 1 ? minus : 0),
                  "%s: max of 0 and -0 is 0x%llx", name,
                  (unsigned long long)got);
        }
        got = reduce_one(f, DSCOMM_MAX, 0, minus, minus);
        check(got == minus, "%s: max of -0 and -0 is 0x%llx", name,
              (unsigned long long)got);
    }
}

/* Adds ones to the first number that is followed by a gap of 2. Adding one by
 * one in the format itself would never change it. */
static void test_rounded_once(void)
{
    static const double start[] = {2048, 256, 0, 0, 16, 8};

    for (size_t f = 0; f < CONFORM_LENGTH(floats); f++) {
        uint64_t got;

        if (start[f] == 0)
            continue;
        got = reduce_one(f, DSCOMM_SUM, 0, code_of(f, start[f]), one(f));
        check(got == code_of(f, start[f] + my.ranks - 1),
              "%s: %g and %d ones give 0x%llx", dscomm_dtype_name(floats[f]),
              start[f], my.ranks - 1, (unsigned long long)got);
    }
}

/* Integer averages are truncated towards zero, not rounded or floored. */
static void test_average_truncates(void)
{
    int8_t in8 = my.rank == 0 ? -128 : 127, out8 = 1;
    int32_t in = my.rank == 0 ? -1 : 0, out = 99;
    uint8_t large = 255, average = 0;
    int sum = -128 + 127 * (my.ranks - 1);

    CHECK_OK(dscomm_all_reduce(my.group, &in8, &out8, 1, DSCOMM_INT8,
                               DSCOMM_AVG, NULL));
    check(out8 == sum / my.ranks, "average is %d, want %d", out8,
          sum / my.ranks);
    CHECK_OK(dscomm_all_reduce(my.group, &in, &out, 1, DSCOMM_INT32, DSCOMM_AVG,
                               NULL));
    check(out == -1 / my.ranks, "average of -1 and zeros is %d", out);
    CHECK_OK(dscomm_all_reduce(my.group, &large, &average, 1, DSCOMM_UINT8,
                               DSCOMM_AVG, NULL));
    check(average == 255, "average of 255s is %d", average);
}

static void fill_random(void *data, dscomm_dtype_t dtype, size_t count,
                        uint64_t seed)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t r = mix(seed * 7919 + i);
        int exponent = (int)(r >> 56) % 24 - 12;
        double value =
            ldexp((double)(r & 0xffffff) / 0x1000000 + 0.5, exponent);

        pattern_put(dtype, data, i, r >> 40 & 1 ? -value : value);
    }
}

/* FNV-1a. */
static uint64_t digest(const unsigned char *data, size_t bytes)
{
    uint64_t sum = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ data[i]) * UINT64_C(1099511628211);
    return sum;
}

static void check_equal_everywhere(uint64_t value, const char *what)
{
    uint64_t low = 0, high = 1;

    CHECK_OK(dscomm_all_reduce(my.group, &value, &low, 1, DSCOMM_UINT64,
                               DSCOMM_MIN, NULL));
    CHECK_OK(dscomm_all_reduce(my.group, &value, &high, 1, DSCOMM_UINT64,
                               DSCOMM_MAX, NULL));
    check(low == high, "%s: bits differ between ranks", what);
}

static void run_bits(dscomm_dtype_t dtype, dscomm_op_t op, size_t count)
{
    size_t bytes = count * dscomm_dtype_size(dtype);
    unsigned char *in = malloc(bytes), *out = malloc(bytes);
    uint64_t first = 0;

    if (check(in && out, "no memory")) {
        fill_random(in, dtype, count, (uint64_t)my.rank + 1);
        for (int run = 0; run < 4; run++) {
            memset(out, 0, bytes);
            CHECK_OK(
                dscomm_all_reduce(my.group, in, out, count, dtype, op, NULL));
            if (run == 0)
                first = digest(out, bytes);
            check(digest(out, bytes) == first, "%s %s: run %d differs",
                  dscomm_dtype_name(dtype), dscomm_op_name(op), run);
        }
        check_equal_everywhere(first, dscomm_dtype_name(dtype));
    }
    free(in);
    free(out);
}

/* Sums of numbers of very different size depend on the order. The same inputs
 * must give the same bits on all ranks and in every run. */
static void test_equal_bits(void)
{
    static const size_t counts[] = {1, 5, 300, 5003, 70001};

    for (size_t c = 0; c < CONFORM_LENGTH(counts); c++)
        for (size_t f = 0; f < 4; f++) {
            run_bits(floats[f], DSCOMM_SUM, conform_scale(counts[c]));
            run_bits(floats[f], DSCOMM_AVG, conform_scale(counts[c]));
        }
}

static const conform_test_t tests[] = {
    {"NaN stays", test_nan},
    {"infinities", test_infinity},
    {"overflow", test_overflow},
    {"signed zeros", test_signed_zero},
    {"small floats are rounded once", test_rounded_once},
    {"integer averages truncate", test_average_truncates},
    {"equal bits on all ranks and in all runs", test_equal_bits},
    {NULL, NULL},
};
const conform_area_t conform_numbers = {"numbers", NULL, tests};
