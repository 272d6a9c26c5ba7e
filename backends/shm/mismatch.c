/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that call different collectives: which one is it, and what did it
 * call? */
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

/* "counts 5, 12, 5, sum 22", of a call whose counts are the same for all. */
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

/* The operator of a recorded call; text is where that of the program is put. */
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

/* A copy of a rank's record of an operation; false if it is gone or torn. */
static bool record_of(const shm_t *shm, int rank, uint64_t sequence,
                      shm_record_t *ret_record)
{
    *ret_record = shm_control(shm, rank)->record[sequence % SHM_RECORDS];
    return ret_record->sequence == sequence;
}

/* The oldest operation that two ranks remember and that was not the same; 0
 * if there is none. */
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

/* How many ranks have made an operation's call as rank has; and how many are
 * known to have made any. */
static int hashes_count_alike(const shm_t *shm, int rank, uint64_t sequence,
                              int *ret_known)
{
    shm_record_t one, other;
    int alike = 0;

    *ret_known = 0;
    if (!record_of(shm, rank, sequence, &one))
        return 0;
    for (int r = 0; r < shm->ranks; r++)
        if (record_of(shm, r, sequence, &other)) {
            alike += other.fingerprint == one.fingerprint;
            ++*ret_known;
        }
    return alike;
}

/* Do more than half of at least three agree with rank? */
static bool has_majority(const shm_t *shm, int rank, uint64_t sequence)
{
    int known, alike = hashes_count_alike(shm, rank, sequence, &known);

    return known > 2 && 2 * alike > known;
}

/* The first rank that has made an operation's call as rank has. */
static int first_alike(const shm_t *shm, int rank, uint64_t sequence)
{
    shm_record_t one, other;
    int first = 0;

    if (!record_of(shm, rank, sequence, &one))
        return rank;
    while (!record_of(shm, first, sequence, &other) ||
           other.fingerprint != one.fingerprint)
        first++;
    return first;
}

/* "rank 0 (pid 811 on b)"; if the ranks that agree with it are more than half,
 * the first of them and how many others. */
static void alike_describe(const shm_t *shm, int rank, uint64_t sequence,
                           char *text, size_t size)
{
    char who[DSCOMM_CREATION_RANK_MAX];
    int known, others = hashes_count_alike(shm, rank, sequence, &known) - 1;

    if (others < 1 || !has_majority(shm, rank, sequence)) {
        snprintf(text, size, "%s", shm_rank_describe(shm, rank, who));
        return;
    }
    rank = first_alike(shm, rank, sequence);
    snprintf(text, size, "%s and %d other%s", shm_rank_describe(shm, rank, who),
             others, others > 1 ? "s" : "");
}

static void call_describe(const shm_t *shm, int rank, uint64_t sequence,
                          char *text, size_t size)
{
    shm_record_t record;

    record_of(shm, rank, sequence, &record);
    record_describe(shm, rank, &record, text, size);
}

/* The odd one comes first, if it is known which one that is. */
static void mismatch_explain(const shm_t *shm, int rank, uint64_t sequence,
                             dscomm_failure_t *ret_failure)
{
    bool mine_is_odd = has_majority(shm, rank, sequence) ||
                       !has_majority(shm, shm->rank, sequence);
    int odd = mine_is_odd ? shm->rank : rank;
    int other = mine_is_odd ? rank : shm->rank;
    char odd_text[200], other_text[200], others[DSCOMM_CREATION_RANK_MAX + 32];
    char who[DSCOMM_CREATION_RANK_MAX];
    shm_record_t record;

    call_describe(shm, odd, sequence, odd_text, sizeof odd_text);
    call_describe(shm, other, sequence, other_text, sizeof other_text);
    alike_describe(shm, other, sequence, others, sizeof others);
    shm_blame(shm, DSCOMM_ERR_MISMATCH, DSCOMM_FAILURE_MISMATCH, odd,
              ret_failure);
    record_of(shm, odd, sequence, &record);
    ret_failure->coll = record.coll;
    ret_failure->sequence = record.number;
    dscomm_backend_failure_detail(
        ret_failure,
        "%s called %s, but %s called %s; all ranks must call the same "
        "collectives in the same order with matching arguments",
        shm_rank_describe(shm, odd, who), odd_text, others, other_text);
}

static dscomm_status_t fail_mismatch(shm_t *shm, int rank)
{
    uint64_t sequence = first_difference(shm, rank, shm->op_args->sequence);
    char what[160], own[DSCOMM_CREATION_RANK_MAX], who[sizeof own];
    dscomm_failure_t failure;

    if (sequence) {
        mismatch_explain(shm, rank, sequence, &failure);
        return shm_fail(shm, &failure);
    }
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

/* A line that already carries a later step is no sign: its rank could reuse it
 * only because this one had read what was there. */
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
    if (!record_of(shm, rank, sequence, &record))
        record_of(shm, rank, last, &record);
    record_describe(shm, rank, &record, text, size);
    return 1;
}
