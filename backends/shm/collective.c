/* SPDX-License-Identifier: BSD-3-Clause */
/* Native collectives: the shortest ones without a state machine, the others as
 * machines that run blocking or in a queue. */
#include "config.h"

#include "backends/shm/steps.h"

static dscomm_status_t await_writable(shm_t *shm, uint64_t step)
{
    shm_wait_t wait = {0};
    dscomm_status_t status = DSCOMM_OK;

    while (!status && !shm_writable(shm, step))
        status = shm_wait(shm, &wait);
    shm_wait_end(shm, &wait);
    return status;
}

static dscomm_status_t await_raised_slow(shm_t *shm, int rank, uint64_t step)
{
    shm_wait_t wait = {0};
    dscomm_status_t status = DSCOMM_OK;

    while (!status && !shm_raised(shm, rank, step))
        status = shm_wait(shm, &wait);
    shm_wait_end(shm, &wait);
    return status;
}

/* Each rank raises one flag and waits for the flags of all others. This is a
 * barrier, or a small all_reduce whose data is in the flag's cache line. */
static inline dscomm_status_t barrier_meet(shm_t *shm, uint64_t step)
{
    shm_raise(shm, step);
    for (int r = 0; r < shm->ranks; r++) {
        dscomm_status_t status;

        if (shm_raised(shm, r, step))
            continue;
        if ((status = await_raised_slow(shm, r, step)))
            return status;
    }
    shm_all_arrived(shm, step);
    return DSCOMM_OK;
}

static inline void copy_small(unsigned char *dest, const unsigned char *source,
                              size_t size)
{
    uint64_t first, last;

    if (size < 8) {
        for (size_t i = 0; i < size; i++)
            dest[i] = source[i];
        return;
    }
    for (size_t i = 0; i + 8 <= size; i += 8) {
        memcpy(&first, source + i, 8);
        memcpy(dest + i, &first, 8);
    }
    memcpy(&last, source + size - 8, 8);
    memcpy(dest + size - 8, &last, 8);
}

/* phased is a constant: calls whose phases nobody wants have no branch for
 * them. */
static inline __attribute__((always_inline)) dscomm_status_t
line_run(shm_t *shm, const dscomm_coll_args_t *args, size_t bytes, bool phased)
{
    uint64_t step;
    shm_line_t *line;
    dscomm_status_t status;
    double size = shm->ranks;

    if (phased)
        dscomm_phase(args, DSCOMM_PHASE_COPY_IN);
    shm_begin(shm, args);
    step = shm_take(shm, 0);
    if (!shm_writable(shm, step) && (status = await_writable(shm, step)))
        return status;
    line = shm_line(shm, shm->rank, step);
    if (bytes)
        copy_small(line->byte, args->send, bytes);
    if (args->op == DSCOMM_PREMUL_SUM)
        memcpy(&line->word[WORD_FACTOR], &args->factor, sizeof args->factor);
    if (phased)
        dscomm_phase(args, DSCOMM_PHASE_WAIT);
    if ((status = barrier_meet(shm, step)))
        return status;
    if (phased)
        dscomm_phase(args, bytes ? DSCOMM_PHASE_REDUCE : DSCOMM_PHASE_OTHER);
    if (bytes) {
        const double *factors = &size;

        for (int r = 0; r < shm->ranks; r++)
            shm->sources[r] = shm_line(shm, r, step)->byte;
        if (args->op == DSCOMM_PREMUL_SUM) {
            for (int r = 0; r < shm->ranks; r++)
                memcpy(&shm->factors[r],
                       &shm_line(shm, r, step)->word[WORD_FACTOR],
                       sizeof(double));
            factors = shm->factors;
        }
        shm->kernels[args->dtype][args->op](
            args->recv, shm->sources, (size_t)shm->ranks, args->count, factors);
    }
    shm_end(shm);
    return DSCOMM_OK;
}

static dscomm_status_t run_line(shm_t *shm, const dscomm_coll_args_t *args,
                                size_t bytes)
{
    return line_run(shm, args, bytes, false);
}

static __attribute__((noinline)) dscomm_status_t
run_line_phased(shm_t *shm, const dscomm_coll_args_t *args, size_t bytes)
{
    return line_run(shm, args, bytes, true);
}

/* Waits for the line of a rank, and copies the part for this rank. */
static inline dscomm_status_t line_take(shm_t *shm,
                                        const dscomm_coll_args_t *args,
                                        size_t bytes, int rank, uint64_t step)
{
    const bool each = args->coll == DSCOMM_COLL_ALL_TO_ALL;
    const bool alone = args->coll == DSCOMM_COLL_BROADCAST;
    dscomm_status_t status = DSCOMM_OK;

    if (!shm_raised(shm, rank, step)) {
        dscomm_phase(args, DSCOMM_PHASE_WAIT);
        status = await_raised_slow(shm, rank, step);
        dscomm_phase(args, DSCOMM_PHASE_COPY_OUT);
    }
    if (status == DSCOMM_OK && bytes)
        copy_small(shm_at(args->recv, alone ? 0 : (size_t)rank * bytes),
                   shm_line(shm, rank, step)->byte +
                       (each ? (size_t)shm->rank * bytes : 0),
                   bytes);
    return status;
}

/* Runs a broadcast, all_gather or all_to_all whose data are in the flags' lines
 * as exchange.c does. bytes: of one part */
static dscomm_status_t
run_line_exchange(shm_t *shm, const dscomm_coll_args_t *args, size_t bytes)
{
    const bool each = args->coll == DSCOMM_COLL_ALL_TO_ALL;
    const bool alone = args->coll == DSCOMM_COLL_BROADCAST;
    const bool sends = !alone || args->root == shm->rank;
    dscomm_status_t status = DSCOMM_OK;
    uint64_t step;

    dscomm_phase(args, DSCOMM_PHASE_COPY_IN);
    shm_begin(shm, args);
    step = shm_take(shm, 0);
    if (!shm_writable(shm, step) && (status = await_writable(shm, step)))
        return status;
    if (sends && bytes)
        copy_small(shm_line(shm, shm->rank, step)->byte, args->send,
                   each ? bytes * (size_t)shm->ranks : bytes);
    shm_raise(shm, step);
    dscomm_phase(args, DSCOMM_PHASE_COPY_OUT);
    if (alone && !sends)
        status = line_take(shm, args, bytes, args->root, step);
    for (int r = 0; !alone && r < shm->ranks && status == DSCOMM_OK; r++)
        status = line_take(shm, args, bytes, r, step);
    if (status)
        return status;
    if (!alone)
        shm_all_arrived(shm, step);
    shm_end(shm);
    return DSCOMM_OK;
}

/* Most bytes of an all_reduce without a state machine. 0 for an operator of
 * the program, because only the machine calls its function. */
static const uint8_t line_most[DSCOMM_OP_USER + 1] = {
    [DSCOMM_SUM] = SHM_INLINE,
    [DSCOMM_PRODUCT] = SHM_INLINE,
    [DSCOMM_MIN] = SHM_INLINE,
    [DSCOMM_MAX] = SHM_INLINE,
    [DSCOMM_AVG] = SHM_INLINE,
    [DSCOMM_BAND] = SHM_INLINE,
    [DSCOMM_BOR] = SHM_INLINE,
    [DSCOMM_BXOR] = SHM_INLINE,
    [DSCOMM_PREMUL_SUM] = SHM_INLINE_PREMUL,
};

/* Whether a blocking call needs no state machine. */
static bool is_line(const shm_t *shm, const dscomm_coll_args_t *args)
{
    const size_t bytes = args->count * args->element;

    switch (args->coll) {
    case DSCOMM_COLL_BARRIER:
        return true;
    case DSCOMM_COLL_ALL_REDUCE:
        return bytes <= line_most[args->op];
    case DSCOMM_COLL_ALL_GATHER:
    case DSCOMM_COLL_BROADCAST:
        return bytes <= SHM_INLINE;
    case DSCOMM_COLL_ALL_TO_ALL:
        return bytes <= SHM_INLINE / (size_t)shm->ranks;
    default:
        return false;
    }
}

static int op_begin(shm_t *shm, shm_op_t *op, const dscomm_coll_args_t *args)
{
    static int (*const begins[DSCOMM_COLL_COUNT])(shm_t *, shm_op_t *) = {
        [DSCOMM_COLL_BROADCAST] = shm_exchange_begin,
        [DSCOMM_COLL_REDUCE] = shm_reduce_begin,
        [DSCOMM_COLL_ALL_REDUCE] = shm_reduce_begin,
        [DSCOMM_COLL_ALL_GATHER] = shm_exchange_begin,
        [DSCOMM_COLL_ALL_GATHER_V] = shm_exchange_begin,
        [DSCOMM_COLL_REDUCE_SCATTER] = shm_reduce_begin,
        [DSCOMM_COLL_REDUCE_SCATTER_V] = shm_reduce_begin,
        [DSCOMM_COLL_GATHER] = shm_exchange_begin,
        [DSCOMM_COLL_GATHER_V] = shm_exchange_begin,
        [DSCOMM_COLL_SCATTER] = shm_exchange_begin,
        [DSCOMM_COLL_SCATTER_V] = shm_exchange_begin,
        [DSCOMM_COLL_ALL_TO_ALL] = shm_exchange_begin,
        [DSCOMM_COLL_ALL_TO_ALL_V] = shm_exchange_begin,
        [DSCOMM_COLL_BARRIER] = shm_exchange_begin,
    };

    shm_begin(shm, args);
    if (args->coll == DSCOMM_COLL_ALL_GATHER_V ||
        args->coll == DSCOMM_COLL_REDUCE_SCATTER_V)
        shm_counts_publish(shm, args);
    memset(op, 0, sizeof *op);
    op->args = args;
    op->first = op->data = shm->step;
    if (args->user)
        shm_operator_publish(shm, args);
    else if (args->op >= 0)
        op->kernel = shm->kernels[args->dtype][args->op];
    op->begin = begins[args->coll];
    if (shm->guessing && !shm->trial.chosen)
        shm_trial_guess(shm);
    return shm_trial_due(shm) && !is_line(shm, args) ? shm_trial_begin(shm, op)
                                                     : op->begin(shm, op);
}

static dscomm_status_t run_machine(shm_t *shm, const dscomm_coll_args_t *args)
{
    shm_op_t op;
    shm_wait_t wait = {0};
    int result = op_begin(shm, &op, args);

    while (result == SHM_AGAIN) {
        uint64_t moves = shm->moves;

        result = op.advance(shm, &op);
        if (result == SHM_AGAIN && shm->moves == moves) {
            dscomm_phase(args, DSCOMM_PHASE_WAIT);
            result = shm_wait(shm, &wait);
        } else {
            wait.spins = 0;
        }
    }
    shm_wait_end(shm, &wait);
    if (result < 0)
        return (dscomm_status_t)result;
    shm_end(shm);
    return DSCOMM_OK;
}

dscomm_status_t shm_run(void *impl, const dscomm_coll_args_t *args)
{
    shm_t *shm = impl;
    size_t bytes =
        args->coll == DSCOMM_COLL_BARRIER ? 0 : args->count * args->element;
    dscomm_status_t status;

    if (shm_is_revoked(shm))
        return shm_revoked(shm);
    if (!is_line(shm, args))
        status = run_machine(shm, args);
    else if (args->op < 0 && args->coll != DSCOMM_COLL_BARRIER)
        status = run_line_exchange(shm, args, bytes);
    else
        status = args->phases ? run_line_phased(shm, args, bytes)
                              : run_line(shm, args, bytes);
    if (status)
        shm->op_step = 0; /* op_args points to the caller's memory */
    return status;
}

int shm_native(void *impl, const dscomm_coll_args_t *args)
{
    const shm_t *shm = impl;

    return shm->native && args->coll < DSCOMM_COLL_SEND;
}

/* In a line, a rank copies what it sends. Then it folds the parts of all ranks,
 * or copies them, with its own one; a broadcast's root has no more to do. */
static void line_info(const shm_t *shm, const dscomm_coll_args_t *args,
                      size_t bytes, dscomm_native_info_t *info)
{
    const uint64_t p = (uint64_t)shm->ranks;
    const bool each = args->coll == DSCOMM_COLL_ALL_TO_ALL;
    const bool alone = args->coll == DSCOMM_COLL_BROADCAST;

    info->algorithm = "line";
    info->steps = 1;
    for (int r = 0; r < shm->ranks; r++) {
        if (args->op >= 0)
            shm_info_add(info, (p - 1) * bytes, (2 + p + 1) * bytes);
        else if (alone)
            shm_info_add(info, r == args->root ? 0 : bytes, 2 * bytes);
        else
            shm_info_add(info, (p - 1) * bytes,
                         2 * (each ? 2 * p : 1 + p) * bytes);
    }
}

dscomm_status_t shm_native_info(void *impl, const dscomm_coll_args_t *args,
                                dscomm_native_info_t *info)
{
    shm_t *shm = impl;
    shm_op_t op = {.args = args};

    /* its function may run for each pair of inputs, and read and write more */
    if (args->user)
        return DSCOMM_ERR_UNSUPPORTED;
    if (is_line(shm, args))
        line_info(
            shm, args,
            args->coll == DSCOMM_COLL_BARRIER ? 0 : args->count * args->element,
            info);
    else if (args->op >= 0)
        shm_reduce_info(shm, &op, info);
    else
        shm_exchange_info(shm, &op, info);
    return DSCOMM_OK;
}

dscomm_status_t shm_start(void *impl, const dscomm_coll_args_t *args,
                          dscomm_request_t *request)
{
    shm_t *shm = impl;
    shm_request_t *own = (shm_request_t *)request;

    if (shm_is_revoked(shm))
        return shm_revoked(shm);
    own->kind = SHM_COLLECTIVE;
    own->collective.args = *args;
    /* Begins the operation if those before it in the queue have ended. */
    memset(&own->collective.op, 0, sizeof own->collective.op);
    own->head.status = DSCOMM_IN_PROGRESS;
    shm_list_append(&shm->queue, own);
    dscomm_phase(args, DSCOMM_PHASE_WAIT);
    shm_collective_progress(shm);
    return DSCOMM_OK;
}

static void request_finish(shm_t *shm, shm_request_t *request, int result)
{
    shm_list_remove(&shm->queue, request);
    shm->completed++;
    shm->moves++;
    if (result < 0)
        shm->op_step = 0;
    request->head.status = result < 0 ? (dscomm_status_t)result : DSCOMM_OK;
}

void shm_collective_cancel(shm_t *shm, shm_request_t *request)
{
    if (request->collective.op.referenced)
        shm_single_void(shm);
    if (shm->op_args == &request->collective.args)
        shm->op_step = 0;
    shm_list_remove(&shm->queue, request);
}

/* Begins the first operation of the queue if it has not begun, and advances
 * it. */
static int queue_advance_head(shm_t *shm)
{
    shm_request_t *head = shm->queue.head;
    shm_op_t *op = &head->collective.op;
    int result = SHM_AGAIN;

    if (!op->args)
        result = op_begin(shm, op, &head->collective.args);
    if (result == SHM_AGAIN)
        result = op->advance(shm, op);
    if (result == SHM_AGAIN)
        dscomm_phase(op->args, DSCOMM_PHASE_WAIT);
    else if (result == SHM_DONE)
        shm_end(shm);
    return result;
}

unsigned shm_collective_progress(shm_t *shm)
{
    unsigned before = shm->completed;

    while (shm->queue.head) {
        int result = shm->op_step ? (int)shm_mismatch(shm) : 0;

        if (!result)
            result = queue_advance_head(shm);
        if (result == SHM_AGAIN)
            break;
        request_finish(shm, shm->queue.head, result);
        if (result < 0)
            break;
    }
    return shm->completed - before;
}
