/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds which rank called a different collective, and what it called. */
#include "config.h"

#include "backends/shm/shm.h"

#include <stdio.h>
#include <string.h>

void shm_counts_publish(shm_t *shm, const dscomm_coll_args_t *args)
{
    shm_counts_t *counts = &shm->own->counts;

    if (args->of && args->of->coll != args->coll)
        return;
    counts->sequence = args->sequence;
    counts->sum = 0;
    for (int r = 0; r < shm->ranks; r++) {
        counts->sum += args->recv_counts[r];
        if (r < SHM_COUNTS)
            counts->first[r] = args->recv_counts[r];
    }
}

void shm_operator_publish(shm_t *shm, const dscomm_coll_args_t *args)
{
    shm_operator_t *published = &shm->own->operator;

    published->sequence = args->sequence;
    if (shm->published == args->user->handle)
        return;
    shm->published = args->user->handle;
    snprintf(published->text, sizeof published->text, "%s", args->user->text);
}

/* Writes "counts 5, 12, 5, sum 22", for a call whose counts must be equal on
 * all ranks. */
static void counts_describe(const shm_t *shm, const shm_counts_t *counts,
                            char *buffer, size_t size)
{
    size_t used = 0;
    int shown = shm->ranks < SHM_COUNTS ? shm->ranks : SHM_COUNTS;

    for (int r = 0; r < shown && used < size; r++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%llu",
                                 r ? ", " : "counts ",
                                 (unsigned long long)counts->first[r]);
    if (used < size)
        snprintf(buffer + used, size - used, "%s, sum %llu",
                 shown < shm->ranks ? " ..." : "",
                 (unsigned long long)counts->sum);
}

/* Returns the operator's name of a recorded call; text is room for a user's
 * operator. */
static const char *operator_of(const shm_t *shm, int rank,
                               const shm_record_t *record, char *text)
{
    const shm_operator_t *published = &shm_control(shm, rank)->operator;

    if (record->op != DSCOMM_OP_USER)
        return dscomm_op_name((dscomm_op_t)record->op);
    if (published->sequence != record->sequence)
        return "user";
    memcpy(text, published->text, DSCOMM_OP_TEXT - 1);
    text[DSCOMM_OP_TEXT - 1] = '\0';
    return text;
}

static void record_describe(const shm_t *shm, int rank,
                            const shm_record_t *record, char *buffer,
                            size_t size)
{
    const shm_counts_t *counts = &shm_control(shm, rank)->counts;
    char text[DSCOMM_OP_TEXT];
    const dscomm_user_op_t user = {.text =
                                       operator_of(shm, rank, record, text)};
    dscomm_coll_args_t args = {.coll = record->coll,
                               .dtype = record->dtype,
                               .op = record->op,
                               .root = record->root,
                               .count = record->count,
                               .sequence = record->number,
                               .user = &user};
    char list[128];

    if (counts->sequence != record->sequence) {
        dscomm_coll_describe(&args, buffer, size);
        return;
    }
    counts_describe(shm, counts, list, sizeof list);
    snprintf(buffer, size, "%s(%s, %s%s%s) #%u",
             dscomm_coll_name((dscomm_coll_t)record->coll), list,
             dscomm_dtype_name((dscomm_dtype_t)record->dtype),
             record->op >= 0 ? ", " : "", record->op >= 0 ? user.text : "",
             record->number);
}

/* Copies a rank's record of an operation; false if it was overwritten, or is
 * being written. */
static bool record_of(const shm_t *shm, int rank, uint64_t sequence,
                      shm_record_t *ret_record)
{
    const shm_record_t *record =
        &shm_control(shm, rank)->record[sequence % SHM_RECORDS];

    if (atomic_load_explicit(&record->sequence, memory_order_acquire) !=
        sequence)
        return false;
    memcpy(ret_record, record, sizeof *ret_record);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&record->sequence, memory_order_relaxed) ==
           sequence;
}

/* Returns the oldest operation that is in the records of both ranks and
 * differs; 0 if there is none. */
static uint64_t first_difference(const shm_t *shm, int rank, uint64_t until)
{
    uint64_t from = until > SHM_RECORDS ? until - SHM_RECORDS + 1 : 1;
    shm_record_t mine, theirs;

    for (uint64_t s = from; s <= until; s++)
        if (record_of(shm, shm->rank, s, &mine) &&
            record_of(shm, rank, s, &theirs) &&
            mine.fingerprint != theirs.fingerprint)
            return s;
    return 0;
}

/* The calls of one operation, for dscomm_backend_mismatch(). */
typedef struct {
    const shm_t *shm;
    uint64_t sequence;
} calls_t;

static int call_look(const void *arg, int rank, dscomm_call_seen_t *ret_call)
{
    const calls_t *calls = arg;
    const shm_t *shm = calls->shm;
    shm_record_t record;

    if (!record_of(shm, rank, calls->sequence, &record))
        return 0;
    *ret_call = (dscomm_call_seen_t){
        .rank = shm->world_ranks[rank],
        .pid = shm->peers->pids[shm->peer[rank]],
        .fingerprint = record.fingerprint,
        .coll = record.coll,
        .sequence = record.number,
    };
    record_describe(shm, rank, &record, ret_call->text, sizeof ret_call->text);
    return 1;
}

/* Fails because an operation of rank differs from this rank's. Of two ranks,
 * the one that leaves is the culprit. */
static dscomm_status_t fail_difference(shm_t *shm, int rank, uint64_t sequence)
{
    const calls_t calls = {shm, sequence};
    dscomm_failure_t failure;
    shm_record_t theirs;
    const bool leaves = record_of(shm, rank, sequence, &theirs) &&
                        theirs.root == DSCOMM_ROOT_FINALIZE;

    dscomm_backend_mismatch(shm->group, shm->ranks, leaves ? rank : shm->rank,
                            leaves ? shm->rank : rank, call_look, &calls,
                            &failure);
    return shm_fail(shm, &failure);
}

static dscomm_status_t fail_mismatch(shm_t *shm, int rank)
{
    uint64_t sequence = first_difference(shm, rank, shm->op_args->sequence);
    char what[160], own[DSCOMM_CREATION_RANK_MAX], who[sizeof own];
    dscomm_failure_t failure;

    if (sequence)
        return fail_difference(shm, rank, sequence);
    dscomm_coll_describe(shm_call(shm), what, sizeof what);
    shm_blame(shm, DSCOMM_ERR_MISMATCH, DSCOMM_FAILURE_MISMATCH, rank,
              &failure);
    dscomm_backend_failure_detail(
        &failure,
        "before %s, more than %d calls ago, %s and %s called different "
        "collectives; all ranks must call the same collectives in the "
        "same order with matching arguments",
        what, SHM_RECORDS, shm_rank_describe(shm, shm->rank, own),
        shm_rank_describe(shm, rank, who));
    return shm_fail(shm, &failure);
}

/* A line that already has a later step shows no mismatch, because its rank
 * reuses the line only after this rank has read it. */
dscomm_status_t shm_mismatch(shm_t *shm)
{
    if (!shm->op_step)
        return DSCOMM_OK;
    for (int r = 0; r < shm->ranks; r++) {
        uint64_t flag = atomic_load_explicit(
            &shm_control(shm, r)->line[shm->op_step % SHM_LINES].flag,
            memory_order_acquire);

        if (flag >> 32 == (uint32_t)shm->op_step &&
            (uint32_t)flag != shm->op_chain)
            return fail_mismatch(shm, r);
    }
    return DSCOMM_OK;
}

uint64_t shm_last_sequence(const shm_t *shm, int rank)
{
    uint64_t last = 0;

    for (int i = 0; i < SHM_RECORDS; i++) {
        uint64_t sequence = shm_control(shm, rank)->record[i].sequence;

        if (sequence > last)
            last = sequence;
    }
    return last;
}

int shm_begun(void *impl, int rank, uint64_t sequence, char *text, size_t size)
{
    const shm_t *shm = impl;
    const uint64_t last = shm_last_sequence(shm, rank);
    shm_record_t record;

    if (last < sequence)
        return 0;
    if (!record_of(shm, rank, sequence, &record) &&
        !record_of(shm, rank, last, &record))
        return 0;
    record_describe(shm, rank, &record, text, size);
    return 1;
}
