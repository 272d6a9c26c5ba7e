/* SPDX-License-Identifier: BSD-3-Clause */
/* A store whose keys are in a table of this process: memory.c and file.c. The
 * latter keeps its table equal to the file. */
#ifndef LIB_STORE_LOCAL_H
#define LIB_STORE_LOCAL_H

#include "lib/store/store.h"
#include "lib/store/table.h"

typedef struct dscomm_priv_local {
    dscomm_priv_store_t head;
    dscomm_priv_table_t *table;
    /* Locks the table; exclusively, if the caller will change it. */
    dscomm_status_t (*enter)(struct dscomm_priv_local *self, bool exclusive,
                             dscomm_priv_deadline_t deadline);
    void (*leave)(struct dscomm_priv_local *self);
    /* Executes STORE_GET; called without the lock. Fills present, one byte for
     * each key. */
    dscomm_status_t (*get)(struct dscomm_priv_local *self,
                           dscomm_priv_request_t *request, uint8_t *present);
    /* Stores value, whose reference it takes, in the locked table; NULL deletes
     * key, which is there. */
    dscomm_status_t (*put)(struct dscomm_priv_local *self, const char *key,
                           dscomm_priv_bytes_t *value);
    /* The number of keys in the locked table that are the store's own, not the
     * user's. NULL: the store has none. */
    int (*count_own)(const struct dscomm_priv_local *self);
} dscomm_priv_local_t;

/* Returns how many of the keys are in the locked table; present[i] = 1 if key i
 * is. */
size_t dscomm_priv_local_present(const dscomm_priv_local_t *self,
                                 const char *const *keys, size_t count,
                                 uint8_t *present);
/* Copies the values of the keys, all of which are in the locked table. Does
 * nothing if the request wants no values. */
dscomm_status_t dscomm_priv_local_copy(const dscomm_priv_local_t *self,
                                       dscomm_priv_request_t *request);

/* The operation execute of dscomm_priv_store_ops_t. */
dscomm_status_t dscomm_priv_local_execute(dscomm_priv_store_t *store,
                                          dscomm_priv_request_t *request);

#endif
