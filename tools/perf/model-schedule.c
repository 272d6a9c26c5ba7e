/* SPDX-License-Identifier: BSD-3-Clause */
/* The schedules of the model, an entry of the table for each algorithm of
 * lib/schedule/algorithms: rounds, messages and bytes of the rank that ends
 * last. A test compares them with the library's own schedules. */
#include "config.h"

#include "tools/perf/model.h"

#include <dscomm/dscomm.h>
#include <math.h>
#include <string.h>

#define KIB 1024.0
#define MIB (1024 * KIB)
#define PIECES_MOST 1024 /* of any schedule */

typedef struct {
    perf_schedule_t *schedule;
    const perf_layout_t *layout;
    int ranks;
    double bytes; /* of the longest buffer of a rank */
    double block; /* a rank's part of it */
} plan_t;

/* Cuts a buffer of so many bytes; returns the bytes of a piece. */
static double plan_cut(plan_t *plan, double bytes, double piece, size_t window)
{
    const double pieces = CLAMP(ceil(bytes / piece), 1, PIECES_MOST);

    plan->schedule->pieces = (size_t)pieces;
    plan->schedule->window = window;
    return bytes / pieces;
}

/* The largest power of two that is not above the number of ranks. */
static int plan_power(const plan_t *plan)
{
    int power = 1;

    while (power <= plan->ranks / 2)
        power *= 2;
    return power;
}

static int plan_local(const plan_t *plan)
{
    return MIN(plan->layout->local, plan->ranks);
}

static perf_round_t *rounds_add(GArray *rounds, perf_round_t round)
{
    g_array_append_val(rounds, round);
    return &g_array_index(rounds, perf_round_t, rounds->len - 1);
}

/* Adds rounds in which each rank sends to the rank so far after it. */
static perf_round_t *add_shift(plan_t *plan, int repeat, int distance,
                               double bytes)
{
    const int local = plan_local(plan);
    const int crossing = MIN(MIN(distance, plan->ranks - distance), local);
    const bool far = local < plan->ranks;

    return rounds_add(
        plan->schedule->rounds,
        (perf_round_t){.repeat = repeat,
                       .ways = PERF_WAY_BOTH,
                       .near = !far,
                       .far = far,
                       .bytes = bytes,
                       .share = MAX(crossing, 1) * plan->layout->rails});
}

/* Adds a round in which ranks exchange data with those whose number differs in
 * one bit. */
static perf_round_t *add_exchange(plan_t *plan, int distance, double bytes)
{
    const int local = plan_local(plan);
    perf_round_t *round = add_shift(plan, 1, distance, bytes);

    round->share = MIN(2 * distance, local) * plan->layout->rails;
    if (local % (2 * distance) == 0) {
        round->near = 1;
        round->far = 0;
    }
    return round;
}

/* Adds a round in which every rank sends to every other one; or only one rank
 * sends or gets that, if there is only one way. */
static perf_round_t *add_all(plan_t *plan, int ways, double bytes)
{
    const int local = plan_local(plan);
    const int senders = ways == PERF_WAY_BOTH ? local : 1;

    return rounds_add(plan->schedule->rounds,
                      (perf_round_t){.repeat = 1,
                                     .ways = ways,
                                     .near = local - 1,
                                     .far = plan->ranks - local,
                                     .bytes = bytes,
                                     .share = senders * plan->layout->rails});
}

/* The children of the root in a tree that are distance, 2 distance, ... from
 * it. */
static int tree_children(const plan_t *plan, int radix, int distance)
{
    return MIN(radix, (plan->ranks + distance - 1) / distance) - 1;
}

/* Adds messages between the root and the children that are so far from it. */
static perf_round_t *add_children(plan_t *plan, GArray *rounds, int ways,
                                  int radix, int distance, double bytes)
{
    const int children = tree_children(plan, radix, distance);
    const int near = CLAMP((plan_local(plan) - 1) / distance, 0, children);

    return rounds_add(rounds, (perf_round_t){.repeat = 1,
                                             .ways = ways,
                                             .near = near,
                                             .far = children - near,
                                             .bytes = bytes,
                                             .share = plan->layout->rails});
}

/* Adds the way of a piece up to the root. */
static void add_up(plan_t *plan, int radix, double piece)
{
    for (int distance = 1; distance < plan->ranks; distance *= radix) {
        const int children = tree_children(plan, radix, distance);

        add_children(plan, plan->schedule->rounds, PERF_WAY_IN, radix, distance,
                     piece)
            ->reduced = (children + 2) * piece;
    }
}

/* Adds what the root sends down. The way to the last leaf has as many bytes,
 * and the latency of each level. */
static void add_down(plan_t *plan, int radix, double piece)
{
    perf_round_t all = {.repeat = 1,
                        .ways = PERF_WAY_OUT,
                        .bytes = piece,
                        .share = plan->layout->rails};

    for (int distance = 1; distance < plan->ranks; distance *= radix) {
        perf_round_t *level = add_children(
            plan, plan->schedule->tail, PERF_WAY_OUT, radix, distance, piece);

        all.near += level->near;
        all.far += level->far;
        *level = (perf_round_t){.repeat = 1,
                                .ways = PERF_WAY_OUT,
                                .near = level->far == 0,
                                .far = level->far > 0,
                                .share = 1};
    }
    if (plan->schedule->tail->len)
        g_array_set_size(plan->schedule->tail, plan->schedule->tail->len - 1);
    rounds_add(plan->schedule->rounds, all);
}

static void write_linear_reduce(plan_t *plan, int ways)
{
    const double piece = plan_cut(plan, plan->bytes, 64 * KIB, 2);

    add_all(plan, ways, piece)->reduced = (plan->ranks + 1) * piece;
}

static void linear_reduce(plan_t *plan)
{
    write_linear_reduce(plan, PERF_WAY_IN);
}

static void linear_all_reduce(plan_t *plan)
{
    write_linear_reduce(plan, PERF_WAY_BOTH);
}

/* Bytes of a block's piece. */
static double pairwise_piece(const plan_t *plan)
{
    return CLAMP(floor(32 * MIB / plan->ranks), 4 * KIB, 512 * KIB);
}

static void pairwise_scatter(plan_t *plan, double bytes)
{
    const double ranks = plan->ranks;
    const double part =
        plan_cut(plan, bytes, pairwise_piece(plan) * ranks, 2) / ranks;

    add_all(plan, PERF_WAY_BOTH, part)->reduced = (ranks + 1) * part;
}

static void pairwise_reduce_scatter(plan_t *plan)
{
    pairwise_scatter(plan, plan->bytes);
}

static void pairwise_reduce(plan_t *plan)
{
    pairwise_scatter(plan, plan->bytes);
    add_all(plan, PERF_WAY_IN,
            plan->bytes / (double)plan->schedule->pieces / plan->ranks);
}

static void pairwise_all_reduce(plan_t *plan)
{
    pairwise_scatter(plan, plan->bytes);
    add_all(plan, PERF_WAY_BOTH,
            plan->bytes / (double)plan->schedule->pieces / plan->ranks);
}

/* Each exchange is a chain; on average as many of them are near as of all. */
static void pairwise_all_to_all(plan_t *plan)
{
    const double others = plan->ranks - 1;
    perf_round_t *round = add_all(plan, PERF_WAY_BOTH, plan->block);

    round->near /= others;
    round->far /= others;
    round->copied = 2 * plan->block / others;
    plan->schedule->pieces = (size_t)others;
    plan->schedule->window = 8;
}

/* Gathers the blocks of all ranks. */
static void bruck_collect(plan_t *plan, double block)
{
    for (int have = 1; have < plan->ranks; have *= 2)
        add_shift(plan, 1, have, MIN(have, plan->ranks - have) * block);
}

static perf_round_t *last_round(plan_t *plan)
{
    return &g_array_index(plan->schedule->rounds, perf_round_t,
                          plan->schedule->rounds->len - 1);
}

static void bruck_all_reduce(plan_t *plan)
{
    const double piece = plan_cut(plan, plan->bytes, 64 * KIB, 2);

    bruck_collect(plan, piece);
    last_round(plan)->copied = 2 * piece;
    last_round(plan)->reduced = (plan->ranks + 1) * piece;
}

static void bruck_all_gather(plan_t *plan)
{
    bruck_collect(plan, plan->block);
    last_round(plan)->copied = 2 * (plan->block + plan->bytes);
}

static void bruck_all_to_all(plan_t *plan)
{
    for (int distance = 1; distance < plan->ranks; distance *= 2) {
        const int whole = plan->ranks / (2 * distance) * distance;
        const int rest = plan->ranks % (2 * distance) - distance;
        const double bytes = (whole + MAX(rest, 0)) * plan->block;

        add_shift(plan, 1, distance, bytes)->copied = 2 * bytes;
    }
    last_round(plan)->copied += 2 * plan->bytes;
}

/* If there is no power of two of ranks, one of a pair gives the other its
 * input, and later gets its result of so many bytes. */
static void add_join(plan_t *plan, double bytes)
{
    perf_round_t *round;

    if (plan_power(plan) == plan->ranks)
        return;
    round = add_shift(plan, 1, 1, bytes);
    round->ways = PERF_WAY_IN;
    round->reduced = 3 * bytes;
}

static void add_share(plan_t *plan, double bytes)
{
    if (plan_power(plan) < plan->ranks)
        add_shift(plan, 1, 1, bytes)->ways = PERF_WAY_OUT;
}

static void doubling_all_reduce(plan_t *plan)
{
    const double bytes = plan->bytes;

    add_join(plan, bytes);
    for (int distance = 1; distance < plan_power(plan); distance *= 2)
        add_exchange(plan, distance, bytes)->reduced = 3 * bytes;
    add_share(plan, bytes);
}

static void doubling_all_gather(plan_t *plan)
{
    for (int distance = 1; distance < plan->ranks; distance *= 2)
        add_exchange(plan, distance, distance * plan->block);
    last_round(plan)->copied = 2 * plan->block;
}

/* The number of parts that all_reduce makes of a piece, see
 * lib/schedule/algorithms/halving-doubling.c. */
static int halving_parts(const plan_t *plan, double bytes)
{
    const int power = plan_power(plan);
    int parts = 2;

    while (parts < power && floor(bytes / parts) > KIB &&
           (power / parts > 4 || floor(bytes / parts) > 32 * KIB))
        parts *= 2;
    return parts;
}

/* Adds the rounds that reduce a piece to so many parts. */
static void add_halvings(plan_t *plan, double piece, int parts)
{
    add_join(plan, piece);
    for (int i = 1; i < plan_power(plan); i *= 2) {
        const double bytes = piece / MIN(2 * i, parts);

        add_exchange(plan, i, bytes)->reduced = 3 * bytes;
    }
}

static void add_doublings(plan_t *plan, int ways, double piece, int parts)
{
    for (int i = MIN(parts, plan_power(plan)) / 2; i; i /= 2)
        add_exchange(plan, i, piece / (2 * i))->ways = ways;
}

static double halving_cut(plan_t *plan)
{
    const double part = ceil(plan->bytes / 16);

    return plan_cut(plan, plan->bytes, CLAMP(part, 2 * MIB, 8 * MIB), 2);
}

static void halving_all_reduce(plan_t *plan)
{
    const double piece = halving_cut(plan);
    const int parts = halving_parts(plan, piece);

    add_halvings(plan, piece, parts);
    add_doublings(plan, PERF_WAY_BOTH, piece, parts);
    add_share(plan, piece);
}

int perf_halving_parts(int ranks, double bytes)
{
    perf_schedule_t schedule;
    plan_t plan = {.schedule = &schedule, .ranks = ranks, .bytes = bytes};

    return MIN(halving_parts(&plan, halving_cut(&plan)), plan_power(&plan));
}

static void halving_reduce(plan_t *plan)
{
    const double piece = halving_cut(plan);

    add_halvings(plan, piece, plan->ranks);
    add_doublings(plan, PERF_WAY_IN, piece, plan->ranks);
}

/* The first numbers act for two ranks each, if there is no power of two. */
static void halving_reduce_scatter(plan_t *plan)
{
    const int power = plan_power(plan), extra = plan->ranks - power;

    add_join(plan, plan->bytes);
    for (int half = power / 2; half; half /= 2) {
        const double bytes = (half + MIN(half, extra)) * plan->block;

        add_exchange(plan, half, bytes)->reduced = 3 * bytes;
    }
    add_share(plan, plan->block);
    if (extra)
        last_round(plan)->copied = 2 * plan->block;
}

static void ring_all_reduce(plan_t *plan)
{
    const double ranks = plan->ranks;
    const double block =
        plan_cut(plan, plan->bytes, 512 * KIB * ranks, 2) / ranks;

    add_shift(plan, plan->ranks - 1, 1, block)->reduced = 3 * block;
    add_shift(plan, plan->ranks - 1, 1, block);
}

static void ring_reduce_scatter(plan_t *plan)
{
    const double piece = plan_cut(plan, plan->block, 128 * KIB, 4);

    add_shift(plan, plan->ranks - 1, 1, piece)->reduced = 3 * piece;
}

static void ring_all_gather(plan_t *plan)
{
    const double piece = plan_cut(plan, plan->block, 128 * KIB, 4);

    add_shift(plan, plan->ranks - 1, 1, piece);
    rounds_add(plan->schedule->rounds,
               (perf_round_t){.repeat = 1, .share = 1, .copied = 2 * piece});
}

static void tree_all_reduce(plan_t *plan)
{
    const double piece = plan_cut(plan, plan->bytes, 64 * KIB, 4);

    add_up(plan, 4, piece);
    add_down(plan, 4, piece);
}

static void knomial_broadcast(plan_t *plan)
{
    add_down(plan, 4, plan_cut(plan, plan->bytes, 64 * KIB, 4));
}

static void binomial_broadcast(plan_t *plan)
{
    add_down(plan, 2, plan_cut(plan, plan->bytes, 64 * KIB, 4));
}

static void knomial_reduce(plan_t *plan)
{
    add_up(plan, 4, plan_cut(plan, plan->bytes, 64 * KIB, 4));
}

static void binomial_reduce(plan_t *plan)
{
    add_up(plan, 2, plan_cut(plan, plan->bytes, 64 * KIB, 4));
}

static void linear_broadcast(plan_t *plan)
{
    add_all(plan, PERF_WAY_OUT, plan->bytes);
}

/* Every rank forwards each piece to the next one; the last piece goes all the
 * way after the others. */
static void write_chain(plan_t *plan, int way, int sources)
{
    const double piece = plan_cut(plan, plan->bytes, 64 * KIB, 4);
    const int crossings = (plan->ranks - 1) / plan_local(plan);
    perf_round_t *first = add_shift(plan, 1, 1, piece), hop;

    first->ways = way;
    first->reduced = sources * piece;
    hop = *first;
    hop.repeat = MIN(crossings, plan->ranks - 2);
    if (hop.repeat)
        rounds_add(plan->schedule->tail, hop);
    hop.repeat = plan->ranks - 2 - hop.repeat;
    hop.near = 1;
    hop.far = 0;
    if (hop.repeat)
        rounds_add(plan->schedule->tail, hop);
}

static void chain_broadcast(plan_t *plan)
{
    write_chain(plan, PERF_WAY_OUT, 0);
}

static void chain_reduce(plan_t *plan)
{
    write_chain(plan, PERF_WAY_IN, 3);
}

static void linear_all_gather(plan_t *plan)
{
    add_all(plan, PERF_WAY_BOTH, plan->block)->copied = 2 * plan->block;
}

static void linear_gather(plan_t *plan)
{
    add_all(plan, PERF_WAY_IN, plan->block)->copied = 2 * plan->block;
}

static void linear_scatter(plan_t *plan)
{
    add_all(plan, PERF_WAY_OUT, plan->block)->copied = 2 * plan->block;
}

/* Adds the way of the most blocks through the tree. */
static void add_blocks(plan_t *plan, int ways, double block)
{
    for (int distance = 1; distance < plan->ranks; distance *= 2) {
        const int blocks = MIN(distance, plan->ranks - distance);

        add_children(plan, plan->schedule->rounds, ways, 2, distance,
                     blocks * block);
    }
}

static void scatter_all_gather_broadcast(plan_t *plan)
{
    const double ranks = plan->ranks;
    const double part =
        plan_cut(plan, plan->bytes, 64 * KIB * ranks, 4) / ranks;

    add_blocks(plan, PERF_WAY_OUT, part);
    add_shift(plan, plan->ranks - 1, 1, part);
}

static void binomial_gather(plan_t *plan)
{
    add_blocks(plan, PERF_WAY_IN, plan->block);
    last_round(plan)->copied = 2 * plan->block;
}

static void binomial_scatter(plan_t *plan)
{
    add_blocks(plan, PERF_WAY_OUT, plan->block);
    last_round(plan)->copied = 2 * plan->block;
}

static void linear_barrier(plan_t *plan)
{
    add_all(plan, PERF_WAY_IN, 0);
    add_all(plan, PERF_WAY_OUT, 0);
}

static void dissemination_barrier(plan_t *plan)
{
    for (int distance = 1; distance < plan->ranks; distance *= 2)
        add_shift(plan, 1, distance, 0);
}

/* Adds one level of two: the algorithm that the library chooses for these
 * ranks and bytes, as rounds of a chain. chosen: the bytes by which it
 * chooses. */
static void add_level(plan_t *plan, bool far, int coll, double bytes,
                      double chosen)
{
    const int local = plan_local(plan);
    const int nodes = (plan->ranks + local - 1) / local;
    const perf_layout_t layout = {.ranks = far ? nodes : local,
                                  .local = far ? 1 : local,
                                  .rails = plan->layout->rails};
    dscomm_choice_info_t choice = {.size = sizeof choice};
    perf_schedule_t level;

    if (layout.ranks < 2 ||
        dscomm_choice_info(layout.ranks, far ? nodes : 1, (dscomm_coll_t)coll,
                           DSCOMM_FLOAT32, DSCOMM_SUM, (uint64_t)chosen,
                           &choice) != DSCOMM_OK ||
        !perf_schedule_init(&level, coll, choice.by_default, &layout, bytes))
        return;
    for (size_t i = 0; i < level.pieces; i++)
        g_array_append_vals(plan->schedule->rounds, level.rounds->data,
                            level.rounds->len);
    g_array_append_vals(plan->schedule->tail, level.tail->data,
                        level.tail->len);
    perf_schedule_clear(&level);
}

/* One-way collectives of pieces have the algorithm of the whole buffer. */
static void two_level_all_reduce(plan_t *plan)
{
    const double piece = plan_cut(plan, plan->bytes, 128 * KIB, 4);

    add_level(plan, false, DSCOMM_COLL_REDUCE, piece, plan->bytes);
    add_level(plan, true, DSCOMM_COLL_ALL_REDUCE, piece, piece);
    add_level(plan, false, DSCOMM_COLL_BROADCAST, piece, plan->bytes);
}

static void two_level_reduce(plan_t *plan)
{
    const double piece = plan_cut(plan, plan->bytes, 128 * KIB, 4);

    add_level(plan, false, DSCOMM_COLL_REDUCE, piece, plan->bytes);
    add_level(plan, true, DSCOMM_COLL_REDUCE, piece, plan->bytes);
}

static void two_level_broadcast(plan_t *plan)
{
    const double piece = plan_cut(plan, plan->bytes, 128 * KIB, 4);

    add_level(plan, true, DSCOMM_COLL_BROADCAST, piece, plan->bytes);
    add_level(plan, false, DSCOMM_COLL_BROADCAST, piece, plan->bytes);
}

static void two_level_all_gather(plan_t *plan)
{
    const double node = plan->block * plan_local(plan);

    add_level(plan, false, DSCOMM_COLL_GATHER, node, node);
    add_level(plan, true, DSCOMM_COLL_ALL_GATHER, plan->bytes, plan->bytes);
    add_level(plan, false, DSCOMM_COLL_BROADCAST, plan->bytes, plan->bytes);
}

static void two_level_reduce_scatter(plan_t *plan)
{
    const double node = plan->block * plan_local(plan);

    add_level(plan, false, DSCOMM_COLL_REDUCE, plan->bytes, plan->bytes);
    add_level(plan, true, DSCOMM_COLL_REDUCE_SCATTER, plan->bytes, plan->bytes);
    add_level(plan, false, DSCOMM_COLL_SCATTER, node, node);
}

static void two_level_barrier(plan_t *plan)
{
    add_level(plan, false, DSCOMM_COLL_GATHER, 0, 0);
    add_level(plan, true, DSCOMM_COLL_BARRIER, 0, 0);
    add_level(plan, false, DSCOMM_COLL_BROADCAST, 0, 0);
}

#define COLL(name) DSCOMM_COLL_##name
enum { POWER = 1, LEVELS = 2 };

static const struct {
    int coll;
    const char *name;
    void (*write)(plan_t *plan);
    int needs; /* a power of two of ranks; two levels */
} table[] = {
    {COLL(BROADCAST), "binomial", binomial_broadcast, 0},
    {COLL(BROADCAST), "linear", linear_broadcast, 0},
    {COLL(BROADCAST), "knomial", knomial_broadcast, 0},
    {COLL(BROADCAST), "chain", chain_broadcast, 0},
    {COLL(BROADCAST), "scatter_all_gather", scatter_all_gather_broadcast, 0},
    {COLL(BROADCAST), "two_level", two_level_broadcast, LEVELS},
    {COLL(REDUCE), "linear", linear_reduce, 0},
    {COLL(REDUCE), "pairwise", pairwise_reduce, 0},
    {COLL(REDUCE), "binomial", binomial_reduce, 0},
    {COLL(REDUCE), "knomial", knomial_reduce, 0},
    {COLL(REDUCE), "chain", chain_reduce, 0},
    {COLL(REDUCE), "halving_doubling", halving_reduce, 0},
    {COLL(REDUCE), "two_level", two_level_reduce, LEVELS},
    {COLL(ALL_REDUCE), "pairwise", pairwise_all_reduce, 0},
    {COLL(ALL_REDUCE), "linear", linear_all_reduce, 0},
    {COLL(ALL_REDUCE), "bruck", bruck_all_reduce, 0},
    {COLL(ALL_REDUCE), "recursive_doubling", doubling_all_reduce, 0},
    {COLL(ALL_REDUCE), "tree", tree_all_reduce, 0},
    {COLL(ALL_REDUCE), "ring", ring_all_reduce, 0},
    {COLL(ALL_REDUCE), "halving_doubling", halving_all_reduce, 0},
    {COLL(ALL_REDUCE), "two_level", two_level_all_reduce, LEVELS},
    {COLL(ALL_GATHER), "ring", ring_all_gather, 0},
    {COLL(ALL_GATHER), "linear", linear_all_gather, 0},
    {COLL(ALL_GATHER), "bruck", bruck_all_gather, 0},
    {COLL(ALL_GATHER), "recursive_doubling", doubling_all_gather, POWER},
    {COLL(ALL_GATHER), "two_level", two_level_all_gather, LEVELS},
    {COLL(REDUCE_SCATTER), "pairwise", pairwise_reduce_scatter, 0},
    {COLL(REDUCE_SCATTER), "ring", ring_reduce_scatter, 0},
    {COLL(REDUCE_SCATTER), "halving_doubling", halving_reduce_scatter, 0},
    {COLL(REDUCE_SCATTER), "two_level", two_level_reduce_scatter, LEVELS},
    {COLL(GATHER), "linear", linear_gather, 0},
    {COLL(GATHER), "binomial", binomial_gather, 0},
    {COLL(SCATTER), "linear", linear_scatter, 0},
    {COLL(SCATTER), "binomial", binomial_scatter, 0},
    {COLL(ALL_TO_ALL), "pairwise", pairwise_all_to_all, 0},
    {COLL(ALL_TO_ALL), "linear", linear_all_gather, 0},
    {COLL(ALL_TO_ALL), "bruck", bruck_all_to_all, 0},
    {COLL(BARRIER), "dissemination", dissemination_barrier, 0},
    {COLL(BARRIER), "linear", linear_barrier, 0},
    {COLL(BARRIER), "two_level", two_level_barrier, LEVELS},
};

const char *perf_model_algorithm(size_t index, int *ret_coll)
{
    if (index >= G_N_ELEMENTS(table))
        return NULL;
    *ret_coll = table[index].coll;
    return table[index].name;
}

static bool layout_fits(const perf_layout_t *layout, int needs)
{
    if (needs == POWER)
        return !(layout->ranks & (layout->ranks - 1));
    return needs != LEVELS ||
           (layout->local > 1 && layout->local < layout->ranks);
}

bool perf_schedule_init(perf_schedule_t *schedule, int coll,
                        const char *algorithm, const perf_layout_t *layout,
                        double bytes)
{
    plan_t plan = {.schedule = schedule,
                   .layout = layout,
                   .ranks = layout->ranks,
                   .bytes = bytes,
                   .block = bytes / layout->ranks};
    size_t i = 0;

    while (i < G_N_ELEMENTS(table) &&
           (table[i].coll != coll || strcmp(table[i].name, algorithm) != 0))
        i++;
    if (i == G_N_ELEMENTS(table) || layout->ranks < 2 ||
        !layout_fits(layout, table[i].needs))
        return false;
    schedule->rounds = g_array_new(FALSE, FALSE, sizeof(perf_round_t));
    schedule->tail = g_array_new(FALSE, FALSE, sizeof(perf_round_t));
    schedule->pieces = schedule->window = 1;
    table[i].write(&plan);
    return true;
}

void perf_schedule_clear(perf_schedule_t *schedule)
{
    g_array_free(schedule->rounds, TRUE);
    g_array_free(schedule->tail, TRUE);
}
