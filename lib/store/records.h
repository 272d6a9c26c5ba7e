/* SPDX-License-Identifier: BSD-3-Clause */
/* torch's FileStore format: a file of records that only grows. A record is a
 * u32 length and a key, a u32 length and a value; the last one of a key counts.
 * The key "-/KEY" removes /KEY. Writers hold flock exclusively, readers
 * shared. */
#ifndef LIB_STORE_RECORDS_H
#define LIB_STORE_RECORDS_H

#include "lib/store/store.h"
#include "lib/store/table.h"
#include "lib/store/tcp/wire.h"

#include <sys/types.h>

typedef struct {
    char *path;
    int fd;
    off_t end; /* end of the part that is in table */
    dscomm_priv_table_t *table;
    dscomm_priv_buffer_t buffer; /* bytes of the file, of which */
    size_t taken; /* this many come before end */
} dscomm_priv_records_t;

/* Opens the file, or creates it with mode 0600. A symbolic link is refused, and
 * so is another user's file in a sticky folder where everybody may write. On
 * failure nothing is left to close. */
dscomm_status_t dscomm_priv_records_open(dscomm_priv_records_t *records,
                                         const char *path);
void dscomm_priv_records_close(dscomm_priv_records_t *records);

/* Locks the file and reads its new records into the table. ERR_NOT_FOUND if the
 * file has been removed meanwhile. On failure the file is not locked. */
dscomm_status_t dscomm_priv_records_lock(dscomm_priv_records_t *records,
                                         gboolean exclusive,
                                         dscomm_priv_deadline_t deadline);
void dscomm_priv_records_unlock(dscomm_priv_records_t *records);

/* Appends a record; the table gets it at the next lock. The caller has locked
 * the file exclusively. */
dscomm_status_t dscomm_priv_records_append(dscomm_priv_records_t *records,
                                           const char *key, const void *value,
                                           size_t size);

/* TRUE if there is something new to read, or an error to report. */
gboolean dscomm_priv_records_changed(const dscomm_priv_records_t *records);

/* Removes the file, unless its name now leads to another file. */
void dscomm_priv_records_unlink(const dscomm_priv_records_t *records);

#endif
