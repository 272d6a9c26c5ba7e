/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport inside one thread, for schedules of many ranks. Only loop_step()
 * moves anything: it delivers one message, chosen by a seed. Messages from one
 * rank to another with one tag keep their order; all others are reordered. */
#ifndef TESTS_LIB_LOOP_H
#define TESTS_LIB_LOOP_H

#include <dscomm/backend.h>

enum {
    LOOP_NO_FAULT,
    LOOP_DEAD, /* the rank has died: messages of others with it fail */
    LOOP_SILENT, /* its messages are lost, and no rank is notified */
    LOOP_SLOW, /* its messages are delivered only when no others are left */
};

typedef struct {
    int ranks;
    uint64_t seed;
    /* 1: a send is complete at once, and its bytes are copied; 0: when it is
     * received */
    int eager;
    /* the culprit has the fault from its operation number `after` on */
    int fault, culprit;
    unsigned after;
} loop_plan_t;

typedef struct loop loop_t;

loop_t *loop_new(const loop_plan_t *plan);
void loop_free(loop_t *loop);
const dscomm_backend_ops_t *loop_ops(void);
void *loop_impl(loop_t *loop, int rank);
/* Delivers a message; 0: there is none. */
int loop_step(loop_t *loop);
/* Returns a random number below limit, from the seed. */
unsigned loop_random(loop_t *loop, unsigned limit);
/* Returns the number of operations that rank has started. */
unsigned loop_started(const loop_t *loop, int rank);
/* Returns the number of requests and messages that are not completed, cancelled
 * or received. */
int loop_pending(const loop_t *loop);
/* Returns the number of requests that are not completed or cancelled. */
int loop_requests(const loop_t *loop);
/* Returns whether rank has died: it must not go on. */
int loop_is_dead(const loop_t *loop, int rank);

#endif
