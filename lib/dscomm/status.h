/* SPDX-License-Identifier: BSD-3-Clause */
/* Status codes, which every call returns, and the sentence of a failure. */
#ifndef DSCOMM_STATUS_H
#define DSCOMM_STATUS_H

#include <dscomm/types.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, text). Values are ABI: append only. Zero is success, negative
 * values are failures, positive ones are neither. */
#define DSCOMM_STATUS_MAP(X)                                                   \
    X(OK, 0, "success")                                                        \
    X(IN_PROGRESS, 1, "operation in progress")                                 \
    X(ERR_INVALID, -1, "invalid argument")                                     \
    X(ERR_NO_MEMORY, -2, "out of memory or of another resource")               \
    X(ERR_UNSUPPORTED, -3, "not supported by this backend or build")           \
    X(ERR_NO_BACKEND, -4, "no usable backend")                                 \
    X(ERR_ENVIRONMENT, -5, "wrong or contradictory environment")               \
    X(ERR_TIMEOUT, -6, "deadline passed")                                      \
    X(ERR_PEER_FAILED, -7, "a peer died or left")                              \
    X(ERR_MISMATCH, -8, "ranks disagree about the operation")                  \
    X(ERR_ABORTED, -9, "group was aborted")                                    \
    X(ERR_TRUNCATED, -10, "message longer than the receive buffer")            \
    X(ERR_IO, -11, "system call failed")                                       \
    X(ERR_PROTOCOL, -12, "peer sent bytes that make no sense")                 \
    X(ERR_NOT_FOUND, -13, "not found")                                         \
    X(ERR_STATE, -14, "call is not allowed in this state")                     \
    X(ERR_INTERNAL, -15, "internal error")                                     \
    X(ERR_CANCELLED, -16, "operation was cancelled by its program")

typedef enum {
#define DSCOMM_STATUS_ENUM(name, value, text) DSCOMM_##name = value,
    DSCOMM_STATUS_MAP(DSCOMM_STATUS_ENUM)
#undef DSCOMM_STATUS_ENUM
        DSCOMM_STATUS_FORCE_INT = 0x7fffffff
} dscomm_status_t;

/* Static text for a status, "unknown status" for any other number. MT: safe. */
DSCOMM_API const char *dscomm_strerror(dscomm_status_t status);

/* "ERR_TIMEOUT": the name without prefix, "UNKNOWN" for any other number;
 * static. MT: safe. */
DSCOMM_API const char *dscomm_status_name(dscomm_status_t status);

/* The sentence of this thread's last failed call: the cause, with operation,
 * group, rank, sequence number and errno text where they apply, and the remedy.
 * Never NULL; "" before the first failure. A success leaves it alone. The text
 * lives until this thread's next failure. MT: safe (one text a thread). */
DSCOMM_API const char *dscomm_last_error(void);

/* Stores the sentence of this thread's failure (at most 511 bytes) and returns
 * status. For libraries on top of this one. Call it once, where the cause is
 * known. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_fail(dscomm_status_t status,
                                       const char *format, ...)
    DSCOMM_PRINTF(2, 3);

/* For small programs: run a call; if it fails, print where and why to stderr
 * and exit(1). The library itself never prints or exits. */
#define DSCOMM_CHECK(call)                                                     \
    do {                                                                       \
        dscomm_status_t dscomm_check_status_ = (call);                         \
        if (dscomm_check_status_ < 0) {                                        \
            fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call,  \
                    dscomm_strerror(dscomm_check_status_),                     \
                    dscomm_last_error());                                      \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
