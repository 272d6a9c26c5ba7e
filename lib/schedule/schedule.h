/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedules: one rank's part of a collective, as steps over a backend's isend
 * and irecv.
 *
 * Steps form rounds, rounds form chains. The steps of a round are carried out
 * in their order, messages being only started; the round ends when all of them
 * have arrived, and then the chain's next round begins. Chains (pieces of a
 * long buffer, usually) are independent and run side by side, up to window of
 * them: chain i begins when chain i - window has ended.
 *
 * A schedule holds no addresses but places, offsets in buffers that are given
 * when it runs, so it can run again on others. It is never changed once built.
 *
 * The first message from one rank to another in a collective begins with a
 * header, which describes the sender's call. So ranks detect that they have
 * made different calls, whatever the backend. */
#ifndef LIB_SCHEDULE_H
#define LIB_SCHEDULE_H

#include "lib/base/array.h"
#include "lib/rendezvous/nodes.h"
#include "lib/schedule/header.h"

#include <dscomm/backend.h>
#include <dscomm/hook.h>
#include <glib.h>

struct dscomm_algorithm;

/* Returns the algorithm for args on so many ranks, as
 * dscomm_priv_choice_default() does. The plan passes it to algorithms that are
 * composed of others. They cannot call the choice by name, because the choice
 * refers to all algorithms. */
typedef const struct dscomm_algorithm *(*dscomm_choose_fn)(
    const dscomm_coll_args_t *args, int ranks, const dscomm_nodes_t *nodes);

/* Messages up to dscomm_priv_header_most() bytes travel with the header; longer
 * ones follow it. A rank has room for one such message of each other rank, and
 * so many ranks share ROOMS_MOST bytes. */
#define HEADER_MOST ((size_t)32 << 10)
#define HEADER_LEAST ((size_t)1 << 10)
#define ROOMS_MOST ((size_t)2 << 20)

static inline size_t dscomm_priv_header_most(int ranks)
{
    return CLAMP(ROOMS_MOST / (size_t)ranks, HEADER_LEAST, HEADER_MOST);
}

/* Largest number of chains that run side by side. */
#define WINDOW_MOST 31

enum { AT_SEND, AT_RECV, AT_SCRATCH, AT_COUNT };

/* A place in a buffer. owner: the rank whose unmodified input is there, or -1
 * for a partial result; only PREMUL_SUM uses it. */
typedef struct {
    int32_t at;
    int32_t owner;
    size_t offset;
} dscomm_place_t;

enum { STEP_SEND, STEP_RECV, STEP_COPY, STEP_REDUCE };

typedef struct {
    uint8_t kind;
    uint8_t last; /* last step of its round */
    uint8_t has_header; /* the message begins with a header */
    uint8_t final; /* a reduction whose result is complete */
    int32_t peer;
    dscomm_place_t place; /* of the message; destination of copy and reduce */
    size_t bytes; /* of message or copy; elements of a reduction */
    size_t stage; /* has_header: offset in scratch of header, message */
    uint64_t total; /* has_header: as in the header */
    uint32_t source, nsources; /* of copy and reduce: in sources */
} dscomm_step_t;

typedef struct {
    const struct dscomm_algorithm *algorithm;
    int rank, ranks;
    dscomm_step_t *steps;
    uint32_t *chains; /* first steps of the chains; nchains + 1 entries */
    dscomm_place_t *sources;
    uint32_t nchains, window;
    uint32_t most_messages; /* most messages under way at the same time */
    uint32_t most_sources; /* most sources of one reduction */
    size_t bytes; /* of steps, chains and sources */
    size_t scratch; /* bytes */
    size_t factors; /* offset in scratch of all factors; 0: not needed */
    dscomm_reduce_fn partial, final; /* of one step, see dscomm_step_t */
    dscomm_header_t header;
} dscomm_schedule_t;

/* Some of the ranks, for which an algorithm writes part of a schedule: a
 * collective among them. */
typedef struct {
    const int *members; /* their numbers in the whole */
    int count, self; /* self: this rank's number among them */
    dscomm_place_t send, recv; /* its buffers */
    int final; /* its results are final */
} dscomm_part_t;

/* The plan: the schedule while an algorithm writes it. */
typedef struct {
    const dscomm_coll_args_t *args;
    int rank, ranks;
    size_t header_most; /* dscomm_priv_header_most() of all ranks */
    const dscomm_nodes_t *nodes; /* NULL: all ranks are on one */
    dscomm_choose_fn choose; /* chooses algorithms for parts */
    const dscomm_part_t *part; /* NULL: the whole */
    /* If memory is short, entries are left out, and the schedule is discarded.
     */
    dscomm_array_t steps, chains, sources;
    int bad; /* no memory for something else */
    int32_t *first_send, *first_recv; /* ranks: index of a step, or -1 */
    int chained;
    uint32_t window;
    size_t slot; /* bytes of scratch for each slot of the window */
    size_t used; /* bytes of the present chain's slot in use */
    dscomm_place_t part_slot;
    size_t scratch;
    uint32_t round_messages, most_messages, most_sources;
    size_t factors;
} dscomm_plan_t;

/* Returns the schedule of args by algorithm, which must fit; NULL: no memory.
 * Free it with dscomm_priv_schedule_free(). nodes: which ranks share memory;
 * choose: chooses algorithms for parts; both may be NULL without nodes. args
 * and nodes are not kept. The caller sets header.algorithm. */
dscomm_schedule_t *
dscomm_priv_schedule_new(const struct dscomm_algorithm *algorithm,
                         const dscomm_coll_args_t *args, int rank, int ranks,
                         const dscomm_nodes_t *nodes, dscomm_choose_fn choose);
void dscomm_priv_schedule_free(dscomm_schedule_t *schedule);

/* Allocates memory for an algorithm's own use, for free(). NULL: no memory; the
 * algorithm must return, and the schedule is discarded. */
void *dscomm_priv_plan_memory(dscomm_plan_t *plan, size_t count, size_t size);

/* Functions for algorithms. Sizes are in bytes unless "elements" is said. Steps
 * of no bytes are left out, except messages. */

/* Scratch for the whole schedule; called before the first chain. */
dscomm_place_t dscomm_priv_plan_scratch(dscomm_plan_t *plan, size_t bytes);
/* Sets how many chains may run side by side, which must be equal on all ranks,
 * and the bytes of scratch of each. */
void dscomm_priv_plan_window(dscomm_plan_t *plan, uint32_t window,
                             size_t bytes);
/* Begins a chain; called before any step, or never for a single chain. All
 * ranks must have the same number of chains, because messages of a chain match
 * only messages of the same chain. A chain may be empty. */
void dscomm_priv_plan_chain(dscomm_plan_t *plan);
/* The scratch of this chain. */
dscomm_place_t dscomm_priv_plan_slot(const dscomm_plan_t *plan);
/* More scratch of this chain, in a schedule whose window has none. */
dscomm_place_t dscomm_priv_plan_room(dscomm_plan_t *plan, size_t bytes);
/* Writes all steps of args by algorithm, carried out by the ranks of part, as
 * rounds of this chain. args counts ranks as part does; its op is not
 * PREMUL_SUM. part, args and their arrays are not kept. */
void dscomm_priv_plan_part(dscomm_plan_t *plan, const dscomm_part_t *part,
                           const struct dscomm_algorithm *algorithm,
                           const dscomm_coll_args_t *args);
/* Ends a round: later steps wait for its messages. */
void dscomm_priv_plan_round(dscomm_plan_t *plan);

/* Send or receive. The first message of a pair in a collective must be the same
 * on both sides; later messages of the pair arrive in order within a chain. */
void dscomm_priv_plan_send(dscomm_plan_t *plan, int peer, dscomm_place_t from,
                           size_t bytes);
void dscomm_priv_plan_recv(dscomm_plan_t *plan, int peer, dscomm_place_t to,
                           size_t bytes);
void dscomm_priv_plan_copy(dscomm_plan_t *plan, dscomm_place_t to,
                           dscomm_place_t from, size_t bytes);
/* to = all of from, folded in this order; count elements. final: no other
 * reduction of these elements follows. to may be one of from. */
void dscomm_priv_plan_reduce(dscomm_plan_t *plan, dscomm_place_t to,
                             const dscomm_place_t *from, uint32_t nfrom,
                             size_t count, int final);
/* to = a, then b. */
void dscomm_priv_plan_fold(dscomm_plan_t *plan, dscomm_place_t to,
                           dscomm_place_t a, dscomm_place_t b, size_t count,
                           int final);
/* Prepares this rank's input at from for folds: a copy, or its product with the
 * factor of PREMUL_SUM. */
void dscomm_priv_plan_load(dscomm_plan_t *plan, dscomm_place_t to,
                           dscomm_place_t from, size_t count);
/* With PREMUL_SUM: send this rank's factor to a rank that gets its unmodified
 * input, or receive that rank's factor. Nothing for other operators. */
void dscomm_priv_plan_send_factor(dscomm_plan_t *plan, int peer);
void dscomm_priv_plan_recv_factor(dscomm_plan_t *plan, int peer);
/* With PREMUL_SUM: the place of rank's factor, a double; those of the next
 * ranks follow. For algorithms that forward inputs of other ranks. */
dscomm_place_t dscomm_priv_plan_factor(dscomm_plan_t *plan, int rank);

static inline dscomm_place_t dscomm_priv_at(int at, size_t offset)
{
    return (dscomm_place_t){at, -1, offset};
}

/* place + offset bytes. */
static inline dscomm_place_t dscomm_priv_beyond(dscomm_place_t place,
                                                size_t offset)
{
    place.offset += offset;
    return place;
}

/* place, marked as holding rank's unmodified input. */
static inline dscomm_place_t dscomm_priv_input(dscomm_place_t place, int rank)
{
    place.owner = rank;
    return place;
}

/* Number of elements, and first element, of part i of n elements; parts differ
 * by one element at most. */
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
