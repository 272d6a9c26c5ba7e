/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes of element types, and the operators that apply to them: inline access
 * to the tables of types.c, for code that cannot afford a call. */
#ifndef LIB_TYPES_H
#define LIB_TYPES_H

#include <dscomm/hook.h>
#include <dscomm/types.h>

/* Bytes of an element of each dtype; and, for each op, the dtypes to which it
 * applies, one bit each. */
extern const uint8_t dscomm_priv_element[DSCOMM_DTYPE_COUNT];
extern const uint16_t dscomm_priv_applies[DSCOMM_OP_COUNT];

/* The elements that a collective reads or writes: none, its own count, that of
 * all ranks, or the sum of counts. */
enum { SHAPE_NONE, SHAPE_OWN, SHAPE_ALL, SHAPE_COUNTS };
/* The part of the root alone: it sends, receives, or reads the buffer into
 * which the others receive. */
enum { ROOTED_NOT, ROOTED_SEND, ROOTED_RECV, ROOTED_BUFFER };

typedef struct {
    const char *name;
    /* SHAPE_*; reduce_scatter_v counts what it sends by recv_counts */
    uint8_t send, recv;
    uint8_t rooted;
    uint8_t reduces; /* takes an operator */
} dscomm_priv_coll_t;

/* In collectives.c. The last row is of all that are no collective. */
extern const dscomm_priv_coll_t dscomm_priv_colls[DSCOMM_COLL_COUNT + 1];

static inline const dscomm_priv_coll_t *dscomm_priv_coll(int coll)
{
    return &dscomm_priv_colls[(unsigned)coll < DSCOMM_COLL_COUNT
                                  ? coll
                                  : DSCOMM_COLL_COUNT];
}

/* True if a collective reads or writes elements of this shape. */
static inline int dscomm_priv_coll_has(int coll, int shape)
{
    return dscomm_priv_coll(coll)->send == shape ||
           dscomm_priv_coll(coll)->recv == shape;
}

/* The index of name, which may be NULL, in names; -1: it is not there. */
int dscomm_priv_name_find(const char *const *names, int count,
                          const char *name);

/* Returns 0 if dtype is invalid. */
static inline size_t dscomm_priv_element_of(dscomm_dtype_t dtype)
{
    return (unsigned)dtype < DSCOMM_DTYPE_COUNT ? dscomm_priv_element[dtype]
                                                : 0;
}

/* A 32-bit hash of all arguments that must be equal on all ranks. */
static inline uint32_t dscomm_priv_fingerprint(int coll, int dtype, int op,
                                               int root, size_t count)
{
    uint64_t x = (uint64_t)(uint32_t)root << 32 | (uint32_t)coll << 16 |
                 (uint32_t)dtype << 8 | (uint8_t)op;

    x ^= (uint64_t)count * UINT64_C(0x9e3779b97f4a7c15);
    x *= UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(x >> 32);
}

#endif
