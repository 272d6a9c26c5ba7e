/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives with one count for each rank. */
#include "config.h"
#include "lib/base/op.h"
#include "lib/call/dispatch.h"

/* Adds to the fingerprint the counts that must be equal on all ranks. */
static void sign_counts(dscomm_coll_args_t *args, int size)
{
    for (int i = 0; i < size; i++)
        args->fingerprint = dscomm_priv_fingerprint(
            (int)(args->fingerprint >> 16), i, 0, (int)args->fingerprint,
            args->recv_counts[i]);
}

static dscomm_status_t dispatch_v(dscomm_group_t *group,
                                  dscomm_coll_args_t *args,
                                  dscomm_work_t **ret_work)
{
    dscomm_status_t status = dscomm_priv_check(group, args);

    if (status < 0)
        return status;
    if (args->coll == DSCOMM_COLL_ALL_GATHER_V ||
        args->coll == DSCOMM_COLL_REDUCE_SCATTER_V)
        sign_counts(args, group->size);
    dscomm_priv_complete_displs(group, args);
    return dscomm_priv_dispatch(group, args, ret_work);
}

dscomm_status_t dscomm_all_gather_v(dscomm_group_t *group, const void *send,
                                    size_t send_count, void *recv,
                                    const size_t *recv_counts,
                                    const size_t *recv_displs,
                                    dscomm_dtype_t dtype,
                                    dscomm_work_t **ret_work)
{
    dscomm_coll_args_t args = dscomm_priv_args(
        DSCOMM_COLL_ALL_GATHER_V, send, recv, send_count, 0, dtype, -1, -1);

    args.recv_counts = recv_counts;
    args.recv_displs = recv_displs;
    return dispatch_v(group, &args, ret_work);
}

dscomm_status_t dscomm_reduce_scatter_v(dscomm_group_t *group, const void *send,
                                        void *recv, const size_t *recv_counts,
                                        dscomm_dtype_t dtype, dscomm_op_t op,
                                        dscomm_work_t **ret_work)
{
    size_t own = group && recv_counts ? recv_counts[group->rank] : 0;
    dscomm_coll_args_t args = dscomm_priv_args(
        DSCOMM_COLL_REDUCE_SCATTER_V, send, recv, own, 0, dtype, (int)op, -1);
    dscomm_status_t status;

    if (op == DSCOMM_PREMUL_SUM)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "reduce_scatter_v: operator premul_sum needs a "
                           "factor, which this call does not have");
    args.recv_counts = recv_counts;
    if (op < DSCOMM_PREMUL_SUM)
        return dispatch_v(group, &args, ret_work);
    status = dscomm_priv_op_take(op, "reduce_scatter_v",
                                 group ? group->identity.name : "", 0, &args);
    if (status < 0)
        return status;
    status = dispatch_v(group, &args, ret_work);
    dscomm_priv_op_drop(args.user);
    return status;
}

dscomm_status_t dscomm_gather_v(dscomm_group_t *group, const void *send,
                                size_t send_count, void *recv,
                                const size_t *recv_counts,
                                const size_t *recv_displs, dscomm_dtype_t dtype,
                                int root, dscomm_work_t **ret_work)
{
    dscomm_coll_args_t args = dscomm_priv_args(DSCOMM_COLL_GATHER_V, send, recv,
                                               send_count, 0, dtype, -1, root);

    if (group && group->rank == root) {
        args.recv_counts = recv_counts;
        args.recv_displs = recv_displs;
    }
    return dispatch_v(group, &args, ret_work);
}

dscomm_status_t dscomm_scatter_v(dscomm_group_t *group, const void *send,
                                 const size_t *send_counts,
                                 const size_t *send_displs, void *recv,
                                 size_t recv_count, dscomm_dtype_t dtype,
                                 int root, dscomm_work_t **ret_work)
{
    dscomm_coll_args_t args = dscomm_priv_args(
        DSCOMM_COLL_SCATTER_V, send, recv, recv_count, 0, dtype, -1, root);

    if (group && group->rank == root) {
        args.send_counts = send_counts;
        args.send_displs = send_displs;
    }
    return dispatch_v(group, &args, ret_work);
}

/* The elements that a rank sends in all; wraps only if the check of the call
 * fails. */
static size_t counts_sum(const dscomm_group_t *group, const size_t *counts)
{
    size_t sum = 0;

    for (int i = 0; group && counts && i < group->size; i++)
        sum += counts[i];
    return sum;
}

dscomm_status_t dscomm_all_to_all_v(
    dscomm_group_t *group, const void *send, const size_t *send_counts,
    const size_t *send_displs, void *recv, const size_t *recv_counts,
    const size_t *recv_displs, dscomm_dtype_t dtype, dscomm_work_t **ret_work)
{
    dscomm_coll_args_t args =
        dscomm_priv_args(DSCOMM_COLL_ALL_TO_ALL_V, send, recv,
                         counts_sum(group, send_counts), 0, dtype, -1, -1);

    args.send_counts = send_counts;
    args.send_displs = send_displs;
    args.recv_counts = recv_counts;
    args.recv_displs = recv_displs;
    return dispatch_v(group, &args, ret_work);
}
