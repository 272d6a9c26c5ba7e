/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedules: one rank's part of a collective, as steps over a backend's isend
 * and irecv.
 *
 * Steps form rounds, rounds form chains. The steps of a round are carried out
 * in their order, messages being only started; the round ends when all of them
 * have arrived, and then the chain's next round begins. Chains (pieces of a
 * long buffer, usually) know nothing of each other and go on side by side, up
 * to window of them: chain i begins when chain i - window has ended.
 *
 * A schedule holds no addresses but places, offsets in buffers that are given
 * when it runs, so it can run again on others. It is never changed once
 * built.
 *
 * The first message from one rank to another in a collective begins with a
 * header, which says what the sender was called with. Ranks that make
 * different calls so find out, whatever the backend. */
#ifndef LIB_SCHEDULE_H
#define LIB_SCHEDULE_H

#include "lib/base/array.h"
#include "lib/rendezvous/nodes.h"
#include "lib/schedule/header.h"

#include <dscomm/backend.h>
#include <dscomm/hook.h>
#include <glib.h>

struct dscomm_algorithm;

/* Returns the algorithm that carries out args on so many ranks, as
 * dscomm_priv_choice_default() does. An algorithm that is composed of others
 * gets this function by its plan: the choice knows all algorithms, so no
 * algorithm may call it by name. */
typedef const struct dscomm_algorithm *(*dscomm_choose_fn)(
    const dscomm_coll_args_t *args, int ranks, const dscomm_nodes_t *nodes);

/* Messages up to so many bytes travel with the header, others follow it. */
#define HEADER_MOST 1024
/* Chains side by side, at most. */
#define WINDOW_MOST 31

enum { AT_SEND, AT_RECV, AT_SCRATCH, AT_COUNT };

/* Somewhere in a buffer. owner: the rank whose untouched input lies there, or
 * -1 for a partial result; only PREMUL_SUM asks. */
typedef struct {
    int32_t at;
    int32_t owner;
    size_t offset;
} dscomm_place_t;

enum { STEP_SEND, STEP_RECV, STEP_COPY, STEP_REDUCE };

typedef struct {
    uint8_t kind;
    uint8_t last; /* of its round */
    uint8_t has_header; /* the message begins with a header */
    uint8_t final; /* a reduction that leaves a result, not a partial one */
    int32_t peer;
    dscomm_place_t place; /* of the message; where copy and reduce write */
    size_t bytes; /* of the message, or to copy; elements to reduce */
    size_t stage; /* has_header: offset in scratch of header and message */
    uint64_t total; /* has_header: as in the header */
    uint32_t source, nsources; /* of copy and reduce: in sources */
} dscomm_step_t;

typedef struct {
    const struct dscomm_algorithm *algorithm;
    int rank, ranks;
    dscomm_step_t *steps;
    uint32_t *chains; /* nchains + 1: first steps */
    dscomm_place_t *sources;
    uint32_t nchains, window;
    uint32_t most_messages; /* under way at the same time, at most */
    uint32_t most_sources; /* of one reduction */
    size_t bytes; /* of steps, chains and sources */
    size_t scratch; /* bytes */
    size_t factors; /* offset in scratch of ranks factors; 0: none are needed */
    dscomm_reduce_fn partial, final; /* of one step, see dscomm_step_t */
    dscomm_header_t header;
} dscomm_schedule_t;

/* Some of the ranks, for which an algorithm writes a part of a schedule: a
 * collective of their own. */
typedef struct {
    const int *members; /* ranks of the whole */
    int count, self; /* self: this rank's number among them */
    dscomm_place_t send, recv; /* its buffers */
    int final; /* its results are those of the whole */
} dscomm_part_t;

/* What an algorithm writes its steps to. */
typedef struct {
    const dscomm_coll_args_t *args;
    int rank, ranks;
    const dscomm_nodes_t *nodes; /* NULL: all ranks are on one */
    dscomm_choose_fn choose; /* chooses the algorithms of parts */
    const dscomm_part_t *part; /* NULL: the whole */
    /* What finds no memory is left out; the schedule is then thrown away. */
    dscomm_array_t steps, chains, sources;
    int bad; /* no memory for something else */
    int32_t *first_send, *first_recv; /* ranks: index of a step, or -1 */
    int chained;
    uint32_t window;
    size_t slot; /* bytes of scratch for each chain in the window */
    size_t used; /* of this chain's */
    dscomm_place_t part_slot;
    size_t scratch;
    uint32_t round_messages, most_messages, most_sources;
    size_t factors;
} dscomm_plan_t;

/* Returns the schedule of args by algorithm, which must fit, or NULL without
 * memory; to be freed with dscomm_priv_schedule_free(). nodes tells which ranks
 * share memory, and choose chooses algorithms for parts of the schedule;
 * without nodes, both may be NULL. args and nodes are not kept. The caller sets
 * header.algorithm. */
dscomm_schedule_t *
dscomm_priv_schedule_new(const struct dscomm_algorithm *algorithm,
                         const dscomm_coll_args_t *args, int rank, int ranks,
                         const dscomm_nodes_t *nodes, dscomm_choose_fn choose);
void dscomm_priv_schedule_free(dscomm_schedule_t *schedule);

/* Memory that an algorithm works with, for free(); NULL where there is none:
 * then it returns, and the schedule is not used. */
void *dscomm_priv_plan_memory(dscomm_plan_t *plan, size_t count, size_t size);

/* For algorithms. Sizes are in bytes unless they say elements; what has no
 * bytes is left out, except messages. */

/* Bytes of scratch for the whole schedule; before the first chain. */
dscomm_place_t dscomm_priv_plan_scratch(dscomm_plan_t *plan, size_t bytes);
/* How many chains may run side by side, on all ranks as many, and how much
 * scratch each has. */
void dscomm_priv_plan_window(dscomm_plan_t *plan, uint32_t window,
                             size_t bytes);
/* Begins a chain: before any step, or not at all where there is one. All ranks
 * must have the same number of them, since messages of one chain only meet
 * those of the same; a chain may be empty. */
void dscomm_priv_plan_chain(dscomm_plan_t *plan);
/* This chain's own scratch. */
dscomm_place_t dscomm_priv_plan_slot(const dscomm_plan_t *plan);
/* More of it, in a schedule that has asked for none by its window. */
dscomm_place_t dscomm_priv_plan_room(dscomm_plan_t *plan, size_t bytes);
/* All steps of args by algorithm, carried out by part one after the other, as
 * rounds of this chain. args: in numbers of the members; PREMUL_SUM is none of
 * its operators. part, args and their arrays are not kept. */
void dscomm_priv_plan_part(dscomm_plan_t *plan, const dscomm_part_t *part,
                           const struct dscomm_algorithm *algorithm,
                           const dscomm_coll_args_t *args);
/* Ends a round: what follows waits for its messages. */
void dscomm_priv_plan_round(dscomm_plan_t *plan);

/* Both sides must have the same first message in a collective; after it,
 * messages between two ranks arrive in order within a chain. */
void dscomm_priv_plan_send(dscomm_plan_t *plan, int peer, dscomm_place_t from,
                           size_t bytes);
void dscomm_priv_plan_recv(dscomm_plan_t *plan, int peer, dscomm_place_t to,
                           size_t bytes);
void dscomm_priv_plan_copy(dscomm_plan_t *plan, dscomm_place_t to,
                           dscomm_place_t from, size_t bytes);
/* to = all of from, folded in this order; count elements. final: no other
 * reduction follows on these elements. to may be one of from. */
void dscomm_priv_plan_reduce(dscomm_plan_t *plan, dscomm_place_t to,
                             const dscomm_place_t *from, uint32_t nfrom,
                             size_t count, int final);
/* to = a, then b. */
void dscomm_priv_plan_fold(dscomm_plan_t *plan, dscomm_place_t to,
                           dscomm_place_t a, dscomm_place_t b, size_t count,
                           int final);
/* This rank's input at from, made ready for folds: a copy, or what PREMUL_SUM's
 * factor makes of it. */
void dscomm_priv_plan_load(dscomm_plan_t *plan, dscomm_place_t to,
                           dscomm_place_t from, size_t count);
/* With PREMUL_SUM: this rank's factor goes to a rank that gets its untouched
 * input, or that rank's comes. Nothing for other operators. */
void dscomm_priv_plan_send_factor(dscomm_plan_t *plan, int peer);
void dscomm_priv_plan_recv_factor(dscomm_plan_t *plan, int peer);
/* With PREMUL_SUM: where rank's factor lies, a double; those of the next ranks
 * follow. For algorithms that pass on what is not their own. */
dscomm_place_t dscomm_priv_plan_factor(dscomm_plan_t *plan, int rank);

static inline dscomm_place_t dscomm_priv_at(int at, size_t offset)
{
    return (dscomm_place_t){at, -1, offset};
}

/* place, offset bytes further on. */
static inline dscomm_place_t dscomm_priv_beyond(dscomm_place_t place,
                                                size_t offset)
{
    place.offset += offset;
    return place;
}

/* place, as holding rank's untouched input. */
static inline dscomm_place_t dscomm_priv_input(dscomm_place_t place, int rank)
{
    place.owner = rank;
    return place;
}

/* Elements and first element of part i of n elements in so many parts, which
 * differ by one at most. */
static inline size_t dscomm_priv_part_start(size_t n, size_t parts, size_t i)
{
    size_t more = n % parts;

    return n / parts * i + (i < more ? i : more);
}

static inline size_t dscomm_priv_part_size(size_t n, size_t parts, size_t i)
{
    return n / parts + (i < n % parts);
}

#endif
