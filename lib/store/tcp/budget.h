/* SPDX-License-Identifier: BSD-3-Clause */
/* Byte strings, and limits to the memory that those of others take up. No
 * locks: the owner has them. */
#ifndef LIB_STORE_BUDGET_H
#define LIB_STORE_BUDGET_H

#include "lib/store/store.h"

typedef struct {
    size_t used, most;
} dscomm_priv_budget_t;

/* A byte string that is freed with its last reference, and counts in its budget
 * until then. The budget must live longer. */
typedef struct {
    dscomm_priv_data_t data;
    dscomm_priv_budget_t *budget;
    size_t cost; /* bytes of budget */
    void *taken; /* what g_free() frees, or NULL: the bytes are own */
    unsigned refs;
    size_t room; /* bytes of own */
    uint8_t own[];
} dscomm_priv_bytes_t;

/* What a copy takes besides its bytes, with its place in a table. */
#define BUDGET_COPY_COST ((size_t)256)

bool dscomm_priv_budget_has_room(const dscomm_priv_budget_t *budget,
                                 size_t more);

/* These return a first reference, or NULL after dscomm_fail(). */

/* size bytes, which count cost, room or not; data may be NULL: the caller fills
 * own. */
dscomm_priv_bytes_t *dscomm_priv_bytes_new(dscomm_priv_budget_t *budget,
                                           const void *data, size_t size,
                                           size_t cost);
/* The same, of memory that g_free() frees, and that it takes over if it
 * succeeds. */
dscomm_priv_bytes_t *dscomm_priv_bytes_take(dscomm_priv_budget_t *budget,
                                            void *data, size_t size,
                                            size_t cost);
/* The same, if the budget has room for them; data as above. */
dscomm_priv_bytes_t *dscomm_priv_budget_copy(dscomm_priv_budget_t *budget,
                                             const void *data, size_t size);

dscomm_priv_bytes_t *dscomm_priv_bytes_ref(dscomm_priv_bytes_t *bytes);
/* NULL is fine. */
void dscomm_priv_bytes_unref(dscomm_priv_bytes_t *bytes);

dscomm_priv_data_t dscomm_priv_data_text(const char *text);
bool dscomm_priv_data_equal(dscomm_priv_data_t a, dscomm_priv_data_t b);

/* Counts now bytes in place of *held. */
void dscomm_priv_budget_hold(dscomm_priv_budget_t *budget, size_t *held,
                             size_t now);

/* Fails with ERR_NO_MEMORY: a store is full. */
dscomm_status_t dscomm_priv_budget_fail(const dscomm_priv_budget_t *budget,
                                        size_t more);

#endif
