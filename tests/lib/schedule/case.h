/* SPDX-License-Identifier: BSD-3-Clause */
/* One collective of all ranks over the loop transport: inputs, and results by
 * plain arithmetic on small whole numbers, which every dtype can represent. */
#ifndef TESTS_LIB_CASE_H
#define TESTS_LIB_CASE_H

#include "lib/schedule/algorithm.h"
#include "lib/schedule/run.h"
#include "tests/lib/schedule/loop.h"

#define CASE_RANKS 32

typedef struct {
    const dscomm_algorithm_t *algorithm;
    int ranks, root, dtype, op;
    size_t count; /* of a _v call: of the longest block */
    int in_place;
    const char *hosts; /* at least one letter for each rank; NULL: not known */
} case_t;

typedef struct {
    dscomm_coll_args_t args[CASE_RANKS];
    char *send[CASE_RANKS], *recv[CASE_RANKS]; /* with guards around */
    size_t send_bytes[CASE_RANKS], recv_bytes[CASE_RANKS];
    size_t counts[CASE_RANKS][CASE_RANKS]; /* [sender][receiver] */
    size_t send_counts[CASE_RANKS][CASE_RANKS];
    size_t send_displs[CASE_RANKS][CASE_RANKS];
    size_t recv_counts[CASE_RANKS][CASE_RANKS];
    size_t recv_displs[CASE_RANKS][CASE_RANKS];
    dscomm_nodes_t nodes;
    dscomm_schedule_t *schedules[CASE_RANKS];
    dscomm_run_t *runs[CASE_RANKS];
    int started[CASE_RANKS];
    int posts_early; /* runs post early receives at any time, also without need
                      */
} stage_t;

/* Properties of a collective: it has an operator; it has a root. */
int case_reduces(int coll);
int case_has_root(int coll);
/* Returns whether the algorithm fits c. */
int case_fits(const case_t *c);

/* Makes buffers, arguments and runs of c over loop; freed by case_end(). */
void case_begin(const case_t *c, loop_t *loop, uint64_t sequence,
                stage_t *stage);
/* Called before the start: rank calls with c instead of the others'
 * arguments. */
void case_replace(const case_t *c, loop_t *loop, uint64_t sequence,
                  stage_t *stage, int rank);
/* Starts rank's run, which case_drive() advances; half of the runs as those of
 * blocking calls are. */
void case_start(loop_t *loop, stage_t *stage, int rank);
/* Starts all runs and advances them until nothing moves. Returns how many have
 * ended. */
int case_drive(const case_t *c, loop_t *loop, stage_t *stage);
/* All runs that cannot go on post early receives, see lib/schedule/early.h. */
void case_post_early(const case_t *c, loop_t *loop, stage_t *stage);
/* Returns 1 if a rank, or every rank, has the right result, and no other memory
 * was written; else text says what is wrong. */
int case_check_rank(const case_t *c, const stage_t *stage, int rank, char *text,
                    size_t size);
/* Returns 1 if no memory beside rank's buffers was written. */
int case_is_guarded(const stage_t *stage, int rank);
int case_check(const case_t *c, const stage_t *stage, char *text, size_t size);
void case_end(const case_t *c, stage_t *stage);

#endif
