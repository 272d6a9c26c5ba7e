/* SPDX-License-Identifier: BSD-3-Clause */
/* See fake-kernels.h. */
#include "config.h"

#include "tests/compression/fake-kernels.h"

#include "compression/codecs/arithmetic.h"
#include "compression/codecs/codecs.h"
#include "compression/device/ops.h"

#include <glib.h>

static float element(dscomm_device_format_t format, const void *x, size_t i)
{
    return format == DSCOMM_DEVICE_FLOAT32 ? ((const float *)x)[i]
           : format == DSCOMM_DEVICE_FLOAT16
               ? value_of_half(((const uint16_t *)x)[i])
               : bfloat16_widen(((const uint16_t *)x)[i]);
}

static void set_element(dscomm_device_format_t format, void *x, size_t i,
                        float value)
{
    if (format == DSCOMM_DEVICE_FLOAT32)
        ((float *)x)[i] = value;
    else
        ((uint16_t *)x)[i] = format == DSCOMM_DEVICE_FLOAT16
                                 ? half_of(value)
                                 : bfloat16_round(value);
}

static float said(const char *row, size_t i, float scale)
{
    return row[DSCOMM_DEVICE_HEADER + i / 8] & 0x80 >> i % 8 ? scale : -scale;
}

static float scale_of(const float *u, size_t elements)
{
    static const dscomm_codec_args_t args = {.size = sizeof args};
    double sums[DSCOMM_CODEC_SUMS] = {0};

    for (size_t i = 0; i < elements; i += DSCOMM_CODEC_BLOCK)
        dscomm_priv_codec_onebit.measure(&args, sums, NULL, u + i,
                                         MIN(DSCOMM_CODEC_BLOCK, elements - i));
    return dscomm_priv_codec_onebit.settle(&args, sums, elements);
}

static void encode(const float *u, size_t elements, char *row)
{
    unsigned char *bits = (unsigned char *)row + DSCOMM_DEVICE_HEADER;

    memset(bits, 0, elements / 8 + (elements % 8 != 0));
    for (size_t i = 0; i < elements; i++)
        bits[i / 8] |= (unsigned char)(u[i] < 0 ? 0 : 0x80 >> i % 8);
}

void fake_device_worker(const void *args)
{
    dscomm_device_worker_t a;
    const float *c;
    const void *x;
    float *u, s, scale;
    char *rows;

    memcpy(&a, args, sizeof a);
    x = fake_device_shadow(a.x);
    c = fake_device_shadow(a.c);
    u = fake_device_shadow(a.next);
    rows = fake_device_shadow(a.rows.first);
    s = *(float *)fake_device_shadow(a.s);
    for (size_t i = 0; i < a.padded; i++)
        u[i] =
            (i < a.count ? element(a.format, x, i) : 0) + onebit_error(c[i], s);
    scale = scale_of(u, a.padded);
    for (size_t r = 0; r < a.rows.ranks; r++) {
        size_t base = MIN(r * a.rows.chunk, a.padded);

        memcpy(rows + r * a.rows.stride, &scale, sizeof scale);
        encode(u + base, MIN(a.rows.chunk, a.padded - base),
               rows + r * a.rows.stride);
    }
    *(float *)fake_device_shadow(a.ret_s) = scale;
}

void fake_device_server(const void *args)
{
    dscomm_device_server_t a;
    char *rows, *row;
    float *c, *s;

    memcpy(&a, args, sizeof a);
    rows = fake_device_shadow(a.rows.first);
    row = fake_device_shadow(a.ret_row);
    c = fake_device_shadow(a.c);
    s = fake_device_shadow(a.s);
    for (size_t i = 0; i < a.count; i++) {
        float sum = 0;

        for (size_t r = 0; r < a.rows.ranks; r++) {
            const char *from = rows + r * a.rows.stride;
            float scale = *(const float *)(const void *)from * a.factor;

            sum += said(from, i, scale);
        }
        c[i] = onebit_error(c[i], *s) + sum;
    }
    *s = scale_of(c, a.count);
    memcpy(row, s, sizeof *s);
    encode(c, a.count, row);
}

void fake_device_unpack(const void *args)
{
    dscomm_device_unpack_t a;
    const char *rows;
    void *x;

    fake_device_held();
    memcpy(&a, args, sizeof a);
    rows = fake_device_shadow(a.rows.first);
    x = fake_device_shadow(a.ret_x);
    for (size_t i = 0; i < a.count; i++) {
        const char *row = rows + i / a.rows.chunk * a.rows.stride;
        size_t at = i % a.rows.chunk;

        if (at < a.from || at >= a.to)
            continue;
        set_element(a.format, x, i,
                    said(row, at, *(const float *)(const void *)row));
    }
    fake_device_happens(FAKE_UNPACK, a.ret_x);
}

void fake_device_materialise(const void *args)
{
    dscomm_device_materialise_t a;
    const float *s;
    float *c;

    memcpy(&a, args, sizeof a);
    c = fake_device_shadow(a.c);
    s = fake_device_shadow(a.s);
    for (size_t i = 0; i < a.count; i++)
        c[i] = onebit_error(c[i], *s);
}

void fake_device_take_back(const void *args)
{
    dscomm_device_take_back_t a;
    const void *x;
    const char *row;
    float *c;

    memcpy(&a, args, sizeof a);
    x = fake_device_shadow(a.x);
    c = fake_device_shadow(a.c);
    row = fake_device_shadow(a.row);
    for (size_t i = 0; i < a.count; i++) {
        float e = c[i] + said(row, i, *(const float *)(const void *)row);

        c[i] = e - element(a.format, x, i);
    }
}
