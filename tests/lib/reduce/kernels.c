/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction kernels: all rows that run on this processor, every dtype and
 * operator, compared with arithmetic by definition (integers: modular, or with
 * 128 bits; floats: one correctly rounded operation after the other), and with
 * results computed by hand. */
#include "config.h"

#include "lib/base/cpu.h"
#include "lib/reduce/kernels.h"
#include "tests/lib/reduce/formats.h"
#include "tests/tap.h"

#include <dscomm/info.h>

enum { SOURCES = 8, COUNT = 2500, MARGIN = 32 };

static const size_t counts[] = {0, 1, 2, 7, 31, 1023, COUNT};
static const size_t nsources[] = {1, 2, 3, 4, 5, SOURCES};
static const double factors[SOURCES] = {0.5, -3,        0x1.555556p-2, 1,
                                        0,   0x1p-1040, 1e10,          -0.0};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* Elements as codes: the bits, in the low part of a word. */
typedef struct {
    dscomm_dtype_t dtype;
    dscomm_op_t op;
    size_t bytes;
    const format_t *format; /* of floats */
    dscomm_reduce_fn kernel;
    uint64_t codes[SOURCES][COUNT];
    uint64_t want[COUNT];
} plan_t;

static void begin(plan_t *plan, dscomm_dtype_t dtype, dscomm_op_t op)
{
    plan->dtype = dtype;
    plan->op = op;
    plan->bytes = dscomm_dtype_size(dtype);
    plan->format = format_of(dtype);
}

/* Integers and booleans */

static int is_signed(dscomm_dtype_t dtype)
{
    return dtype == DSCOMM_INT8 || dtype == DSCOMM_INT16 ||
           dtype == DSCOMM_INT32 || dtype == DSCOMM_INT64;
}

/* The number that an integer's code stands for. */
static __int128 integer(const plan_t *plan, uint64_t code)
{
    __int128 top = (__int128)1 << (8 * plan->bytes - 1);
    __int128 value = code;

    return is_signed(plan->dtype) && value >= top ? value - 2 * top : value;
}

static uint64_t wrapped(const plan_t *plan, uint64_t word)
{
    return plan->bytes == 8 ? word
                            : word & (((uint64_t)1 << 8 * plan->bytes) - 1);
}

static uint64_t join_integers(const plan_t *plan, uint64_t a, uint64_t b)
{
    int less = integer(plan, a) < integer(plan, b);

    switch (plan->op) {
    case DSCOMM_PRODUCT:
        return wrapped(plan, a * b);
    case DSCOMM_MIN:
        return less ? a : b;
    case DSCOMM_MAX:
        return less ? b : a;
    case DSCOMM_BAND:
        return a & b;
    case DSCOMM_BOR:
        return a | b;
    case DSCOMM_BXOR:
        return a ^ b;
    default:
        return wrapped(plan, a + b);
    }
}

static uint64_t average_integers(const plan_t *plan, size_t n, size_t i)
{
    __int128 sum = 0;

    for (size_t s = 0; s < n; s++)
        sum += integer(plan, plan->codes[s][i]);
    if (plan->dtype == DSCOMM_INT64)
        sum = (int64_t)(uint64_t)sum;
    else if (plan->dtype == DSCOMM_UINT64)
        sum = (uint64_t)sum;
    return wrapped(plan, (uint64_t)(sum / (__int128)n));
}

static uint64_t fold_integers(const plan_t *plan, size_t n, size_t i)
{
    uint64_t result = plan->codes[0][i];

    if (plan->op == DSCOMM_AVG)
        return average_integers(plan, n, i);
    for (size_t s = 1; s < n; s++)
        result = join_integers(plan, result, plan->codes[s][i]);
    return result;
}

/* The number of true elements determines each result. */
static uint64_t fold_booleans(const plan_t *plan, size_t n, size_t i)
{
    size_t true_ones = 0;

    for (size_t s = 0; s < n; s++)
        true_ones += plan->codes[s][i] != 0;
    switch (plan->op) {
    case DSCOMM_PRODUCT:
    case DSCOMM_MIN:
    case DSCOMM_BAND:
        return true_ones == n;
    case DSCOMM_BXOR:
        return true_ones % 2;
    default:
        return true_ones > 0;
    }
}

/* Floats */

/* Rounds to the accumulator's type: float64 stays, all others are rounded to
 * float32. A double is wide enough to do that after an operation on two float32
 * as if the operation had been exact. */
static double accumulated(const plan_t *plan, double exact)
{
    volatile double result =
        plan->dtype == DSCOMM_FLOAT64 ? exact : (double)(float)exact;

    return result;
}

static double join_floats(const plan_t *plan, double a, double b)
{
    int less = a < b || (a == b && signbit(a) && !signbit(b));

    switch (plan->op) {
    case DSCOMM_PRODUCT:
        return accumulated(plan, a * b);
    case DSCOMM_MIN:
        return isnan(a) || isnan(b) ? NAN : less ? a : b;
    case DSCOMM_MAX:
        return isnan(a) || isnan(b) ? NAN : less ? b : a;
    default:
        return accumulated(plan, a + b);
    }
}

static uint64_t float_code(const plan_t *plan, double value)
{
    float single = (float)value;
    uint32_t half;
    uint64_t code;

    memcpy(&half, &single, sizeof half);
    memcpy(&code, &value, sizeof code);
    return plan->bytes == 8   ? code
           : plan->bytes == 4 ? half
                              : format_round(plan->format, value);
}

static uint64_t fold_floats(const plan_t *plan, size_t n, size_t i)
{
    double result = 0, x;

    for (size_t s = 0; s < n; s++) {
        x = format_value(plan->format, plan->codes[s][i]);
        if (plan->op == DSCOMM_PREMUL_SUM)
            x = accumulated(plan, x * accumulated(plan, factors[s]));
        result = s ? join_floats(plan, result, x) : x;
    }
    if (plan->op == DSCOMM_AVG)
        result = accumulated(plan, result / (double)n);
    return float_code(plan, result);
}

static int same_code(const plan_t *plan, uint64_t a, uint64_t b)
{
    if (plan->format && format_is_nan(plan->format, b))
        return format_is_nan(plan->format, a);
    return a == b;
}

/* Inputs */

/* Returns code number `at` of the twelve extreme values of the type. */
static uint64_t special_code(const plan_t *plan, size_t at)
{
    uint64_t sign = (uint64_t)1 << (8 * plan->bytes - 1);
    uint64_t base = plan->format ? format_special(plan->format) : sign - 1;
    uint64_t codes[12] = {0,        sign,         base,     base | sign,
                          1,        sign + 1,     base - 1, (base - 1) | sign,
                          sign - 1, 2 * sign - 1, base + 1, (base + 1) | sign};

    return wrapped(plan, codes[at % 12]);
}

static uint64_t modest_code(const plan_t *plan)
{
    double value = ldexp((double)(format_random() % 4096) - 2048, -9);

    if (plan->format)
        return float_code(plan, accumulated(plan, value));
    return wrapped(plan, format_random() % 41 - 20);
}

/* The first two sources have every pair of special values. */
static void fill(plan_t *plan)
{
    size_t power = 1;

    for (size_t s = 0; s < SOURCES; s++) {
        for (size_t i = 0; i < COUNT; i++)
            plan->codes[s][i] = i % 3 == 0   ? special_code(plan, i / 3 / power)
                                : i % 3 == 1 ? wrapped(plan, format_random())
                                             : modest_code(plan);
        power *= s < 2 ? 12 : 1;
    }
}

/* Writes the codes of one source at an odd or even address; dest may be one of
 * the sources. */

static void put(const plan_t *plan, unsigned char *at, const uint64_t *codes,
                size_t count)
{
    for (size_t i = 0; i < count; i++)
        format_code_put(at, plan->bytes, i, codes[i]);
}

/* Returns whether only the count elements at dest have changed, and
 * correctly. */
static int as_wanted(const plan_t *plan, const unsigned char *dest, size_t n,
                     size_t count)
{
    for (size_t i = 0; i < MARGIN; i++) {
        if (dest[-1 - (int)i] != 0xa5 ||
            dest[count * plan->bytes + i] != 0xa5) {
            printf("# wrote outside of %zu elements\n", count);
            return 0;
        }
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t got = format_code_at(dest, plan->bytes, i);

        if (same_code(plan, got, plan->want[i]))
            continue;
        printf("# %zu sources, element %zu of %zu: got 0x%llx, want 0x%llx\n",
               n, i, count, (unsigned long long)got,
               (unsigned long long)plan->want[i]);
        for (size_t s = 0; s < n; s++)
            printf("#   0x%llx\n", (unsigned long long)plan->codes[s][i]);
        return 0;
    }
    return 1;
}

/* place: the source that is also dest; n: none. */
static int runs(const plan_t *plan, size_t n, size_t count, size_t place,
                size_t misalign)
{
    static _Alignas(64) unsigned char buffers[SOURCES + 1][COUNT * 8 + 128];
    const double divisor[] = {(double)n};
    const void *sources[SOURCES];
    unsigned char *dest = NULL;

    for (size_t s = 0; s <= n; s++) {
        unsigned char *at = buffers[s] + 64 + misalign * (3 * s + 1) % 8;

        memset(buffers[s], 0xa5, sizeof buffers[s]);
        if (s == place)
            dest = at;
        if (s == n)
            break;
        put(plan, at, plan->codes[s], count);
        sources[s] = at;
    }
    plan->kernel(dest, sources, n, count,
                 plan->op == DSCOMM_PREMUL_SUM ? factors
                 : plan->op == DSCOMM_AVG      ? divisor
                                               : NULL);
    return as_wanted(plan, dest, n, count);
}

static int runs_all(plan_t *plan)
{
    int good = 1;

    fill(plan);
    for (size_t k = 0; k < LENGTH(nsources) && good; k++) {
        size_t n = nsources[k];

        for (size_t i = 0; i < COUNT; i++)
            plan->want[i] = plan->format ? fold_floats(plan, n, i)
                            : plan->dtype == DSCOMM_BOOL
                                ? fold_booleans(plan, n, i)
                                : fold_integers(plan, n, i);
        for (size_t c = 0; c < LENGTH(counts) && good; c++) {
            for (size_t place = 0; place <= n && good; place++)
                good = runs(plan, n, counts[c], place, 0) &&
                       runs(plan, n, counts[c], place, 1);
        }
    }
    return good;
}

static void test_row(const dscomm_kernels_t *row)
{
    static plan_t plan;
    int complete = row->table == dscomm_priv_kernels_c;

    if (row->cpu & ~dscomm_priv_cpu_features()) {
        skip("%s: not of this processor, or masked by DSCOMM_CPU", row->name);
        return;
    }
    for (int dtype = 0; dtype < DSCOMM_DTYPE_COUNT; dtype++) {
        for (int op = 0; op < DSCOMM_OP_COUNT; op++) {
            const char *names[] = {dscomm_dtype_name(dtype),
                                   dscomm_op_name(op)};
            int applies = dscomm_op_applies(op, dtype);

            begin(&plan, dtype, op);
            plan.kernel = row->table[dtype][op];
            if (plan.kernel && applies)
                ok(runs_all(&plan), "%s: %s, %s", row->name, names[0],
                   names[1]);
            else if (complete || plan.kernel)
                ok(!plan.kernel && !applies, "%s: no %s of %s", row->name,
                   names[1], names[0]);
        }
    }
}

/* Results by hand. Rounding after each step would give other sums of narrow
 * floats: 2048, 256, 16 and 8. */
#define AVG_BY(n)                                                              \
    {                                                                          \
        n, n, n                                                                \
    }
#define NONE                                                                   \
    {                                                                          \
        0, 0, 0                                                                \
    }
static const struct {
    dscomm_dtype_t dtype;
    dscomm_op_t op;
    size_t n;
    double inputs[3], factors[3], want;
} by_hand[] = {
    {DSCOMM_INT8, DSCOMM_SUM, 2, {100, 100}, NONE, -56},
    {DSCOMM_INT8, DSCOMM_AVG, 3, {127, 127, 126}, AVG_BY(3), 126},
    {DSCOMM_INT8, DSCOMM_AVG, 2, {-7, 0}, AVG_BY(2), -3},
    {DSCOMM_INT8, DSCOMM_AVG, 2, {-1, 0}, AVG_BY(2), 0},
    {DSCOMM_UINT8, DSCOMM_AVG, 2, {255, 254}, AVG_BY(2), 254},
    {DSCOMM_INT16, DSCOMM_PRODUCT, 2, {-32768, -32768}, NONE, 0},
    {DSCOMM_UINT16, DSCOMM_PRODUCT, 2, {65535, 65535}, NONE, 1},
    {DSCOMM_INT32, DSCOMM_SUM, 2, {2147483647, 1}, NONE, -2147483648.},
    {DSCOMM_INT32,
     DSCOMM_AVG,
     2,
     {2147483647, 2147483647},
     AVG_BY(2),
     2147483647},
    {DSCOMM_UINT32,
     DSCOMM_AVG,
     2,
     {4294967295, 4294967294},
     AVG_BY(2),
     4294967294},
    {DSCOMM_INT64, DSCOMM_AVG, 3, {-4, -4, 0}, AVG_BY(3), -2},
    {DSCOMM_INT64, DSCOMM_AVG, 2, {0x1p62, 0x1p62}, AVG_BY(2), -0x1p62},
    {DSCOMM_UINT64, DSCOMM_AVG, 2, {0x1p62, 0x1p62}, AVG_BY(2), 0x1p62},
    {DSCOMM_UINT64, DSCOMM_AVG, 2, {0x1p63, 0x1p63}, AVG_BY(2), 0},
    {DSCOMM_FLOAT16, DSCOMM_SUM, 3, {2048, 1, 1}, NONE, 2050},
    {DSCOMM_BFLOAT16, DSCOMM_SUM, 3, {256, 1, 1}, NONE, 258},
    {DSCOMM_FLOAT8_E4M3, DSCOMM_SUM, 3, {16, 1, 1}, NONE, 18},
    {DSCOMM_FLOAT8_E5M2, DSCOMM_SUM, 3, {8, 1, 1}, NONE, 10},
    {DSCOMM_FLOAT16, DSCOMM_SUM, 3, {65504, 65504, -65504}, NONE, 65504},
    {DSCOMM_FLOAT16, DSCOMM_SUM, 2, {65504, 65504}, NONE, INFINITY},
    {DSCOMM_FLOAT16, DSCOMM_AVG, 2, {65504, 65504}, AVG_BY(2), 65504},
    {DSCOMM_FLOAT8_E4M3, DSCOMM_SUM, 2, {448, 448}, NONE, NAN},
    {DSCOMM_FLOAT8_E4M3, DSCOMM_SUM, 2, {448, 16}, NONE, 448},
    {DSCOMM_FLOAT8_E5M2, DSCOMM_PRODUCT, 2, {-57344, 2}, NONE, -INFINITY},
    {DSCOMM_FLOAT16, DSCOMM_PREMUL_SUM, 2, {3, 5}, {0.5, -2}, -8.5},
    {DSCOMM_FLOAT64, DSCOMM_PREMUL_SUM, 2, {1, 1}, {0x1p-53, 1}, 1},
    {DSCOMM_FLOAT32, DSCOMM_SUM, 3, {0x1p24, 1, 1}, NONE, 0x1p24},
    {DSCOMM_FLOAT32, DSCOMM_AVG, 3, {1, 0, 0}, AVG_BY(3), 0x1.555556p-2},
    {DSCOMM_FLOAT32, DSCOMM_MIN, 2, {0.0, -0.0}, NONE, -0.0},
    {DSCOMM_FLOAT32, DSCOMM_MAX, 2, {-0.0, 0.0}, NONE, 0.0},
    {DSCOMM_FLOAT64, DSCOMM_MAX, 2, {-0.0, 0.0}, NONE, 0.0},
    {DSCOMM_BFLOAT16, DSCOMM_MAX, 2, {-0.0, 0.0}, NONE, 0.0},
    {DSCOMM_FLOAT32, DSCOMM_MAX, 3, {1, NAN, 2}, NONE, NAN},
    {DSCOMM_FLOAT64, DSCOMM_MIN, 3, {NAN, 1, 2}, NONE, NAN},
    {DSCOMM_FLOAT8_E5M2, DSCOMM_MIN, 2, {-INFINITY, NAN}, NONE, NAN},
    {DSCOMM_BOOL, DSCOMM_SUM, 2, {2, 4}, NONE, 1},
    {DSCOMM_BOOL, DSCOMM_BXOR, 2, {2, 4}, NONE, 0},
    {DSCOMM_BOOL, DSCOMM_BAND, 2, {2, 4}, NONE, 1},
};

static uint64_t hand_code(const plan_t *plan, double value)
{
    if (plan->format)
        return float_code(plan, value);
    return wrapped(plan,
                   value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value);
}

static void test_by_hand(void)
{
    static plan_t plan;

    for (size_t i = 0; i < LENGTH(by_hand); i++) {
        unsigned char inputs[3][8], result[8];
        const void *sources[] = {inputs[0], inputs[1], inputs[2]};

        begin(&plan, by_hand[i].dtype, by_hand[i].op);
        for (size_t s = 0; s < by_hand[i].n; s++) {
            uint64_t code = hand_code(&plan, by_hand[i].inputs[s]);
            put(&plan, inputs[s], &code, 1);
        }
        dscomm_reduce_kernel(plan.dtype, plan.op)(result, sources, by_hand[i].n,
                                                  1, by_hand[i].factors);
        ok(same_code(&plan, format_code_at(result, plan.bytes, 0),
                     hand_code(&plan, by_hand[i].want)),
           "%s of %zu %s, the first %g: %g", dscomm_op_name(plan.op),
           by_hand[i].n, dscomm_dtype_name(plan.dtype), by_hand[i].inputs[0],
           by_hand[i].want);
    }
}

/* A NaN that results from arithmetic is the one of types.h, whatever the
 * sources were. */
static void test_nans(void)
{
    static const struct {
        dscomm_dtype_t dtype;
        uint64_t in[2], want;
    } cases[] = {
        {DSCOMM_FLOAT16, {0xfe01, 0x7d00}, 0x7e00},
        {DSCOMM_BFLOAT16, {0x3f80, 0xffff}, 0x7fc0},
        {DSCOMM_FLOAT32, {0xffc00001, 0x7fc12345}, 0x7fc00000},
        {DSCOMM_FLOAT32, {0x7f800000, 0xff800000}, 0x7fc00000},
        {DSCOMM_FLOAT64, {0xfff0000000000001, 0}, 0x7ff8000000000000},
        {DSCOMM_FLOAT8_E4M3, {0xff, 0x38}, 0x7f},
        {DSCOMM_FLOAT8_E4M3, {0xfe, 0xfe}, 0x7f}, /* too large */
        {DSCOMM_FLOAT8_E5M2, {0xff, 0x3c}, 0x7e},
    };
    static plan_t plan;

    for (size_t i = 0; i < LENGTH(cases); i++) {
        unsigned char inputs[2][8], result[8];
        const void *sources[] = {inputs[0], inputs[1]};

        begin(&plan, cases[i].dtype, DSCOMM_SUM);
        for (int s = 0; s < 2; s++)
            put(&plan, inputs[s], &cases[i].in[s], 1);
        dscomm_reduce_kernel(plan.dtype, plan.op)(result, sources, 2, 1, NULL);
        ok(format_code_at(result, plan.bytes, 0) == cases[i].want,
           "the NaN of %s, case %zu", dscomm_dtype_name(plan.dtype), i);
    }
}

/* Best first, separated by spaces. */
static void test_names(void)
{
    const dscomm_kernels_t *row;
    char names[256] = "";

    for (size_t i = 0; (row = dscomm_priv_kernels_row(i)); i++) {
        if (row->cpu & ~dscomm_priv_cpu_features())
            continue;
        if (*names)
            strcat(names, " ");
        strcat(names, row->name);
    }
    is_str(dscomm_kernels(), names, "the rows in use are named");
    ok(strcmp(names, "c") == 0 || strstr(names, " c"), "C is among them");
}

static void test_choice(void)
{
    int wrong = 0;

    for (int dtype = 0; dtype < DSCOMM_DTYPE_COUNT; dtype++) {
        for (int op = 0; op < DSCOMM_OP_COUNT; op++)
            wrong += !dscomm_reduce_kernel(dtype, op) !=
                     !dscomm_op_applies(op, dtype);
    }
    is_int(wrong, 0, "there is a kernel exactly where the operator applies");
    ok(!dscomm_reduce_kernel(DSCOMM_DTYPE_COUNT, DSCOMM_SUM) &&
           !dscomm_reduce_kernel(DSCOMM_INT8, DSCOMM_OP_COUNT) &&
           !dscomm_reduce_kernel((dscomm_dtype_t)-1, DSCOMM_SUM),
       "there is none for numbers that mean nothing");
}

int main(void)
{
    const dscomm_kernels_t *row;

    test_names();
    test_choice();
    test_by_hand();
    test_nans();
    for (size_t i = 0; (row = dscomm_priv_kernels_row(i)); i++)
        test_row(row);
    return tap_done();
}
