/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives with one count: check, describe, dispatch. */
#include "config.h"
#include "lib/base/op.h"
#include "lib/call/dispatch.h"
#include "lib/call/recording.h"

/* Goes on if the quick check accepts, or if the thorough one finds no fault.
 * All else is straight-line code, see lib/call/dispatch.h. */
#define CHECKED(group, args, quick)                                            \
    do {                                                                       \
        if (G_UNLIKELY(!(quick))) {                                            \
            dscomm_status_t status_ = dscomm_priv_check(group, args);          \
            if (status_ < 0)                                                   \
                return status_;                                                \
        }                                                                      \
    } while (0)

/* True if send and recv, of these many blocks of count, do not overlap.
 * in_place: they may be equal. */
static inline int buffers_disjoint(const dscomm_coll_args_t *args,
                                   size_t send_blocks, size_t recv_blocks,
                                   int in_place)
{
    size_t bytes = args->count * args->element;

    return (in_place && args->send == args->recv) ||
           dscomm_priv_apart(args->send, bytes * send_blocks, args->recv,
                             bytes * recv_blocks);
}

/* True if part is this rank's block of whole; these are send and recv. */
static inline int is_own_block(const dscomm_group_t *group,
                               const dscomm_coll_args_t *args, const void *part,
                               const void *whole)
{
    return part == (const char *)whole +
                       (size_t)group->rank * args->count * args->element;
}

static inline int in_range(const dscomm_group_t *group, int root)
{
    return (unsigned)root < (unsigned)group->size;
}

dscomm_status_t dscomm_broadcast(dscomm_group_t *group, void *buffer,
                                 size_t count, dscomm_dtype_t dtype, int root,
                                 dscomm_work_t **ret_work)
{
    dscomm_coll_args_t args = dscomm_priv_args(
        DSCOMM_COLL_BROADCAST, NULL, buffer, count, count, dtype, -1, root);

    CHECKED(group, &args,
            dscomm_priv_quick(group, buffer, count, dtype) &&
                in_range(group, root));
    if (group->rank == root)
        args.send = buffer;
    return dscomm_priv_dispatch(group, &args, ret_work);
}

static dscomm_status_t call_reduce(dscomm_group_t *group, const void *send,
                                   void *recv, size_t count,
                                   dscomm_dtype_t dtype, dscomm_op_t op,
                                   double factor, int root,
                                   dscomm_work_t **ret_work)
{
    dscomm_coll_args_t args = dscomm_priv_args(
        DSCOMM_COLL_REDUCE, send, recv, count, count, dtype, (int)op, root);

    args.factor = factor;
    CHECKED(group, &args,
            dscomm_priv_quick(group, send, count, dtype) &&
                dscomm_priv_quick_op(op, dtype) && in_range(group, root) &&
                (group->rank != root ||
                 (recv && buffers_disjoint(&args, 1, 1, 1))));
    return dscomm_priv_dispatch(group, &args, ret_work);
}

static inline dscomm_status_t
call_all_reduce(dscomm_group_t *group, const void *send, void *recv,
                size_t count, dscomm_dtype_t dtype, dscomm_op_t op,
                double factor, dscomm_work_t **ret_work)
{
    dscomm_coll_args_t args = dscomm_priv_args(
        DSCOMM_COLL_ALL_REDUCE, send, recv, count, count, dtype, (int)op, -1);

    args.factor = factor;
    CHECKED(group, &args,
            dscomm_priv_quick(group, send, count, dtype) && recv &&
                dscomm_priv_quick_op(op, dtype) &&
                buffers_disjoint(&args, 1, 1, 1));
    return dscomm_priv_dispatch(group, &args, ret_work);
}

static dscomm_status_t
call_reduce_scatter(dscomm_group_t *group, const void *send, void *recv,
                    size_t recv_count, dscomm_dtype_t dtype, dscomm_op_t op,
                    double factor, dscomm_work_t **ret_work)
{
    dscomm_coll_args_t args =
        dscomm_priv_args(DSCOMM_COLL_REDUCE_SCATTER, send, recv, recv_count,
                         recv_count, dtype, (int)op, -1);

    args.factor = factor;
    CHECKED(group, &args,
            dscomm_priv_quick(group, send, recv_count, dtype) && recv &&
                dscomm_priv_quick_op(op, dtype) &&
                (buffers_disjoint(&args, (size_t)group->size, 1, 0) ||
                 is_own_block(group, &args, recv, send)));
    return dscomm_priv_dispatch(group, &args, ret_work);
}

/* Reductions whose operator is not a plain one. PREMUL_SUM, which needs a
 * factor, is refused; a user's operator is checked and dispatched. */
static dscomm_status_t call_reduce_by(dscomm_op_t op, dscomm_group_t *group,
                                      dscomm_coll_args_t args,
                                      dscomm_work_t **ret_work)
{
    const char *name = dscomm_coll_name((dscomm_coll_t)args.coll);
    dscomm_status_t status;

    if (op == DSCOMM_PREMUL_SUM)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s on group '%s': operator premul_sum needs a "
                           "factor; call dscomm_%s_premul_sum",
                           name, group ? group->identity.name : "", name);
    status = dscomm_priv_op_take(op, name, group ? group->identity.name : "",
                                 args.count, &args);
    if (status < 0)
        return status;
    status = dscomm_priv_check(group, &args);
    if (status == DSCOMM_OK)
        status = dscomm_priv_dispatch_slow(group, &args, ret_work);
    dscomm_priv_op_drop(args.user);
    return status;
}

dscomm_status_t dscomm_reduce(dscomm_group_t *group, const void *send,
                              void *recv, size_t count, dscomm_dtype_t dtype,
                              dscomm_op_t op, int root,
                              dscomm_work_t **ret_work)
{
    if (G_UNLIKELY(op >= DSCOMM_PREMUL_SUM))
        return call_reduce_by(op, group,
                              dscomm_priv_args(DSCOMM_COLL_REDUCE, send, recv,
                                               count, count, dtype, -1, root),
                              ret_work);
    return call_reduce(group, send, recv, count, dtype, op, 1.0, root,
                       ret_work);
}

dscomm_status_t dscomm_all_reduce(dscomm_group_t *group, const void *send,
                                  void *recv, size_t count,
                                  dscomm_dtype_t dtype, dscomm_op_t op,
                                  dscomm_work_t **ret_work)
{
    if (G_UNLIKELY(op >= DSCOMM_PREMUL_SUM))
        return call_reduce_by(op, group,
                              dscomm_priv_args(DSCOMM_COLL_ALL_REDUCE, send,
                                               recv, count, count, dtype, -1,
                                               -1),
                              ret_work);
    if (G_UNLIKELY(group && dscomm_priv_group_is(group, GROUP_COALESCING)) &&
        !ret_work &&
        dscomm_priv_recording_extend(group, send, recv, count, dtype, op))
        return DSCOMM_OK;
    return call_all_reduce(group, send, recv, count, dtype, op, 1.0, ret_work);
}

dscomm_status_t dscomm_reduce_scatter(dscomm_group_t *group, const void *send,
                                      void *recv, size_t recv_count,
                                      dscomm_dtype_t dtype, dscomm_op_t op,
                                      dscomm_work_t **ret_work)
{
    if (G_UNLIKELY(op >= DSCOMM_PREMUL_SUM))
        return call_reduce_by(op, group,
                              dscomm_priv_args(DSCOMM_COLL_REDUCE_SCATTER, send,
                                               recv, recv_count, recv_count,
                                               dtype, -1, -1),
                              ret_work);
    return call_reduce_scatter(group, send, recv, recv_count, dtype, op, 1.0,
                               ret_work);
}

dscomm_status_t dscomm_reduce_premul_sum(dscomm_group_t *group,
                                         const void *send, void *recv,
                                         size_t count, dscomm_dtype_t dtype,
                                         double factor, int root,
                                         dscomm_work_t **ret_work)
{
    return call_reduce(group, send, recv, count, dtype, DSCOMM_PREMUL_SUM,
                       factor, root, ret_work);
}

dscomm_status_t dscomm_all_reduce_premul_sum(dscomm_group_t *group,
                                             const void *send, void *recv,
                                             size_t count, dscomm_dtype_t dtype,
                                             double factor,
                                             dscomm_work_t **ret_work)
{
    return call_all_reduce(group, send, recv, count, dtype, DSCOMM_PREMUL_SUM,
                           factor, ret_work);
}

dscomm_status_t dscomm_reduce_scatter_premul_sum(
    dscomm_group_t *group, const void *send, void *recv, size_t recv_count,
    dscomm_dtype_t dtype, double factor, dscomm_work_t **ret_work)
{
    return call_reduce_scatter(group, send, recv, recv_count, dtype,
                               DSCOMM_PREMUL_SUM, factor, ret_work);
}

dscomm_status_t dscomm_all_gather(dscomm_group_t *group, const void *send,
                                  void *recv, size_t send_count,
                                  dscomm_dtype_t dtype,
                                  dscomm_work_t **ret_work)
{
    dscomm_coll_args_t args =
        dscomm_priv_args(DSCOMM_COLL_ALL_GATHER, send, recv, send_count,
                         send_count, dtype, -1, -1);

    CHECKED(group, &args,
            dscomm_priv_quick(group, send, send_count, dtype) && recv &&
                (buffers_disjoint(&args, 1, (size_t)group->size, 0) ||
                 is_own_block(group, &args, send, recv)));
    return dscomm_priv_dispatch(group, &args, ret_work);
}

dscomm_status_t dscomm_gather(dscomm_group_t *group, const void *send,
                              void *recv, size_t send_count,
                              dscomm_dtype_t dtype, int root,
                              dscomm_work_t **ret_work)
{
    dscomm_coll_args_t args =
        dscomm_priv_args(DSCOMM_COLL_GATHER, send, recv, send_count, send_count,
                         dtype, -1, root);

    CHECKED(group, &args,
            dscomm_priv_quick(group, send, send_count, dtype) &&
                in_range(group, root) && group->rank != root);
    return dscomm_priv_dispatch(group, &args, ret_work);
}

dscomm_status_t dscomm_scatter(dscomm_group_t *group, const void *send,
                               void *recv, size_t recv_count,
                               dscomm_dtype_t dtype, int root,
                               dscomm_work_t **ret_work)
{
    dscomm_coll_args_t args =
        dscomm_priv_args(DSCOMM_COLL_SCATTER, send, recv, recv_count,
                         recv_count, dtype, -1, root);

    CHECKED(group, &args,
            dscomm_priv_quick(group, recv, recv_count, dtype) &&
                in_range(group, root) && group->rank != root);
    return dscomm_priv_dispatch(group, &args, ret_work);
}

dscomm_status_t dscomm_all_to_all(dscomm_group_t *group, const void *send,
                                  void *recv, size_t count,
                                  dscomm_dtype_t dtype,
                                  dscomm_work_t **ret_work)
{
    dscomm_coll_args_t args = dscomm_priv_args(
        DSCOMM_COLL_ALL_TO_ALL, send, recv, count, count, dtype, -1, -1);

    CHECKED(group, &args,
            dscomm_priv_quick(group, send, count, dtype) && recv &&
                buffers_disjoint(&args, (size_t)group->size,
                                 (size_t)group->size, 0));
    return dscomm_priv_dispatch(group, &args, ret_work);
}

dscomm_status_t dscomm_barrier(dscomm_group_t *group, dscomm_work_t **ret_work)
{
    dscomm_coll_args_t args = dscomm_priv_args(DSCOMM_COLL_BARRIER, NULL, NULL,
                                               0, 0, DSCOMM_UINT8, -1, -1);

    CHECKED(group, &args, group);
    return dscomm_priv_dispatch(group, &args, ret_work);
}
