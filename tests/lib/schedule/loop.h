/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport inside one thread, for schedules of many ranks: nothing moves
 * but by loop_step(), which delivers one message, chosen by a seed. Messages
 * from one rank to another with one tag keep their order, all others are
 * mixed. */
#ifndef TESTS_LIB_LOOP_H
#define TESTS_LIB_LOOP_H

#include <dscomm/backend.h>

enum {
    LOOP_NO_FAULT,
    LOOP_DEAD, /* the rank has died: others' messages with it fail */
    LOOP_SILENT, /* what it sends is lost, and nobody is told */
    LOOP_SLOW, /* what it sends comes when nothing else is left */
};

typedef struct {
    int ranks;
    uint64_t seed;
    /* 1: a send is complete at once, its bytes have been taken; 0: when it is
     * received, its bytes are taken then */
    int eager;
    int fault, culprit; /* culprit: from its operation number after on */
    unsigned after;
} loop_plan_t;

typedef struct loop loop_t;

loop_t *loop_new(const loop_plan_t *plan);
void loop_free(loop_t *loop);
const dscomm_backend_ops_t *loop_ops(void);
void *loop_impl(loop_t *loop, int rank);
/* Delivers a message; 0 where there is none to deliver. */
int loop_step(loop_t *loop);
/* A number below limit, from the seed. */
unsigned loop_random(loop_t *loop, unsigned limit);
/* Operations that rank has started. */
unsigned loop_started(const loop_t *loop, int rank);
/* Requests and messages that nobody has completed, cancelled or received. */
int loop_pending(const loop_t *loop);
/* Requests that nobody has completed or cancelled. */
int loop_requests(const loop_t *loop);
/* rank has died: it must not go on. */
int loop_is_dead(const loop_t *loop, int rank);

#endif
