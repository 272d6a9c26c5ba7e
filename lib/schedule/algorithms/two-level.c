/* SPDX-License-Identifier: BSD-3-Clause */
/* Two levels: what the ranks of a node have to tell the others goes through one
 * of them, its leader: the root where there is one, else the first. Each level
 * has the default algorithm of as many ranks and bytes, but beyond 512 KiB the
 * pieces of broadcast and reduce go by chains, of however many ranks.
 *
 * Cost: that of the collective among the ranks of a node, and again where what
 * it has goes back, and that of the collective among the nodes: each link
 * between nodes carries what one rank has to say, not what all of its node have
 * to. Pieces of a long buffer follow each other from level to level. Extra
 * memory: reduce some pieces; all_gather, where the ranks of a node do not have
 * numbers that follow each other, p blocks, reduce_scatter p or 2 p.
 * Source: Karonis, de Supinski, Foster, Gropp, Lusk, Bresnahan, "Exploiting
 * Hierarchy in Parallel Computer Networks to Optimize Collective Operation
 * Performance", IPDPS 2000. */
#include "config.h"
#include "lib/schedule/algorithms/algorithms.h"
#include "lib/schedule/algorithms/blocks.h"
#include "lib/schedule/choice.h"

#define PIECE ((size_t)128 << 10)
#define WINDOW 4
#define CHAINED 16 /* ranks, of which long calls are chains by default */

/* Ranks that have a collective of their own; self: this one's number among
 * them, -1 where it is none of them. */
typedef struct {
    int *members;
    int count, self;
} level_t;

/* near: this node's ranks, in rank order; far: the leaders, by their nodes. */
typedef struct {
    level_t near, far;
    int node, leader; /* this rank's, and the leader's number in near */
    int sorted; /* nodes have ranks that follow each other, in their order */
} levels_t;

static int node_of(const dscomm_plan_t *plan, int rank)
{
    return plan->nodes ? plan->nodes->node[rank] : 0;
}

/* root: -1 where there is none. Its memory may be missing: plan->bad. */
static levels_t begin(dscomm_plan_t *plan, int root)
{
    const int nodes = plan->nodes ? plan->nodes->count : 1;
    levels_t levels = {.node = node_of(plan, plan->rank), .sorted = 1};

    levels.near.members =
        dscomm_priv_plan_memory(plan, (size_t)plan->ranks, sizeof(int));
    levels.far.members =
        dscomm_priv_plan_memory(plan, (size_t)nodes, sizeof(int));
    if (plan->bad)
        return levels;
    levels.far.count = nodes;
    for (int r = plan->ranks - 1; r >= 0; r--)
        levels.far.members[node_of(plan, r)] = r;
    if (root >= 0)
        levels.far.members[node_of(plan, root)] = root;
    levels.far.self =
        levels.far.members[levels.node] == plan->rank ? levels.node : -1;
    for (int r = 0; r < plan->ranks; r++) {
        levels.sorted &= !r || node_of(plan, r) >= node_of(plan, r - 1);
        if (node_of(plan, r) != levels.node)
            continue;
        if (r == plan->rank)
            levels.near.self = levels.near.count;
        if (r == levels.far.members[levels.node])
            levels.leader = levels.near.count;
        levels.near.members[levels.near.count++] = r;
    }
    return levels;
}

static void end(levels_t *levels)
{
    free(levels->near.members);
    free(levels->far.members);
}

static int leads(const levels_t *levels)
{
    return levels->far.self >= 0;
}

static int is_alone(const levels_t *levels)
{
    return levels->near.count == 1;
}

static size_t bytes_of(const dscomm_plan_t *plan, size_t count)
{
    return count * plan->args->element;
}

/* The default, but of a call in pieces by all its bytes: to send each piece of
 * a long one to several ranks would take several times as long. */
static const dscomm_algorithm_t *
choose(const dscomm_plan_t *plan, const dscomm_coll_args_t *args, int ranks)
{
    const int one_way =
        args->coll == DSCOMM_COLL_BROADCAST || args->coll == DSCOMM_COLL_REDUCE;
    dscomm_coll_args_t whole = *args;

    if (!one_way || args->count >= plan->args->count)
        return dscomm_priv_choice_default(args, ranks, NULL);
    whole.count = plan->args->count;
    return dscomm_priv_choice_default(&whole, MIN(ranks, CHAINED), NULL);
}

/* A collective of one level, of which args has what is not the whole's. */
static void add(dscomm_plan_t *plan, const levels_t *levels,
                const level_t *level, dscomm_coll_args_t args,
                dscomm_place_t send, dscomm_place_t recv)
{
    const dscomm_part_t part = {
        .members = level->members,
        .count = level->count,
        .self = level->self,
        .send = send,
        .recv = recv,
        .final = level == &levels->far || levels->far.count == 1,
    };

    if (level->self < 0 || level->count == 1)
        return;
    args.dtype = plan->args->dtype;
    args.element = plan->args->element;
    args.op = plan->args->op;
    args.user = plan->args->user;
    if (args.op == DSCOMM_AVG || args.op == DSCOMM_PREMUL_SUM)
        args.op = DSCOMM_SUM;
    dscomm_priv_plan_part(plan, &part, choose(plan, &args, level->count),
                          &args);
}

static void add_near(dscomm_plan_t *plan, const levels_t *levels, int coll,
                     size_t count, dscomm_place_t send, dscomm_place_t recv)
{
    const dscomm_coll_args_t args = {
        .coll = coll, .root = levels->leader, .count = count};

    add(plan, levels, &levels->near, args, send, recv);
}

static void add_far(dscomm_plan_t *plan, const levels_t *levels, int coll,
                    size_t count, dscomm_place_t send, dscomm_place_t recv)
{
    const int root = plan->args->root;
    const dscomm_coll_args_t args = {.coll = coll,
                                     .root =
                                         root < 0 ? -1 : node_of(plan, root),
                                     .count = count};

    add(plan, levels, &levels->far, args, send, recv);
}

/* What this rank brings: its input, or what its factor makes of it, in room. */
static dscomm_place_t load(dscomm_plan_t *plan, dscomm_place_t own,
                           dscomm_place_t room, size_t count)
{
    if (plan->args->op != DSCOMM_PREMUL_SUM)
        return own;
    dscomm_priv_plan_load(plan, room, own, count);
    return room;
}

void dscomm_priv_two_level_barrier(dscomm_plan_t *plan)
{
    const dscomm_place_t nowhere = dscomm_priv_at(AT_SCRATCH, 0);
    levels_t levels = begin(plan, -1);

    if (!plan->bad) {
        add_near(plan, &levels, DSCOMM_COLL_GATHER, 0, nowhere, nowhere);
        add_far(plan, &levels, DSCOMM_COLL_BARRIER, 0, nowhere, nowhere);
        add_near(plan, &levels, DSCOMM_COLL_BROADCAST, 0, nowhere, nowhere);
    }
    end(&levels);
}

/* From or to the root, in pieces that follow each other from level to level. */
static void go_in_pieces(dscomm_plan_t *plan,
                         void (*add_piece)(dscomm_plan_t *plan,
                                           const levels_t *levels,
                                           const piece_t *piece))
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t pieces = count_pieces(args, args->count, PIECE);
    levels_t levels = begin(plan, args->root);

    dscomm_priv_plan_window(plan, WINDOW, 0);
    for (size_t i = 0; i < pieces && !plan->bad; i++) {
        const piece_t piece = cut(args, args->count, pieces, i);

        dscomm_priv_plan_chain(plan);
        add_piece(plan, &levels, &piece);
    }
    end(&levels);
}

static void broadcast_piece(dscomm_plan_t *plan, const levels_t *levels,
                            const piece_t *piece)
{
    const dscomm_place_t place = dscomm_priv_at(AT_RECV, piece->offset);

    add_far(plan, levels, DSCOMM_COLL_BROADCAST, piece->count, place, place);
    add_near(plan, levels, DSCOMM_COLL_BROADCAST, piece->count, place, place);
}

void dscomm_priv_two_level_broadcast(dscomm_plan_t *plan)
{
    go_in_pieces(plan, broadcast_piece);
}

static void reduce_piece(dscomm_plan_t *plan, const levels_t *levels,
                         const piece_t *piece)
{
    const dscomm_place_t result = dscomm_priv_at(AT_RECV, piece->offset);
    const int is_root = plan->rank == plan->args->root;
    dscomm_place_t own = dscomm_priv_at(AT_SEND, piece->offset);
    dscomm_place_t sum = result;

    if (!is_root)
        sum = dscomm_priv_plan_room(plan, piece->bytes);
    own = load(plan, own, sum, piece->count);
    add_near(plan, levels, DSCOMM_COLL_REDUCE, piece->count, own, sum);
    add_far(plan, levels, DSCOMM_COLL_REDUCE, piece->count,
            is_alone(levels) ? own : sum, result);
}

void dscomm_priv_two_level_reduce(dscomm_plan_t *plan)
{
    go_in_pieces(plan, reduce_piece);
}

static void all_reduce_piece(dscomm_plan_t *plan, const levels_t *levels,
                             const piece_t *piece)
{
    const dscomm_place_t result = dscomm_priv_at(AT_RECV, piece->offset);
    const dscomm_place_t own = load(
        plan, dscomm_priv_at(AT_SEND, piece->offset), result, piece->count);

    add_near(plan, levels, DSCOMM_COLL_REDUCE, piece->count, own, result);
    add_far(plan, levels, DSCOMM_COLL_ALL_REDUCE, piece->count,
            is_alone(levels) ? own : result, result);
    add_near(plan, levels, DSCOMM_COLL_BROADCAST, piece->count, result, result);
}

void dscomm_priv_two_level_all_reduce(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t pieces = count_pieces(args, args->count, PIECE);
    levels_t levels = begin(plan, -1);

    dscomm_priv_plan_window(plan, WINDOW, 0);
    for (size_t i = 0; i < pieces && !plan->bad; i++) {
        const piece_t piece = cut(args, args->count, pieces, i);

        dscomm_priv_plan_chain(plan);
        all_reduce_piece(plan, &levels, &piece);
    }
    end(&levels);
}

/* Nodes' blocks, one behind the other: counts, and displacements in elements.
 */
typedef struct {
    size_t *counts, *displs;
} blocks_t;

static blocks_t blocks_new(dscomm_plan_t *plan, const levels_t *levels)
{
    const size_t nodes = (size_t)levels->far.count;
    blocks_t blocks = {dscomm_priv_plan_memory(plan, nodes, sizeof(size_t)),
                       dscomm_priv_plan_memory(plan, nodes, sizeof(size_t))};

    if (plan->bad)
        return blocks;
    for (int r = 0; r < plan->ranks; r++)
        blocks.counts[node_of(plan, r)] += plan->args->count;
    for (size_t n = 1; n < nodes; n++)
        blocks.displs[n] = blocks.displs[n - 1] + blocks.counts[n - 1];
    return blocks;
}

static void blocks_free(blocks_t *blocks)
{
    free(blocks->counts);
    free(blocks->displs);
}

/* A collective of the leaders, on the blocks of their nodes. */
static void add_blocks(dscomm_plan_t *plan, const levels_t *levels, int coll,
                       const blocks_t *blocks, dscomm_place_t send,
                       dscomm_place_t recv)
{
    const dscomm_coll_args_t args = {.coll = coll,
                                     .root = -1,
                                     .count = blocks->counts[levels->node],
                                     .recv_counts = blocks->counts,
                                     .recv_displs = blocks->displs};

    add(plan, levels, &levels->far, args, send, recv);
}

/* Where this node's blocks begin. */
static dscomm_place_t own_blocks(const dscomm_plan_t *plan,
                                 const levels_t *levels, const blocks_t *blocks,
                                 dscomm_place_t all)
{
    return dscomm_priv_beyond(all,
                              bytes_of(plan, blocks->displs[levels->node]));
}

/* Between blocks rank by rank and node by node. */
static void sort(dscomm_plan_t *plan, const levels_t *levels,
                 dscomm_place_t by_rank, dscomm_place_t by_node, int unpack)
{
    const size_t bytes = bytes_of(plan, plan->args->count);
    size_t at = 0;

    for (int n = 0; n < levels->far.count; n++)
        for (int r = 0; r < plan->ranks; r++) {
            dscomm_place_t here = dscomm_priv_beyond(by_node, at);
            dscomm_place_t there =
                dscomm_priv_beyond(by_rank, (size_t)r * bytes);

            if (node_of(plan, r) != n)
                continue;
            dscomm_priv_plan_copy(plan, unpack ? there : here,
                                  unpack ? here : there, bytes);
            at += bytes;
        }
}

static void gather_levels(dscomm_plan_t *plan, const levels_t *levels,
                          const blocks_t *blocks)
{
    const size_t count = plan->args->count;
    const size_t total = count * (size_t)plan->ranks;
    const dscomm_place_t result = dscomm_priv_at(AT_RECV, 0);
    const dscomm_place_t input = dscomm_priv_at(AT_SEND, 0);
    dscomm_place_t all = result, own;

    if (leads(levels) && !levels->sorted)
        all = dscomm_priv_plan_room(plan, bytes_of(plan, total));
    own = own_blocks(plan, levels, blocks, all);
    if (is_alone(levels))
        dscomm_priv_plan_copy(plan, own, input, bytes_of(plan, count));
    add_near(plan, levels, DSCOMM_COLL_GATHER, count, input, own);
    add_blocks(plan, levels, DSCOMM_COLL_ALL_GATHER_V, blocks, own, all);
    if (leads(levels) && !levels->sorted)
        sort(plan, levels, result, all, 1);
    add_near(plan, levels, DSCOMM_COLL_BROADCAST, total, result, result);
}

static void reduce_scatter_levels(dscomm_plan_t *plan, const levels_t *levels,
                                  const blocks_t *blocks)
{
    const size_t count = plan->args->count;
    const size_t total = count * (size_t)plan->ranks;
    const dscomm_place_t result = dscomm_priv_at(AT_RECV, 0);
    dscomm_place_t room = dscomm_priv_plan_room(plan, bytes_of(plan, total));
    dscomm_place_t sum = room, packed, own;

    own = load(plan, dscomm_priv_at(AT_SEND, 0), room, total);
    add_near(plan, levels, DSCOMM_COLL_REDUCE, total, own, sum);
    if (is_alone(levels))
        sum = own;
    packed = sum;
    if (leads(levels) && !levels->sorted) {
        packed = dscomm_priv_plan_room(plan, bytes_of(plan, total));
        sort(plan, levels, sum, packed, 0);
    }
    own = own_blocks(plan, levels, blocks, packed);
    add_blocks(plan, levels, DSCOMM_COLL_REDUCE_SCATTER_V, blocks, packed,
               is_alone(levels) ? result : own);
    add_near(plan, levels, DSCOMM_COLL_SCATTER, count, own, result);
}

/* With memory for the levels and their blocks. */
static void build_blocks(dscomm_plan_t *plan,
                         void (*build)(dscomm_plan_t *plan,
                                       const levels_t *levels,
                                       const blocks_t *blocks))
{
    levels_t levels = begin(plan, -1);
    blocks_t blocks = blocks_new(plan, &levels);

    if (!plan->bad)
        build(plan, &levels, &blocks);
    blocks_free(&blocks);
    end(&levels);
}

void dscomm_priv_two_level_all_gather(dscomm_plan_t *plan)
{
    build_blocks(plan, gather_levels);
}

void dscomm_priv_two_level_reduce_scatter(dscomm_plan_t *plan)
{
    build_blocks(plan, reduce_scatter_levels);
}
