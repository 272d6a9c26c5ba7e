/* SPDX-License-Identifier: BSD-3-Clause */
/* The standby store of a world whose store ends with rank 0, which serves it: a
 * file in shared memory that all ranks have open, so that it survives any of
 * them. It has the member records under the same keys as the world's store.
 * There is one if all ranks share a machine. */
#ifndef LIB_STANDBY_H
#define LIB_STANDBY_H

#include "lib/rendezvous/record.h"

#define DSCOMM_STANDBY_NONE "-" /* text: there is no standby store */
#define DSCOMM_STANDBY_MAX                                                     \
    48 /* bytes of the text that tells the others of it */

/* Makes the store, on rank 0, from all records. Writes to text where the other
 * ranks find it. Without one returns NULL and writes
 * DSCOMM_STANDBY_NONE; the world works without it. */
dscomm_store_t *dscomm_priv_standby_make(dscomm_record_t *records, int size,
                                         char text[DSCOMM_STANDBY_MAX]);
/* Opens the store that rank 0, whose pid is given, has described by text. NULL:
 * there is none, or this process cannot open it. */
dscomm_store_t *dscomm_priv_standby_join(int64_t pid, const char *text);

#endif
