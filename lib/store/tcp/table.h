/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys, values and their rules: what ADD, APPEND and COMPARE_SET mean, for
 * every kind of store and for the server. No locks: its owner has them. */
#ifndef LIB_STORE_TABLE_H
#define LIB_STORE_TABLE_H

#include "lib/store/tcp/map.h"

typedef struct dscomm_priv_table dscomm_priv_table_t;

/* most: bytes that it may hold. NULL after dscomm_fail(). */
dscomm_priv_table_t *dscomm_priv_table_new(size_t most);
void dscomm_priv_table_free(dscomm_priv_table_t *table);

/* Values that are to be stored are made with it. */
dscomm_priv_budget_t *dscomm_priv_table_budget(dscomm_priv_table_t *table);

/* The value, which the table owns, or NULL. */
dscomm_priv_bytes_t *dscomm_priv_table_get(const dscomm_priv_table_t *table,
                                           dscomm_priv_data_t key);
/* Copies key, and takes a reference to value. ERR_NO_MEMORY where the table is
 * full. */
dscomm_status_t dscomm_priv_table_set(dscomm_priv_table_t *table,
                                      dscomm_priv_data_t key,
                                      dscomm_priv_bytes_t *value);
bool dscomm_priv_table_remove(dscomm_priv_table_t *table,
                              dscomm_priv_data_t key);
size_t dscomm_priv_table_count(const dscomm_priv_table_t *table);
/* The next key, or NULL; *cursor is NULL before the first one. */
dscomm_priv_bytes_t *
dscomm_priv_table_next_key(const dscomm_priv_table_t *table,
                           const dscomm_priv_node_t **cursor);

/* The rules of ADD and APPEND, for a key whose value has value, or old bytes.
 * value NULL: the key is not there. ERR_INVALID: value is no decimal number, or
 * the sum overflows; the new value would be longer than a value may be. */
dscomm_status_t dscomm_priv_value_sum(dscomm_priv_data_t key,
                                      const dscomm_priv_data_t *value,
                                      int64_t delta, int64_t *ret_sum);
dscomm_status_t dscomm_priv_value_check_append(dscomm_priv_data_t key,
                                               size_t old, size_t more);

/* What a command would store, without storing it, with a reference for the
 * caller. ERR_NO_MEMORY where there is no room for it. */

/* The decimal text of value + delta. */
dscomm_status_t dscomm_priv_table_sum(dscomm_priv_table_t *table,
                                      dscomm_priv_data_t key, int64_t delta,
                                      int64_t *ret_sum,
                                      dscomm_priv_bytes_t **ret_text);
/* value and data joined. */
dscomm_status_t dscomm_priv_table_join(dscomm_priv_table_t *table,
                                       dscomm_priv_data_t key,
                                       dscomm_priv_data_t data,
                                       dscomm_priv_bytes_t **ret_value);

/* Appends data to the value of key, in its place unless somebody else has a
 * reference to the value. */
dscomm_status_t dscomm_priv_table_append(dscomm_priv_table_t *table,
                                         dscomm_priv_data_t key,
                                         dscomm_priv_data_t data);
/* Takes part out of the value of key, at the first line that begins with it; a
 * value without a rest is removed. Nothing where it is not there, or there is
 * no memory. */
void dscomm_priv_table_cut(dscomm_priv_table_t *table, dscomm_priv_data_t key,
                           dscomm_priv_data_t part);

/* Whether COMPARE_SET stores the desired value, which it then answers;
 * otherwise it answers *ret_value, which the table owns, or expected if that is
 * NULL: key has no value and gets none. */
bool dscomm_priv_table_compare(const dscomm_priv_table_t *table,
                               dscomm_priv_data_t key,
                               dscomm_priv_data_t expected,
                               dscomm_priv_bytes_t **ret_value);

#endif
