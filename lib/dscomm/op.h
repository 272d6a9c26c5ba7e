/* SPDX-License-Identifier: BSD-3-Clause */
/* User-defined reduction operators. */
#ifndef DSCOMM_OP_H
#define DSCOMM_OP_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets left[i] to left[i] op right[i] for count elements of dtype. Inputs of
 * lower ranks are on the left. The operator must be associative and treat
 * elements one by one: calls cut buffers anywhere, so what belongs together
 * (a value and its index) must be one element. The buffers do not overlap and
 * are aligned for dtype; they are in host memory. Called by every thread that
 * makes progress, by several at the same time if the operator is used on
 * several groups, and while the library holds locks: it calls nothing of the
 * library. */
typedef void (*dscomm_op_fn)(void *left, const void *right, size_t count,
                             dscomm_dtype_t dtype, void *arg);

typedef struct dscomm_op_attr {
    size_t size;
    /* Shown in messages and compared between ranks: at most DSCOMM_OP_NAME_MAX
     * bytes, and not the name of a built-in operator; NULL = "user". */
    const char *name;
    void *arg; /* passed to the function */
    /* 1: a op b equals b op a, so that calls may combine inputs in any order.
     * 0: calls combine in rank order, by fewer and slower algorithms. */
    int commutative;
    /* Element types that the function takes: an or of (uint32_t)1 << dtype; 0 =
     * all. */
    uint32_t dtypes;
} dscomm_op_attr_t;
#define DSCOMM_OP_ATTR_INIT                                                    \
    {                                                                          \
        sizeof(dscomm_op_attr_t), NULL, NULL, 0, 0                             \
    }
#define DSCOMM_OP_NAME_MAX 31
/* Sets the size bytes at attr to the defaults, as DSCOMM_OP_ATTR_INIT does, for
 * callers in languages that have no macros. size: of the structure that the
 * caller knows. ERR_INVALID if attr is NULL, or if size is smaller than a
 * size_t or larger than 4096. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_op_attr_init(dscomm_op_attr_t *attr,
                                               size_t size);

/* Makes an operator for reduce, all_reduce, reduce_scatter and
 * reduce_scatter_v, on any group and backend. Local. All ranks of a call must
 * use operators with the same name and commutativity, otherwise ERR_MISMATCH.
 * attr may be NULL. ERR_NO_MEMORY if the process has 1024 already. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_op_create(dscomm_op_fn function,
                                            const dscomm_op_attr_t *attr,
                                            dscomm_op_t *ret_op);

/* Frees an operator. Later calls with it return ERR_INVALID; works that use it
 * go on, so function and arg must stay valid until these are complete.
 * ERR_INVALID if op was not made by dscomm_op_create(), or was freed. MT: safe.
 */
DSCOMM_API dscomm_status_t dscomm_op_free(dscomm_op_t op);

#ifdef __cplusplus
}
#endif

#endif
