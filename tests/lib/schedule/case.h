/* SPDX-License-Identifier: BSD-3-Clause */
/* One collective of all ranks over the loop transport: inputs, and results by
 * plain arithmetic on small whole numbers, which every dtype can hold. */
#ifndef TESTS_LIB_CASE_H
#define TESTS_LIB_CASE_H

#include "lib/schedule/algorithm.h"
#include "lib/schedule/run.h"
#include "tests/lib/schedule/loop.h"

#define CASE_RANKS 32

typedef struct {
    const dscomm_algorithm_t *algorithm;
    int ranks, root, dtype, op;
    size_t count; /* of a _v call: of the longest rank */
    int in_place;
    const char *hosts; /* a letter for each rank or more; NULL: not known */
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
    int listens; /* runs begin to listen at any time, without need */
} stage_t;

/* Of a collective: it takes an operator; it takes a root. */
int case_reduces(int coll);
int case_has_root(int coll);
/* The algorithm takes c. */
int case_fits(const case_t *c);

/* Buffers, arguments and runs of c over loop; freed with case_end(). */
void case_begin(const case_t *c, loop_t *loop, uint64_t sequence,
                stage_t *stage);
/* Not started yet, rank is called with c instead of what the others are. */
void case_replace(const case_t *c, loop_t *loop, uint64_t sequence,
                  stage_t *stage, int rank);
/* Starts rank's run, which goes on in case_drive(). */
void case_start(stage_t *stage, int rank);
/* Starts and drives all until nothing moves. Returns how many have ended. */
int case_drive(const case_t *c, loop_t *loop, stage_t *stage);
/* All that cannot go on listen, see lib/schedule/early.h. */
void case_listen(const case_t *c, loop_t *loop, stage_t *stage);
/* 1 where a rank, or every rank, has what it must have, and nothing else was
 * written; else text says what is wrong. */
int case_check_rank(const case_t *c, const stage_t *stage, int rank, char *text,
                    size_t size);
/* 1 where nothing beside rank's buffers was written. */
int case_is_guarded(const stage_t *stage, int rank);
int case_check(const case_t *c, const stage_t *stage, char *text, size_t size);
void case_end(const case_t *c, stage_t *stage);

#endif
