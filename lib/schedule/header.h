/* SPDX-License-Identifier: BSD-3-Clause */
/* Greetings: what the first message from one rank to another in a collective
 * begins with. Those of small calls are packed, so that greeting and payload of
 * a few elements share a cache line. */
#ifndef LIB_GREETING_H
#define LIB_GREETING_H

#include <dscomm/backend.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t fingerprint;
    uint8_t coll, dtype;
    int8_t op;
    uint8_t algorithm; /* number in the table */
    int32_t root;
    uint32_t chain; /* of all the fingerprints up to this one */
    uint64_t count;
    uint64_t total; /* bytes from this rank to that one, in all messages */
} dscomm_greeting_t;

/* Bytes in a message: of a packed one, and of any at most. */
#define GREETING_PACKED 16
#define GREETING_WHOLE 40

/* In the second word of a packed one. 15 stands for no dtype, and for an
 * operator of the program's own. */
enum {
    GREETING_IS_PACKED = 1,
    GREETING_COLL_AT = 1,
    GREETING_DTYPE_AT = 5,
    GREETING_OP_AT = 9,
    GREETING_ROOT_AT = 13,
    GREETING_ALGORITHM_AT = 24,
    GREETING_COUNT_AT = 32,
    GREETING_TOTAL_AT = 48
};

static inline int dscomm_priv_greeting_is_small(const dscomm_greeting_t *g)
{
    return g->coll < 16 && (g->dtype < 15 || g->dtype == UINT8_MAX) &&
           ((uint8_t)(g->op + 1) < 15 || g->op == DSCOMM_OP_USER) &&
           (uint32_t)(g->root + 1) < 2048 && g->count <= UINT16_MAX &&
           g->total <= UINT16_MAX;
}

/* A message is written and read word by word: a wider load of what was stored
 * in pieces has to wait until these have left the processor, and with them all
 * that was stored before, such as to lines that other ranks look at. */
typedef volatile uint64_t __attribute__((may_alias)) dscomm_greeting_word_t;

/* Writes greeting to a message, an address of words with room for
 * GREETING_WHOLE bytes; how many it takes. */
static inline size_t dscomm_priv_greeting_put(void *to,
                                              const dscomm_greeting_t *g)
{
    dscomm_greeting_word_t *words = to;

    words[0] = g->fingerprint | (uint64_t)g->chain << 32;

    if (dscomm_priv_greeting_is_small(g)) {
        words[1] = GREETING_IS_PACKED | (uint64_t)g->coll << GREETING_COLL_AT |
                   (uint64_t)(g->dtype & 15) << GREETING_DTYPE_AT |
                   (uint64_t)((g->op + 1) & 15) << GREETING_OP_AT |
                   (uint64_t)(g->root + 1) << GREETING_ROOT_AT |
                   (uint64_t)g->algorithm << GREETING_ALGORITHM_AT |
                   g->count << GREETING_COUNT_AT |
                   g->total << GREETING_TOTAL_AT;
        return GREETING_PACKED;
    }
    words[1] = (uint64_t)g->coll << 8 | (uint64_t)g->dtype << 16 |
               (uint64_t)(uint8_t)g->op << 24 | (uint64_t)g->algorithm << 32;
    words[2] = (uint32_t)g->root;
    words[3] = g->count;
    words[4] = g->total;
    return GREETING_WHOLE;
}

static inline void dscomm_priv_greeting_unpack(uint64_t word,
                                               dscomm_greeting_t *greeting)
{
    uint8_t dtype = word >> GREETING_DTYPE_AT & 15;
    uint8_t op = word >> GREETING_OP_AT & 15;

    greeting->coll = word >> GREETING_COLL_AT & 15;
    greeting->dtype = dtype == 15 ? UINT8_MAX : dtype;
    greeting->op = op == 15 ? DSCOMM_OP_USER : (int8_t)(op - 1);
    greeting->algorithm = (uint8_t)(word >> GREETING_ALGORITHM_AT);
    greeting->root = (int32_t)(word >> GREETING_ROOT_AT & 2047) - 1;
    greeting->count = (uint16_t)(word >> GREETING_COUNT_AT);
    greeting->total = word >> GREETING_TOTAL_AT;
}

/* Reads the greeting that a message of so many bytes begins with; how many it
 * takes, or 0 if they are too few. */
static inline size_t dscomm_priv_greeting_get(const void *from, size_t bytes,
                                              dscomm_greeting_t *ret_greeting)
{
    const dscomm_greeting_word_t *words = from;
    dscomm_greeting_t greeting;
    uint64_t first, second;

    if (bytes < GREETING_PACKED)
        return 0;
    first = words[0];
    second = words[1];
    greeting.fingerprint = (uint32_t)first;
    greeting.chain = (uint32_t)(first >> 32);
    if (second & GREETING_IS_PACKED) {
        dscomm_priv_greeting_unpack(second, &greeting);
        *ret_greeting = greeting;
        return GREETING_PACKED;
    }
    if (bytes < GREETING_WHOLE)
        return 0;
    greeting.coll = (uint8_t)(second >> 8);
    greeting.dtype = (uint8_t)(second >> 16);
    greeting.op = (int8_t)(uint8_t)(second >> 24);
    greeting.algorithm = (uint8_t)(second >> 32);
    greeting.root = (int32_t)words[2];
    greeting.count = words[3];
    greeting.total = words[4];
    *ret_greeting = greeting;
    return GREETING_WHOLE;
}

/* Writes the collective that greeting is of, for messages. */
void dscomm_priv_greeting_describe(const dscomm_greeting_t *greeting,
                                   uint64_t sequence, char *text, size_t size);

#endif
