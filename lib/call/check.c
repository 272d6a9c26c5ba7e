/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow path of argument checking: a table with one row of rules for each
 * collective. */
#include "config.h"
#include "lib/call/check.h"

/* The ranks that use a buffer or an array. */
enum { NOBODY, ROOT, OTHERS, ALL };

typedef struct {
    uint8_t op, rooted; /* takes an operator, a root */
    uint8_t send, recv; /* ranks that use these buffers */
    uint8_t send_p, recv_p; /* buffer holds p blocks of count */
    uint8_t send_v, recv_v; /* ranks that use these arrays of counts */
    uint8_t disjoint; /* never in place */
} rules_t;

static const rules_t rules[DSCOMM_COLL_BARRIER + 1] = {
    [DSCOMM_COLL_BROADCAST] = {.rooted = 1, .recv = ALL},
    [DSCOMM_COLL_REDUCE] = {.op = 1, .rooted = 1, .send = ALL, .recv = ROOT},
    [DSCOMM_COLL_ALL_REDUCE] = {.op = 1, .send = ALL, .recv = ALL},
    [DSCOMM_COLL_ALL_GATHER] = {.send = ALL, .recv = ALL, .recv_p = 1},
    [DSCOMM_COLL_ALL_GATHER_V] = {.send = ALL, .recv = ALL, .recv_v = ALL},
    [DSCOMM_COLL_REDUCE_SCATTER] = {.op = 1,
                                    .send = ALL,
                                    .recv = ALL,
                                    .send_p = 1},
    [DSCOMM_COLL_REDUCE_SCATTER_V] = {.op = 1,
                                      .send = ALL,
                                      .recv = ALL,
                                      .recv_v = ALL},
    [DSCOMM_COLL_GATHER] = {.rooted = 1,
                            .send = ALL,
                            .recv = ROOT,
                            .recv_p = 1},
    [DSCOMM_COLL_GATHER_V] = {.rooted = 1,
                              .send = ALL,
                              .recv = ROOT,
                              .recv_v = ROOT},
    [DSCOMM_COLL_SCATTER] = {.rooted = 1,
                             .send = ROOT,
                             .recv = ALL,
                             .send_p = 1},
    [DSCOMM_COLL_SCATTER_V] = {.rooted = 1,
                               .send = ROOT,
                               .recv = ALL,
                               .send_v = ROOT},
    [DSCOMM_COLL_ALL_TO_ALL] =
        {.send = ALL, .recv = ALL, .send_p = 1, .recv_p = 1, .disjoint = 1},
    [DSCOMM_COLL_ALL_TO_ALL_V] =
        {.send = ALL, .recv = ALL, .send_v = ALL, .recv_v = ALL, .disjoint = 1},
    [DSCOMM_COLL_BARRIER] = {.op = 0},
};

/* The call to be checked. */
typedef struct {
    const dscomm_group_t *group;
    const dscomm_coll_args_t *args;
    const rules_t *rules;
    const char *name;
    int root; /* this rank is the root, or there is no root */
    size_t send, recv; /* elements of the buffers */
} check_t;

static int counts_own(const check_t *check, int who)
{
    return who == ALL || (who == ROOT && check->root);
}

static dscomm_status_t check_words(const check_t *check)
{
    const dscomm_coll_args_t *args = check->args;
    dscomm_dtype_t dtype = (dscomm_dtype_t)args->dtype;

    if ((unsigned)dtype >= DSCOMM_DTYPE_COUNT)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s on group '%s': %d is no dtype", check->name,
                           check->group->identity.name, args->dtype);
    if (!check->rules->op || args->user)
        return DSCOMM_OK;
    if ((unsigned)args->op >= DSCOMM_OP_COUNT)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s on group '%s': %d is no operator", check->name,
                           check->group->identity.name, args->op);
    if (!(dscomm_priv_applies[args->op] >> dtype & 1))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s on group '%s': operator %s does not apply to %s",
                           check->name, check->group->identity.name,
                           dscomm_op_name((dscomm_op_t)args->op),
                           dscomm_dtype_name(dtype));
    return DSCOMM_OK;
}

static dscomm_status_t check_root(const check_t *check)
{
    int root = check->args->root, size = check->group->size;

    if (check->rules->rooted && (root < 0 || root >= size))
        return dscomm_fail(
            DSCOMM_ERR_INVALID, "%s on group '%s': root %d is not in 0 ... %d",
            check->name, check->group->identity.name, root, size - 1);
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
                       check->name, check->group->identity.name,
                       check->group->size, count,
                       dscomm_dtype_name((dscomm_dtype_t)check->args->dtype));
}

static dscomm_status_t check_count(const check_t *check)
{
    const rules_t *r = check->rules;
    size_t blocks = r->send_p || r->recv_p ? (size_t)check->group->size : 1;

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
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s on group '%s': %s_counts is NULL", check->name,
                           check->group->identity.name, side);
    for (i = 0; i < check->group->size; i++) {
        if (counts[i] > limit - total)
            return too_large(check, counts[i]);
        if (displs && displs[i] > limit - counts[i])
            return dscomm_fail(DSCOMM_ERR_INVALID,
                               "%s on group '%s': %s_displs[%d] is %zu, more "
                               "than memory can hold",
                               check->name, check->group->identity.name, side,
                               i, displs[i]);
        total += counts[i];
    }
    *ret_total = total;
    return DSCOMM_OK;
}

static dscomm_status_t check_buffer(const check_t *check, const char *side,
                                    const void *buffer, size_t count)
{
    if (!buffer && count)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s on group '%s': the %s buffer is NULL, but has "
                           "%zu elements",
                           check->name, check->group->identity.name, side,
                           count);
    return DSCOMM_OK;
}

/* True if send and recv overlap in the permitted way. */
static int in_place(const check_t *check)
{
    const dscomm_coll_args_t *args = check->args;
    size_t block = args->count * args->element;
    const char *send = args->send, *recv = args->recv;

    if (check->rules->disjoint)
        return 0;
    if (check->rules->recv_p)
        return send == recv + block * (size_t)check->group->rank;
    if (check->rules->send_p)
        return recv == send + block * (size_t)check->group->rank;
    return send == recv;
}

/* True if one side's single block overlaps a block of the other side, which has
 * one for each rank. Only this rank's own block may be in place. */
static int touches_blocks(const check_t *check)
{
    const dscomm_coll_args_t *args = check->args;
    const int by_send = check->rules->send_v || check->rules->op;
    const char *blocks = by_send ? args->send : args->recv;
    const char *single = by_send ? args->recv : args->send;
    const size_t *counts = args->recv_counts, *displs = args->recv_displs;
    size_t offset = 0, bytes = args->count * args->element;

    if (check->rules->send_v) {
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

    if (check->rules->send_v && check->rules->recv_v)
        return args->send == args->recv;
    if (check->rules->send_v || check->rules->recv_v)
        return touches_blocks(check);
    return !in_place(check) &&
           !dscomm_priv_apart(args->send, check->send * args->element,
                              args->recv, check->recv * args->element);
}

static dscomm_status_t check_overlap(const check_t *check)
{
    const rules_t *r = check->rules;

    if (!counts_own(check, r->send) || !counts_own(check, r->recv) ||
        !check->send || !check->recv || !check_find_overlap(check))
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_INVALID,
                       "%s on group '%s': send and receive buffers overlap%s",
                       check->name, check->group->identity.name,
                       r->disjoint ? "; this call is never in place"
                                   : " other than in place");
}

/* Checks the arrays of a _v call, and computes the elements of each buffer. */
static dscomm_status_t counts_check(check_t *check)
{
    const dscomm_coll_args_t *args = check->args;
    const rules_t *r = check->rules;
    const size_t p = (size_t)check->group->size;
    dscomm_status_t status = DSCOMM_OK;

    check->send = r->send_p ? args->count * p : args->count;
    check->recv = r->recv_p ? args->count * p : args->count;
    if (counts_own(check, r->send_v))
        status = counts_check_array(check, "send", args->send_counts,
                                    args->send_displs, &check->send);
    if (status == DSCOMM_OK && counts_own(check, r->recv_v))
        status = counts_check_array(check, "recv", args->recv_counts,
                                    args->recv_displs, &check->recv);
    if (args->coll == DSCOMM_COLL_REDUCE_SCATTER_V) {
        check->send = check->recv;
        check->recv = args->count;
    }
    return status;
}

static dscomm_status_t check_buffers(check_t *check)
{
    const dscomm_coll_args_t *args = check->args;
    dscomm_status_t status = counts_check(check);

    if (status == DSCOMM_OK && counts_own(check, check->rules->send))
        status = check_buffer(check, "send", args->send, check->send);
    if (status == DSCOMM_OK && counts_own(check, check->rules->recv))
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
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "all_gather_v on group '%s': send_count is %zu, but "
                           "recv_counts[%d], this rank's own, is %zu",
                           check->group->identity.name, args->count,
                           check->group->rank,
                           args->recv_counts[check->group->rank]);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_check(dscomm_group_t *group,
                                  const dscomm_coll_args_t *args)
{
    check_t check = {.group = group,
                     .args = args,
                     .rules = &rules[args->coll],
                     .name = dscomm_coll_name((dscomm_coll_t)args->coll)};
    const rules_t *r = check.rules;
    dscomm_status_t status;

    if (!group || dscomm_priv_group_is(group, GROUP_FREED))
        return dscomm_priv_group_alive(group, check.name);
    check.root = !r->rooted || args->root == group->rank;
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
