/* SPDX-License-Identifier: BSD-3-Clause */
/* See diagnosis.h. A report's key in the store is the rank's number in the
 * world. So a later report replaces it, whichever group it is about. */
#include "config.h"
#include "lib/diagnosis/diagnosis.h"
#include "lib/base/clock.h"
#include "lib/diagnosis/history.h"
#include "lib/group/failure.h"
#include "lib/group/published.h"
#include "lib/group/recorded.h"
#include "lib/group/world.h"
#include "lib/rendezvous/processes.h"
#include "lib/rendezvous/rendezvous.h"
#include "lib/store/store.h"

#include <stdio.h>
#include <string.h>

#define QUERIED 64 /* the first ranks, whose reports are always read */
#define LATE_RANKS_NAMED 8 /* ranks that one sentence names */
#define CALL_MS 200 /* time-out of one request to the store */
#define ALL_MS 500 /* time-out of all requests of one diagnosis */
/* Wait for reports that others are about to write. Ranks that wait in the
 * collective write theirs after a second (EARLY_AFTER_MS), so that long if
 * they are needed to see what most ranks have called. */
#define GRACE_MS 250
#define VOTE_MS 1250
/* Wait for the report of a rank whose header shows a mismatch in an earlier
 * call. A rank writes its report after it has waited for a moment. That is late
 * if it computes, or if the machine is loaded. */
#define PEER_MS 2000
/* Time to wait, after a time-out, for a rank of another machine that may know
 * more, up to one request more. Ranks that wait for each other do not time out
 * at once. */
#define ELSEWHERE_MS 1000
#define LOOK_GAP_US 50000

/* Without the group's lock, a diagnosis uses only members of the group that
 * never change. */
struct dscomm_diagnosis {
    dscomm_group_t *group;
    dscomm_store_t *store;
    uint64_t sequence; /* of the collective */
    int64_t deadline;
    int broken; /* the store does not answer */
    int nwaits, *waits; /* ranks that this one waits for */
    dscomm_report_t *reports; /* of all ranks */
    char own[REPORT_MAX]; /* this rank's report, as text */
};

static int waits_include(const dscomm_diagnosis_t *diagnosis, int rank)
{
    for (int i = 0; i < diagnosis->nwaits; i++)
        if (diagnosis->waits[i] == rank)
            return 1;
    return 0;
}

static void waits_add_peers(dscomm_diagnosis_t *diagnosis,
                            const dscomm_work_t *work)
{
    int peer;

    for (uint32_t i = 0; (peer = work->kind->peer(work, i)) >= 0; i++)
        if (!waits_include(diagnosis, peer))
            diagnosis->waits[diagnosis->nwaits++] = peer;
}

static void report_key(const dscomm_diagnosis_t *diagnosis, int rank,
                       char key[16])
{
    snprintf(key, 16, "%d", diagnosis->group->identity.world_ranks[rank]);
}

/* Publishes this rank's report. The requests of the diagnosis, from this one
 * on, end after most_ms. */
static void report_publish(dscomm_diagnosis_t *diagnosis, int most_ms)
{
    char key[16];

    report_key(diagnosis, diagnosis->group->rank, key);
    diagnosis->deadline = dscomm_priv_clock_after(dscomm_priv_clock(), most_ms);
    dscomm_priv_store_limit_diagnosis(diagnosis->store, most_ms);
    diagnosis->broken = dscomm_store_set(diagnosis->store, key, diagnosis->own,
                                         strlen(diagnosis->own)) < 0;
}

/* 1 if rank has reported this collective or a later one. */
static int rank_has_called(const dscomm_diagnosis_t *diagnosis, int rank)
{
    return diagnosis->reports[rank].last >= diagnosis->sequence;
}

/* Reads the report of rank; again, if the last one was of an earlier call. */
static void report_fetch(dscomm_diagnosis_t *diagnosis, int rank)
{
    dscomm_report_t *report = &diagnosis->reports[rank];
    char key[16];
    const char *keys = key;
    void *value;
    size_t size;
    int present = 0;

    if (diagnosis->broken || rank_has_called(diagnosis, rank) ||
        dscomm_priv_clock() > diagnosis->deadline)
        return;
    report_key(diagnosis, rank, key);
    diagnosis->broken =
        dscomm_store_check(diagnosis->store, &keys, 1, &present) < 0;
    if (diagnosis->broken || !present)
        return;
    diagnosis->broken =
        dscomm_store_get(diagnosis->store, key, CALL_MS, &value, &size) < 0;
    if (diagnosis->broken)
        return;
    dscomm_priv_report_read(value, diagnosis->group->identity.id, report);
    dscomm_store_free(value);
}

static void report_fetch_all(dscomm_diagnosis_t *diagnosis)
{
    for (int i = 0; i < diagnosis->nwaits; i++)
        report_fetch(diagnosis, diagnosis->waits[i]);
    for (int r = 0; r < MIN(diagnosis->group->size, QUERIED); r++)
        report_fetch(diagnosis, r);
}

static int reports_complete(const dscomm_diagnosis_t *diagnosis)
{
    for (int r = 0; r < MIN(diagnosis->group->size, QUERIED); r++)
        if (!rank_has_called(diagnosis, r))
            return 0;
    return 1;
}

static dscomm_diagnosis_t *diagnosis_open(dscomm_group_t *group,
                                          uint64_t sequence)
{
    dscomm_store_t *base = group->life.base, *store;
    dscomm_diagnosis_t *diagnosis;

    if (!base || dscomm_store_prefix(base, "calls", &store) < 0)
        return NULL;
    diagnosis = g_try_new0(dscomm_diagnosis_t, 1);
    if (!diagnosis) {
        dscomm_store_close(store);
        return NULL;
    }
    dscomm_priv_group_hold(group);
    diagnosis->group = group;
    diagnosis->store = store;
    diagnosis->sequence = sequence;
    diagnosis->waits = g_try_new(int, (gsize)group->size);
    diagnosis->reports = g_try_new0(dscomm_report_t, (gsize)group->size);
    if (diagnosis->waits && diagnosis->reports)
        return diagnosis;
    dscomm_priv_diagnosis_free(diagnosis);
    return NULL;
}

dscomm_diagnosis_t *dscomm_priv_diagnosis_new(const dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;
    dscomm_diagnosis_t *diagnosis =
        diagnosis_open(group, work->call.coll.sequence);

    if (!diagnosis)
        return NULL;
    waits_add_peers(diagnosis, work);
    dscomm_priv_report_write(group->recorder, group->recorded_as,
                             group->identity.id, &work->call.coll,
                             work->recorded, diagnosis->waits,
                             diagnosis->nwaits, diagnosis->own);
    dscomm_priv_report_read(diagnosis->own, group->identity.id,
                            &diagnosis->reports[group->rank]);
    return diagnosis;
}

void dscomm_priv_diagnosis_free(dscomm_diagnosis_t *diagnosis)
{
    if (!diagnosis)
        return;
    dscomm_store_close(diagnosis->store);
    dscomm_priv_group_release(diagnosis->group);
    g_free(diagnosis->waits);
    g_free(diagnosis->reports);
    g_free(diagnosis);
}

/* Reads from the store the processes of the ranks that sentences may name. */
static void processes_learn(const dscomm_diagnosis_t *diagnosis)
{
    const dscomm_group_t *group = diagnosis->group;
    const dscomm_meeting_t *meeting = &group->identity.world->meeting;

    if (!diagnosis->broken)
        dscomm_priv_processes_learn(meeting->processes, group->life.base,
                                    group->identity.world_ranks,
                                    MIN(group->size, QUERIED));
}

/* True if it is known that the rank's process has ended. */
static bool rank_has_ended(const dscomm_diagnosis_t *diagnosis, int rank)
{
    const dscomm_group_t *group = diagnosis->group;

    return dscomm_priv_processes_ended(group->identity.world->meeting.processes,
                                       group->identity.world_ranks[rank]);
}

static const char *rank_describe(const dscomm_diagnosis_t *diagnosis, int rank,
                                 char text[DSCOMM_PROCESS_MAX])
{
    const dscomm_group_t *group = diagnosis->group;

    return dscomm_backend_rank(group, group->identity.world_ranks[rank], 0,
                               text);
}

/* The calls of one collective, passed to dscomm_backend_mismatch(). */
typedef struct {
    const dscomm_diagnosis_t *diagnosis;
    uint64_t sequence;
} calls_t;

static int call_look(const void *arg, int rank, dscomm_call_seen_t *ret_call)
{
    const calls_t *calls = arg;
    const dscomm_call_seen_t *call = dscomm_priv_report_call(
        &calls->diagnosis->reports[rank], calls->sequence);

    if (!call)
        return 0;
    *ret_call = *call;
    ret_call->rank = calls->diagnosis->group->identity.world_ranks[rank];
    return 1;
}

/* Compares this rank's report with the others: ERR_MISMATCH with a record of
 * the oldest call that differs, or OK. */
static dscomm_status_t reports_compare(const dscomm_diagnosis_t *diagnosis,
                                       dscomm_failure_t *ret_failure)
{
    const dscomm_group_t *group = diagnosis->group;
    const dscomm_report_t *own = &diagnosis->reports[group->rank];
    uint64_t first = 0;
    int rank = -1;

    for (int r = 0; r < group->size; r++) {
        uint64_t sequence =
            dscomm_priv_report_difference(own, &diagnosis->reports[r]);

        if (sequence && (!first || sequence < first)) {
            first = sequence;
            rank = r;
        }
    }
    if (!first)
        return DSCOMM_OK;
    processes_learn(diagnosis);
    dscomm_backend_mismatch(group, group->size, group->rank, rank, call_look,
                            &(calls_t){diagnosis, first}, ret_failure);
    return DSCOMM_ERR_MISMATCH;
}

/* Makes the reports of the ranks of this machine from their records. */
static void reports_take_recorded(dscomm_diagnosis_t *diagnosis)
{
    const dscomm_group_t *group = diagnosis->group;
    dscomm_recorded_group_t *seen = dscomm_priv_recorded_open(group);
    char text[REPORT_MAX];
    uint32_t number;

    for (int r = 0; seen && r < group->size; r++) {
        const dscomm_recorder_slot_t *slot;

        if (rank_has_called(diagnosis, r))
            continue;
        slot = dscomm_priv_recorded_slot(seen, group->identity.world_ranks[r],
                                         &number);
        if (!slot)
            continue;
        dscomm_priv_report_write(slot, number, group->identity.id, NULL, 0,
                                 NULL, 0, text);
        dscomm_priv_report_read(text, group->identity.id,
                                &diagnosis->reports[r]);
    }
    dscomm_priv_recorded_close(seen);
}

/* True if more than half of the ranks have made the same call of this
 * collective. */
static bool vote_is_decided(const dscomm_diagnosis_t *diagnosis)
{
    const int ranks = diagnosis->group->size;
    const dscomm_call_seen_t *call, *candidate = NULL;
    int lead = 0, alike = 0;

    for (int r = 0; r < ranks; r++) {
        call = dscomm_priv_report_call(&diagnosis->reports[r],
                                       diagnosis->sequence);
        if (!call)
            continue;
        if (!lead)
            candidate = call;
        lead += call->fingerprint == candidate->fingerprint ? 1 : -1;
    }
    for (int r = 0; candidate && r < ranks; r++) {
        call = dscomm_priv_report_call(&diagnosis->reports[r],
                                       diagnosis->sequence);
        alike += call && call->fingerprint == candidate->fingerprint;
    }
    return 2 * alike > ranks;
}

/* After a mismatch was found: waits up to GRACE_MS or VOTE_MS for the reports
 * of more ranks, so that the sentence can name the rank that differs from most.
 * Without the report of peer, unless that is -1, the call that differs is not
 * known: that report is waited for up to PEER_MS, or the group's time-out if
 * that is shorter, unless the peer or the group ends meanwhile. */
static dscomm_status_t reports_compare_all(dscomm_diagnosis_t *diagnosis,
                                           int peer,
                                           dscomm_failure_t *ret_failure)
{
    const int64_t now = dscomm_priv_clock();
    const dscomm_group_t *group = diagnosis->group;
    const int64_t grace_end = dscomm_priv_clock_after(now, GRACE_MS);
    const int64_t vote_end =
        MIN(dscomm_priv_clock_after(now, MIN(VOTE_MS, group->timeout_ms)),
            diagnosis->deadline);
    const int64_t peer_end =
        dscomm_priv_clock_after(now, MIN(PEER_MS, group->timeout_ms));
    bool lacks_peer;

    if (peer >= 0)
        processes_learn(diagnosis);
    for (;;) {
        const bool expects_peer = peer >= 0 && !rank_has_ended(diagnosis, peer);
        int64_t end;

        reports_take_recorded(diagnosis);
        end = group->size < 3 || vote_is_decided(diagnosis) ? grace_end
                                                            : vote_end;
        if (dscomm_priv_clock() < end)
            report_fetch_all(diagnosis);
        if (peer >= 0)
            report_fetch(diagnosis, peer);
        lacks_peer = expects_peer && !rank_has_called(diagnosis, peer);
        if (reports_complete(diagnosis) || diagnosis->broken ||
            group->ops.status(group->impl, NULL) != DSCOMM_OK ||
            dscomm_priv_clock() > (lacks_peer ? peer_end : end))
            return reports_compare(diagnosis, ret_failure);
        g_usleep(5000);
    }
}

dscomm_status_t dscomm_priv_diagnosis_look(dscomm_diagnosis_t *diagnosis,
                                           dscomm_failure_t *ret_failure)
{
    const dscomm_group_t *group = diagnosis->group;

    report_publish(diagnosis, ALL_MS);
    for (int i = 0; i < diagnosis->nwaits; i++)
        report_fetch(diagnosis, diagnosis->waits[i]);
    if (reports_compare(diagnosis, ret_failure) == DSCOMM_OK) {
        if (!diagnosis->broken)
            dscomm_priv_stopped_learn(&group->identity.world->meeting,
                                      group->life.base,
                                      group->identity.world_ranks, group->size);
        return DSCOMM_OK;
    }
    return reports_compare_all(diagnosis, -1, ret_failure);
}

dscomm_status_t dscomm_priv_diagnosis_mismatch(dscomm_diagnosis_t *diagnosis,
                                               int peer,
                                               dscomm_failure_t *ret_failure)
{
    report_publish(diagnosis, PEER_MS);
    return reports_compare_all(diagnosis, peer, ret_failure);
}

/* 1 if rank has not called this collective, although another rank waits for it:
 * this one; one that has called it; or a late one, in an earlier collective. */
static int rank_is_late(const dscomm_diagnosis_t *diagnosis, int rank)
{
    if (rank_has_called(diagnosis, rank))
        return 0;
    if (waits_include(diagnosis, rank))
        return 1;
    for (int r = 0; r < diagnosis->group->size; r++)
        if (dscomm_priv_report_waits(&diagnosis->reports[r], rank))
            return 1;
    return 0;
}

#define LATE_MAX 240 /* bytes of a list of late ranks */

/* Returns which of two late ranks is more likely the culprit: one that has
 * ended, or the one that is further behind by its report, because the other may
 * wait for it. A rank that does not wait has reported nothing. suspect -1:
 * none.
 */
static int likelier(const dscomm_diagnosis_t *diagnosis, int suspect, int rank)
{
    const dscomm_report_t *reports = diagnosis->reports;

    if (suspect < 0)
        return rank;
    if (rank_has_ended(diagnosis, suspect) != rank_has_ended(diagnosis, rank))
        return rank_has_ended(diagnosis, suspect) ? suspect : rank;
    return reports[rank].last < reports[suspect].last ? rank : suspect;
}

/* Lists the late ranks with their processes; returns their number, and the
 * likely culprit, of which another late rank may be as likely. */
static int late_list(const dscomm_diagnosis_t *diagnosis, char list[LATE_MAX],
                     int *ret_suspect, bool *ret_tied)
{
    char who[DSCOMM_PROCESS_MAX];
    int late = 0, full = 0;

    *list = '\0';
    processes_learn(diagnosis);
    for (int r = 0; r < diagnosis->group->size; r++) {
        if (!rank_is_late(diagnosis, r) || full)
            continue;
        late++;
        if (likelier(diagnosis, *ret_suspect, r) == r)
            *ret_tied = false;
        else if (likelier(diagnosis, r, *ret_suspect) == r)
            *ret_tied = true;
        *ret_suspect = likelier(diagnosis, *ret_suspect, r);
        rank_describe(diagnosis, r, who);
        full = late > LATE_RANKS_NAMED ||
               strlen(list) + strlen(who) + sizeof ", , ..." > LATE_MAX;
        g_strlcat(list, late > 1 ? ", " : "", LATE_MAX);
        g_strlcat(list, full ? "..." : who, LATE_MAX);
    }
    return late;
}

/* Returns whether several ranks are equally likely. */
static bool late_write(const dscomm_diagnosis_t *diagnosis,
                       dscomm_failure_t *ret_failure)
{
    char list[LATE_MAX];
    int suspect = -1;
    bool tied = false;
    const int late = late_list(diagnosis, list, &suspect, &tied);

    if (!late)
        return false;
    dscomm_priv_group_accuse(diagnosis->group, suspect, ret_failure);
    dscomm_backend_failure_detail(
        ret_failure, "%s %s not made this call, or stand%s still", list,
        late > 1 ? "have" : "has", late > 1 ? "" : "s");
    return tied;
}

/* Lists, by their numbers in the world, the ranks that may be stopped or have
 * ended: those that are waited for first; then any of the first QUERIED,
 * because without an answer of the store it is not known which ranks are late.
 * A rank of this machine that knows a failure may have ended because of it. */
static int suspects_list(const dscomm_diagnosis_t *diagnosis, int *world_ranks)
{
    const dscomm_group_t *group = diagnosis->group;
    dscomm_recorded_group_t *seen = dscomm_priv_recorded_open(group);
    int count = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < group->size; r++) {
            const int rank = group->identity.world_ranks[r];
            const bool awaited =
                waits_include(diagnosis, r) || rank_is_late(diagnosis, r);

            if (awaited == (pass == 0) && (awaited || r < QUERIED) &&
                !(seen && dscomm_priv_recorded_failed(seen, rank)))
                world_ranks[count++] = rank;
        }
    dscomm_priv_recorded_close(seen);
    return count;
}

/* Adds which ranks are stopped or have ended. One of them becomes the culprit:
 * a late rank may wait for it. Returns false if there is none. */
static bool stopped_append(const dscomm_diagnosis_t *diagnosis,
                           dscomm_failure_t *ret_failure)
{
    const dscomm_group_t *group = diagnosis->group;
    int *ranks = g_try_new(int, (gsize)group->size);
    const int count = ranks ? suspects_list(diagnosis, ranks) : 0;
    const int stopped = dscomm_priv_stopped_append(
        &group->identity.world->meeting, ranks, count, ret_failure->detail,
        sizeof ret_failure->detail);

    dscomm_priv_group_accuse_world(group, stopped, ret_failure);
    g_free(ranks);
    return stopped >= 0;
}

/* Waits until a rank of another machine has ended the group, or says which late
 * rank it has waited for itself while it made a child of the group. */
static void others_await(const dscomm_diagnosis_t *diagnosis,
                         dscomm_failure_t *ret_failure)
{
    const dscomm_group_t *group = diagnosis->group;
    const int64_t end =
        dscomm_priv_clock_after(dscomm_priv_clock(), ELSEWHERE_MS);

    while (group->ops.status(group->impl, NULL) == DSCOMM_OK &&
           dscomm_priv_clock() < end) {
        const int culprit =
            dscomm_priv_child_culprit(group, diagnosis->sequence);

        for (int r = 0; r < group->size && culprit >= 0; r++)
            if (group->identity.world_ranks[r] == culprit &&
                rank_is_late(diagnosis, r)) {
                dscomm_priv_group_accuse(group, r, ret_failure);
                return;
            }
        g_usleep(LOOK_GAP_US);
    }
}

dscomm_status_t dscomm_priv_diagnosis_timeout(dscomm_diagnosis_t *diagnosis,
                                              dscomm_failure_t *ret_failure)
{
    dscomm_status_t status;
    bool tied = false;

    report_publish(diagnosis, ALL_MS);
    report_fetch_all(diagnosis);
    status = reports_compare(diagnosis, ret_failure);
    if (status < 0)
        return status;
    if (!diagnosis->broken)
        tied = late_write(diagnosis, ret_failure);
    if (!stopped_append(diagnosis, ret_failure) && tied &&
        diagnosis->group->identity.nodes.count > 1)
        others_await(diagnosis, ret_failure);
    return status;
}

/* 1 if the backend has seen that rank has begun this collective. */
static int rank_has_begun(dscomm_group_t *group, int rank, uint64_t sequence,
                          char *text, size_t size)
{
    int begun;

    if (!group->ops.begun)
        return 0;
    pthread_mutex_lock(&group->works.lock);
    begun = group->ops.begun(group->impl, rank, sequence, text, size);
    pthread_mutex_unlock(&group->works.lock);
    return begun;
}

/* Returns 1 if rank has called the collective of the diagnosis, or a later one,
 * and writes that call to text; else 0. */
static int rank_find_call(dscomm_diagnosis_t *diagnosis, int rank, char *text,
                          size_t size)
{
    const dscomm_report_t *report = &diagnosis->reports[rank];
    const dscomm_call_seen_t *call;

    if (rank_has_begun(diagnosis->group, rank, diagnosis->sequence, text, size))
        return 1;
    report_fetch(diagnosis, rank);
    if (!rank_has_called(diagnosis, rank))
        return 0;
    call = dscomm_priv_report_call(report, diagnosis->sequence);
    if (!call)
        call = dscomm_priv_report_call(report, report->last);
    g_strlcpy(text, call->text, size);
    return 1;
}

static void barrier_explain(const dscomm_diagnosis_t *diagnosis, int rank,
                            const char *call, dscomm_failure_t *ret_failure)
{
    char who[DSCOMM_PROCESS_MAX], own[DSCOMM_PROCESS_MAX];

    processes_learn(diagnosis);
    dscomm_priv_group_blame(diagnosis->group, DSCOMM_ERR_MISMATCH,
                            DSCOMM_FAILURE_MISMATCH, rank, NULL, ret_failure);
    ret_failure->sequence = diagnosis->sequence;
    dscomm_backend_failure_detail(
        ret_failure,
        "%s called %s, but %s called dscomm_monitored_barrier; all ranks "
        "must call the same collectives in the same order with matching "
        "arguments",
        rank_describe(diagnosis, rank, who), call,
        rank_describe(diagnosis, diagnosis->group->rank, own));
}

dscomm_status_t dscomm_priv_diagnosis_barrier(dscomm_group_t *group,
                                              const int *ranks, int count,
                                              int64_t end,
                                              dscomm_failure_t *ret_failure)
{
    const int64_t now = dscomm_priv_clock();
    dscomm_diagnosis_t *diagnosis = diagnosis_open(group, group->sequence + 1);
    dscomm_status_t status = DSCOMM_OK;
    char call[200];

    if (!diagnosis)
        return DSCOMM_OK;
    diagnosis->deadline = MIN(end, dscomm_priv_clock_after(now, CALL_MS));
    dscomm_priv_store_limit_diagnosis(
        diagnosis->store, dscomm_priv_clock_left(diagnosis->deadline));
    for (int i = 0; i < MIN(count, QUERIED) && status == DSCOMM_OK; i++) {
        if (!rank_find_call(diagnosis, ranks[i], call, sizeof call))
            continue;
        barrier_explain(diagnosis, ranks[i], call, ret_failure);
        status = DSCOMM_ERR_MISMATCH;
    }
    dscomm_priv_diagnosis_free(diagnosis);
    return status;
}
