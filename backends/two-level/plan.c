/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of each collective.
 *
 * A reduction is made of partial results, which is right where a partial result
 * is of the same kind as the inputs: not for 16- and 8-bit floats, which are
 * rounded once, nor for the average of integers. AVG is SUM with a division at
 * the end, PREMUL_SUM a SUM whose inputs are multiplied inside the node. */
#include "config.h"

#include "backends/two-level/two-level.h"

#include <string.h>

static int own_node(const two_t *two)
{
    return two->node[two->rank];
}

/* Ranks on this node, and this one's number among them. */
static int own_size(const two_t *two)
{
    return two->size[own_node(two)];
}

static int own_local(const two_t *two)
{
    return two->local[two->rank];
}

static size_t bytes_of(const two_t *two, size_t count)
{
    return count * two->plan.args->element;
}

static char *at(const two_t *two, void *buffer, size_t index)
{
    return buffer ? (char *)buffer + bytes_of(two, index) : NULL;
}

static dscomm_status_t grow(two_t *two, int which, size_t count, char **ret)
{
    two_scratch_t *scratch = &two->scratch[which];
    const size_t size = bytes_of(two, count);

    if (size > scratch->size) {
        g_free(scratch->bytes);
        scratch->bytes = g_try_malloc(size);
        scratch->size = scratch->bytes ? size : 0;
        if (!scratch->bytes)
            return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                               "rank %d of group '%s' has no memory for %zu "
                               "bytes between two levels of a collective",
                               two->rank, two->name, size);
    }
    *ret = scratch->bytes;
    return DSCOMM_OK;
}

/* What all must have alike contains what the whole collective has, and its
 * number: of two ranks that made different calls one may have come to a later
 * one without this level. */
static uint32_t fingerprint(const dscomm_coll_args_t *args, int coll)
{
    return (args->fingerprint ^ (uint32_t)args->sequence * 0x9e3779b1) * 31 +
           (uint32_t)coll;
}

/* Adds a step: coll of count elements on level. */
static dscomm_coll_args_t *add(two_t *two, int level, int coll,
                               const void *send, void *recv, size_t count)
{
    two_plan_t *plan = &two->plan;
    two_step_t *step = &plan->steps[plan->count++];

    step->level = &two->levels[level];
    step->after = NULL;
    step->args = (dscomm_coll_args_t){
        .coll = coll,
        .dtype = plan->args->dtype,
        .op = -1,
        .root = -1,
        .count = count,
        .element = plan->args->element,
        .send = send,
        .recv = recv,
        .factor = 1.0,
        .fingerprint = fingerprint(plan->args, coll),
        .of = plan->args,
    };
    return &step->args;
}

static void set_after(two_t *two, void (*after)(two_t *, const two_step_t *))
{
    two->plan.steps[two->plan.count - 1].after = after;
}

/* What partial results are combined with. */
static int partial_op(const dscomm_coll_args_t *args)
{
    const int op = args->op;

    return op == DSCOMM_AVG || op == DSCOMM_PREMUL_SUM ? DSCOMM_SUM : op;
}

/* Inputs of a node meet: with each rank's factor, where there are any. */
static void set_first(const two_t *two, dscomm_coll_args_t *args)
{
    const int op = two->plan.args->op;

    args->op = op == DSCOMM_PREMUL_SUM ? op : partial_op(two->plan.args);
    args->factor = two->plan.args->factor;
}

static void divide(two_t *two, const two_step_t *step)
{
    const dscomm_coll_args_t *args = &step->args;
    const double divisor = two->ranks;
    const void *sources[] = {args->recv};

    if (args->count)
        dscomm_reduce_kernel((dscomm_dtype_t)args->dtype, DSCOMM_AVG)(
            args->recv, sources, 1, args->count, &divisor);
}

/* The partial results of nodes meet. */
static void set_last(two_t *two, dscomm_coll_args_t *args, int keeps_result)
{
    args->op = partial_op(two->plan.args);
    if (keeps_result && two->plan.args->op == DSCOMM_AVG)
        set_after(two, divide);
}

/* The part of a node's only rank. */
static void take_alone(const two_t *two, char *dest, size_t count)
{
    const dscomm_coll_args_t *args = two->plan.args;

    if (!count)
        return;
    if (args->op == DSCOMM_PREMUL_SUM)
        dscomm_reduce_kernel((dscomm_dtype_t)args->dtype, DSCOMM_PREMUL_SUM)(
            dest, &args->send, 1, count, &args->factor);
    else if (dest != args->send)
        memcpy(dest, args->send, bytes_of(two, count));
}

static dscomm_status_t plan_barrier(two_t *two)
{
    const int root = two->plan.args->root;

    if (own_size(two) > 1)
        add(two, TWO_INSIDE, DSCOMM_COLL_BARRIER, NULL, NULL, 0)->root = root;
    if (own_local(two) == 0)
        add(two, TWO_RAIL, DSCOMM_COLL_BARRIER, NULL, NULL, 0)->root = root;
    if (own_size(two) > 1)
        add(two, TWO_INSIDE, DSCOMM_COLL_BARRIER, NULL, NULL, 0)->root = root;
    return DSCOMM_OK;
}

/* Counts of the ranks of a node, as equal as can be. */
static void slice(two_t *two, size_t count)
{
    const size_t ranks = (size_t)own_size(two);
    size_t sum = 0;

    for (size_t r = 0; r < ranks; r++) {
        two->counts[r] = count / ranks + (r < count % ranks);
        two->displs[r] = sum;
        sum += two->counts[r];
    }
}

/* Each rank of a node takes a slice of the result, all rails at once. */
static dscomm_status_t plan_all_reduce_sliced(two_t *two)
{
    const dscomm_coll_args_t *args = two->plan.args;
    const int local = own_local(two);
    dscomm_coll_args_t *inner;
    size_t count;
    char *own;

    slice(two, args->count);
    count = two->counts[local];
    own = at(two, args->recv, two->displs[local]);
    inner = add(two, TWO_INSIDE, DSCOMM_COLL_REDUCE_SCATTER_V, args->send, own,
                count);
    inner->recv_counts = two->counts;
    inner->recv_displs = two->displs;
    set_first(two, inner);
    inner = add(two, TWO_RAIL, DSCOMM_COLL_ALL_REDUCE, own, own, count);
    set_last(two, inner, 1);
    inner =
        add(two, TWO_INSIDE, DSCOMM_COLL_ALL_GATHER_V, own, args->recv, count);
    inner->recv_counts = two->counts;
    inner->recv_displs = two->displs;
    return DSCOMM_OK;
}

static dscomm_status_t plan_all_reduce(two_t *two)
{
    const dscomm_coll_args_t *args = two->plan.args;
    const int leads = own_local(two) == 0;
    dscomm_coll_args_t *inner;

    if (two->is_even && bytes_of(two, args->count) >= two->slice &&
        args->count >= (size_t)own_size(two))
        return plan_all_reduce_sliced(two);
    if (own_size(two) > 1) {
        inner = add(two, TWO_INSIDE, DSCOMM_COLL_REDUCE, args->send,
                    leads ? args->recv : NULL, args->count);
        inner->root = 0;
        set_first(two, inner);
    } else {
        take_alone(two, args->recv, args->count);
    }
    if (leads) {
        inner = add(two, TWO_RAIL, DSCOMM_COLL_ALL_REDUCE, args->recv,
                    args->recv, args->count);
        set_last(two, inner, 1);
    }
    if (own_size(two) > 1) {
        inner = add(two, TWO_INSIDE, DSCOMM_COLL_BROADCAST,
                    leads ? args->recv : NULL, args->recv, args->count);
        inner->send = leads ? args->recv : NULL;
        inner->root = 0;
    }
    return DSCOMM_OK;
}

/* Who stands for a node where one rank is special: the one on that rank's
 * rail, or the first. */
static int stand_in(const two_t *two, int rank)
{
    return two->is_even ? two->local[rank] : 0;
}

/* From the first rank of root's node to root. */
static void hand_over(two_t *two, const char *result)
{
    const dscomm_coll_args_t *args = two->plan.args;
    const int is_root = two->rank == args->root;
    dscomm_coll_args_t *inner;

    memset(two->counts, 0, (size_t)own_size(two) * sizeof *two->counts);
    memset(two->displs, 0, (size_t)own_size(two) * sizeof *two->displs);
    two->counts[two->local[args->root]] = args->count;
    inner = add(two, TWO_INSIDE, DSCOMM_COLL_SCATTER_V, result,
                is_root ? args->recv : NULL, is_root ? args->count : 0);
    inner->root = 0;
    if (own_local(two) == 0) {
        inner->send_counts = two->counts;
        inner->send_displs = two->displs;
    }
}

static dscomm_status_t plan_reduce(two_t *two)
{
    const dscomm_coll_args_t *args = two->plan.args;
    const int stands = stand_in(two, args->root);
    const int here = own_node(two) == two->node[args->root];
    const int is_it = own_local(two) == stands;
    dscomm_coll_args_t *inner;
    char *part = NULL;
    dscomm_status_t status = DSCOMM_OK;

    if (two->rank == args->root && is_it)
        part = args->recv;
    else if (is_it)
        status = grow(two, 0, args->count, &part);
    if (status < 0)
        return status;
    if (own_size(two) > 1) {
        inner = add(two, TWO_INSIDE, DSCOMM_COLL_REDUCE, args->send, part,
                    args->count);
        inner->root = stands;
        set_first(two, inner);
    } else {
        take_alone(two, part, args->count);
    }
    if (is_it) {
        inner = add(two, TWO_RAIL, DSCOMM_COLL_REDUCE, part, here ? part : NULL,
                    args->count);
        inner->root = two->node[args->root];
        set_last(two, inner, here);
    }
    if (here && two->local[args->root] != stands)
        hand_over(two, part);
    return DSCOMM_OK;
}

static void add_broadcast(two_t *two, int level, int root, int is_root)
{
    const dscomm_coll_args_t *args = two->plan.args;

    add(two, level, DSCOMM_COLL_BROADCAST, is_root ? args->recv : NULL,
        args->recv, args->count)
        ->root = root;
}

static dscomm_status_t plan_broadcast(two_t *two)
{
    const int root = two->plan.args->root;
    const int stands = stand_in(two, root);
    const int here = own_node(two) == two->node[root];
    const int is_it = own_local(two) == stands;

    if (here && own_size(two) > 1 && two->local[root] != stands)
        add_broadcast(two, TWO_INSIDE, two->local[root], two->rank == root);
    if (is_it)
        add_broadcast(two, TWO_RAIL, two->node[root], here);
    if (own_size(two) > 1 && (!here || two->local[root] == stands))
        add_broadcast(two, TWO_INSIDE, stands, is_it);
    return DSCOMM_OK;
}

/* Counts and displacements of the nodes' blocks, for count elements a rank. */
static void set_blocks(two_t *two, dscomm_coll_args_t *args, size_t count)
{
    for (int n = 0; n < two->nodes; n++) {
        two->counts[n] = (size_t)two->size[n] * count;
        two->displs[n] = (size_t)two->first[n] * count;
    }
    args->recv_counts = two->counts;
    args->recv_displs = two->displs;
}

/* Blocks node by node become blocks rank by rank. */
static void unpack(two_t *two, const two_step_t *step)
{
    const dscomm_coll_args_t *args = two->plan.args;
    const size_t bytes = bytes_of(two, args->count);

    for (int i = 0; i < two->ranks && bytes; i++)
        memcpy((char *)args->recv + (size_t)two->order[i] * bytes,
               (char *)step->args.recv + (size_t)i * bytes, bytes);
}

static dscomm_status_t plan_all_gather(two_t *two)
{
    const dscomm_coll_args_t *args = two->plan.args;
    const size_t count = args->count, total = count * (size_t)two->ranks;
    const int leads = own_local(two) == 0;
    char *all = args->recv, *own = NULL;
    dscomm_coll_args_t *inner;
    dscomm_status_t status = DSCOMM_OK;

    if (leads && !two->is_sorted)
        status = grow(two, 0, total, &all);
    if (status < 0)
        return status;
    if (leads)
        own = at(two, all, (size_t)two->first[own_node(two)] * count);
    if (own_size(two) > 1)
        add(two, TWO_INSIDE, DSCOMM_COLL_GATHER, args->send, own, count)->root =
            0;
    else if (own != args->send && count)
        memcpy(own, args->send, bytes_of(two, count));
    if (leads) {
        inner = add(two, TWO_RAIL, DSCOMM_COLL_ALL_GATHER_V, own, all,
                    (size_t)own_size(two) * count);
        set_blocks(two, inner, count);
        if (!two->is_sorted)
            set_after(two, unpack);
    }
    if (own_size(two) > 1)
        add(two, TWO_INSIDE, DSCOMM_COLL_BROADCAST, leads ? args->recv : NULL,
            args->recv, total)
            ->root = 0;
    return DSCOMM_OK;
}

/* Blocks rank by rank, in scratch 0, become blocks node by node in scratch 1.
 */
static void pack(two_t *two, const void *from)
{
    const size_t bytes = bytes_of(two, two->plan.args->count);

    for (int i = 0; i < two->ranks && bytes; i++)
        memcpy(two->scratch[1].bytes + (size_t)i * bytes,
               (const char *)from + (size_t)two->order[i] * bytes, bytes);
}

static void pack_after(two_t *two, const two_step_t *step)
{
    pack(two, step->args.recv);
}

/* The whole input of this node, in scratch 0, and packed. */
static dscomm_status_t reduce_node(two_t *two, size_t total, char **ret_packed)
{
    const dscomm_coll_args_t *args = two->plan.args;
    const int leads = own_local(two) == 0;
    char *sum = NULL, *packed = NULL;
    dscomm_coll_args_t *inner;
    dscomm_status_t status = DSCOMM_OK;

    if (leads)
        status = grow(two, 0, total, &sum);
    packed = sum;
    if (!status && leads && !two->is_sorted)
        status = grow(two, 1, total, &packed);
    if (status < 0)
        return status;
    *ret_packed = packed;
    if (own_size(two) == 1) {
        take_alone(two, sum, total);
        if (!two->is_sorted)
            pack(two, sum);
        return DSCOMM_OK;
    }
    inner = add(two, TWO_INSIDE, DSCOMM_COLL_REDUCE, args->send, sum, total);
    inner->root = 0;
    set_first(two, inner);
    if (leads && !two->is_sorted)
        set_after(two, pack_after);
    return DSCOMM_OK;
}

static dscomm_status_t plan_reduce_scatter(two_t *two)
{
    const dscomm_coll_args_t *args = two->plan.args;
    const size_t total = args->count * (size_t)two->ranks;
    const size_t mine = args->count * (size_t)own_size(two);
    const int alone = own_size(two) == 1;
    char *packed = NULL, *own = NULL;
    dscomm_coll_args_t *inner;
    dscomm_status_t status = reduce_node(two, total, &packed);

    if (status < 0)
        return status;
    if (own_local(two) == 0) {
        own = alone ? args->recv
                    : at(two, packed,
                         (size_t)two->first[own_node(two)] * args->count);
        inner =
            add(two, TWO_RAIL, DSCOMM_COLL_REDUCE_SCATTER_V, packed, own, mine);
        set_blocks(two, inner, args->count);
        set_last(two, inner, 1);
    }
    if (!alone)
        add(two, TWO_INSIDE, DSCOMM_COLL_SCATTER, own, args->recv, args->count)
            ->root = 0;
    return DSCOMM_OK;
}

/* between: the step between nodes. */
static const struct {
    dscomm_status_t (*make)(two_t *two);
    int reduces, between;
} plans[DSCOMM_COLL_SEND] = {
    [DSCOMM_COLL_BARRIER] = {plan_barrier, 0, DSCOMM_COLL_BARRIER},
    [DSCOMM_COLL_BROADCAST] = {plan_broadcast, 0, DSCOMM_COLL_BROADCAST},
    [DSCOMM_COLL_REDUCE] = {plan_reduce, 1, DSCOMM_COLL_REDUCE},
    [DSCOMM_COLL_ALL_REDUCE] = {plan_all_reduce, 1, DSCOMM_COLL_ALL_REDUCE},
    [DSCOMM_COLL_ALL_GATHER] = {plan_all_gather, 0, DSCOMM_COLL_ALL_GATHER_V},
    [DSCOMM_COLL_REDUCE_SCATTER] = {plan_reduce_scatter, 1,
                                    DSCOMM_COLL_REDUCE_SCATTER_V},
};

/* May partial results be combined? */
static int divides(const dscomm_coll_args_t *args)
{
    switch (args->dtype) {
    case DSCOMM_FLOAT32:
    case DSCOMM_FLOAT64:
        return 1;
    case DSCOMM_FLOAT16:
    case DSCOMM_BFLOAT16:
    case DSCOMM_FLOAT8_E4M3:
    case DSCOMM_FLOAT8_E5M2:
        return args->op == DSCOMM_MIN || args->op == DSCOMM_MAX;
    default:
        return args->op != DSCOMM_AVG;
    }
}

/* In these some ranks wait for nobody, and do not see who called something
 * else. The next barrier tells them, on the level that knows, if it takes that
 * in any case: when two_native() is asked, ranks may have come to different
 * calls. */
static int is_loose(const two_t *two, int coll)
{
    const int rooted =
        coll == DSCOMM_COLL_BROADCAST || coll == DSCOMM_COLL_REDUCE ||
        coll == DSCOMM_COLL_GATHER || coll == DSCOMM_COLL_GATHER_V ||
        coll == DSCOMM_COLL_SCATTER || coll == DSCOMM_COLL_SCATTER_V;

    return rooted && !two->apart &&
           two_level_capabilities(&two->levels[TWO_FLAT]) &
               DSCOMM_CAP_NATIVE_COLLECTIVES;
}

/* FLAT is asked in place of the rail, which not all ranks have: about a call
 * of as many elements in all. */
int two_plan_fits(two_t *two, const dscomm_coll_args_t *args)
{
    dscomm_coll_args_t question = *args;

    if (!two->able || !plans[args->coll].make ||
        (args->coll == DSCOMM_COLL_BARRIER && two->loose) ||
        (plans[args->coll].reduces && !divides(args)))
        return 0;
    question.coll = plans[args->coll].between;
    question.op = args->op < 0 ? -1 : partial_op(args);
    question.send = question.recv = NULL;
    if (question.coll != args->coll) {
        for (int r = 0; r < two->ranks; r++)
            two->even[r] = args->count;
        question.recv_counts = question.recv_displs = two->even;
    }
    return two_level_native(two, &two->levels[TWO_FLAT], &question);
}

dscomm_status_t two_plan_make(two_t *two, const dscomm_coll_args_t *args)
{
    two_plan_t *plan = &two->plan;

    plan->args = args;
    plan->count = plan->at = 0;
    if (!two->only && two_plan_fits(two, args))
        return plans[args->coll].make(two);
    plan->steps[0].level = two->only ? two->only : &two->levels[TWO_FLAT];
    plan->steps[0].args = *args;
    plan->steps[0].args.of = args;
    plan->steps[0].after = NULL;
    plan->count = 1;
    two->loose = is_loose(two, args->coll);
    return DSCOMM_OK;
}
