/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of `dscomm perf --model`: how long an algorithm of the library
 * takes for any number of ranks and bytes, computed from a few parameters.
 *
 * A message of n bytes takes alpha + beta n; further messages of a rank at the
 * same time take gap each. These differ inside a node and between nodes, and
 * where messages go both ways at once. All ranks of a node share its link to
 * others. Reductions take gamma for each byte that they read or write, copies
 * delta. Seconds everywhere. */
#ifndef TOOLS_PERF_MODEL_H
#define TOOLS_PERF_MODEL_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

/* The cost of messages up to split bytes, and of longer ones. */
typedef struct {
    struct {
        double alpha, beta;
    } pieces[2];
    double split;
} perf_cost_t;

typedef struct {
    perf_cost_t one_way, both_ways;
    double gap;
} perf_link_t;

typedef struct {
    perf_link_t near, far; /* inside a node, between nodes */
    double gamma, delta;
} perf_model_t;

/* The ranks of a collective: consecutive ones share a node. */
typedef struct {
    int ranks;
    int local; /* ranks of a node; at least ranks: there is one node */
    int rails; /* such collectives that the links of the nodes carry at once */
} perf_layout_t;

/* The ways of messages: to the rank, from it, as many each way. */
enum { PERF_WAY_IN = 1, PERF_WAY_OUT = 2, PERF_WAY_BOTH = 3 };

/* The messages of a rank that begin together, and the work after they have
 * arrived. */
typedef struct {
    int repeat; /* such rounds that follow each other */
    int ways;
    double near, far; /* numbers of messages, each way */
    double bytes; /* of one message */
    double share; /* far messages of the node for each of this rank */
    double reduced, copied; /* bytes read and written */
} perf_round_t;

/* The schedule of an algorithm on the rank that ends last: pieces of the buffer
 * go through the same rounds, window of them at a time; after the last piece,
 * the tail passes on what that rank has sent. */
typedef struct {
    GArray *rounds, *tail; /* perf_round_t */
    size_t pieces, window;
} perf_schedule_t;

/* The seconds of one message. */
static inline double perf_cost_alpha(const perf_cost_t *cost, double bytes)
{
    return cost->pieces[bytes > cost->split].alpha;
}

static inline double perf_cost_beta(const perf_cost_t *cost, double bytes)
{
    return cost->pieces[bytes > cost->split].beta;
}

/* Writes the schedule of a collective (dscomm_coll_t); to be cleared. bytes: as
 * in the rows of dscomm perf. false: the model lacks it, or the algorithm
 * cannot have so many ranks; there is nothing to clear. */
bool perf_schedule_init(perf_schedule_t *schedule, int coll,
                        const char *algorithm, const perf_layout_t *layout,
                        double bytes);
void perf_schedule_clear(perf_schedule_t *schedule);

/* Returns the number of parts into which halving_doubling halves the buffer of
 * an all_reduce of so many bytes. */
int perf_halving_parts(int ranks, double bytes);

/* The name of algorithm index of the collectives of the model, and its
 * collective; NULL after the last. */
const char *perf_model_algorithm(size_t index, int *ret_coll);

/* Returns the seconds of a call; NAN: there is no schedule. */
double perf_model_time(const perf_model_t *model, int coll,
                       const char *algorithm, const perf_layout_t *layout,
                       double bytes);

#endif
