/* SPDX-License-Identifier: BSD-3-Clause */
/* A profiler: counts, times and bandwidths of every operation of the process,
 * by operation, group and message size.
 *
 * A profiler is attached to the hooks of libdscomm (dscomm/hook.h). It adds no
 * operation and no synchronisation. Each rank counts its own operations;
 * DSCOMM_PROFILE, which needs no change of a program, also merges the counts of
 * all ranks (dscomm-profiler(7)).
 *
 * A blocking operation takes the time of its call, a work the time from its
 * start until its completion is noticed. Operations that fail are counted
 * apart, and have no times. An operation counts if it began after the profiler
 * was started or reset.
 *
 * Percentiles come from histograms with buckets of at most 1/64 of their value:
 * their error is below 1 %, for times up to 73 minutes. Minimum, maximum, sum
 * and counts are exact. Where the kernel's clock is the processor's counter,
 * times are read from that counter; its rate is measured, to some 0.01 %, when
 * a profiler is attached, which takes 2 ms the first time.
 *
 * Memory is bounded: 1 MiB, and 19 KiB for each of at most 1024 combinations of
 * operation, group, size and call site that occur. From the 769th on, sizes
 * between two powers of two share a row. Operations of the first 1024 groups
 * count, also of those that were freed meanwhile; of later groups only a new
 * profiler counts any. What finds no room is not counted, but
 * dscomm_profile_info() tells how many operations that are. Nothing is
 * allocated for a combination that has occurred before. The memory of a freed
 * profiler stays for the next one.
 *
 * With trace, each thread keeps its last 65,535 operations, waits and ranges,
 * 64 bytes each: 4 MiB a thread, for at most 16 threads at a time, 64 MiB in
 * all. This memory is allocated when a thread records its first event, and is
 * used again by later threads and profilers. dscomm_profile_info() tells how
 * many events were overwritten or found no room. */
#ifndef DSCOMM_PROFILER_H
#define DSCOMM_PROFILER_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dscomm_profiler dscomm_profiler_t;

/* Zero is the default of all members but the size. The names are those of
 * DeepSpeed's comms_logger. */
typedef struct dscomm_profiler_attr {
    size_t size;
    int enabled; /* 1: started at once; 0: by dscomm_profiler_start() */
    int prof_all; /* 1: all operations, whatever prof_ops names */
    /* The operations to count, by the names of dscomm_coll_name(), separated by
     * commas or +; NULL: all. */
    const char *prof_ops;
    int verbose; /* 1: a line on stderr after each operation */
    /* 1: operations are also told apart by their call sites, see
     * DSCOMM_PROFILER_SITE() */
    int debug;
    /* 1: events are kept, for DSCOMM_PROFILE_TRACE and for finding
     * stragglers */
    int trace;
    /* 0, 1: operations; 2: the phases of collectives, too, which takes more
     * time */
    int level;
} dscomm_profiler_attr_t;
#define DSCOMM_PROFILER_ATTR_INIT                                              \
    {                                                                          \
        sizeof(dscomm_profiler_attr_t), 0, 0, NULL, 0, 0, 0, 0                 \
    }
/* Sets the size bytes at attr to the defaults, as DSCOMM_PROFILER_ATTR_INIT
 * does, for callers in languages that have no macros. size: of the structure
 * that the caller knows. ERR_INVALID if attr is NULL, or if size is smaller
 * than a size_t or larger than 4096. MT: safe. */
DSCOMM_API dscomm_status_t
dscomm_profiler_attr_init(dscomm_profiler_attr_t *attr, size_t size);

/* Makes a profiler and attaches it to the hooks of the process. attr may be
 * NULL. ERR_STATE while another one, or another hook table, is attached.
 * ERR_INVALID if prof_ops names no operation, or if level is not 0, 1 or 2. MT:
 * safe. */
DSCOMM_API dscomm_status_t dscomm_profiler_attach(
    const dscomm_profiler_attr_t *attr, dscomm_profiler_t **ret_profiler);

/* Detaches a profiler, which keeps its counts; operations in flight are still
 * counted when they end. Does nothing if it is detached already, or NULL. MT:
 * safe. */
DSCOMM_API void dscomm_profiler_detach(dscomm_profiler_t *profiler);

/* Detaches and frees a profiler; NULL is fine. Operations in flight are not
 * counted. No other thread may be in a call of libdscomm. MT: unsafe. */
DSCOMM_API void dscomm_profiler_free(dscomm_profiler_t *profiler);

/* start: counts operations of group from now on; stop: no longer. group NULL:
 * of all groups, whatever was set for single ones before. ERR_STATE if the
 * profiler knows 1024 other groups. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_profiler_start(dscomm_profiler_t *profiler,
                                                 const dscomm_group_t *group);
DSCOMM_API dscomm_status_t dscomm_profiler_stop(dscomm_profiler_t *profiler,
                                                const dscomm_group_t *group);

/* Sets all counts of group to zero; group NULL: of all groups, and of ranges.
 * Operations in flight are not counted. Of an operation that ends in another
 * thread at the same time, a part may be counted. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_profiler_reset(dscomm_profiler_t *profiler,
                                                 const dscomm_group_t *group);

/* Call sites, if the profiler has debug. DSCOMM_PROFILER_SITE(call) makes a
 * call that returns a dscomm_status_t, and returns its status; the operations
 * that it begins count at "FUNCTION FILE:LINE". The macro's two functions are
 * for other languages. */
#define DSCOMM_PROFILER_SITE(call_)                                            \
    (dscomm_profiler_site_begin(__func__, __FILE__, __LINE__),                 \
     dscomm_profiler_site_end(call_))
/* MT: safe. */
DSCOMM_API void dscomm_profiler_site_begin(const char *function,
                                           const char *file, int line);
DSCOMM_API dscomm_status_t dscomm_profiler_site_end(dscomm_status_t status);
/* Operations that this thread begins from now on, and that have no site of
 * their own, count at tag, which is copied; NULL: at none. A process has at
 * most 4094 sites, tags and names of ranges; later ones count at "(others)".
 * MT: safe. */
DSCOMM_API void dscomm_profiler_tag(const char *tag);

/* A range of this thread's time, such as "forward", which becomes a row of its
 * name, or counts as dropped if its name is beyond the 4094, or empty, or if it
 * is nested more than 16 deep. Nothing happens unless a profiler is attached.
 * MT: safe. */
DSCOMM_API void dscomm_profiler_range_begin(const char *name);
DSCOMM_API void dscomm_profiler_range_end(void);

/* A profile: the counts at one moment, which no longer change. */
typedef struct dscomm_profile dscomm_profile_t;

/* Takes the counts of this rank. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_profiler_snapshot(
    const dscomm_profiler_t *profiler, dscomm_profile_t **ret_profile);
/* NULL is fine. MT: unsafe. */
DSCOMM_API void dscomm_profile_free(dscomm_profile_t *profile);

typedef struct dscomm_profile_info {
    size_t size;
    int ranks; /* whose counts these are */
    int world_size; /* ranks that should be there */
    const char *missing; /* "2, 5": ranks that are not; lives as profile does */
    uint64_t dropped; /* operations and ranges that found no room, here or on
                         the way */
    uint64_t events; /* that are there */
    uint64_t events_dropped; /* that were overwritten or found no room */
} dscomm_profile_info_t;
/* Fills in as many members of *ret_info as fit into its size, which the caller
 * sets. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_profile_info(const dscomm_profile_t *profile,
                                               dscomm_profile_info_t *ret_info);

/* Views of a profile: the things that have a row each. */
typedef enum {
    DSCOMM_PROFILE_BY_SIZE = 0, /* operation, group, site, message size */
    /* operation, group, site; sizes of one row are from a power of two to below
     * the next one */
    DSCOMM_PROFILE_BY_CLASS = 1,
    DSCOMM_PROFILE_BY_PEER = 2, /* send or recv, group, peer */
    DSCOMM_PROFILE_BY_RANGE = 3, /* the program's ranges */
    /* compressed operations: operation, group, codec, size of the buffers */
    DSCOMM_PROFILE_BY_CODEC = 4,
    /* level 2: operation, group, phase; sizes as by class */
    DSCOMM_PROFILE_BY_PHASE = 5
} dscomm_profile_by_t;

/* Groups of equal names and sizes share rows. */
typedef struct dscomm_profile_row {
    size_t size;
    const char *op; /* of dscomm_coll_name(), or the range's name */
    const char *group; /* its name; "" for a range */
    const char *site; /* "": none */
    int group_size; /* 0 for a range */
    int peer; /* rank in the group; -1: none, or a receive from any source */
    /* Smallest and largest size of one operation, in bytes, as in
     * dscomm_op_info_t; both 0 by peer and for a range. */
    uint64_t bytes, bytes_most;
    int ranks; /* that have such operations */
    uint64_t count; /* of operations that succeeded */
    uint64_t failed;
    uint64_t total_bytes; /* of those that succeeded */
    /* Times in nanoseconds. */
    int64_t total_ns;
    /* that callers have spent in calls: all of total_ns for blocking
     * operations, waits and tests for works */
    int64_t waited_ns;
    int64_t min_ns, mean_ns, p50_ns, p99_ns, max_ns; /* by peer: 0 but mean */
    /* Bytes per second by the definitions of nccl-tests (doc/PERFORMANCE.md
     * there) with the group's size: algbw is total_bytes / total_ns, busbw is
     * what each rank's link carries. 0: no bytes, or the total is not known,
     * as in _v calls. */
    double algbw, busbw;
    /* By codec, else "" and 0: how the data was encoded; the bytes that the
     * ranks have sent for it, those that they would have sent at least for the
     * same data if it was not encoded, 2(n-1)/n of total_bytes for an
     * all_reduce of n ranks; and the difference. algbw and busbw are then those
     * of the data before it was encoded, and waited_ns is 0. */
    const char *codec;
    uint64_t sent_bytes, plain_bytes;
    int64_t saved_bytes;
    /* By phase, else "": "copy_in", "wait", "reduce", "copy_out", or "other"
     * for what the backend does not tell apart (dscomm_phase_t). count is that
     * of operations with this phase; of the times there are only total_ns and
     * mean_ns. */
    const char *phase;
    /* Operations with buffers in device memory: how many the device has timed,
     * and the sum of the times that its work for them took, on the group's
     * stream. */
    uint64_t device_count;
    int64_t device_ns;
} dscomm_profile_row_t;
/* Fills in row index = 0, 1, ... of those by what by says. ERR_NOT_FOUND beyond
 * the last one. Texts live as long as profile. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_profile_row(const dscomm_profile_t *profile,
                                              dscomm_profile_by_t by,
                                              size_t index,
                                              dscomm_profile_row_t *ret_row);

/* The ranks for which others have waited, from the events of all ranks:
 * DSCOMM_PROFILE with trace:FILE or stragglers. An operation of a rank is held
 * from its begin until the last rank of the group begins the same collective,
 * or until it is complete, if that is earlier, as for the root of a broadcast.
 * Collectives count of which all ranks have an event, except for ranks that are
 * missing in the profile; messages do not. Times are as exact as the clocks of
 * the ranks are alike (dscomm-profiler(7)); those that are not longer than
 * their error are 0. */

/* One rank. */
typedef struct dscomm_profile_straggler {
    size_t size;
    int rank; /* in the world */
    int pid;
    const char *host;
    uint64_t collectives; /* that it was in */
    uint64_t last; /* in which it began last, and held others */
    /* By which the rank that began first, or waited longest, was held in these:
     * the sum, and the longest. */
    int64_t late_ns, late_most_ns;
    int64_t others_waited_ns; /* by which all others were held in these */
    int64_t waited_ns; /* by which this rank was held by others */
    int waited_for; /* the rank that held it longest; -1: none */
    int64_t waited_for_ns; /* by which */
} dscomm_profile_straggler_t;
/* Fills in row index = 0, 1, ..., a rank each; those for which others have
 * waited longest come first. ERR_NOT_FOUND beyond the last one, and if there
 * are no events. host lives as long as profile. MT: safe. */
DSCOMM_API dscomm_status_t
dscomm_profile_straggler(const dscomm_profile_t *profile, size_t index,
                         dscomm_profile_straggler_t *ret_straggler);

/* One collective. */
typedef struct dscomm_profile_arrival {
    size_t size;
    const char *op, *group;
    const char *group_id; /* dscomm_group_id() */
    uint64_t sequence; /* as in dscomm_op_info_t */
    uint64_t bytes; /* on the last rank */
    int last; /* the rank that began last */
    int64_t late_ns; /* the longest time by which a rank was held */
    int64_t waited_ns; /* by which all others were held */
} dscomm_profile_arrival_t;
/* The same for each collective; those with the longest waits come first. MT:
 * safe. */
DSCOMM_API dscomm_status_t
dscomm_profile_arrival(const dscomm_profile_t *profile, size_t index,
                       dscomm_profile_arrival_t *ret_arrival);

typedef enum {
    DSCOMM_PROFILE_SUMMARY = 0, /* a table for people */
    DSCOMM_PROFILE_DEEPSPEED = 1, /* in the layout of DeepSpeed's log_summary */
    DSCOMM_PROFILE_JSON = 2,
    DSCOMM_PROFILE_CSV = 3,
    DSCOMM_PROFILE_PROMETHEUS = 4, /* text format 0.0.4 */
    /* all events, for Perfetto and Chrome's trace viewer */
    DSCOMM_PROFILE_TRACE = 5
} dscomm_profile_format_t;
/* Writes profile to the file path, which is replaced as a whole or not at all;
 * a device, a pipe or a link is appended to. path NULL: to stderr. ERR_IO with
 * the system's reason. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_profile_write(const dscomm_profile_t *profile,
                                                dscomm_profile_format_t format,
                                                const char *path);

/* The library as a plugin, see dscomm/plugin.h. MT: safe. */
DSCOMM_API const struct dscomm_profiler_plugin *
dscomm_profiler_plugin(unsigned abi);

#ifdef __cplusplus
}
#endif

#endif
