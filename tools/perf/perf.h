/* SPDX-License-Identifier: BSD-3-Clause */
/* The types that the files of `dscomm perf` share: the options, one call, one
 * figure, one row, and the run that they belong to.
 *
 * Functions that may fail print their sentence to stderr, once, and return an
 * exit status (tool.h); those that return dscomm_status_t leave it in
 * dscomm_last_error(). */
#ifndef TOOLS_PERF_H
#define TOOLS_PERF_H

#include "tools/common/tool.h"

#include <dscomm/dscomm.h>
#include <stdbool.h>

typedef struct perf_operation perf_operation_t;

enum { PERF_ROOT_ALL = -1, PERF_ROOT_ROTATES = -2 };

/* The command line. */
typedef struct {
    int ranks; /* 0: not given */
    const perf_operation_t **operations; /* NULL at the end */
    size_t min, max; /* bytes */
    size_t step; /* 0: by factor */
    double factor;
    /* calls of a figure; 0: as many as fit into the time below */
    int iterations;
    double time; /* seconds for each figure */
    int warmup;
    int aggregate; /* calls coalesced into one */
    int checks; /* verified calls for each figure; 0: none */
    bool dtypes[DSCOMM_DTYPE_COUNT];
    bool ops[DSCOMM_OP_COUNT];
    int root; /* a rank, or PERF_ROOT_* */
    char *backend; /* NULL: auto */
    char *compress; /* name of a codec; NULL: no compression */
    gboolean async, overlap;
    int registered; /* 1: buffers of dscomm_mem_alloc() */
    gboolean unpinned, no_roof;
    gboolean json, csv;
    char *save, *against;
    char *accelerator; /* "cuda": buffers in memory of a device; or NULL */
    gboolean compare; /* the operations are alternatives */
    char *plot; /* file of a picture, or NULL */
    int *sweep; /* numbers of ranks, 0 at the end; NULL: only one */
    int part; /* of a sweep: its number, from 1 on; 0: this is none */
    char *report; /* of a part: its file */
    gboolean model; /* --model, and its parameters, ranks and tuning file */
    char *model_parameters, *model_ranks, *model_save;
} perf_options_t;

/* In place or out of place; some operations have only one of them. */
typedef enum { PERF_OUT_OF_PLACE, PERF_IN_PLACE } perf_place_t;
#define PERF_PLACES 2

/* A block of a buffer, in elements. */
typedef struct {
    size_t offset, count;
} perf_block_t;

/* The keys of a rank's buffers, for puts and gets. */
typedef struct {
    char send[DSCOMM_MEM_KEY_BYTES], recv[DSCOMM_MEM_KEY_BYTES];
} perf_keys_t;

/* The arguments of one call. */
typedef struct {
    const perf_operation_t *operation;
    dscomm_group_t *group;
    int rank, ranks;
    dscomm_dtype_t dtype;
    size_t size; /* bytes of an element */
    dscomm_op_t op;
    double factor; /* of PREMUL_SUM */
    int root;
    size_t total; /* elements of the larger buffer: the size of nccl-tests */
    size_t count; /* count argument of the call: the count of nccl-tests */
    void *send, *recv;
    /* For _v calls, an entry for each rank. In all_to_all_v they describe both
     * buffers, because each rank sends as much to another as it receives from
     * it. */
    size_t *counts, *displs;
    int aggregate;
    size_t apart; /* bytes from the buffers of one coalesced call to the next */
    double work; /* --overlap: length of the computation */
    const perf_keys_t *keys; /* of all ranks, if there are accesses */
    void *keep; /* a blob is copied there, unless NULL */
    struct dscomm_compressor *compressor; /* --compress */
} perf_call_t;

/* Times of one call, in microseconds, over batches. */
typedef struct {
    double min, p50, p99, max;
    double spread; /* interquartile range over median, in percent */
    size_t batches, calls; /* calls in one batch */
    double faults; /* page faults in a call, on the rank with most of them */
} perf_times_t;

/* The figures of a row for one place. */
typedef struct {
    bool valid; /* false: the operation has no such place */
    perf_times_t times;
    double algbw, busbw; /* GB/s, 10^9 bytes */
    double messages; /* a second, of all ranks; 0: it has not many */
    double roof; /* the machine's limit, in microseconds; 0: not known */
    double hidden; /* percent; --overlap only */
    gint64 wrong; /* elements; -1: not checked */
    /* the baseline's time divided by this one's; 0: the baseline has none */
    double ratio;
} perf_figure_t;

typedef struct {
    const perf_operation_t *operation;
    size_t bytes, count;
    dscomm_dtype_t dtype;
    dscomm_op_t op;
    int root;
    const char *algorithm;
    perf_figure_t figures[PERF_PLACES];
} perf_row_t;

/* A rank's description, as all ranks know it. */
typedef struct {
    char host[64];
    int pid;
    int processor; /* the processor to which it is bound; -1: none */
    int local; /* index among the ranks of its host */
    int locals; /* their number */
} perf_rank_t;

typedef struct perf_report perf_report_t;
typedef struct perf_baseline perf_baseline_t;

/* One run, on one rank. */
typedef struct {
    const perf_options_t *options;
    const struct dscomm_topology *topology; /* NULL: unknown */
    dscomm_group_t **world; /* NULL there: it has ended */
    dscomm_group_t *group; /* all ranks; made after they were bound */
    int rank, ranks;
    perf_rank_t *everyone; /* ranks entries */
    char
        *crowd; /* the warning that ranks share processors; NULL: they do not */
    void *send, *recv; /* of options->max bytes each */
    /* host memory to fill and check buffers of a device; NULL: none */
    void *host_send, *host_recv;
    perf_keys_t *keys; /* of all ranks; NULL: no operation needs them */
    GArray *copies; /* that were measured: private to roof.c */
    double line; /* of a cache line at first, see roof.h; 0: not known */
    perf_baseline_t *baseline; /* on rank 0, with --against; else NULL */
    perf_report_t *report; /* on rank 0; else NULL */
    size_t figures, noisy; /* number of figures, and of noisy ones */
    size_t compared; /* number of figures that the baseline has, too */
    gint64 wrong;
    double busbw_sum;
    double faults; /* the most of any figure */
} perf_run_t;

/* Monotonic time in microseconds. */
double perf_now(void);

/* Prints "dscomm perf: WHAT: dscomm_last_error()". If ranks that dscomm has
 * started share a sentence, it is printed only once. Returns TOOL_FAILED. */
int perf_fail(const char *what);

/* Shows the current step on a terminal's stderr; NULL wipes it away. */
void perf_progress(const perf_run_t *run, const char *format, ...)
    G_GNUC_PRINTF(2, 3);

#endif
