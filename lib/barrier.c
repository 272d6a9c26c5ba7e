/* SPDX-License-Identifier: BSD-3-Clause */
/* The monitored barrier: rank 0 hears from everyone, then tells everyone who
 * came.
 *
 * Messages carry the number of the barrier: what arrives late, for a barrier
 * that has ended already, is thrown away by the next one. They use tags that no
 * user can name and DSCOMM_ANY_TAG does not match. */
#include "config.h"
#include "lib/clock.h"
#include "lib/progress.h"

#include <string.h>

#define TAG_ARRIVED (-2)
#define TAG_VERDICT (-3)
#define ANSWER_GRACE_MS 1000

/* One message of the barrier. */
typedef struct {
    int receive;
    void *buffer;
    size_t bytes;
    int peer, tag;
} note_t;

static dscomm_call_t describe(const note_t *note)
{
    dscomm_call_t call = {.kind = CALL_MESSAGE, .async = 1, .internal = 1};

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

static dscomm_status_t post(dscomm_group_t *group, const note_t *note,
                            dscomm_work_t **ret_work)
{
    dscomm_call_t call = describe(note);

    return dscomm_priv_work_start(group, &call, ret_work);
}

/* Sends a copy of note's bytes and does not wait for it. */
static dscomm_status_t post_copy(dscomm_group_t *group, const note_t *note)
{
    dscomm_call_t call = describe(note);
    dscomm_work_t *work;
    dscomm_status_t status;

    pthread_mutex_lock(&group->lock);
    status = dscomm_priv_work_new(group, &call, &work);
    if (status == DSCOMM_OK) {
        work->copy = memcpy(g_malloc(note->bytes), note->buffer, note->bytes);
        work->call.p2p.message.send = work->copy;
        work->zombie = 1;
        status = dscomm_priv_work_launch(work);
        if (status < 0)
            dscomm_priv_work_discard(work);
    }
    pthread_mutex_unlock(&group->lock);
    return status;
}

/* A receive that nobody waits for any more. */
static void withdraw(dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;

    pthread_mutex_lock(&group->lock);
    if (!dscomm_priv_work_done(work))
        dscomm_priv_work_cancel(work, DSCOMM_ERR_TIMEOUT, "");
    dscomm_priv_pending_settle(group);
    pthread_mutex_unlock(&group->lock);
    dscomm_work_free(work);
}

/* Receives note, whose first word is the barrier's number; what older barriers
 * left behind is thrown away. IN_PROGRESS where nothing came before the
 * deadline. */
static dscomm_status_t await(dscomm_group_t *group, const note_t *note,
                             dscomm_work_t *work, int64_t deadline)
{
    const uint64_t *number = note->buffer;
    dscomm_status_t status;

    for (;;) {
        status = dscomm_priv_work_wait(work, dscomm_priv_clock_left(deadline));
        if (status == DSCOMM_IN_PROGRESS) {
            withdraw(work);
            return status;
        }
        dscomm_work_free(work);
        if (status < 0 || *number == group->barriers)
            return status;
        status = post(group, note, &work);
        if (status < 0)
            return status;
    }
}

/* The verdict: the barrier's number, then a bit for each rank that is late. */
typedef struct {
    uint64_t *words;
    size_t bytes;
} verdict_t;

static verdict_t verdict_new(const dscomm_group_t *group)
{
    size_t words = 1 + ((size_t)group->size + 63) / 64;
    verdict_t verdict = {g_new0(uint64_t, words), words * sizeof(uint64_t)};

    return verdict;
}

static int is_late(const verdict_t *verdict, int rank)
{
    return verdict->words[1 + rank / 64] >> (rank % 64) & 1;
}

static void set_late(verdict_t *verdict, int rank)
{
    verdict->words[1 + rank / 64] |= UINT64_C(1) << (rank % 64);
}

/* OK, or ERR_TIMEOUT with the numbers of all that are late. */
static dscomm_status_t pronounce(const dscomm_group_t *group,
                                 const verdict_t *verdict, int timeout_ms)
{
    GString *ranks = g_string_new(NULL);
    dscomm_status_t status = DSCOMM_OK;
    int rank, late = 0;

    for (rank = 0; rank < group->size; rank++) {
        if (!is_late(verdict, rank))
            continue;
        g_string_append_printf(ranks, "%s%d", late ? ", " : "", rank);
        late++;
    }
    if (late)
        status = dscomm_fail(DSCOMM_ERR_TIMEOUT,
                             "monitored_barrier of group '%s': rank%s %s of %d "
                             "did not come within %d ms",
                             group->name, late > 1 ? "s" : "", ranks->str,
                             group->size, timeout_ms);
    g_string_free(ranks, TRUE);
    return status;
}

static dscomm_status_t collect(dscomm_group_t *group, verdict_t *verdict,
                               int64_t deadline)
{
    uint64_t *numbers = g_new0(uint64_t, (gsize)group->size);
    dscomm_work_t **works = g_new0(dscomm_work_t *, (gsize)group->size);
    dscomm_status_t status = DSCOMM_OK;
    int rank;

    for (rank = 1; rank < group->size && status == DSCOMM_OK; rank++) {
        note_t note = {1, &numbers[rank], sizeof(*numbers), rank, TAG_ARRIVED};
        status = post(group, &note, &works[rank]);
    }
    for (rank = 1; rank < group->size; rank++) {
        note_t note = {1, &numbers[rank], sizeof(*numbers), rank, TAG_ARRIVED};
        dscomm_status_t one;

        if (!works[rank])
            continue;
        one = await(group, &note, works[rank], status < 0 ? 0 : deadline);
        if (one == DSCOMM_IN_PROGRESS)
            set_late(verdict, rank);
        else if (one < 0)
            status = one;
    }
    g_free(works);
    g_free(numbers);
    return status;
}

static dscomm_status_t lead(dscomm_group_t *group, verdict_t *verdict,
                            int64_t deadline)
{
    dscomm_status_t status = collect(group, verdict, deadline);
    int rank;

    verdict->words[0] = group->barriers;
    for (rank = 1; rank < group->size && status == DSCOMM_OK; rank++) {
        note_t note = {0, verdict->words, verdict->bytes, rank, TAG_VERDICT};
        if (!is_late(verdict, rank))
            status = post_copy(group, &note);
    }
    return status;
}

/* Rank 0 may have come a moment later than this rank, and so answers later. */
static dscomm_status_t follow(dscomm_group_t *group, verdict_t *verdict,
                              int64_t deadline)
{
    note_t here = {0, &group->barriers, sizeof(uint64_t), 0, TAG_ARRIVED};
    note_t answer = {1, verdict->words, verdict->bytes, 0, TAG_VERDICT};
    dscomm_work_t *work;
    dscomm_status_t status = post_copy(group, &here);

    if (status == DSCOMM_OK)
        status = post(group, &answer, &work);
    if (status == DSCOMM_OK)
        status = await(group, &answer, work, deadline);
    if (status == DSCOMM_IN_PROGRESS)
        return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                           "monitored_barrier of group '%s': rank 0 sent no "
                           "answer; it did not come itself, or this rank, %d, "
                           "came too late for it",
                           group->name, group->rank);
    return status;
}

dscomm_status_t dscomm_monitored_barrier(dscomm_group_t *group, int timeout_ms)
{
    const char *name = "dscomm_monitored_barrier";
    dscomm_status_t status = dscomm_priv_group_ready(group, name);
    verdict_t verdict;
    int64_t now;
    int grace;

    if (status < 0)
        return status;
    if (timeout_ms < DSCOMM_TIMEOUT_DEFAULT)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: timeout_ms is %d", name,
                           timeout_ms);
    if (timeout_ms == DSCOMM_TIMEOUT_DEFAULT)
        timeout_ms = group->timeout_ms;
    now = dscomm_priv_clock();
    grace = MAX(timeout_ms, ANSWER_GRACE_MS);
    group->barriers++;
    verdict = verdict_new(group);
    if (group->rank == 0)
        status =
            lead(group, &verdict, dscomm_priv_clock_after(now, timeout_ms));
    else
        status = follow(group, &verdict,
                        dscomm_priv_clock_after(now, timeout_ms) +
                            grace * NS_PER_MS);
    if (status == DSCOMM_OK)
        status = pronounce(group, &verdict, timeout_ms);
    g_free(verdict.words);
    return status;
}
