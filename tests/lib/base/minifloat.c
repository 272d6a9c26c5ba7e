/* SPDX-License-Identifier: BSD-3-Clause */
/* 16- and 8-bit floats: all codes, all boundaries between two codes, and
 * numbers from the standards. */
#include "config.h"

#include "lib/base/minifloat.h"
#include "tests/lib/reduce/formats.h"
#include "tests/tap.h"

static float widen(dscomm_dtype_t dtype, uint64_t code)
{
    switch (dtype) {
    case DSCOMM_FLOAT16:
        return float16_widen((uint16_t)code);
    case DSCOMM_BFLOAT16:
        return bfloat16_widen((uint16_t)code);
    case DSCOMM_FLOAT8_E4M3:
        return float8_e4m3_widen((uint8_t)code);
    default:
        return float8_e5m2_widen((uint8_t)code);
    }
}

static uint64_t narrow(dscomm_dtype_t dtype, float value)
{
    switch (dtype) {
    case DSCOMM_FLOAT16:
        return float16_round(value);
    case DSCOMM_BFLOAT16:
        return bfloat16_round(value);
    case DSCOMM_FLOAT8_E4M3:
        return float8_e4m3_round(value);
    default:
        return float8_e5m2_round(value);
    }
}

/* Returns whether the values are equal; NaNs of one sign are equal. */
static int same(double a, double b)
{
    if (!signbit(a) != !signbit(b))
        return 0;
    return isnan(a) ? isnan(b) : a == b;
}

/* Returns whether value is rounded correctly. */
static int rounds(const format_t *format, float value)
{
    uint64_t got = narrow(format->dtype, value);
    uint64_t want = format_round(format, value);

    if (same(format_value(format, got), format_value(format, want)))
        return 1;
    printf("# %a: got 0x%llx, want 0x%llx\n", value, (unsigned long long)got,
           (unsigned long long)want);
    return 0;
}

static void test_codes(const format_t *format)
{
    const char *name = dscomm_dtype_name(format->dtype);
    int wrong = 0, lost = 0;

    for (uint64_t code = 0; code < (uint64_t)1 << format->bits; code++) {
        double want = format_value(format, code);
        float got = widen(format->dtype, code);

        wrong += !same(got, want);
        lost += !same(format_value(format, narrow(format->dtype, got)), want);
    }
    is_int(wrong, 0, "%s: every code is widened to its value", name);
    is_int(lost, 0, "%s: every value is rounded to its code", name);
}

static void test_boundaries(const format_t *format)
{
    int wrong = 0;

    for (uint64_t code = 0; code < format_special(format) && !wrong; code++) {
        float low = (float)format_plain(format, code);
        float high = (float)format_plain(format, code + 1);
        float middle = low + (high - low) / 2;
        float near[] = {nextafterf(low, high), nextafterf(middle, low), middle,
                        nextafterf(middle, high), nextafterf(high, low)};

        for (int i = 0; i < 5; i++)
            wrong += !rounds(format, near[i]) || !rounds(format, -near[i]);
    }
    ok(!wrong, "%s: between any two codes the nearer one is taken",
       dscomm_dtype_name(format->dtype));
}

static void test_random(const format_t *format)
{
    uint32_t state = 1;
    int wrong = 0;

    for (int i = 0; i < 200000 && !wrong; i++) {
        state = state * 1664525 + 1013904223;
        wrong += !rounds(format, minifloat_value(state ^ state >> 13));
    }
    ok(!wrong, "%s: any float32 is rounded to the nearest code",
       dscomm_dtype_name(format->dtype));
}

/* IEEE 754-2019 (binary16), OCP 8-bit Floating Point Specification 1.0 (its
 * table of exponents and extremes); overflow of E4M3 as PyTorch's
 * float8_e4m3fn. */
static const struct {
    dscomm_dtype_t dtype;
    float value;
    unsigned code;
} published[] = {
    {DSCOMM_FLOAT16, 1, 0x3c00},
    {DSCOMM_FLOAT16, -2, 0xc000},
    {DSCOMM_FLOAT16, 65504, 0x7bff},
    {DSCOMM_FLOAT16, 0x1.ffdffep15f, 0x7bff},
    {DSCOMM_FLOAT16, 65520, 0x7c00},
    {DSCOMM_FLOAT16, 0x1p-14f, 0x0400},
    {DSCOMM_FLOAT16, 0x1p-24f, 0x0001},
    {DSCOMM_FLOAT16, 0x1p-25f, 0x0000},
    {DSCOMM_FLOAT16, 0x1.8p-24f, 0x0002},
    {DSCOMM_FLOAT16, -0.0f, 0x8000},
    {DSCOMM_FLOAT16, INFINITY, 0x7c00},
    {DSCOMM_BFLOAT16, 1, 0x3f80},
    {DSCOMM_BFLOAT16, 0x1.fep127f, 0x7f7f},
    {DSCOMM_BFLOAT16, 0x1.ffp127f, 0x7f80},
    {DSCOMM_BFLOAT16, 0x1.01p0f, 0x3f80},
    {DSCOMM_BFLOAT16, 0x1.03p0f, 0x3f82},
    {DSCOMM_BFLOAT16, 0x1p-133f, 0x0001},
    {DSCOMM_BFLOAT16, -INFINITY, 0xff80},
    {DSCOMM_FLOAT8_E4M3, 1, 0x38},
    {DSCOMM_FLOAT8_E4M3, 448, 0x7e},
    {DSCOMM_FLOAT8_E4M3, 464, 0x7e},
    {DSCOMM_FLOAT8_E4M3, 0x1.d00002p8f, 0x7f},
    {DSCOMM_FLOAT8_E4M3, -INFINITY, 0xff},
    {DSCOMM_FLOAT8_E4M3, 0x1p-6f, 0x08},
    {DSCOMM_FLOAT8_E4M3, 0x1.cp-7f, 0x07},
    {DSCOMM_FLOAT8_E4M3, 0x1p-9f, 0x01},
    {DSCOMM_FLOAT8_E5M2, 1, 0x3c},
    {DSCOMM_FLOAT8_E5M2, 57344, 0x7b},
    {DSCOMM_FLOAT8_E5M2, 0x1.dffffep15f, 0x7b},
    {DSCOMM_FLOAT8_E5M2, 61440, 0x7c},
    {DSCOMM_FLOAT8_E5M2, 0x1p-14f, 0x04},
    {DSCOMM_FLOAT8_E5M2, 0x1.8p-15f, 0x03},
    {DSCOMM_FLOAT8_E5M2, 0x1p-16f, 0x01},
    {DSCOMM_FLOAT8_E5M2, INFINITY, 0x7c},
};

static void test_published(void)
{
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        uint64_t got = narrow(published[i].dtype, published[i].value);

        ok(got == published[i].code, "%s: %a is 0x%02x (got 0x%02llx)",
           dscomm_dtype_name(published[i].dtype), published[i].value,
           published[i].code, (unsigned long long)got);
    }
}

int main(void)
{
    test_published();
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (formats[i].bits > 16)
            continue;
        test_codes(&formats[i]);
        test_boundaries(&formats[i]);
        test_random(&formats[i]);
    }
    return tap_done();
}
