/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical collectives. The ranks of a node exchange data with other nodes
 * through one of them, its leader. A long all_reduce in nodes of equally many
 * ranks uses rails instead: a reduce_scatter inside nodes, an all_reduce on
 * each rail, an all_gather inside nodes.
 *
 * One description of each collective serves for schedules and blocking calls.
 * The parts of a schedule use the default algorithms for their ranks and bytes;
 * but beyond 512 KiB, pieces of broadcast and reduce use chains, for any number
 * of ranks. Pieces of a long buffer follow each other from level to level. A
 * blocking call runs the blocking collectives of the levels.
 *
 * A reduction is made of partial results, which is right if a partial result is
 * of the same kind as the inputs: not for 16- and 8-bit floats, which are
 * rounded once, nor for the average of small integers. AVG is SUM with a
 * division at the end, PREMUL_SUM a SUM of inputs that are multiplied first.
 *
 * Cost: that of the collective among the ranks of a node, and again if its
 * result goes back, and that of the collective among the nodes: each link
 * between nodes carries the data of one rank, not that of all ranks of a node.
 * Extra memory: reduce some pieces; all_gather, if the ranks of a node do not
 * have consecutive numbers, p blocks, reduce_scatter p or 2 p. Source: Karonis,
 * de Supinski, Foster, Gropp, Lusk, Bresnahan, "Exploiting Hierarchy in
 * Parallel Computer Networks to Optimize Collective Operation Performance",
 * IPDPS 2000. */
#include "config.h"

#include "lib/schedule/hierarchical.h"

#include "lib/schedule/algorithms/blocks.h"
#include "lib/schedule/levels.h"

#include <string.h>

#define PIECE ((size_t)128 << 10)
#define WINDOW 4
/* most ranks for which chains are the default of long calls */
#define CHAINED 16

/* A composed collective. Either plan or levels is set. */
typedef struct {
    const dscomm_coll_args_t *args;
    dscomm_layout_t *layout;
    int rank, node, local;
    bool rails; /* the far level is this rank's rail, not the leaders */
    int leader; /* local number of this node's leader */
    dscomm_plan_t *plan; /* a schedule is built here */
    dscomm_levels_t *levels; /* blocking calls run here */
    char *base[AT_SCRATCH + LEVELS_ROOMS];
    int rooms;
    dscomm_status_t status;
} compose_t;

/* Returns the local number of node's leader: that of the root, so that all
 * leaders are on one rail; else 0. A blocking call can only use a rail. */
static int leader_of(const compose_t *c, int node)
{
    const int root = c->args->root;

    if (root < 0)
        return 0;
    if (c->layout->even || (c->plan && c->layout->node[root] == node))
        return c->layout->local[root];
    return 0;
}

static void compose_begin(compose_t *c)
{
    c->node = c->layout->node[c->rank];
    c->local = c->layout->local[c->rank];
    c->leader = leader_of(c, c->node);
}

static int node_size(const compose_t *c)
{
    return c->layout->size[c->node];
}

static bool is_alone(const compose_t *c)
{
    return node_size(c) == 1;
}

static bool compose_leads(const compose_t *c)
{
    return c->rails || c->local == c->leader;
}

static bool is_premul(const compose_t *c)
{
    return c->args->op == DSCOMM_PREMUL_SUM;
}

static size_t bytes_of(const compose_t *c, size_t count)
{
    return count * c->args->element;
}

static char *compose_address(const compose_t *c, dscomm_place_t place)
{
    return c->base[place.at] ? c->base[place.at] + place.offset : NULL;
}

/* Returns a new buffer of this rank. */
static dscomm_place_t compose_room(compose_t *c, size_t bytes)
{
    dscomm_room_t *own;

    if (c->plan)
        return dscomm_priv_plan_room(c->plan, bytes);
    own = &c->levels->rooms[c->rooms];
    if (bytes > own->size) {
        g_free(own->bytes);
        own->bytes = g_try_malloc(bytes);
        own->size = own->bytes ? bytes : 0;
        if (!own->bytes && c->status == DSCOMM_OK)
            c->status = dscomm_fail(
                DSCOMM_ERR_NO_MEMORY,
                "rank %d of group '%s' has no memory for %zu bytes between two "
                "levels of a collective",
                c->rank, c->levels->group->identity.name, bytes);
    }
    c->base[AT_SCRATCH + c->rooms] = own->bytes;
    return dscomm_priv_at(AT_SCRATCH + c->rooms++, 0);
}

static void compose_copy(compose_t *c, dscomm_place_t to, dscomm_place_t from,
                         size_t bytes)
{
    if (c->plan)
        dscomm_priv_plan_copy(c->plan, to, from, bytes);
    else if (c->status == DSCOMM_OK && bytes &&
             compose_address(c, to) != compose_address(c, from))
        memcpy(compose_address(c, to), compose_address(c, from), bytes);
}

/* dest = source by op, with the given factor or divisor. */
static void compose_apply(const compose_t *c, dscomm_op_t op, void *dest,
                          const void *source, size_t count, double factor)
{
    if (c->status == DSCOMM_OK && count)
        dscomm_reduce_kernel((dscomm_dtype_t)c->args->dtype,
                             op)(dest, &source, 1, count, &factor);
}

/* Returns this rank's input; with PREMUL_SUM, its product with the factor, in
 * to. */
static dscomm_place_t compose_load(compose_t *c, dscomm_place_t own,
                                   dscomm_place_t to, size_t count)
{
    if (!is_premul(c))
        return own;
    if (c->plan)
        dscomm_priv_plan_load(c->plan, to, own, count);
    else
        compose_apply(c, DSCOMM_PREMUL_SUM, compose_address(c, to),
                      compose_address(c, own), count, c->args->factor);
    return to;
}

/* Collectives of one level */

static bool coll_reduces(int coll)
{
    return coll == DSCOMM_COLL_REDUCE || coll == DSCOMM_COLL_ALL_REDUCE ||
           coll == DSCOMM_COLL_REDUCE_SCATTER_V;
}

/* Returns the default algorithm; far: of one rank on each node. For a call in
 * pieces, the size of the whole call decides: a tree that sends each piece to
 * several ranks would take several times as long. */
static const dscomm_algorithm_t *compose_choose(const compose_t *c,
                                                const dscomm_coll_args_t *args,
                                                int ranks, bool far)
{
    const dscomm_nodes_t each = {.ranks = ranks, .count = ranks};
    const bool one_way =
        args->coll == DSCOMM_COLL_BROADCAST || args->coll == DSCOMM_COLL_REDUCE;
    dscomm_coll_args_t whole = *args;

    if (!one_way || args->count >= c->args->count)
        return c->plan->choose(args, ranks, far ? &each : NULL);
    whole.count = c->args->count;
    return c->plan->choose(&whole, MIN(ranks, CHAINED), NULL);
}

/* Returns the ranks of the far level, node by node, for free(); NULL: no
 * memory. */
static int *far_members(compose_t *c)
{
    const dscomm_layout_t *layout = c->layout;
    const size_t nodes = (size_t)layout->nodes;
    int *members = dscomm_priv_plan_memory(c->plan, nodes, sizeof *members);

    for (int n = 0; members && n < layout->nodes; n++)
        members[n] = layout->order[layout->first[n] +
                                   (c->rails ? c->local : leader_of(c, n))];
    return members;
}

static void write_step(compose_t *c, bool far, const dscomm_coll_args_t *args,
                       dscomm_place_t send, dscomm_place_t recv)
{
    int *own = far ? far_members(c) : NULL;
    const dscomm_part_t part = {
        .members = far ? own : c->layout->order + c->layout->first[c->node],
        .count = far ? c->layout->nodes : node_size(c),
        .self = far ? c->node : c->local,
        .send = send,
        .recv = recv,
        .final = far || c->layout->nodes == 1,
    };

    if (part.members)
        dscomm_priv_plan_part(c->plan, &part,
                              compose_choose(c, args, part.count, far), args);
    free(own);
}

/* The fingerprint of a level's collective contains that of the whole collective
 * and its number. Without the number, ranks that have made different calls
 * could match in a later one that does not use this level. */
static uint32_t level_fingerprint(const dscomm_coll_args_t *args, int coll)
{
    return (args->fingerprint ^ (uint32_t)args->sequence * 0x9e3779b1) * 31 +
           (uint32_t)coll;
}

static void run_step(compose_t *c, bool far, dscomm_coll_args_t *args,
                     dscomm_place_t send, dscomm_place_t recv)
{
    const int coll = args->coll, self = far ? c->node : c->local;
    const bool gives = coll == DSCOMM_COLL_BROADCAST ||
                       coll == DSCOMM_COLL_SCATTER ||
                       coll == DSCOMM_COLL_SCATTER_V;
    const bool takes = coll == DSCOMM_COLL_REDUCE || coll == DSCOMM_COLL_GATHER;

    args->send = gives && self != args->root ? NULL : compose_address(c, send);
    args->recv = takes && self != args->root ? NULL : compose_address(c, recv);
    args->factor = 1.0;
    args->fingerprint = level_fingerprint(c->args, coll);
    args->of = c->args;
    args->phases = c->args->phases;
    if (c->status == DSCOMM_OK)
        c->status = dscomm_priv_level_run(
            c->levels, &c->levels->level[far ? LEVEL_RAIL : LEVEL_NODE], args);
    if (far && c->args->op == DSCOMM_AVG && coll_reduces(coll) && args->recv)
        compose_apply(c, DSCOMM_AVG, args->recv, args->recv, args->count,
                      c->layout->ranks);
}

/* Adds a collective inside this node, or between nodes if far. args has the
 * members that differ from those of the whole collective. */
static void compose_step(compose_t *c, bool far, dscomm_coll_args_t args,
                         dscomm_place_t send, dscomm_place_t recv)
{
    const int op = c->args->op;

    if (far ? !compose_leads(c) || c->layout->nodes == 1 : is_alone(c))
        return;
    args.dtype = c->args->dtype;
    args.element = c->args->element;
    args.op = !coll_reduces(args.coll)                      ? -1
              : op == DSCOMM_AVG || op == DSCOMM_PREMUL_SUM ? DSCOMM_SUM
                                                            : op;
    args.user = c->args->user;
    if (c->plan)
        write_step(c, far, &args, send, recv);
    else
        run_step(c, far, &args, send, recv);
}

static void compose_near(compose_t *c, int coll, size_t count,
                         dscomm_place_t send, dscomm_place_t recv)
{
    const dscomm_coll_args_t args = {
        .coll = coll, .root = c->leader, .count = count};

    compose_step(c, false, args, send, recv);
}

static void compose_far(compose_t *c, int coll, size_t count,
                        dscomm_place_t send, dscomm_place_t recv)
{
    const int root = c->args->root;
    const dscomm_coll_args_t args = {.coll = coll,
                                     .root =
                                         root < 0 ? -1 : c->layout->node[root],
                                     .count = count};

    compose_step(c, true, args, send, recv);
}

/* The same, with the counts and displacements of the layout. */
static void compose_step_v(compose_t *c, bool is_far, int coll, size_t count,
                           dscomm_place_t send, dscomm_place_t recv)
{
    const dscomm_coll_args_t args = {.coll = coll,
                                     .root = -1,
                                     .count = count,
                                     .recv_counts = c->layout->counts,
                                     .recv_displs = c->layout->displs};

    compose_step(c, is_far, args, send, recv);
}

/* The collectives */

static void compose_barrier(compose_t *c)
{
    const dscomm_place_t nowhere = dscomm_priv_at(AT_SCRATCH, 0);
    const dscomm_coll_args_t args = {.coll = DSCOMM_COLL_BARRIER,
                                     .root = c->args->root};

    if (c->plan)
        compose_near(c, DSCOMM_COLL_GATHER, 0, nowhere, nowhere);
    else
        compose_step(c, false, args, nowhere, nowhere);
    compose_step(c, true, args, nowhere, nowhere);
    if (c->plan)
        compose_near(c, DSCOMM_COLL_BROADCAST, 0, nowhere, nowhere);
    else
        compose_step(c, false, args, nowhere, nowhere);
}

/* Adds pieces that follow each other from level to level. A blocking call is
 * one piece. */
static void go_in_pieces(compose_t *c,
                         void (*add_piece)(compose_t *c, const piece_t *piece))
{
    const dscomm_coll_args_t *args = c->args;
    const size_t pieces = c->plan ? count_pieces(args, args->count, PIECE) : 1;

    if (c->plan)
        dscomm_priv_plan_window(c->plan, WINDOW, 0);
    for (size_t i = 0; i < pieces && !(c->plan && c->plan->bad); i++) {
        const piece_t piece = cut(args, args->count, pieces, i);

        if (c->plan)
            dscomm_priv_plan_chain(c->plan);
        add_piece(c, &piece);
    }
}

/* True if the root is on this node, but is not its leader. */
static bool is_beside_root(const compose_t *c)
{
    const int root = c->args->root;

    return c->layout->node[root] == c->node &&
           c->layout->local[root] != c->leader;
}

static void compose_broadcast_piece(compose_t *c, const piece_t *piece)
{
    const dscomm_place_t place = dscomm_priv_at(AT_RECV, piece->offset);
    const dscomm_coll_args_t from_root = {
        .coll = DSCOMM_COLL_BROADCAST,
        .root = c->layout->local[c->args->root],
        .count = piece->count,
    };

    if (is_beside_root(c))
        compose_step(c, false, from_root, place, place);
    compose_far(c, DSCOMM_COLL_BROADCAST, piece->count, place, place);
    if (!is_beside_root(c))
        compose_near(c, DSCOMM_COLL_BROADCAST, piece->count, place, place);
}

static void compose_broadcast(compose_t *c)
{
    go_in_pieces(c, compose_broadcast_piece);
}

/* Moves data from the leader of the root's node to the root. */
static void hand_over(compose_t *c, dscomm_place_t from)
{
    const bool is_root = c->rank == c->args->root;
    dscomm_layout_t *layout = c->layout;
    const dscomm_coll_args_t args = {
        .coll = DSCOMM_COLL_SCATTER_V,
        .root = c->leader,
        .count = is_root ? c->args->count : 0,
        .send_counts = compose_leads(c) ? layout->counts : NULL,
        .send_displs = compose_leads(c) ? layout->displs : NULL,
    };

    memset(layout->counts, 0, (size_t)node_size(c) * sizeof(size_t));
    memset(layout->displs, 0, (size_t)node_size(c) * sizeof(size_t));
    layout->counts[layout->local[c->args->root]] = c->args->count;
    compose_step(c, false, args, from, dscomm_priv_at(AT_RECV, 0));
}

static void compose_reduce_piece(compose_t *c, const piece_t *piece)
{
    dscomm_place_t own = dscomm_priv_at(AT_SEND, piece->offset);
    dscomm_place_t result = dscomm_priv_at(AT_RECV, piece->offset);
    dscomm_place_t sum = result;

    if (c->rank != c->args->root && (compose_leads(c) || is_premul(c)))
        sum = compose_room(c, piece->bytes);
    if (is_beside_root(c) && compose_leads(c))
        result = sum;
    own = compose_load(c, own, sum, piece->count);
    compose_near(c, DSCOMM_COLL_REDUCE, piece->count, own, sum);
    compose_far(c, DSCOMM_COLL_REDUCE, piece->count, is_alone(c) ? own : sum,
                result);
    if (is_beside_root(c))
        hand_over(c, sum);
}

static void compose_reduce(compose_t *c)
{
    go_in_pieces(c, compose_reduce_piece);
}

static void compose_all_reduce_piece(compose_t *c, const piece_t *piece)
{
    const dscomm_place_t result = dscomm_priv_at(AT_RECV, piece->offset);
    const dscomm_place_t own = compose_load(
        c, dscomm_priv_at(AT_SEND, piece->offset), result, piece->count);

    compose_near(c, DSCOMM_COLL_REDUCE, piece->count, own, result);
    compose_far(c, DSCOMM_COLL_ALL_REDUCE, piece->count,
                is_alone(c) ? own : result, result);
    compose_near(c, DSCOMM_COLL_BROADCAST, piece->count, result, result);
}

/* On each node, every rank takes a slice of the result, and all rails run at
 * once. */
static void all_reduce_on_rails(compose_t *c)
{
    const dscomm_place_t result = dscomm_priv_at(AT_RECV, 0);
    const size_t count = c->args->count, parts = (size_t)node_size(c);
    const dscomm_place_t input =
        compose_load(c, dscomm_priv_at(AT_SEND, 0), result, count);
    dscomm_layout_t *layout = c->layout;
    dscomm_place_t own;
    size_t part;

    for (size_t i = 0; i < parts; i++) {
        layout->counts[i] = dscomm_priv_part_size(count, parts, i);
        layout->displs[i] = dscomm_priv_part_start(count, parts, i);
    }
    part = layout->counts[c->local];
    own = dscomm_priv_beyond(result, bytes_of(c, layout->displs[c->local]));
    c->rails = true;
    compose_step_v(c, false, DSCOMM_COLL_REDUCE_SCATTER_V, part, input, own);
    compose_far(c, DSCOMM_COLL_ALL_REDUCE, part, own, own);
    compose_step_v(c, false, DSCOMM_COLL_ALL_GATHER_V, part, own, result);
}

static void compose_all_reduce(compose_t *c)
{
    if (c->levels && c->layout->even &&
        bytes_of(c, c->args->count) >= c->levels->slice &&
        c->args->count >= (size_t)node_size(c))
        all_reduce_on_rails(c);
    else
        go_in_pieces(c, compose_all_reduce_piece);
}

/* Sets counts and displacements to the blocks of nodes, one after the other.
 * Returns the place of this node's blocks in all. */
static dscomm_place_t set_blocks(compose_t *c, dscomm_place_t all)
{
    dscomm_layout_t *layout = c->layout;

    for (int n = 0; n < layout->nodes; n++) {
        layout->counts[n] = (size_t)layout->size[n] * c->args->count;
        layout->displs[n] = (size_t)layout->first[n] * c->args->count;
    }
    return dscomm_priv_beyond(all, bytes_of(c, layout->displs[c->node]));
}

/* Copies between blocks in order of ranks and blocks in order of nodes. */
static void compose_sort(compose_t *c, dscomm_place_t by_rank,
                         dscomm_place_t by_node, bool unpack)
{
    const size_t bytes = bytes_of(c, c->args->count);

    for (int i = 0; i < c->layout->ranks; i++) {
        const size_t rank = (size_t)c->layout->order[i];
        dscomm_place_t here = dscomm_priv_beyond(by_node, (size_t)i * bytes);
        dscomm_place_t there = dscomm_priv_beyond(by_rank, rank * bytes);

        compose_copy(c, unpack ? there : here, unpack ? here : there, bytes);
    }
}

static void compose_all_gather(compose_t *c)
{
    const size_t count = c->args->count;
    const size_t total = count * (size_t)c->layout->ranks;
    const dscomm_place_t result = dscomm_priv_at(AT_RECV, 0);
    const dscomm_place_t input = dscomm_priv_at(AT_SEND, 0);
    const bool sorts = compose_leads(c) && !c->layout->sorted;
    const dscomm_place_t all =
        sorts ? compose_room(c, bytes_of(c, total)) : result;
    const dscomm_place_t own = set_blocks(c, all);

    if (is_alone(c))
        compose_copy(c, own, input, bytes_of(c, count));
    compose_near(c, DSCOMM_COLL_GATHER, count, input, own);
    compose_step_v(c, true, DSCOMM_COLL_ALL_GATHER_V,
                   c->layout->counts[c->node], own, all);
    if (sorts)
        compose_sort(c, result, all, true);
    compose_near(c, DSCOMM_COLL_BROADCAST, total, result, result);
}

static void compose_reduce_scatter(compose_t *c)
{
    const size_t count = c->args->count;
    const size_t total = count * (size_t)c->layout->ranks;
    const dscomm_place_t result = dscomm_priv_at(AT_RECV, 0);
    dscomm_place_t sum = result, packed, own;

    if (compose_leads(c) || is_premul(c))
        sum = compose_room(c, bytes_of(c, total));
    own = compose_load(c, dscomm_priv_at(AT_SEND, 0), sum, total);
    compose_near(c, DSCOMM_COLL_REDUCE, total, own, sum);
    if (is_alone(c))
        sum = own;
    packed = sum;
    if (compose_leads(c) && !c->layout->sorted) {
        packed = compose_room(c, bytes_of(c, total));
        compose_sort(c, sum, packed, false);
    }
    own = set_blocks(c, packed);
    compose_step_v(c, true, DSCOMM_COLL_REDUCE_SCATTER_V,
                   c->layout->counts[c->node], packed,
                   is_alone(c) ? result : own);
    compose_near(c, DSCOMM_COLL_SCATTER, count, own, result);
}

/* between: the collective used between nodes. */
static const struct {
    void (*compose)(compose_t *c);
    int between;
} table[DSCOMM_COLL_SEND] = {
    [DSCOMM_COLL_BARRIER] = {compose_barrier, DSCOMM_COLL_BARRIER},
    [DSCOMM_COLL_BROADCAST] = {compose_broadcast, DSCOMM_COLL_BROADCAST},
    [DSCOMM_COLL_REDUCE] = {compose_reduce, DSCOMM_COLL_REDUCE},
    [DSCOMM_COLL_ALL_REDUCE] = {compose_all_reduce, DSCOMM_COLL_ALL_REDUCE},
    [DSCOMM_COLL_ALL_GATHER] = {compose_all_gather, DSCOMM_COLL_ALL_GATHER_V},
    [DSCOMM_COLL_REDUCE_SCATTER] = {compose_reduce_scatter,
                                    DSCOMM_COLL_REDUCE_SCATTER_V},
};

int dscomm_priv_hierarchical_between(int coll)
{
    return table[coll].compose ? table[coll].between : -1;
}

void dscomm_priv_hierarchical_build(dscomm_plan_t *plan)
{
    dscomm_layout_t layout;
    compose_t c = {.args = plan->args,
                   .layout = &layout,
                   .rank = plan->rank,
                   .plan = plan};

    if (dscomm_priv_layout_init(plan->nodes, plan->ranks, &layout)) {
        compose_begin(&c);
        table[plan->args->coll].compose(&c);
    } else {
        plan->bad = 1;
    }
    dscomm_priv_layout_clear(&layout);
}

dscomm_status_t dscomm_priv_hierarchical_run(dscomm_levels_t *levels,
                                             const dscomm_coll_args_t *args)
{
    compose_t c = {.args = args,
                   .layout = &levels->layout,
                   .rank = levels->rank,
                   .levels = levels,
                   .base = {(char *)args->send, args->recv}};

    compose_begin(&c);
    table[args->coll].compose(&c);
    return c.status == DSCOMM_ERR_NO_MEMORY
               ? dscomm_priv_levels_give_up(levels, c.status)
               : c.status;
}
