/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives: which of them MPI carries out, and what is done before and
 * after MPI's call.
 *
 * Blocking calls use MPI's blocking ones if all ranks agreed on that when the
 * group was made. Works are schedules over messages, not MPI's non-blocking
 * collectives. Nothing ends one of those before all ranks have called it, not
 * even MPI_Cancel() and MPI_Request_free(): after a time-out or an abort MPI
 * would still read and write the caller's buffers. Nor does MPI tell which
 * rank is late, or made a different call. Calls that exceed MPI's ints, have
 * counts that only one rank knows, or round once over all inputs, are always
 * schedules. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <stdio.h>
#include <string.h>

#define ALIGN 64

typedef int (*call_t)(const engine_t *engine, const dscomm_coll_args_t *args,
                      void *stage);

static char *buffer_at(const void *buffer, const dscomm_coll_args_t *args,
                       size_t index)
{
    return (char *)buffer + index * args->element;
}

static size_t own_block(const engine_t *engine, const dscomm_coll_args_t *args)
{
    return (size_t)engine->rank * args->count;
}

static size_t counts_sum(const size_t *counts, int many)
{
    size_t total = 0;

    for (int r = 0; r < many; r++)
        total += counts[r];
    return total;
}

/* Offset of part in its buffer. */
static const void *own_part(const engine_t *engine,
                            const dscomm_coll_args_t *args)
{
    size_t index = args->recv_counts
                       ? counts_sum(args->recv_counts, engine->rank)
                       : own_block(engine, args);

    return buffer_at(args->send, args, index);
}

/* True if a displacement exceeds MPI's int. */
static int is_far(const engine_t *engine, const dscomm_coll_args_t *args)
{
    for (int r = 0; r < engine->ranks; r++)
        if (args->recv_displs[r] > G_MAXINT)
            return 1;
    return 0;
}

/* MPICH 4.0 crashes in a reduce in place, so the root reduces into a stage. */
static int reduce_needs_stage(const engine_t *engine,
                              const dscomm_coll_args_t *args)
{
#if defined(OPEN_MPI)
    (void)engine, (void)args;
    return 0;
#else
    return engine->rank == args->root && args->send == args->recv;
#endif
}

/* Returns the bytes that MPI writes to the stage instead of recv. */
static size_t staged_bytes(const engine_t *engine,
                           const dscomm_coll_args_t *args)
{
    switch (args->coll) {
    case DSCOMM_COLL_REDUCE:
        return reduce_needs_stage(engine, args) ? args->count * args->element
                                                : 0;
    case DSCOMM_COLL_REDUCE_SCATTER:
    case DSCOMM_COLL_REDUCE_SCATTER_V:
        return args->recv == own_part(engine, args)
                   ? args->count * args->element
                   : 0;
    case DSCOMM_COLL_ALL_GATHER_V:
        return is_far(engine, args)
                   ? counts_sum(args->recv_counts, engine->ranks) *
                         args->element
                   : 0;
    default:
        return 0;
    }
}

static size_t ints_bytes(const engine_t *engine, const dscomm_coll_args_t *args)
{
    size_t bytes = 2 * (size_t)engine->ranks * sizeof(int);

    return args->recv_counts ? (bytes + ALIGN - 1) / ALIGN * ALIGN : 0;
}

static void *stage_data(const engine_t *engine, const dscomm_coll_args_t *args,
                        void *stage)
{
    return staged_bytes(engine, args) ? (char *)stage + ints_bytes(engine, args)
                                      : NULL;
}

static int call_barrier(const engine_t *engine, const dscomm_coll_args_t *args,
                        void *stage)
{
    (void)args, (void)stage;
    return MPI_Barrier(engine->comm);
}

static int call_broadcast(const engine_t *engine,
                          const dscomm_coll_args_t *args, void *stage)
{
    (void)stage;
    return MPI_Bcast(args->recv, (int)args->count, engine_types[args->dtype],
                     args->root, engine->comm);
}

static int call_reduce(const engine_t *engine, const dscomm_coll_args_t *args,
                       void *stage)
{
    const int is_root = engine->rank == args->root;
    const void *send = args->send;
    void *recv = is_root ? args->recv : NULL;

    if (stage)
        recv = stage;
    else if (is_root && send == recv)
        send = MPI_IN_PLACE;
    return MPI_Reduce(send, recv, (int)args->count, engine_types[args->dtype],
                      engine_op(args->dtype, args->op), args->root,
                      engine->comm);
}

static int call_all_reduce(const engine_t *engine,
                           const dscomm_coll_args_t *args, void *stage)
{
    const int scaled = args->op == DSCOMM_PREMUL_SUM;
    const void *send =
        args->send == args->recv || scaled ? MPI_IN_PLACE : args->send;

    (void)stage;
    return MPI_Allreduce(
        send, args->recv, (int)args->count, engine_types[args->dtype],
        engine_op(args->dtype, scaled ? DSCOMM_SUM : args->op), engine->comm);
}

static int call_all_gather(const engine_t *engine,
                           const dscomm_coll_args_t *args, void *stage)
{
    const MPI_Datatype type = engine_types[args->dtype];
    const int count = (int)args->count;
    const void *send = args->send;

    (void)stage;
    if (send == buffer_at(args->recv, args, own_block(engine, args)))
        send = MPI_IN_PLACE;
    return MPI_Allgather(send, count, type, args->recv, count, type,
                         engine->comm);
}

/* Receives packed into the stage if displacements are too large. */
static int call_all_gather_v(const engine_t *engine,
                             const dscomm_coll_args_t *args, void *stage)
{
    const MPI_Datatype type = engine_types[args->dtype];
    int *counts = stage, *displs = counts + engine->ranks, packed = 0;
    char *data = stage_data(engine, args, stage);
    const void *send = args->send;

    for (int r = 0; r < engine->ranks; r++) {
        counts[r] = (int)args->recv_counts[r];
        displs[r] = data ? packed : (int)args->recv_displs[r];
        packed += counts[r];
    }
    if (!data &&
        send == buffer_at(args->recv, args, args->recv_displs[engine->rank]))
        send = MPI_IN_PLACE;
    return MPI_Allgatherv(send, (int)args->count, type,
                          data ? data : args->recv, counts, displs, type,
                          engine->comm);
}

/* The address to which MPI writes this rank's part; MPI needs a pointer even
 * for no bytes. */
static void *collective_result(const engine_t *engine,
                               const dscomm_coll_args_t *args, void *stage)
{
    static char nowhere[16];
    void *data = stage_data(engine, args, stage);

    if (!args->count)
        return nowhere;
    return data ? data : args->recv;
}

static int call_reduce_scatter(const engine_t *engine,
                               const dscomm_coll_args_t *args, void *stage)
{
    void *data = collective_result(engine, args, stage);

    return MPI_Reduce_scatter_block(
        args->send, data, (int)args->count, engine_types[args->dtype],
        engine_op(args->dtype, args->op), engine->comm);
}

static int call_reduce_scatter_v(const engine_t *engine,
                                 const dscomm_coll_args_t *args, void *stage)
{
    void *data = collective_result(engine, args, stage);
    int *counts = stage;

    for (int r = 0; r < engine->ranks; r++)
        counts[r] = (int)args->recv_counts[r];
    return MPI_Reduce_scatter(args->send, data, counts,
                              engine_types[args->dtype],
                              engine_op(args->dtype, args->op), engine->comm);
}

static int call_gather(const engine_t *engine, const dscomm_coll_args_t *args,
                       void *stage)
{
    const MPI_Datatype type = engine_types[args->dtype];
    const int count = (int)args->count, is_root = engine->rank == args->root;
    const void *send = args->send;

    (void)stage;
    if (is_root && send == buffer_at(args->recv, args, own_block(engine, args)))
        send = MPI_IN_PLACE;
    return MPI_Gather(send, count, type, is_root ? args->recv : NULL, count,
                      type, args->root, engine->comm);
}

static int call_scatter(const engine_t *engine, const dscomm_coll_args_t *args,
                        void *stage)
{
    const MPI_Datatype type = engine_types[args->dtype];
    const int count = (int)args->count, is_root = engine->rank == args->root;
    void *recv = args->recv;

    (void)stage;
    if (is_root && recv == buffer_at(args->send, args, own_block(engine, args)))
        recv = MPI_IN_PLACE;
    return MPI_Scatter(is_root ? args->send : NULL, count, type, recv, count,
                       type, args->root, engine->comm);
}

static int call_all_to_all(const engine_t *engine,
                           const dscomm_coll_args_t *args, void *stage)
{
    const MPI_Datatype type = engine_types[args->dtype];
    const int count = (int)args->count;

    (void)stage;
    return MPI_Alltoall(args->send, count, type, args->recv, count, type,
                        engine->comm);
}

/* MPI's call for each collective. divisible: a call that exceeds MPI's limit
 * of elements can be cut into pieces; otherwise the limit is that of all
 * ranks' blocks. */
static const struct {
    call_t call;
    int divisible;
} calls[DSCOMM_COLL_COUNT] = {
    [DSCOMM_COLL_BARRIER] = {call_barrier, 0},
    [DSCOMM_COLL_BROADCAST] = {call_broadcast, 1},
    [DSCOMM_COLL_REDUCE] = {call_reduce, 1},
    [DSCOMM_COLL_ALL_REDUCE] = {call_all_reduce, 1},
    [DSCOMM_COLL_ALL_GATHER] = {call_all_gather, 0},
    [DSCOMM_COLL_ALL_GATHER_V] = {call_all_gather_v, 0},
    [DSCOMM_COLL_REDUCE_SCATTER] = {call_reduce_scatter, 0},
    [DSCOMM_COLL_REDUCE_SCATTER_V] = {call_reduce_scatter_v, 0},
    [DSCOMM_COLL_GATHER] = {call_gather, 0},
    [DSCOMM_COLL_SCATTER] = {call_scatter, 0},
    [DSCOMM_COLL_ALL_TO_ALL] = {call_all_to_all, 0},
};

/* Returns whether MPI can reduce. With PREMUL_SUM only an all_reduce can: it
 * has room for the products, in recv. */
static int coll_reduces(const dscomm_coll_args_t *args)
{
    int op = args->op;

    if (op == DSCOMM_PREMUL_SUM) {
        if (args->coll != DSCOMM_COLL_ALL_REDUCE)
            return 0;
        op = DSCOMM_SUM;
    }
    return op < 0 || engine_op(args->dtype, op) != MPI_OP_NULL;
}

/* False for the last barrier of the world, which has a deadline: no call of MPI
 * has one. */
int engine_native(void *impl, const dscomm_coll_args_t *args)
{
    const engine_t *engine = impl;
    size_t total;

    if (!engine->blocking || !calls[args->coll].call || !coll_reduces(args) ||
        args->root == DSCOMM_ROOT_FINALIZE)
        return 0;
    if (calls[args->coll].divisible)
        return 1;
    total = args->recv_counts ? counts_sum(args->recv_counts, engine->ranks)
                              : args->count * (size_t)engine->ranks;
    return total <= engine->chunk;
}

/* AVG is the sum divided by the number of ranks. */
static void result_divide(const engine_t *engine,
                          const dscomm_coll_args_t *args)
{
    const double ranks = engine->ranks;
    const void *source = args->recv;

    if (args->count &&
        (args->coll != DSCOMM_COLL_REDUCE || engine->rank == args->root))
        dscomm_reduce_kernel((dscomm_dtype_t)args->dtype, DSCOMM_AVG)(
            args->recv, &source, 1, args->count, &ranks);
}

static void premul_multiply(const dscomm_coll_args_t *args)
{
    if (args->count)
        dscomm_reduce_kernel((dscomm_dtype_t)args->dtype, DSCOMM_PREMUL_SUM)(
            args->recv, &args->send, 1, args->count, &args->factor);
}

static void blocks_unpack(const engine_t *engine,
                          const dscomm_coll_args_t *args, const char *data)
{
    for (int r = 0; r < engine->ranks; r++) {
        size_t bytes = args->recv_counts[r] * args->element;

        if (bytes)
            memcpy(buffer_at(args->recv, args, args->recv_displs[r]), data,
                   bytes);
        data += bytes;
    }
}

static void collective_finish(const engine_t *engine,
                              const dscomm_coll_args_t *args, const void *stage)
{
    const void *data = stage_data(engine, args, (void *)stage);

    if (data && args->coll == DSCOMM_COLL_ALL_GATHER_V)
        blocks_unpack(engine, args, data);
    else if (data)
        memcpy(args->recv, data, args->count * args->element);
    if (args->op == DSCOMM_AVG)
        result_divide(engine, args);
}

/* Sets *ret_stage; NULL if none is needed. */
static dscomm_status_t
make_stage(engine_t *engine, const dscomm_coll_args_t *args, void **ret_stage)
{
    const size_t bytes = ints_bytes(engine, args) + staged_bytes(engine, args);

    *ret_stage = bytes ? g_try_malloc(bytes) : NULL;
    if (*ret_stage || !bytes)
        return DSCOMM_OK;
    return engine_give_up(
        engine, dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                            "rank %d of group '%s' has no memory for %zu bytes "
                            "of a collective",
                            engine->rank, engine->name, bytes));
}

static size_t pieces_of(const engine_t *engine, const dscomm_coll_args_t *args)
{
    if (!calls[args->coll].divisible || args->count <= engine->chunk)
        return 1;
    return (args->count + engine->chunk - 1) / engine->chunk;
}

static dscomm_coll_args_t collective_piece(const engine_t *engine,
                                           const dscomm_coll_args_t *args,
                                           size_t number)
{
    dscomm_coll_args_t piece = *args;
    size_t index = number * engine->chunk;

    piece.count = MIN(args->count - index, engine->chunk);
    if (piece.send)
        piece.send = buffer_at(args->send, args, index);
    if (piece.recv)
        piece.recv = buffer_at(args->recv, args, index);
    return piece;
}

static void *piece_stage(const engine_t *engine, const dscomm_coll_args_t *args,
                         void *stage, size_t number)
{
    return stage ? buffer_at(stage, args, number * engine->chunk) : NULL;
}

static dscomm_status_t collective_fail(engine_t *engine,
                                       const dscomm_coll_args_t *args, int code)
{
    char what[128];

    dscomm_coll_describe(args, what, sizeof what);
    return engine_fail(engine, code, what);
}

static int run_pieces(engine_t *engine, const dscomm_coll_args_t *args,
                      void *stage)
{
    const size_t pieces = pieces_of(engine, args);
    int code = MPI_SUCCESS;

    if (args->op == DSCOMM_PREMUL_SUM)
        premul_multiply(args);
    if (pieces == 1)
        return calls[args->coll].call(engine, args, stage);
    for (size_t i = 0; i < pieces && code == MPI_SUCCESS; i++) {
        dscomm_coll_args_t piece = collective_piece(engine, args, i);

        code = calls[args->coll].call(engine, &piece,
                                      piece_stage(engine, args, stage, i));
    }
    return code;
}

/* Makes progress for works of this and other groups: MPI's own progress is not
 * enough, because messages are matched here, and schedules are the core's. */
static int go_on(void *arg)
{
    engine_t *engine = arg;
    int moved = engine_progress(engine) > 0;

    return dscomm_backend_progress_others(engine->group) || moved;
}

/* While this thread is inside MPI, another one makes progress on works. */
static int collective_run_helped(engine_t *engine,
                                 const dscomm_coll_args_t *args, void *stage)
{
    dscomm_help_t help = {.turn = go_on, .arg = engine};
    int code;

    dscomm_help_begin(&help);
    code = run_pieces(engine, args, stage);
    dscomm_help_end(&help);
    return code;
}

/* Runs MPI's blocking call, with the preparation and completion that a few
 * collectives need. */
static dscomm_status_t run_blocking(engine_t *engine,
                                    const dscomm_coll_args_t *args)
{
    void *stage = NULL;
    dscomm_status_t status = make_stage(engine, args, &stage);
    int code;

    if (status < 0)
        return status;
    if (G_UNLIKELY(dscomm_backend_has_works()))
        code = collective_run_helped(engine, args, stage);
    else
        code = run_pieces(engine, args, stage);
    if (code == MPI_SUCCESS)
        collective_finish(engine, args, stage);
    else
        status = collective_fail(engine, args, code);
    g_free(stage);
    return status;
}

/* 1 if the call needs nothing but MPI's. */
static int is_bare(const engine_t *engine, const dscomm_coll_args_t *args)
{
    return args->op != DSCOMM_AVG && !args->recv_counts &&
           !staged_bytes(engine, args) && !dscomm_backend_has_works();
}

dscomm_status_t engine_run(void *impl, const dscomm_coll_args_t *args)
{
    engine_t *engine = impl;
    dscomm_status_t status;
    int code;

    engine_check_notices(engine);
    status = engine_check(engine);
    if (G_UNLIKELY(status < 0))
        return status;
    if (!is_bare(engine, args))
        return run_blocking(engine, args);
    code = run_pieces(engine, args, NULL);
    return code == MPI_SUCCESS ? DSCOMM_OK
                               : collective_fail(engine, args, code);
}
