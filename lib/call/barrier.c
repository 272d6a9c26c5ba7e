/* SPDX-License-Identifier: BSD-3-Clause */
/* The monitored barrier, in three messages. Rank 0 sends a call to every rank.
 * A rank that has arrived answers with the time that it has left, or that it
 * gave up before the call. Rank 0 sends the outcome to all ranks, also to those
 * that arrive later. Rank 0 ends the barrier before the earliest deadline, so
 * that all ranks still learn which ranks were missing.
 *
 * A missing rank may wait in another collective, for ranks that are in this
 * barrier. Rank 0 looks for such ranks, and the others look whether rank 0 is
 * one. The rank that finds one revokes the group, so that all ranks return the
 * same failure.
 *
 * Messages carry the number of the barrier, so that a barrier drops messages of
 * earlier ones. Their tags are below those of users, and DSCOMM_ANY_TAG does
 * not match them. */
#include "config.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/call/receive.h"
#include "lib/diagnosis/diagnosis.h"
#include "lib/group/failure.h"
#include "lib/work/pending.h"
#include "lib/work/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TAG_CALL (-2)
#define TAG_ANSWER (-3)
#define TAG_OUTCOME (-4)
#define OUTCOME_MS 500 /* kept of a deadline for the outcome to arrive */

static const char name[] = "dscomm_monitored_barrier";

/* One message of the barrier. */
typedef struct {
    int receive;
    void *buffer;
    size_t bytes;
    int peer, tag;
} note_t;

static dscomm_call_t note_describe(const note_t *note)
{
    dscomm_call_t call = {.type = CALL_MESSAGE, .async = 1, .internal = 1};

    call.p2p.receive = note->receive;
    call.p2p.message.send = note->receive ? NULL : note->buffer;
    call.p2p.message.recv = note->receive ? note->buffer : NULL;
    call.p2p.message.bytes = note->bytes;
    call.p2p.message.peer = note->peer;
    call.p2p.message.tag = note->tag;
    call.p2p.dtype = DSCOMM_UINT8;
    call.p2p.count = note->bytes;
    return call;
}

static dscomm_status_t note_post(dscomm_group_t *group, const note_t *note,
                                 dscomm_work_t **ret_work)
{
    dscomm_call_t call = note_describe(note);

    return dscomm_priv_work_start(group, &dscomm_priv_message_kind, &call,
                                  ret_work);
}

/* Sends a copy of note's bytes and does not wait for it. */
static dscomm_status_t note_post_copy(dscomm_group_t *group, const note_t *note)
{
    void *copy = dscomm_priv_group_memory(group, name, 1, note->bytes);
    dscomm_call_t call = note_describe(note);
    dscomm_work_t *work;
    dscomm_status_t status;

    if (!copy)
        return DSCOMM_ERR_NO_MEMORY;
    pthread_mutex_lock(&group->works.lock);
    status =
        dscomm_priv_work_new(group, &dscomm_priv_message_kind, &call, &work);
    if (status < 0) {
        g_free(copy);
    } else {
        work->copy = memcpy(copy, note->buffer, note->bytes);
        work->call.p2p.message.send = work->copy;
        work->zombie = 1;
        status = dscomm_priv_work_launch(work);
        if (status < 0)
            dscomm_priv_work_discard(work);
    }
    pthread_mutex_unlock(&group->works.lock);
    return status;
}

/* Cancels a receive that is no longer needed. */
static void note_cancel(dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;

    pthread_mutex_lock(&group->works.lock);
    if (!dscomm_priv_work_done(work))
        dscomm_priv_work_cancel(work, DSCOMM_ERR_TIMEOUT, "");
    dscomm_priv_pending_settle(group);
    pthread_mutex_unlock(&group->works.lock);
    dscomm_work_free(work);
}

/* Gets the record of a failure. If the group has ended, that failure counts,
 * because a rank that then left is only a consequence. */
static void barrier_failure(dscomm_group_t *group, dscomm_status_t status,
                            dscomm_failure_t *ret_failure)
{
    if (dscomm_priv_group_revoked(group, ret_failure) == DSCOMM_OK)
        dscomm_priv_failure_last(status, ret_failure);
}

/* Adds the call to the sentence of its failure. A mismatch already names the
 * group. */
static dscomm_status_t barrier_fail(dscomm_group_t *group,
                                    dscomm_status_t status)
{
    char text[DSCOMM_ERROR_MAX];
    dscomm_failure_t failure;

    if (status >= 0)
        return status;
    barrier_failure(group, status, &failure);
    return dscomm_fail(failure.status, "%s of group '%s': %s", name,
                       group->identity.name,
                       failure.kind == DSCOMM_FAILURE_MISMATCH
                           ? failure.detail
                           : dscomm_priv_failure_sentence(&failure, text));
}

#define FIRST_LOOK_NS (FIRST_LOOK_MS * NS_PER_MS)

/* Looks at missing ranks: after FIRST_LOOK_MS, then each time after twice as
 * long, and twice before the deadline. */
typedef struct {
    int64_t looked_ns; /* clock of the latest look, or of the beginning */
    int64_t gap_ns; /* until the next one */
    int found; /* latest look found another call */
} watch_t;

static watch_t watch_begin(void)
{
    return (watch_t){dscomm_priv_clock(), FIRST_LOOK_NS, 0};
}

/* The time (ns) of the next look. Two looks come shortly before the deadline:
 * the second confirms what the first has found, while there is time to read the
 * store. */
static int64_t watch_next(const watch_t *watch, int64_t deadline)
{
    const int64_t last_ns = deadline - 2 * FIRST_LOOK_NS;

    if (watch->found || watch->looked_ns >= last_ns)
        return MIN(watch->looked_ns + FIRST_LOOK_NS, deadline);
    return MIN(watch->looked_ns + watch->gap_ns, last_ns);
}

/* One look at ranks. It revokes the group if this look and the one before found
 * a rank in another call, and returns the group's failure then, else OK. One
 * look is not enough: a rank that gave up on this barrier may be in the next
 * collective while its message is still on the way. */
static dscomm_status_t watch_look(dscomm_group_t *group, watch_t *watch,
                                  const int *ranks, int count, int64_t deadline)
{
    dscomm_failure_t failure;
    const int before = watch->found;
    const dscomm_status_t status =
        dscomm_priv_diagnosis_barrier(group, ranks, count, deadline, &failure);

    watch->found = status < 0;
    if (!before || !watch->found) {
        watch->looked_ns = dscomm_priv_clock();
        watch->gap_ns *= 2;
        return DSCOMM_OK;
    }
    dscomm_priv_group_revoke(group, &failure);
    dscomm_priv_group_revoked(group, &failure);
    return dscomm_backend_fail(&failure);
}

/* Waits until the deadline for a message of rank 0, and looks at rank 0
 * meanwhile. */
static dscomm_status_t wait_watching(dscomm_group_t *group, dscomm_work_t *work,
                                     int64_t deadline)
{
    static const int leader = 0;
    watch_t watch = watch_begin();
    dscomm_status_t status;

    do {
        const int64_t end = watch_next(&watch, deadline);

        status = dscomm_priv_work_wait(work, dscomm_priv_clock_left(end));
        if (status != DSCOMM_IN_PROGRESS)
            return status;
        status = watch_look(group, &watch, &leader, 1, deadline);
    } while (status == DSCOMM_OK && dscomm_priv_clock() < deadline);
    return status < 0 ? status : DSCOMM_IN_PROGRESS;
}

/* Receives note from rank 0; its first word is the barrier's number. Messages
 * of earlier barriers are dropped. IN_PROGRESS: no message before the deadline.
 */
static dscomm_status_t note_await(dscomm_group_t *group, const note_t *note,
                                  int64_t deadline)
{
    const uint64_t *number = note->buffer;
    dscomm_work_t *work;
    dscomm_status_t status;

    do {
        status = note_post(group, note, &work);
        if (status < 0)
            break;
        status = wait_watching(group, work, deadline);
        note_cancel(work);
    } while (status == DSCOMM_OK && *number != group->life.barriers);
    return barrier_fail(group, status);
}

/* The answer of a rank. */
typedef struct {
    uint64_t number;
    uint64_t left_ms; /* until its deadline; 0: it gave up */
    uint64_t timeout_ms; /* the argument of its call */
} answer_t;

/* The outcome of a barrier. If it failed, the outcome names the ranks that
 * caused it. */
typedef enum { PASSED, LATE, GAVE_UP, LOST } end_t;

typedef struct {
    uint64_t number, end, timeout_ms;
    uint64_t whose; /* the rank with the earliest deadline, which gave
                       timeout_ms */
    uint64_t
        early_ms; /* margin before that deadline at which the barrier ends */
    uint64_t named[]; /* a bit for each rank */
} outcome_t;

static size_t outcome_bytes(const dscomm_group_t *group)
{
    return sizeof(outcome_t) +
           ((size_t)group->size + 63) / 64 * sizeof(uint64_t);
}

static int outcome_names(const outcome_t *outcome, int rank)
{
    return outcome->named[rank / 64] >> (rank % 64) & 1;
}

static void outcome_set(outcome_t *outcome, end_t end, int rank)
{
    outcome->end = end;
    outcome->named[rank / 64] |= UINT64_C(1) << (rank % 64);
}

/* Returns "ranks 1, 3 of 5"; the caller frees it. */
static char *outcome_list_ranks(const dscomm_group_t *group,
                                const outcome_t *outcome)
{
    GString *text = g_string_new(NULL);
    int count = 0;

    for (int rank = 0; rank < group->size; rank++)
        if (outcome_names(outcome, rank))
            g_string_append_printf(text, "%s%d", count++ ? ", " : "", rank);
    g_string_prepend(text, count > 1 ? "ranks " : "rank ");
    g_string_append_printf(text, " of %d", group->size);
    return g_string_free(text, FALSE);
}

/* Puts the ranks that the barrier's sentence names into ret_ranks. */
static void outcome_ranks(const dscomm_group_t *group, const outcome_t *outcome,
                          int *ret_ranks, int *ret_count)
{
    for (int rank = 0; rank < group->size; rank++)
        if (outcome_names(outcome, rank))
            ret_ranks[(*ret_count)++] = rank;
}

/* Returns the status of a barrier that has ended, with its sentence. */
static dscomm_status_t outcome_status(const dscomm_group_t *group,
                                      const outcome_t *outcome)
{
    const char *what = "did not come";
    int culprit = outcome_names(outcome, group->rank);
    char early[64] = "";
    char *ranks;

    if (outcome->end == PASSED)
        return DSCOMM_OK;
    if (outcome->end == GAVE_UP) {
        what = "gave up, since rank 0 did not come";
        culprit = group->rank == 0;
    }
    if (outcome->early_ms)
        snprintf(early, sizeof early, ", less %d ms for all to be told",
                 (int)outcome->early_ms);
    ranks = outcome_list_ranks(group, outcome);
    if (outcome->end == LOST)
        dscomm_fail(DSCOMM_ERR_PEER_FAILED, "%s of group '%s': %s left or died",
                    name, group->identity.name, ranks);
    else
        dscomm_fail(DSCOMM_ERR_TIMEOUT,
                    "%s of group '%s': %s %s within the %d ms that rank %d "
                    "waits%s%s",
                    name, group->identity.name, ranks, what,
                    (int)outcome->timeout_ms, (int)outcome->whose, early,
                    culprit ? "; this rank came too late" : "");
    g_free(ranks);
    return outcome->end == LOST ? DSCOMM_ERR_PEER_FAILED : DSCOMM_ERR_TIMEOUT;
}

/* The answers that rank 0 collects. */
typedef struct {
    answer_t *answers;
    dscomm_work_t **works; /* for each rank, the receive of its answer, or NULL
                              after the answer came */
    int missing; /* ranks that have not answered */
    int64_t deadline;
    watch_t watch;
} collection_t;

static dscomm_status_t answer_receive(dscomm_group_t *group,
                                      collection_t *collection, int rank)
{
    note_t note = {1, &collection->answers[rank], sizeof(answer_t), rank,
                   TAG_ANSWER};

    return note_post(group, &note, &collection->works[rank]);
}

/* Notes the answer of a rank. Its deadline may be the earliest. */
static void answer_take(collection_t *collection, outcome_t *outcome, int rank)
{
    const answer_t *answer = &collection->answers[rank];
    int64_t left = (int64_t)MIN(answer->left_ms, INT_MAX);
    int64_t early = MIN(left / 4, OUTCOME_MS);
    int64_t deadline = dscomm_priv_clock() + (left - early) * NS_PER_MS;

    collection->missing--;
    if (!left)
        outcome_set(outcome, GAVE_UP, rank);
    if (deadline >= collection->deadline)
        return;
    collection->deadline = deadline;
    outcome->whose = (uint64_t)rank;
    outcome->timeout_ms = answer->timeout_ms;
    outcome->early_ms = (uint64_t)early;
}

/* Looks at the ranks that have not answered. */
static dscomm_status_t answers_look(dscomm_group_t *group,
                                    collection_t *collection)
{
    int *ranks = g_try_new(int, (gsize)group->size);
    int count = 0;
    dscomm_status_t status;

    if (!ranks)
        return DSCOMM_OK;
    for (int rank = 1; rank < group->size; rank++)
        if (collection->works[rank])
            ranks[count++] = rank;
    status = watch_look(group, &collection->watch, ranks, count,
                        collection->deadline);
    g_free(ranks);
    return status;
}

/* Waits until all ranks have answered, the deadline has passed, or a rank has
 * left. */
static dscomm_status_t answers_collect(dscomm_group_t *group,
                                       collection_t *collection,
                                       outcome_t *outcome)
{
    while (collection->missing && outcome->end == PASSED) {
        size_t rank;
        const int64_t end =
            watch_next(&collection->watch, collection->deadline);
        dscomm_status_t status =
            dscomm_work_wait_any(collection->works, (size_t)group->size,
                                 dscomm_priv_clock_left(end), &rank);

        if (status == DSCOMM_IN_PROGRESS) {
            status = answers_look(group, collection);
            if (status < 0)
                return barrier_fail(group, status);
            if (dscomm_priv_clock() >= collection->deadline)
                break;
            continue;
        }
        g_clear_pointer(&collection->works[rank], dscomm_work_free);
        if (status < 0) {
            /* if the group has ended, any receive may be the first to end */
            if (dscomm_priv_group_revoked(group, NULL) == DSCOMM_OK)
                outcome_set(outcome, LOST, (int)rank);
            return barrier_fail(group, status);
        }
        if (collection->answers[rank].number == group->life.barriers)
            answer_take(collection, outcome, (int)rank);
        else if ((status = answer_receive(group, collection, (int)rank)) < 0)
            return barrier_fail(group, status);
    }
    return DSCOMM_OK;
}

/* Cancels the receives of missing answers. If nothing else failed, these ranks
 * are the late ones. */
static void answers_cancel(dscomm_group_t *group, collection_t *collection,
                           outcome_t *outcome)
{
    int late = outcome->end == PASSED;

    for (int rank = 1; rank < group->size; rank++) {
        if (!collection->works[rank])
            continue;
        note_cancel(collection->works[rank]);
        if (late)
            outcome_set(outcome, LATE, rank);
    }
}

static dscomm_status_t barrier_call_all(dscomm_group_t *group,
                                        collection_t *collection)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int rank = 1; rank < group->size && status == DSCOMM_OK; rank++) {
        note_t note = {0, &group->life.barriers, sizeof(uint64_t), rank,
                       TAG_CALL};

        status = answer_receive(group, collection, rank);
        if (status == DSCOMM_OK)
            status = note_post_copy(group, &note);
    }
    return barrier_fail(group, status);
}

/* Sends the outcome, also to late ranks: they then return as soon as they
 * call. */
static dscomm_status_t outcome_send_all(dscomm_group_t *group,
                                        outcome_t *outcome)
{
    dscomm_status_t status = DSCOMM_OK;

    outcome->number = group->life.barriers;
    for (int rank = 1; rank < group->size && status == DSCOMM_OK; rank++) {
        note_t note = {0, outcome, outcome_bytes(group), rank, TAG_OUTCOME};

        if (outcome->end != LOST || !outcome_names(outcome, rank))
            status = note_post_copy(group, &note);
    }
    return barrier_fail(group, status);
}

static dscomm_status_t barrier_lead(dscomm_group_t *group, outcome_t *outcome,
                                    int64_t deadline)
{
    const size_t size = (size_t)group->size;
    collection_t collection = {
        .answers =
            dscomm_priv_group_memory(group, name, size, sizeof(answer_t)),
        .works = dscomm_priv_group_memory(group, name, size, sizeof(void *)),
        .missing = group->size - 1,
        .deadline = deadline,
        .watch = watch_begin()};
    dscomm_status_t status, sent = DSCOMM_OK;

    if (!collection.answers || !collection.works) {
        g_free(collection.answers);
        g_free(collection.works);
        return DSCOMM_ERR_NO_MEMORY;
    }
    status = barrier_call_all(group, &collection);
    if (status == DSCOMM_OK)
        status = answers_collect(group, &collection, outcome);
    answers_cancel(group, &collection, outcome);
    g_free(collection.works);
    dscomm_priv_buffer_drop(group, collection.answers);
    if (status == DSCOMM_OK || outcome->end == LOST)
        sent = outcome_send_all(group, outcome);
    return status < 0 ? status : sent;
}

/* Rank 0 did not call in time. The answer says that this rank gave up, so rank
 * 0 need not wait for it. */
static dscomm_status_t barrier_give_up(dscomm_group_t *group, answer_t *answer)
{
    note_t note = {0, answer, sizeof *answer, 0, TAG_ANSWER};
    dscomm_status_t status = note_post_copy(group, &note);

    if (status < 0)
        return barrier_fail(group, status);
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "%s of group '%s': rank 0 of %d did not come within %d "
                       "ms",
                       name, group->identity.name, group->size,
                       (int)answer->timeout_ms);
}

/* *ret_leader_late: the sentence names rank 0. Then outcome may still be
 * written. */
static dscomm_status_t barrier_follow(dscomm_group_t *group, outcome_t *outcome,
                                      int timeout_ms, int64_t deadline,
                                      bool *ret_leader_late)
{
    uint64_t *call = dscomm_priv_group_memory(group, name, 1, sizeof *call);
    answer_t answer = {.number = group->life.barriers,
                       .timeout_ms = (uint64_t)timeout_ms};
    note_t called = {1, call, sizeof *call, 0, TAG_CALL};
    note_t here = {0, &answer, sizeof answer, 0, TAG_ANSWER};
    note_t note = {1, outcome, outcome_bytes(group), 0, TAG_OUTCOME};
    dscomm_status_t status;

    if (!call)
        return DSCOMM_ERR_NO_MEMORY;
    status = note_await(group, &called, deadline);
    dscomm_priv_buffer_drop(group, call);
    if (status == DSCOMM_IN_PROGRESS) {
        status = barrier_give_up(group, &answer);
        *ret_leader_late = dscomm_priv_group_revoked(group, NULL) == DSCOMM_OK;
        return status;
    }
    if (status < 0)
        return status;
    answer.left_ms = MAX((uint64_t)dscomm_priv_clock_left(deadline), 1);
    status = note_post_copy(group, &here);
    if (status < 0)
        return barrier_fail(group, status);
    status = note_await(group, &note, deadline);
    if (status != DSCOMM_IN_PROGRESS)
        return status;
    *ret_leader_late = true;
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "%s of group '%s': rank 0 of %d came, but did not "
                       "say within %d ms who is missing",
                       name, group->identity.name, group->size, timeout_ms);
}

/* Puts the rank that the record of a failure names into ret_ranks. */
static void failure_ranks(dscomm_group_t *group, dscomm_status_t status,
                          int *ret_ranks, int *ret_count)
{
    dscomm_failure_t failure;

    if (status != DSCOMM_ERR_TIMEOUT && status != DSCOMM_ERR_PEER_FAILED)
        return;
    barrier_failure(group, status, &failure);
    for (int rank = 0; rank < group->size && failure.rank >= 0; rank++)
        if (group->identity.world_ranks[rank] == failure.rank)
            ret_ranks[(*ret_count)++] = rank;
}

/* Returns the status of a barrier that ended with status. The ranks that the
 * sentence names go to ret_ranks unless it is NULL. */
static dscomm_status_t barrier_end(dscomm_group_t *group,
                                   const outcome_t *outcome,
                                   dscomm_status_t status, bool leader_late,
                                   int *ret_ranks, int *ret_count)
{
    const bool told =
        status == DSCOMM_OK || (group->rank == 0 && outcome->end == LOST);

    if (status == DSCOMM_OK)
        status = outcome_status(group, outcome);
    if (status == DSCOMM_OK || !ret_ranks)
        return status;
    if (leader_late)
        ret_ranks[(*ret_count)++] = 0;
    else if (told)
        outcome_ranks(group, outcome, ret_ranks, ret_count);
    else
        failure_ranks(group, status, ret_ranks, ret_count);
    return status;
}

static dscomm_status_t barrier_run(dscomm_group_t *group, int timeout_ms,
                                   int *ret_ranks, int *ret_count)
{
    dscomm_status_t status = dscomm_priv_group_ready(group, name);
    outcome_t *outcome;
    int64_t deadline;
    bool leader_late = false;

    if (status == DSCOMM_ERR_INVALID || status == DSCOMM_ERR_STATE)
        return status;
    /* the group ended before; the last sentence is of another call */
    if (status < 0) {
        status = barrier_fail(group, status);
        if (ret_ranks)
            failure_ranks(group, status, ret_ranks, ret_count);
        return status;
    }
    if (timeout_ms < DSCOMM_TIMEOUT_DEFAULT)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: timeout_ms is %d", name,
                           timeout_ms);
    if (timeout_ms == DSCOMM_TIMEOUT_DEFAULT)
        timeout_ms = group->timeout_ms;
    deadline = dscomm_priv_clock_after(dscomm_priv_clock(), timeout_ms);
    group->life.barriers++;
    outcome = dscomm_priv_group_memory(group, name, 1, outcome_bytes(group));
    if (!outcome)
        return DSCOMM_ERR_NO_MEMORY;
    outcome->timeout_ms = (uint64_t)timeout_ms;
    if (group->rank == 0)
        status = barrier_lead(group, outcome, deadline);
    else
        status =
            barrier_follow(group, outcome, timeout_ms, deadline, &leader_late);
    status =
        barrier_end(group, outcome, status, leader_late, ret_ranks, ret_count);
    dscomm_priv_buffer_drop(group, outcome);
    return status;
}

dscomm_status_t dscomm_monitored_barrier(dscomm_group_t *group, int timeout_ms)
{
    return barrier_run(group, timeout_ms, NULL, NULL);
}

dscomm_status_t dscomm_monitored_barrier_late(dscomm_group_t *group,
                                              int timeout_ms, int *ret_ranks,
                                              int *ret_count)
{
    if (!ret_ranks || !ret_count)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s_late: %s is NULL", name,
                           ret_ranks ? "ret_count" : "ret_ranks");
    *ret_count = 0;
    return barrier_run(group, timeout_ms, ret_ranks, ret_count);
}
