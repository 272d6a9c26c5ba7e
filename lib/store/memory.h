/* SPDX-License-Identifier: BSD-3-Clause */
/* A store whose keys are in a table of this process: memory.c and file.c. The
 * latter keeps its table equal to the file. */
#ifndef LIB_STORE_MEMORY_H
#define LIB_STORE_MEMORY_H

#include "lib/store/store.h"
#include "lib/store/table.h"

typedef struct dscomm_priv_local {
    dscomm_priv_store_t head;
    dscomm_priv_table_t table;
    /* Locks the table; exclusively, if the caller will change it. */
    dscomm_status_t (*enter)(struct dscomm_priv_local *self, bool exclusive,
                             dscomm_priv_deadline_t deadline);
    void (*leave)(struct dscomm_priv_local *self);
    /* Waits, unlocked, until the table may have changed, or for the deadline.
     * After a failure the table is not locked. */
    dscomm_status_t (*wait)(struct dscomm_priv_local *self,
                            dscomm_priv_deadline_t deadline);
    /* Stores value, whose reference it takes, in the locked table; NULL deletes
     * key, which is there. */
    dscomm_status_t (*put)(struct dscomm_priv_local *self, const char *key,
                           dscomm_priv_bytes_t *value);
    /* keys that are the store's own, not the user's, then NULL; or NULL */
    const char *const *own;
} dscomm_priv_local_t;

/* The operation execute of dscomm_priv_store_ops_t. */
dscomm_status_t dscomm_priv_local_execute(dscomm_priv_store_t *store,
                                          dscomm_priv_request_t *request);

#endif
