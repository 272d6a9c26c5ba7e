/* SPDX-License-Identifier: BSD-3-Clause */
/* A campaign: the operations that ranks repeat until one of them is harmed,
 * what harms it, and what the others must have returned. */
#ifndef TESTS_BACKENDS_CAMPAIGN_H
#define TESTS_BACKENDS_CAMPAIGN_H

#include "tests/backends/job.h"

#include <dscomm/dscomm.h>

#define CAMPAIGN_RANKS 4
#define CAMPAIGN_COUNTS 4

/* The arguments of an operation, the same on all ranks. */
typedef struct {
    size_t count;
    dscomm_dtype_t dtype;
    dscomm_op_t op;
    int root;
    int as_work;
} campaign_call_t;

/* Traits of an operation, which select the faults that fit it. */
enum {
    CAMPAIGN_COLLECTIVE = 1,
    CAMPAIGN_COUNTED = 2, /* has a count and a dtype */
    CAMPAIGN_REDUCES = 4,
    CAMPAIGN_ROOTED = 8,
    CAMPAIGN_CREATES = 16, /* makes groups */
    CAMPAIGN_EARLY = 32, /* dscomm_init() */
    CAMPAIGN_LATE = 64, /* dscomm_finalize() */
    /* a rank may wait for another one that waits for the harmed rank, in an
     * earlier group or message, and knows only that one */
    CAMPAIGN_CHAINED = 128
};

typedef struct {
    const char *name;
    int traits;
    int coll; /* dscomm_coll_t */
    /* NULL: campaign_collective() */
    dscomm_status_t (*turn)(dscomm_group_t *world, const campaign_call_t *call);
} campaign_operation_t;

extern const campaign_operation_t campaign_operations[];
extern const int campaign_operations_count;
extern const size_t campaign_counts[CAMPAIGN_COUNTS];

/* Makes the operation once, on the world or on groups of it. */
dscomm_status_t campaign_turn(const campaign_operation_t *operation,
                              dscomm_group_t *world,
                              const campaign_call_t *call);

/* Requests of a process that can be made to fail, campaign-inject.c. */
typedef enum {
    CAMPAIGN_MALLOC = 1, /* and its like */
    CAMPAIGN_MMAP, /* of a file */
    CAMPAIGN_MEMFD, /* memfd_create() */
    CAMPAIGN_SENDMSG
} campaign_request_t;

/* Finds libc's functions, before there are threads. */
void campaign_inject_prepare(void);
/* From now on, the k-th request of this kind fails, once. */
void campaign_inject_arm(campaign_request_t request, long k);
/* From now on, none does. Returns 1 if there were k requests. */
int campaign_inject_disarm(void);
/* Returns 1 if the request that failed was one of MPI's own. */
int campaign_inject_within(void);
/* The same of calls in these objects, innermost first, of which the last is
 * NULL: the first that makes no requests for others is MPI's. */
int campaign_inject_is_mpi(const char *const *paths);

typedef struct scene scene_t;

typedef enum { DIES, STOPS, DIFFERS, LACKS, FAILS } fault_kind_t;

/* A fault: something that is done to a rank, or that it does. */
typedef struct {
    const char *name;
    fault_kind_t kind;
    int needs, excludes; /* traits of operations */
    int signal; /* sent to the rank, unless it is 0 */
    /* done by the rank, in place of one of its turns, unless it is NULL */
    dscomm_status_t (*commit)(const scene_t *scene, dscomm_group_t *world);
    campaign_request_t request; /* that fails, unless it is 0 */
} fault_t;

struct scene {
    unsigned seed;
    const campaign_operation_t *operation;
    const fault_t *fault;
    int victim;
    int turn; /* of the victim, in which it commits the fault */
    unsigned delay_us; /* of the signal */
    int resumes; /* a stopped rank goes on after the others have given up */
    int spare; /* descriptors that it still gets */
    long k; /* the request of FAILS */
    campaign_call_t call;
    int launched; /* by an MPI's launcher */
};

/* Bits of a report's value */
enum { LEFT = 1, LEAKED = 2, REACHED = 4, WITHIN = 8 };

static inline int campaign_has(const scene_t *scene, int trait)
{
    return scene->operation->traits & trait;
}

/* Returns what is wrong with a rank after a run, or NULL. Increments *within if
 * MPI alone is to blame. campaign-judge.c. */
const char *campaign_judge(const scene_t *scene, const job_t *job, int rank,
                           int *within);

#endif
