/* SPDX-License-Identifier: BSD-3-Clause */
/* The monitored barrier. Rank 0 calls everyone; who hears it answers how much
 * time it has left, or that it has waited in vain before; and rank 0 tells all,
 * also those that come later, how the barrier ended. It waits no longer than
 * the earliest deadline allows, so that nobody ends without knowing who was
 * missing.
 *
 * A missing rank may wait in another collective, for ranks that are here. Rank
 * 0 looks for such ranks, and the others look at rank 0. Who finds one ends the
 * group, so that all ranks return the same.
 *
 * Messages carry the number of the barrier: what was meant for one that has
 * ended is thrown away by the next. They use tags that no user can name and
 * DSCOMM_ANY_TAG does not match. */
#include "config.h"
#include "lib/base/clock.h"
#include "lib/diagnosis/diagnosis.h"
#include "lib/call/receive.h"
#include "lib/work/deadline.h"
#include "lib/work/progress.h"
#include "lib/base/status.h"

#include <stdio.h>
#include <string.h>

#define TAG_CALL (-2)
#define TAG_ANSWER (-3)
#define TAG_VERDICT (-4)
#define TRAVEL_MS 500 /* of a deadline, for the verdict to arrive */

static const char name[] = "dscomm_monitored_barrier";

/* One message of the barrier. */
typedef struct {
    int receive;
    void *buffer;
    size_t bytes;
    int peer, tag;
} note_t;

static dscomm_call_t describe(const note_t *note)
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

static dscomm_status_t post(dscomm_group_t *group, const note_t *note,
                            dscomm_work_t **ret_work)
{
    dscomm_call_t call = describe(note);

    return dscomm_priv_work_start(group, &dscomm_priv_message_kind, &call,
                                  ret_work);
}

/* Sends a copy of note's bytes and does not wait for it. */
static dscomm_status_t post_copy(dscomm_group_t *group, const note_t *note)
{
    void *copy = dscomm_priv_group_memory(group, name, 1, note->bytes);
    dscomm_call_t call = describe(note);
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

/* A receive that nobody waits for any more. */
static void withdraw(dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;

    pthread_mutex_lock(&group->works.lock);
    if (!dscomm_priv_work_done(work))
        dscomm_priv_work_cancel(work, DSCOMM_ERR_TIMEOUT, "");
    dscomm_priv_pending_settle(group);
    pthread_mutex_unlock(&group->works.lock);
    dscomm_work_free(work);
}

/* text without "group 'NAME': ", which the caller says itself. */
static const char *without_group(const dscomm_group_t *group, const char *text)
{
    static const char before[] = "group '", after[] = "': ";
    const char *rest = text;

    if (strncmp(rest, before, strlen(before)))
        return text;
    rest += strlen(before);
    if (strncmp(rest, group->identity.name, strlen(group->identity.name)))
        return text;
    rest += strlen(group->identity.name);
    return strncmp(rest, after, strlen(after)) ? text : rest + strlen(after);
}

/* The sentence of what failed says in which call. If the group has ended, its
 * reason counts: a rank that left after it is no other failure. */
static dscomm_status_t explain(dscomm_group_t *group, dscomm_status_t status)
{
    char text[DSCOMM_ERROR_MAX];
    dscomm_status_t ended = DSCOMM_OK;

    if (status < 0)
        ended = dscomm_priv_group_revoked(group, text, sizeof text);
    if (ended < 0)
        status = dscomm_priv_fail_with(ended, text);
    if (status < 0)
        dscomm_fail(status, "%s of group '%s': %s", name, group->identity.name,
                    without_group(group, dscomm_last_error()));
    return status;
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

/* Clock of the next look: of two before the deadline, the second one confirms
 * what the first has found, while the store may still be asked. */
static int64_t watch_next(const watch_t *watch, int64_t deadline)
{
    const int64_t last_ns = deadline - 2 * FIRST_LOOK_NS;

    if (watch->found || watch->looked_ns >= last_ns)
        return MIN(watch->looked_ns + FIRST_LOOK_NS, deadline);
    return MIN(watch->looked_ns + watch->gap_ns, last_ns);
}

/* A rank that gave up on this barrier may be in the next collective, and its
 * message on the way, so that one look is not enough. The status of the group's
 * end. */
static dscomm_status_t watch_look(dscomm_group_t *group, watch_t *watch,
                                  const int *ranks, int count, int64_t deadline)
{
    char text[DSCOMM_ERROR_MAX];
    const int before = watch->found;
    const dscomm_status_t status = dscomm_priv_diagnosis_barrier(
        group, ranks, count, deadline, text, sizeof text);

    watch->found = status < 0;
    if (!before || !watch->found) {
        watch->looked_ns = dscomm_priv_clock();
        watch->gap_ns *= 2;
        return DSCOMM_OK;
    }
    dscomm_priv_group_revoke(group, status, text);
    return dscomm_priv_fail_with(
        dscomm_priv_group_revoked(group, text, sizeof text), text);
}

/* Waits until the deadline for rank 0's message. */
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

/* Receives note of rank 0, whose first word is the barrier's number; what older
 * barriers left behind is thrown away. IN_PROGRESS where nothing came before
 * the deadline. */
static dscomm_status_t await(dscomm_group_t *group, const note_t *note,
                             int64_t deadline)
{
    const uint64_t *number = note->buffer;
    dscomm_work_t *work;
    dscomm_status_t status;

    do {
        status = post(group, note, &work);
        if (status < 0)
            break;
        status = wait_watching(group, work, deadline);
        withdraw(work);
    } while (status == DSCOMM_OK && *number != group->life.barriers);
    return explain(group, status);
}

/* What a rank answers. */
typedef struct {
    uint64_t number;
    uint64_t left_ms; /* until its deadline; 0: it gave up */
    uint64_t timeout_ms; /* that it was given */
} answer_t;

/* How a barrier ended: if not for all, then the named ranks are why. */
typedef enum { PASSED, LATE, GAVE_UP, LOST } end_t;

typedef struct {
    uint64_t number, end, timeout_ms;
    uint64_t whose; /* rank with that time-out, the earliest */
    uint64_t early_ms; /* before its deadline the barrier ended */
    uint64_t named[]; /* a bit for each rank */
} verdict_t;

static size_t verdict_bytes(const dscomm_group_t *group)
{
    return sizeof(verdict_t) +
           ((size_t)group->size + 63) / 64 * sizeof(uint64_t);
}

static int is_named(const verdict_t *verdict, int rank)
{
    return verdict->named[rank / 64] >> (rank % 64) & 1;
}

static void set_end(verdict_t *verdict, end_t end, int rank)
{
    verdict->end = end;
    verdict->named[rank / 64] |= UINT64_C(1) << (rank % 64);
}

/* "ranks 1, 3 of 5", to be freed. */
static char *list_named(const dscomm_group_t *group, const verdict_t *verdict)
{
    GString *text = g_string_new(NULL);
    int count = 0;

    for (int rank = 0; rank < group->size; rank++)
        if (is_named(verdict, rank))
            g_string_append_printf(text, "%s%d", count++ ? ", " : "", rank);
    g_string_prepend(text, count > 1 ? "ranks " : "rank ");
    g_string_append_printf(text, " of %d", group->size);
    return g_string_free(text, FALSE);
}

/* The status of a barrier that has ended, and its sentence. */
static dscomm_status_t pronounce(const dscomm_group_t *group,
                                 const verdict_t *verdict)
{
    const char *what = "did not come";
    int culprit = is_named(verdict, group->rank);
    char early[64] = "";
    char *ranks;

    if (verdict->end == PASSED)
        return DSCOMM_OK;
    if (verdict->end == GAVE_UP) {
        what = "gave up, since rank 0 did not come";
        culprit = group->rank == 0;
    }
    if (verdict->early_ms)
        snprintf(early, sizeof early, ", less %d ms for all to be told",
                 (int)verdict->early_ms);
    ranks = list_named(group, verdict);
    if (verdict->end == LOST)
        dscomm_fail(DSCOMM_ERR_PEER_FAILED, "%s of group '%s': %s left or died",
                    name, group->identity.name, ranks);
    else
        dscomm_fail(DSCOMM_ERR_TIMEOUT,
                    "%s of group '%s': %s %s within the %d ms that rank %d "
                    "waits%s%s",
                    name, group->identity.name, ranks, what,
                    (int)verdict->timeout_ms, (int)verdict->whose, early,
                    culprit ? "; this rank came too late" : "");
    g_free(ranks);
    return verdict->end == LOST ? DSCOMM_ERR_PEER_FAILED : DSCOMM_ERR_TIMEOUT;
}

/* Rank 0's view while it collects answers. */
typedef struct {
    answer_t *answers;
    dscomm_work_t **works; /* receives that wait, of each rank or NULL */
    int missing; /* how many */
    int64_t deadline;
    watch_t watch;
} roll_t;

static dscomm_status_t ask(dscomm_group_t *group, roll_t *roll, int rank)
{
    note_t note = {1, &roll->answers[rank], sizeof(answer_t), rank, TAG_ANSWER};

    return post(group, &note, &roll->works[rank]);
}

/* A rank has come. Its deadline may be before all others. */
static void take_answer(roll_t *roll, verdict_t *verdict, int rank)
{
    const answer_t *answer = &roll->answers[rank];
    int64_t left = (int64_t)MIN(answer->left_ms, INT_MAX);
    int64_t early = MIN(left / 4, TRAVEL_MS);
    int64_t deadline = dscomm_priv_clock() + (left - early) * NS_PER_MS;

    roll->missing--;
    if (!left)
        set_end(verdict, GAVE_UP, rank);
    if (deadline >= roll->deadline)
        return;
    roll->deadline = deadline;
    verdict->whose = (uint64_t)rank;
    verdict->timeout_ms = answer->timeout_ms;
    verdict->early_ms = (uint64_t)early;
}

/* A look at the ranks that have not answered. */
static dscomm_status_t look(dscomm_group_t *group, roll_t *roll)
{
    int *ranks = g_try_new(int, (gsize)group->size);
    int count = 0;
    dscomm_status_t status;

    if (!ranks)
        return DSCOMM_OK;
    for (int rank = 1; rank < group->size; rank++)
        if (roll->works[rank])
            ranks[count++] = rank;
    status = watch_look(group, &roll->watch, ranks, count, roll->deadline);
    g_free(ranks);
    return status;
}

/* Until all have come, the time is up, or one of them will not come. */
static dscomm_status_t collect(dscomm_group_t *group, roll_t *roll,
                               verdict_t *verdict)
{
    while (roll->missing && verdict->end == PASSED) {
        size_t rank;
        const int64_t end = watch_next(&roll->watch, roll->deadline);
        dscomm_status_t status =
            dscomm_work_wait_any(roll->works, (size_t)group->size,
                                 dscomm_priv_clock_left(end), &rank);

        if (status == DSCOMM_IN_PROGRESS) {
            status = look(group, roll);
            if (status < 0)
                return explain(group, status);
            if (dscomm_priv_clock() >= roll->deadline)
                break;
            continue;
        }
        g_clear_pointer(&roll->works[rank], dscomm_work_free);
        if (status < 0) {
            set_end(verdict, LOST, (int)rank);
            return explain(group, status);
        }
        if (roll->answers[rank].number == group->life.barriers)
            take_answer(roll, verdict, (int)rank);
        else if ((status = ask(group, roll, (int)rank)) < 0)
            return explain(group, status);
    }
    return DSCOMM_OK;
}

/* Ranks whose receives still wait are late, unless something else happened. */
static void withdraw_all(dscomm_group_t *group, roll_t *roll,
                         verdict_t *verdict)
{
    int late = verdict->end == PASSED;

    for (int rank = 1; rank < group->size; rank++) {
        if (!roll->works[rank])
            continue;
        withdraw(roll->works[rank]);
        if (late)
            set_end(verdict, LATE, rank);
    }
}

static dscomm_status_t call_all(dscomm_group_t *group, roll_t *roll)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int rank = 1; rank < group->size && status == DSCOMM_OK; rank++) {
        note_t note = {0, &group->life.barriers, sizeof(uint64_t), rank,
                       TAG_CALL};

        status = ask(group, roll, rank);
        if (status == DSCOMM_OK)
            status = post_copy(group, &note);
    }
    return explain(group, status);
}

/* Also to those that are late: they need not wait when they come. */
static dscomm_status_t tell_all(dscomm_group_t *group, verdict_t *verdict)
{
    dscomm_status_t status = DSCOMM_OK;

    verdict->number = group->life.barriers;
    for (int rank = 1; rank < group->size && status == DSCOMM_OK; rank++) {
        note_t note = {0, verdict, verdict_bytes(group), rank, TAG_VERDICT};

        if (verdict->end != LOST || !is_named(verdict, rank))
            status = post_copy(group, &note);
    }
    return explain(group, status);
}

static dscomm_status_t lead(dscomm_group_t *group, verdict_t *verdict,
                            int64_t deadline)
{
    const size_t size = (size_t)group->size;
    roll_t roll = {
        .answers =
            dscomm_priv_group_memory(group, name, size, sizeof(answer_t)),
        .works = dscomm_priv_group_memory(group, name, size, sizeof(void *)),
        .missing = group->size - 1,
        .deadline = deadline,
        .watch = watch_begin()};
    dscomm_status_t status, told = DSCOMM_OK;

    if (!roll.answers || !roll.works) {
        g_free(roll.answers);
        g_free(roll.works);
        return DSCOMM_ERR_NO_MEMORY;
    }
    status = call_all(group, &roll);
    if (status == DSCOMM_OK)
        status = collect(group, &roll, verdict);
    withdraw_all(group, &roll, verdict);
    g_free(roll.works);
    dscomm_priv_buffer_drop(group, roll.answers);
    if (status == DSCOMM_OK || verdict->end == LOST)
        told = tell_all(group, verdict);
    return status < 0 ? status : told;
}

/* Rank 0 has not called in time: it need not wait for this rank when it
 * does. */
static dscomm_status_t give_up(dscomm_group_t *group, answer_t *answer)
{
    note_t note = {0, answer, sizeof *answer, 0, TAG_ANSWER};
    dscomm_status_t status = post_copy(group, &note);

    if (status < 0)
        return explain(group, status);
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "%s of group '%s': rank 0 of %d did not come within %d "
                       "ms",
                       name, group->identity.name, group->size,
                       (int)answer->timeout_ms);
}

static dscomm_status_t follow(dscomm_group_t *group, verdict_t *verdict,
                              int timeout_ms, int64_t deadline)
{
    uint64_t *call = dscomm_priv_group_memory(group, name, 1, sizeof *call);
    answer_t answer = {.number = group->life.barriers,
                       .timeout_ms = (uint64_t)timeout_ms};
    note_t called = {1, call, sizeof *call, 0, TAG_CALL};
    note_t here = {0, &answer, sizeof answer, 0, TAG_ANSWER};
    note_t told = {1, verdict, verdict_bytes(group), 0, TAG_VERDICT};
    dscomm_status_t status;

    if (!call)
        return DSCOMM_ERR_NO_MEMORY;
    status = await(group, &called, deadline);
    dscomm_priv_buffer_drop(group, call);
    if (status == DSCOMM_IN_PROGRESS)
        return give_up(group, &answer);
    if (status < 0)
        return status;
    answer.left_ms = MAX((uint64_t)dscomm_priv_clock_left(deadline), 1);
    status = post_copy(group, &here);
    if (status < 0)
        return explain(group, status);
    status = await(group, &told, deadline);
    if (status == DSCOMM_IN_PROGRESS)
        return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                           "%s of group '%s': rank 0 of %d came, but did not "
                           "say within %d ms who is missing",
                           name, group->identity.name, group->size, timeout_ms);
    return status;
}

dscomm_status_t dscomm_monitored_barrier(dscomm_group_t *group, int timeout_ms)
{
    dscomm_status_t status = dscomm_priv_group_ready(group, name);
    verdict_t *verdict;
    int64_t deadline;

    if (status == DSCOMM_ERR_INVALID || status == DSCOMM_ERR_STATE)
        return status;
    if (status < 0) /* broken before; the sentence is of another call */
        return explain(group, status);
    if (timeout_ms < DSCOMM_TIMEOUT_DEFAULT)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: timeout_ms is %d", name,
                           timeout_ms);
    if (timeout_ms == DSCOMM_TIMEOUT_DEFAULT)
        timeout_ms = group->timeout_ms;
    deadline = dscomm_priv_clock_after(dscomm_priv_clock(), timeout_ms);
    group->life.barriers++;
    verdict = dscomm_priv_group_memory(group, name, 1, verdict_bytes(group));
    if (!verdict)
        return DSCOMM_ERR_NO_MEMORY;
    verdict->timeout_ms = (uint64_t)timeout_ms;
    if (group->rank == 0)
        status = lead(group, verdict, deadline);
    else
        status = follow(group, verdict, timeout_ms, deadline);
    if (status == DSCOMM_OK)
        status = pronounce(group, verdict);
    dscomm_priv_buffer_drop(group, verdict);
    return status;
}
