/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow path of argument checking. */
#include "config.h"
#include "lib/call/check.h"

/* The call that is being checked. */
typedef struct {
    const dscomm_group_t *group;
    const dscomm_coll_args_t *args;
    const dscomm_priv_coll_t *coll;
    bool sends, receives; /* this rank uses these buffers */
    size_t send, recv; /* elements of the buffers */
} check_t;

static dscomm_status_t check_words(const check_t *check)
{
    const dscomm_coll_args_t *args = check->args;
    dscomm_dtype_t dtype = (dscomm_dtype_t)args->dtype;

    if ((unsigned)dtype >= DSCOMM_DTYPE_COUNT)
        return dscomm_priv_invalid(check->group, check->coll->name,
                                   "%d is no dtype", args->dtype);
    if (!check->coll->reduces || args->user)
        return DSCOMM_OK;
    if ((unsigned)args->op >= DSCOMM_OP_COUNT)
        return dscomm_priv_invalid(check->group, check->coll->name,
                                   "%d is no operator", args->op);
    if (!(dscomm_priv_applies[args->op] >> dtype & 1))
        return dscomm_priv_invalid(
            check->group, check->coll->name, "operator %s does not apply to %s",
            dscomm_op_name((dscomm_op_t)args->op), dscomm_dtype_name(dtype));
    return DSCOMM_OK;
}

static dscomm_status_t check_root(const check_t *check)
{
    int root = check->args->root, size = check->group->size;

    if (check->coll->rooted && (root < 0 || root >= size))
        return dscomm_priv_invalid(check->group, check->coll->name,
                                   "root %d is not in 0 ... %d", root,
                                   size - 1);
    return DSCOMM_OK;
}

/* The number of elements that memory can hold. */
static size_t bytes_limit(const check_t *check)
{
    return (size_t)PTRDIFF_MAX / check->args->element;
}

static dscomm_status_t too_large(const check_t *check, size_t count)
{
    return dscomm_fail(DSCOMM_ERR_INVALID,
                       "%s on group '%s' of %d ranks: %zu elements of %s are "
                       "more than memory can hold",
                       check->coll->name, check->group->identity.name,
                       check->group->size, count,
                       dscomm_dtype_name((dscomm_dtype_t)check->args->dtype));
}

static dscomm_status_t check_count(const check_t *check)
{
    const size_t blocks = dscomm_priv_coll_has(check->args->coll, SHAPE_ALL)
                              ? (size_t)check->group->size
                              : 1;

    return check->args->count > bytes_limit(check) / blocks
               ? too_large(check, check->args->count)
               : DSCOMM_OK;
}

/* Checks counts and displacements of one side; *ret_total is the number of
 * elements that the buffer must have. */
static dscomm_status_t
counts_check_array(const check_t *check, const char *side, const size_t *counts,
                   const size_t *displs, size_t *ret_total)
{
    const size_t limit = bytes_limit(check);
    size_t total = 0;
    int i;

    if (!counts)
        return dscomm_priv_invalid(check->group, check->coll->name,
                                   "%s_counts is NULL", side);
    for (i = 0; i < check->group->size; i++) {
        if (counts[i] > limit - total)
            return too_large(check, counts[i]);
        if (displs && displs[i] > limit - counts[i])
            return dscomm_priv_invalid(check->group, check->coll->name,
                                       "%s_displs[%d] is %zu, more "
                                       "than memory can hold",
                                       side, i, displs[i]);
        total += counts[i];
    }
    *ret_total = total;
    return DSCOMM_OK;
}

static dscomm_status_t check_buffer(const check_t *check, const char *side,
                                    const void *buffer, size_t count)
{
    if (!buffer && count)
        return dscomm_priv_invalid(check->group, check->coll->name,
                                   "the %s buffer is NULL, but its count is "
                                   "%zu",
                                   side, count);
    return DSCOMM_OK;
}

/* True for all_to_all and all_to_all_v. */
static bool is_disjoint(const check_t *check)
{
    return check->coll->send != SHAPE_OWN && check->coll->recv != SHAPE_OWN;
}

/* True if send and recv overlap in the permitted way. */
static int in_place(const check_t *check)
{
    const dscomm_coll_args_t *args = check->args;
    size_t block = args->count * args->element;
    const char *send = args->send, *recv = args->recv;

    if (is_disjoint(check))
        return 0;
    if (check->coll->recv == SHAPE_ALL)
        return send == recv + block * (size_t)check->group->rank;
    if (check->coll->send == SHAPE_ALL)
        return recv == send + block * (size_t)check->group->rank;
    return send == recv;
}

/* True if one side's single block overlaps a block of the other side, which has
 * one for each rank. Only this rank's own block may be in place. */
static int touches_blocks(const check_t *check)
{
    const dscomm_coll_args_t *args = check->args;
    const bool by_send = check->coll->send == SHAPE_COUNTS;
    const char *blocks = by_send ? args->send : args->recv;
    const char *single = by_send ? args->recv : args->send;
    const size_t *counts = args->recv_counts, *displs = args->recv_displs;
    size_t offset = 0, bytes = args->count * args->element;

    if (args->coll == DSCOMM_COLL_SCATTER_V) {
        counts = args->send_counts;
        displs = args->send_displs;
    }
    for (int i = 0; i < check->group->size; offset += counts[i++]) {
        const char *block;

        if (!counts[i])
            continue;
        block = blocks + (displs ? displs[i] : offset) * args->element;
        if (!(i == check->group->rank && block == single) &&
            !dscomm_priv_apart(block, counts[i] * args->element, single, bytes))
            return 1;
    }
    return 0;
}

/* If both sides have blocks for all ranks, only equal addresses are detected.
 */
static int check_find_overlap(const check_t *check)
{
    const dscomm_coll_args_t *args = check->args;

    if (args->coll == DSCOMM_COLL_ALL_TO_ALL_V)
        return args->send == args->recv;
    if (dscomm_priv_coll_has(args->coll, SHAPE_COUNTS))
        return touches_blocks(check);
    return !in_place(check) &&
           !dscomm_priv_apart(args->send, check->send * args->element,
                              args->recv, check->recv * args->element);
}

static dscomm_status_t check_overlap(const check_t *check)
{
    if (!check->sends || !check->receives || !check->send || !check->recv ||
        !check_find_overlap(check))
        return DSCOMM_OK;
    return dscomm_priv_invalid(
        check->group, check->coll->name, "send and receive buffers overlap%s",
        is_disjoint(check) ? "; this call is never in place"
                           : " other than in place");
}

/* Checks the arrays of a _v call, and computes the number of elements of each
 * buffer. */
static dscomm_status_t counts_check(check_t *check)
{
    const dscomm_coll_args_t *args = check->args;
    const dscomm_priv_coll_t *coll = check->coll;
    const size_t all = args->count * (size_t)check->group->size;
    dscomm_status_t status = DSCOMM_OK;

    check->send = coll->send == SHAPE_ALL ? all : args->count;
    check->recv = coll->recv == SHAPE_ALL ? all : args->count;
    if (args->coll == DSCOMM_COLL_REDUCE_SCATTER_V)
        return counts_check_array(check, "recv", args->recv_counts, NULL,
                                  &check->send);
    if (check->sends && coll->send == SHAPE_COUNTS)
        status = counts_check_array(check, "send", args->send_counts,
                                    args->send_displs, &check->send);
    if (status == DSCOMM_OK && check->receives && coll->recv == SHAPE_COUNTS)
        status = counts_check_array(check, "recv", args->recv_counts,
                                    args->recv_displs, &check->recv);
    return status;
}

static dscomm_status_t check_buffers(check_t *check)
{
    const dscomm_coll_args_t *args = check->args;
    dscomm_status_t status = counts_check(check);

    if (status == DSCOMM_OK && check->sends)
        status = check_buffer(check, "send", args->send, check->send);
    if (status == DSCOMM_OK && check->receives)
        status = check_buffer(check, "recv", args->recv, check->recv);
    return status;
}

/* In all_gather_v, this rank's count must be the one that recv_counts gives for
 * it. */
static dscomm_status_t check_own_count(const check_t *check)
{
    const dscomm_coll_args_t *args = check->args;

    if (args->coll == DSCOMM_COLL_ALL_GATHER_V &&
        args->count != args->recv_counts[check->group->rank])
        return dscomm_priv_invalid(check->group, check->coll->name,
                                   "send_count is %zu, but recv_counts[%d], "
                                   "this rank's own, is %zu",
                                   args->count, check->group->rank,
                                   args->recv_counts[check->group->rank]);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_check(dscomm_group_t *group,
                                  const dscomm_coll_args_t *args)
{
    const dscomm_priv_coll_t *coll = dscomm_priv_coll(args->coll);
    check_t check = {.group = group, .args = args, .coll = coll};
    dscomm_status_t status;
    bool is_root;

    if (!group || dscomm_priv_group_is(group, GROUP_FREED))
        return dscomm_priv_group_alive(group, coll->name);
    is_root = args->root == group->rank;
    check.sends = coll->send && coll->rooted != ROOTED_BUFFER &&
                  (is_root || coll->rooted != ROOTED_SEND);
    check.receives = coll->recv && (is_root || coll->rooted != ROOTED_RECV);
    status = check_words(&check);
    if (status == DSCOMM_OK)
        status = check_root(&check);
    if (status == DSCOMM_OK)
        status = check_count(&check);
    if (status == DSCOMM_OK)
        status = check_buffers(&check);
    if (status == DSCOMM_OK)
        status = check_own_count(&check);
    return status == DSCOMM_OK ? check_overlap(&check) : status;
}
