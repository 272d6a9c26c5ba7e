/* SPDX-License-Identifier: BSD-3-Clause */
/* A store whose keys are in a table of this process: memory.c, and file.c,
 * whose table follows the file. */
#ifndef LIB_STORE_LOCAL_H
#define LIB_STORE_LOCAL_H

#include "lib/store/store.h"
#include "lib/store/table.h"

typedef struct dscomm_priv_local {
    dscomm_priv_store_t head;
    dscomm_priv_table_t *table;
    /* Locks the table; exclusively, if it is to be changed. */
    dscomm_status_t (*enter)(struct dscomm_priv_local *self, bool exclusive,
                             dscomm_priv_deadline_t deadline);
    void (*leave)(struct dscomm_priv_local *self);
    /* Stores value, whose reference it takes, in the locked table; NULL deletes
     * key, which is there. */
    dscomm_status_t (*put)(struct dscomm_priv_local *self, const char *key,
                           dscomm_priv_bytes_t *value);
    /* How many keys of the locked table are no user's; NULL: none. */
    int (*count_own)(const struct dscomm_priv_local *self);
} dscomm_priv_local_t;

/* The value of key in the locked table, or NULL. */
dscomm_priv_bytes_t *dscomm_priv_local_find(const dscomm_priv_local_t *self,
                                            const char *key);
/* How many of the keys are in the locked table; present[i]: whether key i
 * is. */
size_t dscomm_priv_local_present(const dscomm_priv_local_t *self,
                                 const char *const *keys, size_t count,
                                 uint8_t *present);
/* Copies the values of keys, which are in the locked table; for the operation
 * get. */
dscomm_status_t dscomm_priv_local_copy(const dscomm_priv_local_t *self,
                                       const char *const *keys, size_t count,
                                       void **ret_values, size_t *ret_sizes);

/* Operations of the table of functions. */
dscomm_status_t dscomm_priv_local_set(dscomm_priv_store_t *store,
                                      const char *key, const void *value,
                                      size_t size,
                                      dscomm_priv_deadline_t deadline);
dscomm_status_t dscomm_priv_local_add(dscomm_priv_store_t *store,
                                      const char *key, int64_t delta,
                                      dscomm_priv_deadline_t deadline,
                                      int64_t *ret_sum);
dscomm_status_t dscomm_priv_local_compare_set(
    dscomm_priv_store_t *store, const char *key, dscomm_priv_data_t expected,
    dscomm_priv_data_t desired, dscomm_priv_deadline_t deadline,
    void **ret_value, size_t *ret_size);
dscomm_status_t dscomm_priv_local_append(dscomm_priv_store_t *store,
                                         const char *key, const void *value,
                                         size_t size,
                                         dscomm_priv_deadline_t deadline);
dscomm_status_t dscomm_priv_local_remove(dscomm_priv_store_t *store,
                                         const char *key,
                                         dscomm_priv_deadline_t deadline,
                                         int *ret_deleted);
dscomm_status_t dscomm_priv_local_look(dscomm_priv_store_t *store,
                                       const char *const *keys, size_t count,
                                       dscomm_priv_deadline_t deadline,
                                       uint8_t *ret_present);
dscomm_status_t dscomm_priv_local_num_keys(dscomm_priv_store_t *store,
                                           dscomm_priv_deadline_t deadline,
                                           int64_t *ret_count);

#define LOCAL_OPS                                                              \
    .set = dscomm_priv_local_set, .add = dscomm_priv_local_add,                \
    .compare_set = dscomm_priv_local_compare_set,                              \
    .append = dscomm_priv_local_append, .remove = dscomm_priv_local_remove,    \
    .look = dscomm_priv_local_look, .num_keys = dscomm_priv_local_num_keys

#endif
