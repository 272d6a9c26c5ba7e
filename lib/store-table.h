/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys, values and their rules: what ADD, APPEND and COMPARE_SET mean, for
 * every kind of store and for the server. No locks: its owner has them. */
#ifndef LIB_STORE_TABLE_H
#define LIB_STORE_TABLE_H

#include "lib/store-budget.h"

#include <dscomm/store.h>

typedef struct dscomm_priv_table dscomm_priv_table_t;

/* most: bytes that it may hold. */
dscomm_priv_table_t *dscomm_priv_table_new(size_t most);
void dscomm_priv_table_free(dscomm_priv_table_t *table);

/* Values that are to be stored are made with it. */
dscomm_priv_budget_t *dscomm_priv_table_budget(dscomm_priv_table_t *table);

/* The value, which the table owns, or NULL. */
GBytes *dscomm_priv_table_get(const dscomm_priv_table_t *table, GBytes *key);
/* Copies key, and takes a reference to value. ERR_NO_MEMORY where the table is
 * full. */
dscomm_status_t dscomm_priv_table_set(dscomm_priv_table_t *table, GBytes *key,
                                      GBytes *value);
gboolean dscomm_priv_table_remove(dscomm_priv_table_t *table, GBytes *key);
size_t dscomm_priv_table_count(const dscomm_priv_table_t *table);
/* All keys, each with a reference for the caller. */
GPtrArray *dscomm_priv_table_keys(const dscomm_priv_table_t *table);

/* What a command would store, without storing it; the caller frees it with
 * g_bytes_unref(). ERR_NO_MEMORY where there is no room for it. */

/* The decimal text of value + delta. ERR_INVALID where value is no decimal
 * number or the sum overflows. */
dscomm_status_t dscomm_priv_table_sum(dscomm_priv_table_t *table, GBytes *key,
                                      int64_t delta, int64_t *ret_sum,
                                      GBytes **ret_text);
/* value and data joined. ERR_INVALID where that is longer than a value may
 * be. */
dscomm_status_t dscomm_priv_table_join(dscomm_priv_table_t *table, GBytes *key,
                                       const void *data, size_t size,
                                       GBytes **ret_value);
/* The value that key has after COMPARE_SET, with a reference for the caller;
 * *ret_store tells whether it is desired, which the caller then stores. NULL:
 * key has no value and gets none, and the answer is expected itself. */
GBytes *dscomm_priv_table_compare(const dscomm_priv_table_t *table, GBytes *key,
                                  GBytes *expected, GBytes *desired,
                                  gboolean *ret_store);

#endif
