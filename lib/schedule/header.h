/* SPDX-License-Identifier: BSD-3-Clause */
/* Message headers. The first message from one rank to another in a collective
 * begins with one. Headers of small calls are packed, so that header and a few
 * elements share a cache line. */
#ifndef LIB_HEADER_H
#define LIB_HEADER_H

#include <dscomm/backend.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t fingerprint;
    uint8_t coll, dtype;
    int8_t op;
    uint8_t algorithm; /* number in the table */
    int32_t root;
    uint32_t chain; /* hash of all fingerprints up to this one */
    uint64_t count;
    uint64_t total; /* bytes from sender to receiver, in all messages */
} dscomm_header_t;

/* The chain after a call with fingerprint, and that before it. */
static inline uint32_t dscomm_priv_chain_after(uint32_t chain,
                                               uint32_t fingerprint)
{
    return (chain ^ fingerprint) * UINT32_C(0x9e3779b1) + 1;
}

static inline uint32_t dscomm_priv_chain_before(uint32_t chain,
                                                uint32_t fingerprint)
{
    /* 0x9e3779b1 * 0x0e8b2f51 is 1 modulo 2^32. */
    return ((chain - 1) * UINT32_C(0x0e8b2f51)) ^ fingerprint;
}

/* Bytes of a packed header, and of the longest one. */
#define HEADER_PACKED 16
#define HEADER_WHOLE 40

/* Fields in the second word of a packed header. 15 means no dtype, or a user's
 * operator. */
enum {
    HEADER_IS_PACKED = 1,
    HEADER_COLL_AT = 1,
    HEADER_DTYPE_AT = 5,
    HEADER_OP_AT = 9,
    HEADER_ROOT_AT = 13,
    HEADER_ALGORITHM_AT = 24,
    HEADER_COUNT_AT = 32,
    HEADER_TOTAL_AT = 48
};

static inline int dscomm_priv_header_is_small(const dscomm_header_t *g)
{
    return g->coll < 16 && (g->dtype < 15 || g->dtype == UINT8_MAX) &&
           ((uint8_t)(g->op + 1) < 15 || g->op == DSCOMM_OP_USER) &&
           (uint32_t)(g->root + 1) < 2048 && g->count <= UINT16_MAX &&
           g->total <= UINT16_MAX;
}

/* Messages are written and read word by word. A wider load of recently stored
 * words would wait until these, and all earlier stores, have left the store
 * buffer. */
typedef volatile uint64_t __attribute__((may_alias)) dscomm_header_word_t;

/* Writes header to a message, which is aligned to words and has room for
 * HEADER_WHOLE bytes. Returns the header's size. */
static inline size_t dscomm_priv_header_put(void *to, const dscomm_header_t *g)
{
    dscomm_header_word_t *words = to;

    words[0] = g->fingerprint | (uint64_t)g->chain << 32;

    if (dscomm_priv_header_is_small(g)) {
        words[1] = HEADER_IS_PACKED | (uint64_t)g->coll << HEADER_COLL_AT |
                   (uint64_t)(g->dtype & 15) << HEADER_DTYPE_AT |
                   (uint64_t)((g->op + 1) & 15) << HEADER_OP_AT |
                   (uint64_t)(g->root + 1) << HEADER_ROOT_AT |
                   (uint64_t)g->algorithm << HEADER_ALGORITHM_AT |
                   g->count << HEADER_COUNT_AT | g->total << HEADER_TOTAL_AT;
        return HEADER_PACKED;
    }
    words[1] = (uint64_t)g->coll << 8 | (uint64_t)g->dtype << 16 |
               (uint64_t)(uint8_t)g->op << 24 | (uint64_t)g->algorithm << 32;
    words[2] = (uint32_t)g->root;
    words[3] = g->count;
    words[4] = g->total;
    return HEADER_WHOLE;
}

static inline void dscomm_priv_header_unpack(uint64_t word,
                                             dscomm_header_t *header)
{
    uint8_t dtype = word >> HEADER_DTYPE_AT & 15;
    uint8_t op = word >> HEADER_OP_AT & 15;

    header->coll = word >> HEADER_COLL_AT & 15;
    header->dtype = dtype == 15 ? UINT8_MAX : dtype;
    header->op = op == 15 ? DSCOMM_OP_USER : (int8_t)(op - 1);
    header->algorithm = (uint8_t)(word >> HEADER_ALGORITHM_AT);
    header->root = (int32_t)(word >> HEADER_ROOT_AT & 2047) - 1;
    header->count = (uint16_t)(word >> HEADER_COUNT_AT);
    header->total = word >> HEADER_TOTAL_AT;
}

/* Reads the header at the beginning of a message of so many bytes. Returns the
 * header's size, or 0 if the message is too short. */
static inline size_t dscomm_priv_header_get(const void *from, size_t bytes,
                                            dscomm_header_t *ret_header)
{
    const dscomm_header_word_t *words = from;
    dscomm_header_t header;
    uint64_t first, second;

    if (bytes < HEADER_PACKED)
        return 0;
    first = words[0];
    second = words[1];
    header.fingerprint = (uint32_t)first;
    header.chain = (uint32_t)(first >> 32);
    if (second & HEADER_IS_PACKED) {
        dscomm_priv_header_unpack(second, &header);
        *ret_header = header;
        return HEADER_PACKED;
    }
    if (bytes < HEADER_WHOLE)
        return 0;
    header.coll = (uint8_t)(second >> 8);
    header.dtype = (uint8_t)(second >> 16);
    header.op = (int8_t)(uint8_t)(second >> 24);
    header.algorithm = (uint8_t)(second >> 32);
    header.root = (int32_t)words[2];
    header.count = words[3];
    header.total = words[4];
    *ret_header = header;
    return HEADER_WHOLE;
}

/* Describes the collective of header, for messages. */
void dscomm_priv_header_describe(const dscomm_header_t *header,
                                 uint64_t sequence, char *text, size_t size);

#endif
