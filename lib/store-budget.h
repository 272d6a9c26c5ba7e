/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits to the memory that the bytes of others take up. No locks: its owner
 * has them. */
#ifndef LIB_STORE_BUDGET_H
#define LIB_STORE_BUDGET_H

#include <dscomm/status.h>

#include <glib.h>

typedef struct {
    size_t used, most;
} dscomm_priv_budget_t;

/* What a copy takes besides its bytes, with its place in a table. */
#define BUDGET_COPY_COST ((size_t)256)

gboolean dscomm_priv_budget_has_room(const dscomm_priv_budget_t *budget,
                                     size_t more);

/* A copy of size bytes, which counts as long as anyone holds it; the budget
 * must live longer. NULL after dscomm_fail() where there is no room. */
GBytes *dscomm_priv_budget_copy(dscomm_priv_budget_t *budget, const void *data,
                                size_t size);
/* As a copy, of memory from g_malloc() that it takes over. Counts cost bytes,
 * room or not. */
GBytes *dscomm_priv_budget_take(dscomm_priv_budget_t *budget, void *data,
                                size_t size, size_t cost);

/* Counts now bytes in place of *held. */
void dscomm_priv_budget_hold(dscomm_priv_budget_t *budget, size_t *held,
                             size_t now);

/* Fails with ERR_NO_MEMORY: a store is full. */
dscomm_status_t dscomm_priv_budget_fail(const dscomm_priv_budget_t *budget,
                                        size_t more);

#endif
