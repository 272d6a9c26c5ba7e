/* SPDX-License-Identifier: BSD-3-Clause */
/* Works through the buffers block by block: conversion to and from float32,
 * masks, and the codec's functions. */
#include "config.h"

#include "compression/codecs/codecs.h"
#include "compression/exchange/exchange.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define BLOCK DSCOMM_CODEC_BLOCK

typedef struct {
    float values[BLOCK], other[BLOCK];
} scratch_t;

/* Buffers may begin at any address. */
static void from_float64(const char *from, size_t count, float *ret_values)
{
    for (size_t i = 0; i < count; i++) {
        double value;

        memcpy(&value, from + i * sizeof value, sizeof value);
        ret_values[i] = (float)value;
    }
}

static void to_float64(const float *values, size_t count, char *to)
{
    for (size_t i = 0; i < count; i++) {
        double value = values[i];

        memcpy(to + i * sizeof value, &value, sizeof value);
    }
}

static void values_load(dscomm_dtype_t dtype, const char *from, size_t count,
                        float *ret_values)
{
    const dscomm_codec_kernels_t *kernels = dscomm_priv_codec_kernels();

    if (dtype == DSCOMM_FLOAT16)
        kernels->from_half(from, count, ret_values);
    else if (dtype == DSCOMM_BFLOAT16)
        kernels->from_bfloat(from, count, ret_values);
    else if (dtype == DSCOMM_FLOAT64)
        from_float64(from, count, ret_values);
    else
        memcpy(ret_values, from, count * sizeof *ret_values);
}

static void values_store(dscomm_dtype_t dtype, const float *values,
                         size_t count, char *to)
{
    const dscomm_codec_kernels_t *kernels = dscomm_priv_codec_kernels();

    if (dtype == DSCOMM_FLOAT16)
        kernels->to_half(values, NULL, count, to);
    else if (dtype == DSCOMM_BFLOAT16)
        kernels->to_bfloat(values, NULL, count, to);
    else if (dtype == DSCOMM_FLOAT64)
        to_float64(values, count, to);
    else
        memcpy(to, values, count * sizeof *values);
}

static void values_clear_masked(const uint8_t *mask, size_t count,
                                float *values)
{
    for (size_t i = 0; i < count; i++)
        values[i] = mask[i] ? values[i] : 0;
}

/* How many of count elements, from first on, are in the buffer and not
 * padding. */
static size_t elements_inside(const dscomm_compressor_t *c, size_t first,
                              size_t count)
{
    return first >= c->count ? 0 : MIN(count, c->count - first);
}

/* Clears the errors of masked elements. */
static void clear_masked_errors(const dscomm_compressor_t *c, size_t first,
                                size_t count, float *errors)
{
    if (c->mask && errors)
        values_clear_masked(c->mask + first, elements_inside(c, first, count),
                            errors);
}

/* A NaN in the errors would stay there for good, so errors that are not finite
 * become zero. A codec with a scale detects such values by the scale;
 * DeepSpeed's geometry keeps them. */
static void forget_lost(const dscomm_compressor_t *c, size_t count,
                        float *errors)
{
    if (c->codec->measure || !errors)
        return;
    for (size_t i = 0; i < count; i++)
        errors[i] = fabsf(errors[i]) <= FLT_MAX ? errors[i] : 0;
}

static int buffer_is_plain(const dscomm_exchange_t *x,
                           const dscomm_compressor_t *c, const char *buffer)
{
    return x->dtype == DSCOMM_FLOAT32 && !c->mask &&
           (uintptr_t)buffer % sizeof(float) == 0;
}

/* Returns elements of the buffer as float32: in place, or converted to
 * scratch. */
static const float *values_fetch(const dscomm_exchange_t *x, const part_t *part,
                                 size_t first, size_t count, float *scratch)
{
    const dscomm_compressor_t *c = part->c;
    size_t real = elements_inside(c, first, count);
    const char *from = part->buffer + first * dscomm_dtype_size(x->dtype);

    if (real == count && buffer_is_plain(x, c, part->buffer))
        return (const float *)from;
    if (real)
        values_load(x->dtype, from, real, scratch);
    memset(scratch + real, 0, (count - real) * sizeof *scratch);
    if (c->mask && real)
        values_clear_masked(c->mask + first, real, scratch);
    return scratch;
}

/* The number of a segment's elements that rank has in its part. */
static size_t segment_extent(const dscomm_compressor_t *c,
                             const segment_t *segment, int rank)
{
    size_t all = dscomm_priv_part_count(c, rank);

    return MIN(all, segment->to) > segment->from
               ? MIN(all, segment->to) - segment->from
               : 0;
}

static dscomm_codec_args_t args_of(const dscomm_compressor_t *c, uint32_t phase)
{
    dscomm_codec_args_t args = c->args;

    args.call = c->calls;
    args.phase = phase;
    return args;
}

/* Returns the address of the codes of the block that begins with element
 * from. */
static char *code_of(const part_t *part, size_t from, char *region)
{
    return dscomm_priv_row(part, region) + sizeof(dscomm_row_header_t) +
           from / BLOCK * part->c->block;
}

void dscomm_priv_put_header(const part_t *part, float scale, uint32_t phase,
                            char *region)
{
    dscomm_row_header_t header = {scale, part->signature, part->c->calls,
                                  phase};

    memcpy(dscomm_priv_row(part, region), &header, sizeof header);
}

float dscomm_priv_scale_of(const part_t *part, char *region)
{
    dscomm_row_header_t header;

    memcpy(&header, dscomm_priv_row(part, region), sizeof header);
    return header.scale;
}

int dscomm_priv_keeps(const dscomm_compressor_t *c, float scale)
{
    return c->geometry == DSCOMM_GEOMETRY_NATIVE && !isfinite(scale);
}

void dscomm_priv_measure(const dscomm_exchange_t *x, part_t *part)
{
    dscomm_compressor_t *c = part->c;
    dscomm_codec_args_t args = args_of(c, 0);
    double sums[DSCOMM_CODEC_SUMS] = {0};
    scratch_t scratch;

    part->scale = 0;
    if (!c->codec->measure)
        return;
    for (size_t i = 0; i < c->padded; i += BLOCK) {
        size_t count = MIN(BLOCK, c->padded - i);

        args.first = i;
        c->codec->measure(&args, sums,
                          values_fetch(x, part, i, count, scratch.values),
                          c->worker ? c->worker + i : NULL, count);
    }
    args.first = 0;
    part->scale = c->codec->settle(&args, sums, c->padded);
}

void dscomm_priv_encode(const dscomm_exchange_t *x, part_t *part,
                        const segment_t *segment, int rank, char *region)
{
    dscomm_compressor_t *c = part->c;
    dscomm_codec_args_t args = args_of(c, 0);
    size_t base = (size_t)rank * c->chunk + segment->from;
    size_t all = segment_extent(c, segment, rank);
    scratch_t scratch;

    args.keep = dscomm_priv_keeps(c, part->scale);
    if (!segment->from)
        dscomm_priv_put_header(part, part->scale, 0, region);
    for (size_t i = 0; i < all; i += BLOCK) {
        size_t count = MIN(BLOCK, all - i);
        float *errors = c->worker ? c->worker + base + i : NULL;

        args.first = base + i;
        c->codec->encode(&args, part->scale,
                         values_fetch(x, part, base + i, count, scratch.values),
                         errors, count,
                         code_of(part, segment->from + i, region));
        forget_lost(c, count, errors);
        clear_masked_errors(c, base + i, count, errors);
    }
}

static float factor_of(const dscomm_exchange_t *x, const dscomm_compressor_t *c)
{
    return c->op == DSCOMM_AVG ? 1.0f / (float)x->channel->ranks : 1;
}

/* Adds all ranks' codes of one block, in the order of ranks. */
static int add_up(const dscomm_exchange_t *x, const part_t *part, size_t from,
                  size_t count, char *const *rows, float *sum)
{
    const dscomm_compressor_t *c = part->c;
    dscomm_codec_args_t args = args_of(c, 0);
    float factor = factor_of(x, c);
    int bad = 0;

    args.first = (size_t)x->channel->rank * c->chunk + from;
    memset(sum, 0, count * sizeof *sum);
    for (int r = 0; r < x->channel->ranks; r++)
        bad |= c->codec->accumulate(&args, dscomm_priv_scale_of(part, rows[r]),
                                    factor, code_of(part, from, rows[r]), count,
                                    sum);
    return bad;
}

/* 1 if the sum of signs with these scales may be beyond float32. Such a sum is
 * not made, because the errors could not be recovered from it. */
static int is_too_large(const dscomm_compressor_t *c, double scales)
{
    return c->geometry == DSCOMM_GEOMETRY_NATIVE &&
           c->codec == &dscomm_priv_codec_onebit && scales > FLT_MAX;
}

int dscomm_priv_not_finite(const dscomm_exchange_t *x, const part_t *part,
                           char *const *rows)
{
    const float factor = factor_of(x, part->c);
    double scales = 0;

    for (int r = 0; r < x->channel->ranks; r++) {
        float scale = dscomm_priv_scale_of(part, rows[r]);

        if (dscomm_priv_keeps(part->c, scale))
            return 1;
        scales += scale * factor;
    }
    return is_too_large(part->c, scales);
}

int dscomm_priv_reduce(const dscomm_exchange_t *x, part_t *part,
                       const segment_t *segment, char *const *rows)
{
    dscomm_compressor_t *c = part->c;
    dscomm_codec_args_t args = args_of(c, 1);
    int rank = x->channel->rank, bad = 0;
    size_t base = (size_t)rank * c->chunk,
           all = segment_extent(c, segment, rank);
    scratch_t scratch;

    if (!segment->from)
        part->not_finite = dscomm_priv_not_finite(x, part, rows);
    for (size_t i = 0; i < all && !part->not_finite; i += BLOCK) {
        size_t count = MIN(BLOCK, all - i), at = segment->from + i;

        bad |= add_up(x, part, at, count, rows, scratch.values);
        if (c->feedback)
            dscomm_priv_codec_kernels()->add(scratch.values, c->server + at,
                                             count);
        else
            memcpy(c->server + at, scratch.values, count * sizeof(float));
        clear_masked_errors(c, base + at, count, c->server + at);
        args.first = base + at;
        if (c->codec->measure)
            c->codec->measure(&args, part->sums, NULL, c->server + at, count);
    }
    return bad ? -1 : 0;
}

void dscomm_priv_settle(const dscomm_exchange_t *x, part_t *part)
{
    dscomm_compressor_t *c = part->c;
    dscomm_codec_args_t args = args_of(c, 1);
    size_t count = dscomm_priv_part_count(c, x->channel->rank);

    part->scale = 0;
    if (part->not_finite)
        part->scale = NAN;
    else if (c->codec->settle && count)
        part->scale = c->codec->settle(&args, part->sums, count);
    /* The sum was finite, but not with the server's errors, which are lost:
     * they become zero. */
    if (!part->not_finite && dscomm_priv_keeps(c, part->scale))
        memset(c->server, 0, count * sizeof *c->server);
}

void dscomm_priv_encode_result(const dscomm_exchange_t *x, part_t *part,
                               const segment_t *segment, char *region)
{
    dscomm_compressor_t *c = part->c;
    dscomm_codec_args_t args = args_of(c, 1);
    int rank = x->channel->rank;
    size_t base = (size_t)rank * c->chunk,
           all = segment_extent(c, segment, rank);

    args.keep = dscomm_priv_keeps(c, part->scale);
    if (!segment->from)
        dscomm_priv_put_header(part, part->scale, 1, region);
    for (size_t i = 0; i < all; i += BLOCK) {
        size_t count = MIN(BLOCK, all - i), at = segment->from + i;
        float *v = c->server + at;

        args.first = base + at;
        c->codec->encode(&args, part->scale, c->feedback ? NULL : v,
                         c->feedback ? v : NULL, count,
                         code_of(part, at, region));
        forget_lost(c, count, v);
        clear_masked_errors(c, base + at, count, v);
    }
}

void dscomm_priv_take_back(const dscomm_exchange_t *x, part_t *part,
                           const segment_t *segment, int rank,
                           char *result_region, char *region)
{
    dscomm_compressor_t *c = part->c;
    dscomm_codec_args_t args = args_of(c, 0);
    float scale = dscomm_priv_scale_of(part, region);
    size_t base = (size_t)rank * c->chunk + segment->from;
    size_t all = segment_extent(c, segment, rank);
    scratch_t scratch;

    if (!c->worker ||
        !dscomm_priv_keeps(c, dscomm_priv_scale_of(part, result_region)) ||
        dscomm_priv_keeps(c, scale))
        return;
    for (size_t i = 0; i < all; i += BLOCK) {
        size_t count = MIN(BLOCK, all - i);
        float *errors = c->worker + base + i;
        const float *values =
            values_fetch(x, part, base + i, count, scratch.values);

        args.first = base + i;
        c->codec->accumulate(&args, scale, 1,
                             code_of(part, segment->from + i, region), count,
                             errors);
        for (size_t k = 0; k < count; k++)
            errors[k] -= values[k];
        clear_masked_errors(c, base + i, count, errors);
    }
}

int dscomm_priv_decode(const dscomm_exchange_t *x, part_t *part,
                       const segment_t *segment, int rank, char *region)
{
    dscomm_compressor_t *c = part->c;
    dscomm_codec_args_t args = args_of(c, 1);
    size_t base = (size_t)rank * c->chunk + segment->from;
    size_t all = elements_inside(c, base, segment_extent(c, segment, rank));
    size_t size = dscomm_dtype_size(x->dtype);
    float scale = dscomm_priv_scale_of(part, region);
    int bad = 0;

    args.stream = x->stream;
    for (size_t i = 0; i < all; i += BLOCK) {
        size_t count = MIN(BLOCK, all - i);
        char *to = part->buffer + (base + i) * size;
        const char *code = code_of(part, segment->from + i, region);
        float values[BLOCK];

        args.first = base + i;
        if (buffer_is_plain(x, c, part->buffer)) {
            bad |= c->codec->decode(&args, scale, code, count, (float *)to);
            continue;
        }
        args.stream = 0;
        bad |= c->codec->decode(&args, scale, code, count, values);
        if (c->mask)
            values_clear_masked(c->mask + base + i, count, values);
        values_store(x->dtype, values, count, to);
    }
    if (x->stream) /* makes streaming stores visible to other threads */
        atomic_thread_fence(memory_order_seq_cst);
    return bad ? -1 : 0;
}
