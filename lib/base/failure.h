/* SPDX-License-Identifier: BSD-3-Clause */
/* Failure records: their packed form, and the sentence made of one. */
#ifndef LIB_BASE_FAILURE_H
#define LIB_BASE_FAILURE_H

#include "lib/base/status.h"

#include <dscomm/failure.h>
#include <stdbool.h>

#define DSCOMM_PROCESS_MAX 128
/* Writes "rank 1 (pid 812 on b)" for a rank of a group, or "rank 1 (rank 3 of
 * the world, pid 812 on b)" if its number in the world is another; pid 0: not
 * known. Returns text. */
const char *dscomm_priv_process_describe(int rank, int world_rank, int64_t pid,
                                         const char *node,
                                         char text[DSCOMM_PROCESS_MAX]);

/* Makes the sentence of failure: the only function that does so. Returns
 * text. */
const char *dscomm_priv_failure_sentence(const dscomm_failure_t *failure,
                                         char text[DSCOMM_ERROR_MAX]);

/* Writes this thread's last failure, which has status, to *ret_failure, and
 * returns true if it came with a record. Otherwise makes a record of the
 * status, with the sentence as its detail. */
bool dscomm_priv_failure_last(dscomm_status_t status,
                              dscomm_failure_t *ret_failure);

#endif
