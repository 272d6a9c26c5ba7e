/* SPDX-License-Identifier: BSD-3-Clause */
/* Halving and doubling: in each round two ranks exchange halves of what they
 * have to reduce, and each continues with one half, until every rank has one
 * part of the result; all_reduce and reduce then combine the parts by the same
 * rounds in reverse. all_reduce stops halving when parts are short: from there
 * on ranks exchange all they have. If p is not a power of two, the first ranks
 * form pairs, and one of each pair acts for both.
 *
 * Cost: with n bytes of input, q the largest power of two <= p, h <= q parts
 * made by halves: all_reduce log2 q + log2 h rounds and 2n (h - 1) / h + n / h
 * log2 (q / h) bytes each way; reduce 2 log2 q rounds, the way back up a tree;
 * reduce_scatter log2 q rounds and n (q - 1) / q bytes. Up to n bytes each way
 * more, in up to 2 rounds, where p is no power of two. Extra memory: some
 * pieces; reduce_scatter 2n. Source: Rabenseifner, "Optimization of Collective
 * Reduction Operations", ICCS 2004, LNCS 3036;
 * Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
 * Operations in MPICH", International Journal of High Performance Computing
 * Applications 19(1), 2005. */
#include "config.h"
#include "lib/schedule/algorithms/algorithms.h"
#include "lib/schedule/algorithms/blocks.h"
#include "lib/schedule/algorithms/fold.h"

/* A piece has a part of the input, within limits: short ones are folded while
 * they are in the cache, and long ones lose less on a link with delay. */
#define PIECE_LEAST ((size_t)2 << 20)
#define PIECE_MOST ((size_t)8 << 20)
#define PIECE_PART 16
/* Few pieces under way, so that they are folded while they are in the cache. */
#define WINDOW 2
#define HALVINGS_MOST 31
/* Parts of up to SHORT bytes are exchanged whole by all_reduce, and in its last
 * rounds parts of up to WHOLE_MOST bytes: to combine halves again takes a round
 * more, which costs more than the bytes. */
#define SHORT ((size_t)1 << 10)
#define WHOLE_MOST ((size_t)32 << 10)
#define WHOLE_ROUNDS 2

/* One round. Of the parts first ... end - 1, this rank keeps those on one side
 * of middle, and its peer the others; or, if whole, both keep all. */
typedef struct {
    int peer, upper, whole;
    int first, middle, end;
} halving_t;

typedef struct {
    fold_t world;
    int partner; /* other rank of the pair, or -1 */
    size_t element, count; /* count: elements of all parts */
    /* elements before each part, power + 1 entries; or NULL */
    const size_t *starts;
    dscomm_place_t own; /* buffer of the folds, and later of the result */
    dscomm_place_t result, came;
    dscomm_place_t last; /* destination of the last fold */
    int folds_in_place; /* last is where the result must be */
    int nhalvings;
    halving_t halvings[HALVINGS_MOST];
} lap_t;

static size_t lap_start(const lap_t *lap, int part)
{
    if (lap->starts)
        return lap->starts[part];
    return dscomm_priv_part_start(lap->count, (size_t)lap->world.power,
                                  (size_t)part);
}

/* Elements and bytes of one side of a halving: the part below or above
 * middle. */
static piece_t halving_side(const lap_t *lap, const halving_t *halving,
                            int upper)
{
    size_t first = lap_start(lap, upper ? halving->middle : halving->first);
    size_t end = lap_start(lap, upper ? halving->end : halving->middle);

    return (piece_t){first, end - first, first * lap->element,
                     (end - first) * lap->element};
}

/* Has both ranks of a round keep all parts. */
static void halving_whole(halving_t *halving)
{
    halving->whole = 1;
    halving->middle = halving->upper ? halving->first : halving->end;
}

/* Ranks are numbered from root on. nearest: the longest messages go to the
 * nearest rank, and the order of parts is free; otherwise each number gets the
 * part of that number. halved: the number of parts that are made; parts that
 * would be shorter are exchanged whole. */
static lap_t lap_begin(const dscomm_plan_t *plan, int root, int nearest,
                       int halved)
{
    const int own = wrap(plan->rank - root, plan->ranks);
    lap_t lap = {.world = fold(own, plan->ranks), .partner = -1};
    const int power = lap.world.power;
    int first = 0, end = power;

    lap.element = plan->args->element;
    lap.folds_in_place = 1;
    if (fold_paired(&lap.world, own))
        lap.partner = ((own ^ 1) + root) % plan->ranks;
    for (int i = 1; i < power && lap.world.number >= 0; i *= 2) {
        const int distance = nearest ? i : power / 2 / i;
        const int peer = fold_rank(&lap.world, lap.world.number ^ distance);
        halving_t *halving = &lap.halvings[lap.nhalvings++];

        *halving = (halving_t){
            .peer = (peer + root) % plan->ranks,
            .upper = (lap.world.number & distance) != 0,
            .first = first,
            .middle = (first + end) / 2,
            .end = end,
        };
        if (i >= halved)
            halving_whole(halving);
        if (halving->upper)
            first = halving->middle;
        else
            end = halving->middle;
    }
    return lap;
}

/* Adds the input of the rank for which this one acts. */
static void join_partner(dscomm_plan_t *plan, lap_t *lap)
{
    if (lap->partner < 0)
        return;
    dscomm_priv_plan_recv(plan, lap->partner, lap->came,
                          lap->count * lap->element);
    dscomm_priv_plan_round(plan);
    dscomm_priv_plan_fold(plan, lap->result, lap->own, lap->came, lap->count,
                          0);
    lap->own = lap->result;
}

/* The number of pieces of the input. */
static size_t lap_pieces(const dscomm_coll_args_t *args)
{
    const size_t total = args->count * args->element;
    const size_t part = total / PIECE_PART + (total % PIECE_PART != 0);

    return count_pieces(args, args->count,
                        CLAMP(part, PIECE_LEAST, PIECE_MOST));
}

/* In each fold the part of the lower numbers comes first. */
static void lap_halve(dscomm_plan_t *plan, lap_t *lap)
{
    join_partner(plan, lap);
    for (int i = 0; i < lap->nhalvings; i++) {
        const halving_t *halving = &lap->halvings[i];
        const int last = i == lap->nhalvings - 1;
        piece_t kept = halving_side(lap, halving, halving->upper);
        piece_t other =
            halving->whole ? kept : halving_side(lap, halving, !halving->upper);
        dscomm_place_t own = dscomm_priv_beyond(lap->own, kept.offset);
        dscomm_place_t to = dscomm_priv_beyond(lap->result, kept.offset);

        if (last && !lap->folds_in_place)
            to = lap->last;
        dscomm_priv_plan_recv(plan, halving->peer, lap->came, kept.bytes);
        dscomm_priv_plan_send(plan, halving->peer,
                              dscomm_priv_beyond(lap->own, other.offset),
                              other.bytes);
        dscomm_priv_plan_round(plan);
        dscomm_priv_plan_fold(plan, to, halving->upper ? lap->came : own,
                              halving->upper ? own : lap->came, kept.count,
                              last);
        lap->own = lap->result;
    }
}

static void double_up(dscomm_plan_t *plan, const lap_t *lap)
{
    for (int i = lap->nhalvings - 1; i >= 0; i--) {
        const halving_t *halving = &lap->halvings[i];
        piece_t kept = halving_side(lap, halving, halving->upper);
        piece_t other = halving_side(lap, halving, !halving->upper);

        if (halving->whole)
            continue;
        dscomm_priv_plan_recv(plan, halving->peer,
                              dscomm_priv_beyond(lap->result, other.offset),
                              other.bytes);
        dscomm_priv_plan_send(plan, halving->peer,
                              dscomm_priv_beyond(lap->result, kept.offset),
                              kept.bytes);
        dscomm_priv_plan_round(plan);
    }
}

/* Reverses the rounds like double_up(), but only number 0 gets the result. */
static void lap_gather(dscomm_plan_t *plan, const lap_t *lap)
{
    for (int i = lap->nhalvings - 1; i >= 0; i--) {
        const halving_t *halving = &lap->halvings[i];
        piece_t upper = halving_side(lap, halving, 1);
        dscomm_place_t place = dscomm_priv_beyond(lap->result, upper.offset);

        if (halving->upper) {
            dscomm_priv_plan_send(plan, halving->peer, place, upper.bytes);
            return;
        }
        dscomm_priv_plan_recv(plan, halving->peer, place, upper.bytes);
        dscomm_priv_plan_round(plan);
    }
}

/* With PREMUL_SUM, folds use the product with the factor. */
static void lap_load(dscomm_plan_t *plan, lap_t *lap)
{
    if (plan->args->op != DSCOMM_PREMUL_SUM)
        return;
    dscomm_priv_plan_load(plan, lap->result, lap->own, lap->count);
    lap->own = lap->result;
}

static void lap_all_reduce_piece(dscomm_plan_t *plan, lap_t lap, piece_t piece)
{
    lap.count = piece.count;
    lap.own = dscomm_priv_at(AT_SEND, piece.offset);
    lap.result = dscomm_priv_at(AT_RECV, piece.offset);
    lap.came = dscomm_priv_plan_slot(plan);
    lap_load(plan, &lap);
    if (lap.world.number >= 0) {
        lap_halve(plan, &lap);
        double_up(plan, &lap);
        if (lap.partner >= 0)
            dscomm_priv_plan_send(plan, lap.partner, lap.result, piece.bytes);
        return;
    }
    dscomm_priv_plan_send(plan, lap.partner, lap.own, piece.bytes);
    dscomm_priv_plan_round(plan);
    dscomm_priv_plan_recv(plan, lap.partner, lap.result, piece.bytes);
}

/* The number of parts into which all_reduce halves a piece of so many bytes. */
static int lap_halved(size_t bytes, int ranks)
{
    const int power = fold(0, ranks).power;
    int halved = 2;

    while (halved < power && bytes / (size_t)halved > SHORT &&
           (power / halved > 1 << WHOLE_ROUNDS ||
            bytes / (size_t)halved > WHOLE_MOST))
        halved *= 2;
    return halved;
}

void dscomm_priv_halving_doubling_all_reduce(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t pieces = lap_pieces(args);
    const size_t bytes = cut(args, args->count, pieces, 0).bytes;
    const lap_t lap = lap_begin(plan, 0, 1, lap_halved(bytes, plan->ranks));

    dscomm_priv_plan_window(plan, WINDOW, bytes);
    for (size_t i = 0; i < pieces; i++) {
        dscomm_priv_plan_chain(plan);
        lap_all_reduce_piece(plan, lap, cut(args, args->count, pieces, i));
    }
}

static void lap_reduce_piece(dscomm_plan_t *plan, lap_t lap, piece_t piece,
                             size_t room)
{
    lap.count = piece.count;
    lap.own = dscomm_priv_at(AT_SEND, piece.offset);
    lap.came = dscomm_priv_plan_slot(plan);
    lap.result = plan->rank == plan->args->root
                     ? dscomm_priv_at(AT_RECV, piece.offset)
                     : dscomm_priv_beyond(lap.came, room);
    lap_load(plan, &lap);
    if (lap.world.number < 0) {
        dscomm_priv_plan_send(plan, lap.partner, lap.own, piece.bytes);
        return;
    }
    lap_halve(plan, &lap);
    lap_gather(plan, &lap);
}

void dscomm_priv_halving_doubling_reduce(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t pieces = lap_pieces(args);
    const size_t room = aligned(cut(args, args->count, pieces, 0).bytes);
    const lap_t lap = lap_begin(plan, args->root, 1, plan->ranks);

    dscomm_priv_plan_window(plan, WINDOW, 2 * room);
    for (size_t i = 0; i < pieces; i++) {
        dscomm_priv_plan_chain(plan);
        lap_reduce_piece(plan, lap, cut(args, args->count, pieces, i), room);
    }
}

/* A rank that acts for two has both their blocks side by side. */
static void lap_share(dscomm_plan_t *plan, const lap_t *lap)
{
    const dscomm_coll_args_t *args = plan->args;
    dscomm_place_t own = input_block(args, plan->rank);
    dscomm_place_t other = input_block(args, lap->partner);

    dscomm_priv_plan_send(plan, lap->partner,
                          dscomm_priv_beyond(lap->result, other.offset),
                          recv_count(args, lap->partner) * args->element);
    dscomm_priv_plan_copy(plan, dscomm_priv_at(AT_RECV, 0),
                          dscomm_priv_beyond(lap->result, own.offset),
                          recv_count(args, plan->rank) * args->element);
}

static void lap_reduce_scatter(dscomm_plan_t *plan, lap_t *lap)
{
    const size_t bytes = lap->count * lap->element;

    lap->own = dscomm_priv_at(AT_SEND, 0);
    lap->result = dscomm_priv_plan_scratch(plan, bytes);
    lap->came = dscomm_priv_plan_scratch(plan, bytes);
    lap->last = dscomm_priv_at(AT_RECV, 0);
    lap->folds_in_place = lap->partner >= 0;
    lap_load(plan, lap);
    if (lap->world.number >= 0) {
        lap_halve(plan, lap);
        if (lap->partner >= 0)
            lap_share(plan, lap);
        return;
    }
    dscomm_priv_plan_send(plan, lap->partner, lap->own, bytes);
    dscomm_priv_plan_round(plan);
    dscomm_priv_plan_recv(plan, lap->partner, lap->last,
                          recv_count(plan->args, plan->rank) * lap->element);
}

void dscomm_priv_halving_doubling_reduce_scatter(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    lap_t lap = lap_begin(plan, 0, 0, plan->ranks);
    const int power = lap.world.power;
    size_t *starts =
        dscomm_priv_plan_memory(plan, (size_t)power + 1, sizeof *starts);
    size_t sum = 0;

    if (!starts)
        return;
    for (int number = 0, rank = 0; number <= power; number++) {
        for (; rank < fold_rank(&lap.world, number); rank++)
            sum += recv_count(args, rank);
        starts[number] = sum;
    }
    lap.starts = starts;
    lap.count = sum;
    lap_reduce_scatter(plan, &lap);
    free(starts);
}
