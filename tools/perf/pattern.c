/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs, and what their reductions are, see verify.h. */
#include "config.h"

#include "tools/perf/operations.h"
#include "tools/perf/verify.h"

#include <string.h>

/* As many factors of two as every float has room for. */
#define TWOS 8
/* Integers of 64 bits whose sum must not wrap around: AVG. */
#define AVG_BITS 40

/* A pseudo-random number (splitmix64). */
static guint64 mix(guint64 x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static guint64 chance(guint32 seed, int rank, size_t i)
{
    return mix(mix((guint64)seed << 32 | (guint32)rank) + i);
}

/* The value of an integer type whose low bits these are. */
static gint64 wrapped(dscomm_dtype_t dtype, guint64 bits)
{
    switch (dtype) {
    case DSCOMM_INT8:
        return (gint8)bits;
    case DSCOMM_UINT8:
        return (guint8)bits;
    case DSCOMM_INT16:
        return (gint16)bits;
    case DSCOMM_UINT16:
        return (guint16)bits;
    case DSCOMM_INT32:
        return (gint32)bits;
    case DSCOMM_UINT32:
        return (guint32)bits;
    case DSCOMM_BOOL:
        return bits & 1;
    default:
        return (gint64)bits;
    }
}

static gint64 integer_input(const perf_call_t *call, guint32 seed, int rank,
                            size_t i)
{
    guint64 bits = chance(seed, rank, i);

    if (call->op == DSCOMM_AVG && call->size == 8)
        bits >>= 64 - AVG_BITS;
    return wrapped(call->dtype, bits);
}

/* 1 to the largest number that may be added up over all ranks; where there are
 * more ranks than that, some have 0. */
static gint64 summand(const perf_call_t *call, guint32 seed, int rank, size_t i)
{
    gint64 limit = (gint64)1 << perf_exact_bits(call->dtype);

    if (call->op == DSCOMM_PREMUL_SUM)
        limit /= 2;
    if (call->ranks <= limit)
        return 1 +
               (gint64)(chance(seed, rank, i) % (guint64)(limit / call->ranks));
    return (i + (size_t)rank) % (size_t)call->ranks < (size_t)limit;
}

/* Numbers around a mean that is a number of the type: ranks 2k and 2k + 1 are
 * as much above as below it. */
static gint64 averaged(const perf_call_t *call, guint32 seed, int rank,
                       size_t i)
{
    gint64 limit = (gint64)1 << perf_exact_bits(call->dtype);
    gint64 room = MAX(limit / call->ranks - 1, 1);
    gint64 mean = 1 + (gint64)(chance(seed, -1, i) % (guint64)room);

    if ((rank | 1) >= call->ranks)
        return mean;
    return rank % 2 ? mean + 1 : mean - 1;
}

static gint64 real_input(const perf_call_t *call, guint32 seed, int rank,
                         size_t i)
{
    gint64 limit = (gint64)1 << perf_exact_bits(call->dtype);
    guint64 bits = chance(seed, rank, i);

    if (call->op == DSCOMM_SUM || call->op == DSCOMM_PREMUL_SUM)
        return summand(call, seed, rank, i);
    if (call->op == DSCOMM_AVG)
        return averaged(call, seed, rank, i);
    if (call->op == DSCOMM_PRODUCT)
        return (i + (size_t)rank) % (size_t)call->ranks < TWOS && bits & 1 ? 2
                                                                           : 1;
    return (gint64)(bits % (guint64)(2 * limit)) - limit;
}

static gint64 input(const perf_call_t *call, guint32 seed, int rank, size_t i)
{
    if (perf_is_real(call->dtype))
        return real_input(call, seed, rank, i);
    return integer_input(call, seed, rank, i);
}

/* Whether a is less than b in the type: integers of 64 bits are stored in a
 * gint64 whatever their sign. */
static gboolean is_less(dscomm_dtype_t dtype, gint64 a, gint64 b)
{
    return dtype == DSCOMM_UINT64 ? (guint64)a < (guint64)b : a < b;
}

static gint64 combine(const perf_call_t *call, gint64 a, gint64 b)
{
    switch (call->op) {
    case DSCOMM_PRODUCT:
        return (gint64)((guint64)a * (guint64)b);
    case DSCOMM_MIN:
        return is_less(call->dtype, a, b) ? a : b;
    case DSCOMM_MAX:
        return is_less(call->dtype, a, b) ? b : a;
    case DSCOMM_BAND:
        return a & b;
    case DSCOMM_BOR:
        return a | b;
    case DSCOMM_BXOR:
        return a ^ b;
    default: /* of bool, the sum is "or" */
        return call->dtype == DSCOMM_BOOL ? a | b
                                          : (gint64)((guint64)a + (guint64)b);
    }
}

static gint64 reduced(const perf_call_t *call, guint32 seed, size_t i)
{
    gboolean scaled = call->op == DSCOMM_PREMUL_SUM;
    gint64 result = 0;

    for (int rank = 0; rank < call->ranks; rank++) {
        gint64 value = input(call, seed, rank, i);
        if (scaled)
            value *= 1 + rank % 2;
        result = rank == 0 ? value : combine(call, result, value);
    }
    if (call->op == DSCOMM_AVG)
        result /= call->ranks;
    return perf_is_real(call->dtype) ? result
                                     : wrapped(call->dtype, (guint64)result);
}

void perf_pattern(const perf_call_t *call, guint32 seed, int rank, void *block)
{
    char *element = block;

    for (size_t i = 0; i < PERF_PERIOD; i++, element += call->size) {
        guint64 bits = chance(seed, rank, i);
        if (call->operation->flags & PERF_REDUCES)
            perf_encode(call->dtype, input(call, seed, rank, i), element);
        else
            memcpy(element, &bits, call->size);
    }
}

void perf_reduced(const perf_call_t *call, guint32 seed, void *block)
{
    char *element = block;

    for (size_t i = 0; i < PERF_PERIOD; i++, element += call->size)
        perf_encode(call->dtype, reduced(call, seed, i), element);
}
