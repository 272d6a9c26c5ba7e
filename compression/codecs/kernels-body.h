/* SPDX-License-Identifier: BSD-3-Clause */
/* A row of kernels: loops that the compiler makes vectors of, for whatever the
 * including file is compiled for. That file has defined
 *
 *   ROW, NAME          the row, and its name as a string
 *   sign_vectors()     as the kernels, for a multiple of eight elements at the
 *   add_vectors()      beginning; they return how many they have done
 *   put_vectors()
 *   TO_HALF            if it has to_half_vectors()
 *   CASTS              if it has this and the other casts: from_half_vectors(),
 *                      to_bfloat_vectors() and from_bfloat_vectors() */
#include "compression/codecs/arithmetic.h"
#include "compression/codecs/kernels.h"
#include "lib/base/lanes.h"

#include <math.h>
#include <string.h>

/* Adding and subtracting this rounds to the nearest integer, halves to even. */
#define ROUNDER 12582912.0f

static void measure(double sums[KERNEL_SUMS], const float *x, const float *e,
                    size_t count)
{
    double local[KERNEL_SUMS];
    size_t i = 0;

    memcpy(local, sums, sizeof local);
    for (; i + KERNEL_SUMS <= count; i += KERNEL_SUMS)
        LANES for (int k = 0; k < KERNEL_SUMS; k++)
        {
            double u = x[i + (size_t)k] + e[i + (size_t)k];

            local[k] += u * u;
        }
    for (int k = 0; i < count; i++, k++) {
        double u = x[i] + e[i];

        local[k] += u * u;
    }
    memcpy(sums, local, sizeof local);
}

static void sign(const float *x, float *e, size_t count, float scale,
                 uint8_t *ret_bits)
{
    size_t i = sign_vectors(x, e, count, scale, ret_bits);

    while (i < count) {
        unsigned byte = 0;
        size_t end = count - i < 8 ? count : i + 8;

        for (unsigned bit = 0x80; i < end; i++, bit >>= 1) {
            float u = x[i] + e[i];

            byte |= u < 0 ? 0 : bit;
            e[i] = onebit_error(u, scale);
        }
        ret_bits[(end - 1) / 8] = (uint8_t)byte;
    }
}

static float signed_scale(const uint8_t *bits, size_t i, float scale)
{
    return bits[i / 8] & 0x80 >> i % 8 ? scale : -scale;
}

static void add_signs(const uint8_t *bits, size_t count, float scale,
                      float *sum)
{
    for (size_t i = add_vectors(bits, count, scale, sum); i < count; i++)
        sum[i] += signed_scale(bits, i, scale);
}

static void put_signs(const uint8_t *bits, size_t count, float scale,
                      int stream, float *ret_values)
{
    size_t i = put_vectors(bits, count, scale, stream, ret_values);

    for (; i < count; i++)
        ret_values[i] = signed_scale(bits, i, scale);
}

/* Compared as bits, magnitudes are in order, with NaN above infinity. */
static uint32_t largest(const float *x, const float *e, size_t count)
{
    uint32_t most = 0;

    LANES for (size_t i = 0; i < count; i++)
    {
        uint32_t bits = minifloat_bits(x[i] + e[i]) & 0x7fffffff;

        most = bits > most ? bits : most;
    }
    return most;
}

static float quantize(const float *x, float *e, size_t count, int8_t *ret_codes)
{
    uint32_t most = largest(x, e, count);
    float scale = minifloat_value(most) / 127;

    memset(ret_codes, 0, count);
    if (most >= 0x7f800000)
        return NAN;
    /* all elements are zero, or so small that their scale is */
    if (scale == 0) {
        LANES for (size_t i = 0; i < count; i++) e[i] += x[i];
        return 0;
    }
    LANES for (size_t i = 0; i < count; i++)
    {
        float u = x[i] + e[i], q = u / scale;

        q = q > 127 ? 127 : q < -127 ? -127 : q;
        q = q + ROUNDER - ROUNDER;
        ret_codes[i] = (int8_t)(int)q;
        q *= scale;
        e[i] = u - q;
    }
    return scale;
}

static void add_codes(const int8_t *codes, size_t count, float scale,
                      float *sum)
{
    LANES for (size_t i = 0; i < count; i++)
    {
        float value = scale * (float)codes[i];

        sum[i] += value;
    }
}

static void add(const float *x, float *e, size_t count)
{
    LANES for (size_t i = 0; i < count; i++) e[i] += x[i];
}

/* Codes may begin at any address. */
typedef uint16_t __attribute__((aligned(1), may_alias)) code_t;

#define CAST(format, round, widen)                                             \
    static void to_##format(const float *x, float *e, size_t count,            \
                            void *ret_codes)                                   \
    {                                                                          \
        code_t *codes = ret_codes;                                             \
        size_t done = to_##format##_vectors(x, e, count, ret_codes);           \
                                                                               \
        if (!e) {                                                              \
            LANES for (size_t i = done; i < count; i++) codes[i] =             \
                round(x[i]);                                                   \
            return;                                                            \
        }                                                                      \
        LANES for (size_t i = done; i < count; i++)                            \
        {                                                                      \
            float u = x[i] + e[i];                                             \
                                                                               \
            codes[i] = round(u);                                               \
            e[i] = u - widen(round(u));                                        \
        }                                                                      \
    }                                                                          \
    static void from_##format(const void *from, size_t count,                  \
                              float *ret_values)                               \
    {                                                                          \
        const code_t *codes = from;                                            \
        size_t done = from_##format##_vectors(from, count, ret_values);        \
                                                                               \
        LANES for (size_t i = done; i < count; i++) ret_values[i] =            \
            widen(codes[i]);                                                   \
    }

/* The loops above do all of it. */
#ifndef CASTS
#define from_half_vectors(codes, count, ret_values) 0
#define to_bfloat_vectors(x, e, count, ret_codes) 0
#define from_bfloat_vectors(codes, count, ret_values) 0
#ifndef TO_HALF
#define to_half_vectors(x, e, count, ret_codes) 0
#endif
#endif

CAST(half, half_of, value_of_half)
CAST(bfloat, bfloat16_round, bfloat16_widen)

/* Returns the k-th largest of sizes, whose highest bit is 0; found bit by
 * bit. */
static int32_t kth_largest(const int32_t *sizes, size_t count, size_t k)
{
    int32_t least = 0;

    for (int32_t bit = 0x40000000; bit; bit >>= 1) {
        int32_t trial = least | bit, found = 0;

        LANES for (size_t i = 0; i < count; i++) found += sizes[i] >= trial;
        if ((size_t)found >= k)
            least = trial;
    }
    return least;
}

#define RUN 32
#define RUNS (KERNEL_PICK_MOST / RUN)

static inline int32_t peak_of(const float *u, size_t count)
{
    int32_t most = 0;

    LANES for (size_t i = 0; i < count; i++)
    {
        int32_t bits = (int32_t)(minifloat_bits(u[i]) & 0x7fffffff);

        most = bits > most ? bits : most;
    }
    return most;
}

/* Finds the largest magnitude (peak) of each run of RUN elements. Returns the
 * number of runs. */
static size_t find_peaks(const float *u, size_t count, int32_t peaks[RUNS])
{
    size_t runs = 0;

    for (; (runs + 1) * RUN <= count; runs++)
        peaks[runs] = peak_of(u + runs * RUN, RUN);
    if (runs * RUN < count) {
        peaks[runs] = peak_of(u + runs * RUN, count - runs * RUN);
        runs++;
    }
    return runs;
}

/* Lists places and magnitudes of the elements that are not below least, and
 * returns their number. Runs whose peak is below least are skipped. */
static size_t find_candidates(const float *u, size_t count,
                              const int32_t peaks[RUNS], int32_t least,
                              uint16_t *places, int32_t *sizes)
{
    size_t found = 0;

    for (size_t run = 0; run * RUN < count; run++) {
        size_t end = run * RUN + RUN < count ? run * RUN + RUN : count;

        for (size_t i = run * RUN; i < end && peaks[run] >= least; i++) {
            int32_t bits = (int32_t)(minifloat_bits(u[i]) & 0x7fffffff);

            places[found] = (uint16_t)i;
            sizes[found] = bits;
            found += bits >= least;
        }
    }
    return found;
}

/* The k-th largest peak is at most the k-th largest magnitude. So only the few
 * elements that are not below it need to be compared with each other. */
static void pick_largest(const float *u, size_t count, size_t k,
                         uint16_t *ret_places)
{
    uint16_t places[KERNEL_PICK_MOST];
    int32_t sizes[KERNEL_PICK_MOST], peaks[RUNS], least;
    size_t runs = find_peaks(u, count, peaks), found, equal = k, kept = 0;

    least = k <= runs ? kth_largest(peaks, runs, k) : 0;
    found = find_candidates(u, count, peaks, least, places, sizes);
    least = kth_largest(sizes, found, k);
    LANES for (size_t i = 0; i < found; i++) equal -= sizes[i] > least;
    for (size_t i = 0; i < found && kept < k; i++) {
        ret_places[kept] = places[i];
        kept += sizes[i] > least || (sizes[i] == least && equal);
        equal -= sizes[i] == least && equal;
    }
}

const dscomm_codec_kernels_t ROW = {
    NAME, measure, sign,      add_signs, put_signs,   quantize,     add_codes,
    add,  to_half, to_bfloat, from_half, from_bfloat, pick_largest,
};
