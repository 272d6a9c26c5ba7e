/* SPDX-License-Identifier: BSD-3-Clause */
/* The failure record: what has ended a group, as data. */
#ifndef DSCOMM_FAILURE_H
#define DSCOMM_FAILURE_H

#include <dscomm/status.h>
#include <dscomm/types.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why a group has ended. Values are ABI: append only. */
typedef enum {
    DSCOMM_FAILURE_NONE = 0,
    DSCOMM_FAILURE_DIED = 1, /* the culprit's process has ended */
    DSCOMM_FAILURE_SILENT = 2, /* the deadline passed without progress */
    DSCOMM_FAILURE_MISMATCH = 3, /* ranks have called different collectives */
    DSCOMM_FAILURE_ABORTED = 4, /* dscomm_group_abort() */
    DSCOMM_FAILURE_PROTOCOL = 5, /* a rank or a library broke its contract */
    DSCOMM_FAILURE_RESOURCE = 6, /* no memory, descriptors, or the like */
    /* finalized or freed the group while others waited for it; MISMATCH if the
     * backend saw that it finalized instead of calling their collective */
    DSCOMM_FAILURE_LEFT = 7
} dscomm_failure_kind_t;

/* Bytes of the texts, each with its 0; longer ones are cut off. */
#define DSCOMM_FAILURE_HOST_MAX 72
#define DSCOMM_FAILURE_GROUP_MAX 184
#define DSCOMM_FAILURE_DETAIL_MAX 512

/* size is that of this structure, as DSCOMM_FAILURE_INIT sets it. The culprit
 * is the rank that caused the failure. If several ranks did, it is the first.
 * In a mismatch it is one of the two ranks whose calls differ; the detail
 * describes both. */
typedef struct dscomm_failure {
    size_t size;
    dscomm_status_t status; /* status of calls on the group */
    dscomm_failure_kind_t kind;
    int rank; /* of the culprit, in the world; -1: unknown */
    int group_rank; /* of the culprit, in the group that failed; -1: unknown */
    /* dscomm_coll_t of the collective in which the culprit failed, or by which
     * it differs; -1: none, or not known */
    int coll;
    int64_t pid; /* of the culprit; 0: not known */
    uint64_t sequence; /* of that collective in its group; 0: as coll -1 */
    char host[DSCOMM_FAILURE_HOST_MAX]; /* the culprit's; "": not known */
    char group[DSCOMM_FAILURE_GROUP_MAX]; /* name of the group that failed */
    /* Text for what the members above lack: what differs, which ranks are
     * awaited, the reason of an abort, the missing resource. */
    char detail[DSCOMM_FAILURE_DETAIL_MAX];
} dscomm_failure_t;
#define DSCOMM_FAILURE_INIT                                                    \
    {                                                                          \
        sizeof(dscomm_failure_t), DSCOMM_OK, DSCOMM_FAILURE_NONE, -1, -1, -1,  \
            0, 0, "", "", ""                                                   \
    }

/* Writes the failure that ended the group to *ret_failure. It is the same on
 * all ranks, except on ranks that failed on their own before they were
 * notified, and except for the collective: if a rank dies while a collective
 * runs as messages, only the ranks that were in it know it. ERR_NOT_FOUND, with
 * *ret_failure unchanged, while the group works. dscomm_group_status() gives
 * the failure's sentence. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_group_failure(const dscomm_group_t *group,
                                                dscomm_failure_t *ret_failure);

#ifdef __cplusplus
}
#endif

#endif
