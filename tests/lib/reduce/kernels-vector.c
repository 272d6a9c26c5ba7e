/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of kernels compared with the C row (which kernels.c compares with
 * definitions), for cases that need many elements: all pairs of 8-bit codes,
 * all 16-bit codes, all sizes near a vector's, results that bypass the cache,
 * many sources, and calls that a row passes to the next. Bits are equal, also
 * of NaNs. */
#include "config.h"

#include "lib/base/cpu.h"
#include "lib/reduce/kernels.h"
#include "tests/lib/reduce/formats.h"
#include "tests/tap.h"

#include <stdlib.h>

enum { MANY = 300, PAIRS = 65536, SIZES = 300, MARGIN = 64 };
#define LARGE (((size_t)8 << 20) + 1000)
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))
#define ROOM (LARGE + 2 * MARGIN)

static unsigned char *buffers[3], *got, *want;
static const double quarters[] = {0.25, -3, 0x1.555556p-2};

/* A call, made by a row and by the C row, with dest and equal bytes. */
typedef struct {
    const dscomm_kernels_t *row;
    dscomm_dtype_t dtype;
    dscomm_op_t op;
    size_t nsources, count, shift; /* bytes off alignment */
    const void *const *sources;
    const double *factors;
    int in_place;
} call_t;

static int is_same(const call_t *call)
{
    size_t size = dscomm_dtype_size(call->dtype), bytes = call->count * size;
    const unsigned char *a = got + call->shift, *b = want + call->shift;

    if (memcmp(got, want, call->shift) != 0 ||
        memcmp(a + bytes, b + bytes, MARGIN) != 0) {
        printf("# wrote outside of %zu elements\n", call->count);
        return 0;
    }
    if (memcmp(a, b, bytes) == 0)
        return 1;
    for (size_t i = 0; i < call->count; i++) {
        uint64_t x = format_code_at(a, size, i), y = format_code_at(b, size, i);

        if (x == y)
            continue;
        printf("# element %zu of %zu, %zu sources: got 0x%llx, want 0x%llx\n",
               i, call->count, call->nsources, (unsigned long long)x,
               (unsigned long long)y);
        return 0;
    }
    return 1;
}

static void run(const call_t *call, dscomm_reduce_fn kernel, unsigned char *to)
{
    size_t bytes = call->count * dscomm_dtype_size(call->dtype);
    const void *sources[MANY];

    for (size_t s = 0; s < call->nsources; s++)
        sources[s] = call->sources[s];
    memset(to, 0xa5, bytes + call->shift + MARGIN);
    if (call->in_place) {
        memcpy(to + call->shift, sources[0], bytes);
        sources[0] = to + call->shift;
    }
    kernel(to + call->shift, sources, call->nsources, call->count,
           call->factors);
}

static int agrees(const call_t *call)
{
    run(call, call->row->table[call->dtype][call->op], got);
    run(call, dscomm_priv_kernels_c[call->dtype][call->op], want);
    return is_same(call);
}

static const double *factors_of(dscomm_op_t op, size_t nsources)
{
    static double divisor;

    divisor = (double)nsources;
    return op == DSCOMM_AVG          ? &divisor
           : op == DSCOMM_PREMUL_SUM ? quarters
                                     : NULL;
}

/* Fills the sources with all pairs of bytes; or with all 16-bit codes, each
 * with random ones; or, for wider types, with random words. */
static void fill_pairs(size_t size)
{
    for (size_t i = 0; i < PAIRS; i++) {
        uint64_t words[3] = {format_random(), format_random(), format_random()};

        if (size == 1) {
            words[0] = i % 256;
            words[1] = i / 256;
        } else if (size == 2) {
            words[0] = i;
        }
        for (int s = 0; s < 3; s++)
            format_code_put(buffers[s], size, i, words[s]);
    }
}

static int has_pairs(call_t call)
{
    int good = 1;

    fill_pairs(dscomm_dtype_size(call.dtype));
    call.count = PAIRS;
    for (call.nsources = 1; call.nsources <= 3 && good; call.nsources++) {
        call.factors = factors_of(call.op, call.nsources);
        good = agrees(&call);
    }
    return good;
}

/* All numbers of elements, at all misalignments. */
static int has_sizes(call_t call)
{
    int good = 1;

    call.nsources = 2;
    call.factors = factors_of(call.op, 2);
    for (call.count = 0; call.count < SIZES && good; call.count++) {
        call.shift = call.count * 7 % 64;
        call.in_place = call.count % 2;
        good = agrees(&call);
    }
    return good;
}

static int has_large(call_t call)
{
    int good = 1;

    call.nsources = 2;
    call.factors = factors_of(call.op, 2);
    call.count = LARGE / dscomm_dtype_size(call.dtype);
    good = agrees(&call);
    for (call.shift = 8; call.shift < 24 && good; call.shift += 9)
        good = agrees(&call);
    call.in_place = 1;
    return good && agrees(&call);
}

static void test_kernel(call_t call)
{
    const char *type = dscomm_dtype_name(call.dtype);
    const char *op = dscomm_op_name(call.op), *name = call.row->name;

    ok(has_pairs(call), "%s: %s, %s: many pairs", name, type, op);
    ok(has_sizes(call), "%s: %s, %s: every size", name, type, op);
    if (call.op == DSCOMM_SUM)
        ok(has_large(call), "%s: %s, %s: large", name, type, op);
}

/* Sources with the largest, and with the smallest, sums of so many elements;
 * except for the first source, which makes a sum whose quotient, 65535 - 1 /
 * 300, float32 would round up. */
static int has_edges(call_t call, uint8_t top)
{
    size_t size = dscomm_dtype_size(call.dtype);
    const void *sources[MANY];

    for (size_t s = 0; s < MANY; s++)
        sources[s] = buffers[s > 0];
    memset(buffers[1], top == 0x80 ? 0 : 0xff, size * call.count);
    for (size_t i = size - 1; i < size * call.count; i += size)
        buffers[1][i] = top;
    memcpy(buffers[0], buffers[1], size * call.count);
    for (size_t i = 0; i < size * call.count; i += size)
        buffers[0][i] ^= 1;
    call.sources = sources;
    return agrees(&call);
}

/* Averages by whole divisors of every kind, with as many sources as kernels sum
 * in narrow words, and one more. */
static int has_averages(call_t call)
{
    static const size_t numbers[] = {2,   3,   63,  64,  65,
                                     254, 255, 256, 257, MANY};
    static const double divisors[] = {
        0,   3,     5,     7,     8,     10,         127,
        641, 32766, 32767, 32768, 65537, 0x1p24 + 1, 0x1p32 - 1};
    static const uint8_t tops[] = {0xff, 0x7f, 0x80};
    int good = 1;

    call.count = 150;
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
        call.nsources = numbers[n];
        for (size_t d = 0; d < sizeof divisors / sizeof *divisors; d++) {
            double divisor = MAX_OF(divisors[d], (double)numbers[n]);

            call.factors = &divisor;
            for (size_t t = 0; t < sizeof tops && good; t++)
                good = has_edges(call, tops[t]);
        }
    }
    return good;
}

/* Averages of random elements by every divisor up to MANY. */
static int has_divisors(call_t call)
{
    int good = 1;

    for (int d = 4; d < 2 * MANY && good; d++) {
        double divisor = d / 2 + 1;

        call.nsources = d % 2 ? 3 : 2;
        call.factors = &divisor;
        good = agrees(&call);
    }
    return good;
}

/* A factor that is NaN and has all its bits set. */
static int has_nan_factors(call_t call)
{
    const uint64_t ones = INT64_MAX;
    double factors[2] = {1, 1};

    memcpy(&factors[1], &ones, sizeof ones);
    call.nsources = 2;
    call.factors = factors;
    return agrees(&call);
}

/* Random elements with small exponents, with as many sources as kernels have a
 * special fold for, and one more. */
static int has_many(call_t call)
{
    static const size_t numbers[] = {3, 4, 5, 8, 63, 64, 65, MANY};
    static const double divisors[] = {1, 0.5, 3.5, 64, 100, 0x1p60, INFINITY};
    size_t size = dscomm_dtype_size(call.dtype);
    const void *sources[MANY] = {buffers[0]};
    int good = 1;

    for (size_t i = 0; i < (MANY + call.count) * size; i++)
        buffers[1][i] = buffers[2][i] & 0xbf;
    for (size_t s = 1; s < MANY; s++)
        sources[s] = buffers[1] + s * size;
    call.sources = sources;
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers && good; n++) {
        call.nsources = numbers[n];
        call.factors = NULL;
        if (call.op == DSCOMM_SUM)
            good = agrees(&call);
        for (size_t d = 0; call.op == DSCOMM_AVG && good &&
                           d < sizeof divisors / sizeof *divisors;
             d++) {
            call.factors = &divisors[d];
            good = agrees(&call);
        }
    }
    return good;
}

static void test_limits(call_t call)
{
    const char *type = dscomm_dtype_name(call.dtype), *name = call.row->name;

    call.count = 1000;
    if (call.op == DSCOMM_AVG) {
        ok(has_divisors(call), "%s: %s: averages by any divisor", name, type);
        ok(has_averages(call), "%s: %s: averages of extremes", name, type);
    }
    if (call.op == DSCOMM_SUM ||
        (call.op == DSCOMM_AVG && call.dtype > DSCOMM_UINT64))
        ok(has_many(call), "%s: %s, %s: many", name, type,
           dscomm_op_name(call.op));
    if (call.op == DSCOMM_PREMUL_SUM)
        ok(has_nan_factors(call), "%s: %s: factor NaN", name, type);
}

static void test_row(const dscomm_kernels_t *row)
{
    const void *sources[] = {buffers[0], buffers[1], buffers[2]};
    call_t call = {.row = row, .sources = sources};

    if (row->cpu & ~dscomm_priv_cpu_features()) {
        skip("%s: not of this processor, or masked by DSCOMM_CPU", row->name);
        return;
    }
    for (int dtype = 0; dtype < DSCOMM_DTYPE_COUNT; dtype++) {
        for (int op = 0; op < DSCOMM_OP_COUNT; op++) {
            call.dtype = dtype;
            call.op = op;
            if (!row->table[dtype][op])
                continue;
            test_kernel(call);
            test_limits(call);
        }
    }
}

int main(void)
{
    const dscomm_kernels_t *row;

    for (int s = 0; s < 3; s++)
        buffers[s] = malloc(ROOM);
    got = malloc(ROOM);
    want = malloc(ROOM);
    if (!buffers[0] || !buffers[1] || !buffers[2] || !got || !want)
        bail("no memory");
    for (int s = 0; s < 3; s++) {
        for (size_t i = 0; i < ROOM; i++)
            buffers[s][i] = (unsigned char)(format_random() >> 24);
    }
    for (size_t i = 0; (row = dscomm_priv_kernels_row(i)); i++) {
        if (row->table != dscomm_priv_kernels_c)
            test_row(row);
    }
    for (int s = 0; s < 3; s++)
        free(buffers[s]);
    free(got);
    free(want);
    return tap_done();
}
