/* SPDX-License-Identifier: BSD-3-Clause */
/* The hook table, by which a profiler sees every operation. There is one table
 * for the process; without one, an operation costs two predictable branches. */
#ifndef DSCOMM_HOOK_H
#define DSCOMM_HOOK_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of an operation. Values are ABI: append only. */
typedef enum {
    DSCOMM_COLL_BROADCAST = 0,
    DSCOMM_COLL_REDUCE = 1,
    DSCOMM_COLL_ALL_REDUCE = 2,
    DSCOMM_COLL_ALL_GATHER = 3,
    DSCOMM_COLL_ALL_GATHER_V = 4,
    DSCOMM_COLL_REDUCE_SCATTER = 5,
    DSCOMM_COLL_REDUCE_SCATTER_V = 6,
    DSCOMM_COLL_GATHER = 7,
    DSCOMM_COLL_GATHER_V = 8,
    DSCOMM_COLL_SCATTER = 9,
    DSCOMM_COLL_SCATTER_V = 10,
    DSCOMM_COLL_ALL_TO_ALL = 11,
    DSCOMM_COLL_ALL_TO_ALL_V = 12,
    DSCOMM_COLL_BARRIER = 13,
    DSCOMM_COLL_SEND = 14,
    DSCOMM_COLL_RECV = 15
} dscomm_coll_t;
#define DSCOMM_COLL_COUNT 16

/* "all_reduce"; "invalid" for any other number; static. MT: safe. */
DSCOMM_API const char *dscomm_coll_name(dscomm_coll_t coll);

/* The phases of a collective. A backend that does not tell them apart is in
 * OTHER all the time. Values are ABI: append only. */
typedef enum {
    DSCOMM_PHASE_OTHER = 0,
    /* copies to memory that other ranks read, or to messages; and the start of
     * messages */
    DSCOMM_PHASE_COPY_IN = 1,
    /* waits for other ranks, in which the backend moves messages; of a work
     * also for calls that make progress */
    DSCOMM_PHASE_WAIT = 2,
    DSCOMM_PHASE_REDUCE = 3,
    DSCOMM_PHASE_COPY_OUT = 4 /* copies to the caller's buffer */
} dscomm_phase_t;
#define DSCOMM_PHASE_COUNT 5

/* One operation of the program, as passed to hooks; those that the library
 * makes itself, for example for new groups, are not passed. Valid during the
 * hook call only. */
typedef struct dscomm_op_info {
    size_t size;
    const dscomm_group_t *group;
    /* number of the collective, or of the message, on the group; collectives
     * and messages are counted separately */
    uint64_t sequence;
    int coll; /* dscomm_coll_t */
    int dtype; /* dscomm_dtype_t */
    int op; /* dscomm_op_t; -1 without reduction */
    /* or the peer of a send or receive; -1: none, or any source. When a
     * receive has succeeded, the rank that has sent. */
    int root;
    /* of a send or receive; -1: none, or any tag. When a receive has succeeded,
     * the tag of the message. */
    int tag;
    int async; /* 1: the caller got a work */
    size_t count; /* elements, as passed; all_to_all_v: the sum of send_counts;
                     other _v: those of this rank */
    /* count * size of dtype; for all_gather, reduce_scatter, gather, scatter
     * and all_to_all the size of the longer buffer, ranks times that. When a
     * receive has succeeded, the size of the message. */
    size_t bytes;
    const void *send;
    void *recv;
    /* In end, of a collective, if the table has DSCOMM_HOOKS_PHASES: the
     * nanoseconds in each dscomm_phase_t; else NULL. */
    const int64_t *phases;
} dscomm_op_info_t;

/* An operation that another library has made of operations of this one, for
 * example a compressed all_reduce. Its messages are passed to hooks as well, as
 * operations on the group that carries them. */
typedef struct dscomm_note {
    size_t size;
    const dscomm_group_t *group; /* on which the program has called it */
    int coll; /* dscomm_coll_t of which it is a form */
    dscomm_status_t status; /* its result */
    const char *codec; /* how data was encoded: "onebit" */
    int64_t nanoseconds; /* it has taken */
    uint64_t bytes; /* as in dscomm_op_info_t */
    uint64_t sent_bytes; /* that this rank has sent for it */
    /* that this rank sends at least if the same data is not encoded */
    uint64_t plain_bytes;
} dscomm_note_t;

/* The functions may be called by any thread that makes progress, while the
 * library holds locks. They must not start, wait for or free anything. */
typedef struct dscomm_hooks {
    size_t size;
    /* Called before the operation starts; its result is passed to end. */
    uint64_t (*begin)(const dscomm_op_info_t *info, void *arg);
    /* Called when the operation is complete; for a work, when completion is
     * detected. */
    void (*end)(const dscomm_op_info_t *info, dscomm_status_t status,
                uint64_t token, void *arg);
    void *arg;
    /* Called after end, when a call that waits for the operation's work, or
     * tests it, returns its result: the nanoseconds spent in all such calls,
     * at most until the operation's end.
     * Not called if there was no wait, for a blocking operation, whose caller
     * waits from begin to end, and for coalesced calls, whose caller waits for
     * all of them. */
    void (*waited)(const dscomm_op_info_t *info, int64_t nanoseconds,
                   uint64_t token, void *arg);
    /* Called by dscomm_hook_note(). note is valid during the call. */
    void (*note)(const dscomm_note_t *note, void *arg);
    uint64_t flags; /* DSCOMM_HOOKS_* */
    /* Called some time after end, for an operation with a buffer in device
     * memory: the nanoseconds between two events on the group's stream, which
     * enclose all its work there. Nothing waits for events, so it is called in
     * a later operation, or in dscomm_hooks_set(). The group may have ended by
     * then: only its number, name and size are valid. */
    void (*device)(const dscomm_op_info_t *info, int64_t nanoseconds,
                   uint64_t token, void *arg);
} dscomm_hooks_t;
/* The phases of collectives are timed: a clock is read at each change of
 * phase. */
#define DSCOMM_HOOKS_PHASES ((uint64_t)1)

/* Installs a table, which is copied; NULL removes it. Fails with ERR_STATE
 * while another is installed, and with ERR_INVALID if its size is invalid or it
 * sets a member that this libdscomm does not know. Operations in flight end
 * with the table they began with, so arg must outlive them. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_hooks_set(const dscomm_hooks_t *hooks);

/* For libraries that make operations of their own: passes note to the installed
 * table, if it wants notes. ERR_INVALID if the size, group, coll or codec is
 * invalid. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_hook_note(const dscomm_note_t *note);

#ifdef __cplusplus
}
#endif

#endif
