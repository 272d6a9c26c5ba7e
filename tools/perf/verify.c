/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills buffers and counts wrong elements, see verify.h. */
#include "config.h"

#include "tools/perf/messages.h"
#include "tools/perf/operations.h"
#include "tools/perf/verify.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Number of factors of two that every float format can hold. */
#define TWOS 8
/* Bits of the 64-bit integers that are averaged, whose sum must not wrap
 * around. */
#define AVG_BITS 40
/* A byte that no result has, except by chance. */
#define POISON 0xa5

typedef struct {
    int bits; /* 0: not a float of 8 or 16 bits */
    int mantissa, bias;
    int exact; /* all integers up to 2^exact are exact */
} format_t;

static const format_t formats[DSCOMM_DTYPE_COUNT] = {
    [DSCOMM_FLOAT16] = {16, 10, 15, 11}, [DSCOMM_BFLOAT16] = {16, 7, 127, 8},
    [DSCOMM_FLOAT32] = {0, 23, 127, 24}, [DSCOMM_FLOAT64] = {0, 52, 1023, 53},
    [DSCOMM_FLOAT8_E4M3] = {8, 3, 7, 4}, [DSCOMM_FLOAT8_E5M2] = {8, 2, 15, 3},
};

static bool is_real(dscomm_dtype_t dtype)
{
    return formats[dtype].mantissa > 0;
}

/* All integers to this one are exact in elements of call's type, a float. */
static gint64 exact_limit(const perf_call_t *call)
{
    return (gint64)1 << formats[call->dtype].exact;
}

/* Returns the value of a positive code that is a number. */
static double decode(const format_t *format, unsigned code)
{
    int exponent = (int)(code >> format->mantissa);
    double fraction = code & ((1u << format->mantissa) - 1);

    if (exponent == 0)
        return ldexp(fraction, 1 - format->bias - format->mantissa);
    return ldexp(fraction + (1 << format->mantissa),
                 exponent - format->bias - format->mantissa);
}

/* Finds the code of value; positive codes are in the order of their values. */
static unsigned find_code(const format_t *format, double value)
{
    unsigned low = 0, high = 1u << (format->bits - 1);

    while (low + 1 < high) {
        unsigned middle = low + (high - low) / 2;
        if (decode(format, middle) <= value)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The search uses the definition of the format alone: it is slow, but does not
 * depend on the conversions that are to be verified. */
static void encode_small(const format_t *format, gint64 value, void *element)
{
    unsigned code = find_code(format, fabs((double)value));
    guint8 byte;
    guint16 word;

    if (value < 0)
        code |= 1u << (format->bits - 1);
    byte = (guint8)code;
    word = (guint16)code;
    if (format->bits == 8)
        memcpy(element, &byte, sizeof byte);
    else
        memcpy(element, &word, sizeof word);
}

/* Writes the lowest bytes of a two's complement number, in this machine's byte
 * order. */
static void encode_integer(size_t size, gint64 value, void *element)
{
    const char *bytes = (const char *)&value;

    if (G_BYTE_ORDER == G_BIG_ENDIAN)
        bytes += sizeof value - size;
    memcpy(element, bytes, size);
}

void perf_encode(dscomm_dtype_t dtype, gint64 value, void *element)
{
    float single = (float)value;
    double twice = (double)value;

    if (dtype == DSCOMM_FLOAT32)
        memcpy(element, &single, sizeof single);
    else if (dtype == DSCOMM_FLOAT64)
        memcpy(element, &twice, sizeof twice);
    else if (formats[dtype].bits)
        encode_small(&formats[dtype], value, element);
    else if (dtype == DSCOMM_BOOL)
        *(guint8 *)element = value != 0;
    else
        encode_integer(dscomm_dtype_size(dtype), value, element);
}

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

/* Returns the value of an integer type whose low bits are these. */
static gint64 wrapped(dscomm_dtype_t dtype, guint64 bits)
{
    const size_t above = 64 - 8 * dscomm_dtype_size(dtype);

    switch (dtype) {
    case DSCOMM_BOOL:
        return bits & 1;
    case DSCOMM_UINT8:
    case DSCOMM_UINT16:
    case DSCOMM_UINT32:
        return (gint64)(bits << above >> above);
    default:
        return (gint64)(bits << above) >> above;
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

/* Returns a summand: from 1 to the largest number whose sum over all ranks is
 * exact. If there are more ranks than that, some have 0. */
static gint64 summand(const perf_call_t *call, guint32 seed, int rank, size_t i)
{
    gint64 limit = exact_limit(call);

    if (call->op == DSCOMM_PREMUL_SUM)
        limit /= 2;
    if (call->ranks <= limit)
        return 1 +
               (gint64)(chance(seed, rank, i) % (guint64)(limit / call->ranks));
    return (i + (size_t)rank) % (size_t)call->ranks < (size_t)limit;
}

/* Returns a number near a mean that is a number of the type: ranks 2k and 2k +
 * 1 differ from the mean by opposite amounts. If there are more ranks than the
 * largest exact number, the mean is 0, and only so many pairs differ from it.
 */
static gint64 averaged(const perf_call_t *call, guint32 seed, int rank,
                       size_t i)
{
    gint64 limit = exact_limit(call);
    gint64 room = MAX(limit / call->ranks - 1, 1);
    gint64 mean = call->ranks > limit
                      ? 0
                      : 1 + (gint64)(chance(seed, -1, i) % (guint64)room);

    if ((rank | 1) >= call->ranks || rank >= 2 * limit)
        return mean;
    return rank % 2 ? mean + 1 : mean - 1;
}

static gint64 real_input(const perf_call_t *call, guint32 seed, int rank,
                         size_t i)
{
    gint64 limit = exact_limit(call);
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
    if (is_real(call->dtype))
        return real_input(call, seed, rank, i);
    return integer_input(call, seed, rank, i);
}

/* Returns whether a is less than b in the type: 64-bit integers are stored in a
 * gint64 even if they are unsigned. */
static bool is_less(dscomm_dtype_t dtype, gint64 a, gint64 b)
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
    default: /* for bool, the sum is "or" */
        return call->dtype == DSCOMM_BOOL ? a | b
                                          : (gint64)((guint64)a + (guint64)b);
    }
}

static gint64 reduced(const perf_call_t *call, guint32 seed, size_t i)
{
    bool scaled = call->op == DSCOMM_PREMUL_SUM;
    gint64 result = 0;

    for (int rank = 0; rank < call->ranks; rank++) {
        gint64 value = input(call, seed, rank, i);
        if (scaled)
            value *= 1 + rank % 2;
        result = rank == 0 ? value : combine(call, result, value);
    }
    if (call->op == DSCOMM_AVG)
        result /= call->ranks;
    return is_real(call->dtype) ? result
                                : wrapped(call->dtype, (guint64)result);
}

void perf_pattern(const perf_call_t *call, guint32 seed, int rank, void *block)
{
    char *element = block;

    for (size_t i = 0; i < PERF_PERIOD; i++, element += call->size) {
        guint64 bits = chance(seed, rank, i);
        if (perf_kind(call->operation)->flags & PERF_REDUCES)
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

/* Elements of 8 bytes; smaller ones fit too. */
typedef guint64 block_t[PERF_PERIOD];

static size_t shape_count(const perf_call_t *call, perf_shape_t shape)
{
    bool root = call->rank == call->root;

    switch (shape) {
    case PERF_WHOLE:
        return call->total;
    case PERF_WHOLE_ON_ROOT:
        return root ? call->total : 0;
    case PERF_PART:
        return perf_call_block(call, call->rank).count;
    case PERF_FIRST_TWO:
        return call->rank < 2 ? call->total : 0;
    case PERF_PAIRED:
        return perf_partner(call) < 0 ? 0 : call->total;
    default:
        return 0;
    }
}

/* Writes count elements that repeat the block. */
static void repeat(const perf_call_t *call, const void *block, char *to,
                   size_t count)
{
    while (count > 0) {
        size_t now = MIN(count, PERF_PERIOD);
        memcpy(to, block, now * call->size);
        to += now * call->size;
        count -= now;
    }
}

/* In place, the buffers of an operation overlap, so the input is written
 * last. */
void perf_fill(const perf_call_t *call, guint32 seed)
{
    block_t *block = g_new(block_t, 1);
    size_t in = shape_count(call, perf_kind(call->operation)->send);
    size_t out = shape_count(call, perf_kind(call->operation)->recv);

    perf_pattern(call, seed, call->rank, block);
    memset(call->recv, POISON, out * call->size);
    if (perf_kind(call->operation)->send == PERF_NOTHING &&
        call->rank == call->root)
        repeat(call, block, call->recv, out);
    repeat(call, block, call->send, in);
    g_free(block);
}

/* A piece of recv after a call: count elements at offset. They are the elements
 * of rank source, or of the reduction if that is -1, from number first on. */
typedef struct {
    size_t offset, count;
    int source;
    size_t first;
} piece_t;

static int one_piece(piece_t *piece, size_t count, int source, size_t first)
{
    *piece = (piece_t){0, count, source, first};
    return count > 0;
}

/* The result of all_gather: rank i's own elements from its first one on. */
static int gathered_pieces(const perf_call_t *call, piece_t *pieces)
{
    for (int i = 0; i < call->ranks; i++) {
        perf_block_t block = perf_call_block(call, i);
        pieces[i] = (piece_t){block.offset, block.count, i, 0};
    }
    return call->ranks;
}

static int exchanged_pieces(const perf_call_t *call, piece_t *pieces)
{
    size_t offset = 0;

    for (int i = 0; i < call->ranks; i++) {
        perf_block_t block = perf_call_exchanged(call, i, call->rank);
        pieces[i] = (piece_t){offset, block.count, i, block.offset};
        offset += block.count;
    }
    return call->ranks;
}

/* Sets the pieces of this rank's result, at most ranks of them; returns how
 * many. */
static int find_pieces(const perf_call_t *call, piece_t *pieces)
{
    perf_block_t own = perf_call_block(call, call->rank);
    bool root = call->rank == call->root;
    int previous = (call->rank + call->ranks - 1) % call->ranks;
    int partner = perf_partner(call);

    switch (call->operation->gets) {
    case PERF_GETS_ROOT:
    case PERF_GETS_BLOB:
        return one_piece(pieces, call->total, call->root, 0);
    case PERF_GETS_REDUCED:
        return one_piece(pieces, call->total, -1, 0);
    case PERF_GETS_REDUCED_ON_ROOT:
        return one_piece(pieces, root ? call->total : 0, -1, 0);
    case PERF_GETS_REDUCED_PART:
        return one_piece(pieces, own.count, -1, own.offset);
    case PERF_GETS_ALL:
        return gathered_pieces(call, pieces);
    case PERF_GETS_ALL_ON_ROOT:
        return root ? gathered_pieces(call, pieces) : 0;
    case PERF_GETS_PART:
        return one_piece(pieces, own.count, call->root, own.offset);
    case PERF_GETS_EXCHANGED:
        return exchanged_pieces(call, pieces);
    case PERF_GETS_PREVIOUS:
        return one_piece(pieces, call->total, previous, 0);
    case PERF_GETS_OTHER:
        return one_piece(pieces, call->rank < 2 ? call->total : 0,
                         1 - call->rank, 0);
    case PERF_GETS_LOWER:
        return one_piece(pieces,
                         partner >= 0 && partner < call->rank ? call->total : 0,
                         partner, 0);
    case PERF_GETS_PARTNER:
        return one_piece(pieces, partner < 0 ? 0 : call->total, partner, 0);
    case PERF_GETS_FIRST:
        return one_piece(pieces, call->rank == 1 ? call->total : 0, 0, 0);
    default:
        return 0;
    }
}

static gint64 count_differing(const perf_call_t *call, const char *got,
                              const char *want, size_t count)
{
    gint64 wrong = 0;

    if (memcmp(got, want, count * call->size) == 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        wrong += memcmp(got + i * call->size, want + i * call->size,
                        call->size) != 0;
    return wrong;
}

static gint64 check_piece(const perf_call_t *call, const piece_t *piece,
                          const void *block)
{
    const char *got = (const char *)call->recv + piece->offset * call->size;
    size_t phase = piece->first % PERF_PERIOD;
    size_t left = piece->count;
    gint64 wrong = 0;

    while (left > 0) {
        size_t now = MIN(left, PERF_PERIOD - phase);
        wrong += count_differing(call, got,
                                 (const char *)block + phase * call->size, now);
        got += now * call->size;
        left -= now;
        phase = 0;
    }
    return wrong;
}

gint64 perf_count_wrong(const perf_call_t *call, guint32 seed)
{
    piece_t *pieces = g_new(piece_t, call->ranks);
    block_t *block = g_new(block_t, 1);
    int count = find_pieces(call, pieces);
    gint64 wrong = 0;

    for (int i = 0; i < count; i++) {
        if (pieces[i].source < 0)
            perf_reduced(call, seed, block);
        else
            perf_pattern(call, seed, pieces[i].source, block);
        wrong += check_piece(call, &pieces[i], block);
    }
    g_free(block);
    g_free(pieces);
    return wrong;
}
