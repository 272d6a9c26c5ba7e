/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of a mismatch. The two ranks that it compares may be seen before
 * the other ranks have made their calls, so it waits for these: the rank that
 * differs from most is the culprit. */
#include "config.h"

#include "lib/base/clock.h"
#include "lib/group/failure.h"
#include "lib/group/recorded.h"

#include <stdio.h>

#define VOTE_MS                                                                \
    200 /* time for which the calls of other ranks are waited for              \
         */

/* One of two calls that differ, and how many ranks have made it. */
typedef struct {
    dscomm_call_seen_t call;
    dscomm_call_seen_t first; /* the same call of the first of these ranks */
    int alike;
    bool majority; /* more than half of the known calls, of at least three */
} side_t;

typedef struct {
    const dscomm_group_t *group;
    int ranks; /* that look knows */
    int (*look)(const void *arg, int rank, dscomm_call_seen_t *ret_call);
    const void *arg;
    side_t mine, theirs;
    int known; /* calls that were counted */
} vote_t;

static void side_count(side_t *side, const dscomm_call_seen_t *call)
{
    if (call->fingerprint == side->first.fingerprint && !side->alike++)
        side->first = *call;
}

/* True if the calls that are not known cannot change the result. */
static bool vote_end(vote_t *vote, int known, int ranks)
{
    const int most = MAX(vote->mine.alike, vote->theirs.alike);

    vote->known = known;
    vote->mine.majority = known > 2 && 2 * vote->mine.alike > known;
    vote->theirs.majority = known > 2 && 2 * vote->theirs.alike > known;
    return known >= ranks || 2 * most > ranks;
}

static int vote_ranks(const vote_t *vote)
{
    return MAX(vote->ranks, vote->group ? vote->group->size : 0);
}

/* Counts the calls that the backend knows. */
static bool vote_by_look(vote_t *vote, int own, int other)
{
    dscomm_call_seen_t call;
    int known = 0;

    vote->look(vote->arg, own, &vote->mine.call);
    vote->look(vote->arg, other, &vote->theirs.call);
    vote->mine.first = vote->mine.call;
    vote->theirs.first = vote->theirs.call;
    vote->mine.alike = vote->theirs.alike = 0;
    for (int r = 0; r < vote->ranks; r++) {
        if (!vote->look(vote->arg, r, &call))
            continue;
        known++;
        side_count(&vote->mine, &call);
        side_count(&vote->theirs, &call);
    }
    return vote_end(vote, known, vote_ranks(vote));
}

/* Counts the calls that this machine's flight recorder has, because the backend
 * may be one level of the group's, which may see the difference in a later call
 * only. Changes nothing if the backend knows as many, or the calls of the two
 * ranks are not there. */
static bool vote_by_record(vote_t *vote, const dscomm_recorded_group_t *seen)
{
    const int own = vote->mine.call.rank, other = vote->theirs.call.rank;
    const uint64_t sequence = dscomm_priv_recorded_difference(
        seen, own, other, vote->mine.call.sequence);
    side_t mine = {.alike = 0}, theirs = {.alike = 0};
    dscomm_call_seen_t call;
    int known = 0;

    if (!sequence ||
        !dscomm_priv_recorded_call(seen, own, sequence, &mine.call) ||
        !dscomm_priv_recorded_call(seen, other, sequence, &theirs.call))
        return false;
    mine.first = mine.call;
    theirs.first = theirs.call;
    for (int r = 0; r < vote->group->size; r++) {
        if (!dscomm_priv_recorded_call(
                seen, vote->group->identity.world_ranks[r], sequence, &call))
            continue;
        known++;
        side_count(&mine, &call);
        side_count(&theirs, &call);
    }
    if (known <= vote->known)
        return false;
    vote->mine = mine;
    vote->theirs = theirs;
    return vote_end(vote, known, vote->group->size);
}

/* True if another rank has decided. */
static bool group_has_ended(const dscomm_group_t *group)
{
    return group && group->impl && group->ops.status &&
           group->ops.status(group->impl, NULL) != DSCOMM_OK;
}

/* Counts the calls until it is known which one most ranks have made, but for
 * VOTE_MS at most. */
static void vote_hold(vote_t *vote, int own, int other)
{
    const int64_t end = dscomm_priv_clock_after(dscomm_priv_clock(), VOTE_MS);
    dscomm_recorded_group_t *seen = NULL;

    while (!vote_by_look(vote, own, other)) {
        if (!seen)
            seen = dscomm_priv_recorded_open(vote->group);
        if ((seen && vote_by_record(vote, seen)) ||
            group_has_ended(vote->group) || dscomm_priv_clock() >= end)
            break;
        g_usleep(1000);
    }
    dscomm_priv_recorded_close(seen);
}

/* Writes "rank 0 (pid 811 on b)". If the ranks with the same call are the
 * majority, writes the first of them and the number of others. */
static void side_describe(const dscomm_group_t *group, const side_t *side,
                          char *text, size_t size)
{
    const int others = side->majority ? side->alike - 1 : 0;
    const dscomm_call_seen_t *call = others ? &side->first : &side->call;
    char who[DSCOMM_PROCESS_MAX];

    dscomm_backend_rank(group, call->rank, call->pid, who);
    if (others)
        snprintf(text, size, "%s and %d other%s", who, others,
                 others > 1 ? "s" : "");
    else
        snprintf(text, size, "%s", who);
}

void dscomm_backend_mismatch(const dscomm_group_t *group, int ranks, int own,
                             int other,
                             int (*look)(const void *arg, int rank,
                                         dscomm_call_seen_t *ret_call),
                             const void *arg, dscomm_failure_t *ret_failure)
{
    vote_t vote = {.group = group, .ranks = ranks, .look = look, .arg = arg};
    char who[DSCOMM_PROCESS_MAX], others[DSCOMM_PROCESS_MAX + 32];
    const side_t *odd = &vote.mine, *rest = &vote.theirs;

    vote_hold(&vote, own, other);
    if (vote.mine.majority && !vote.theirs.majority) {
        odd = &vote.theirs;
        rest = &vote.mine;
    }
    side_describe(group, rest, others, sizeof others);
    dscomm_backend_failure(group, DSCOMM_ERR_MISMATCH, DSCOMM_FAILURE_MISMATCH,
                           odd->call.rank, odd->call.pid, ret_failure);
    ret_failure->coll = odd->call.coll;
    ret_failure->sequence = odd->call.sequence;
    dscomm_backend_failure_detail(
        ret_failure,
        "%s called %s, but %s called %s; all ranks must call the same "
        "collectives in the same order with matching arguments",
        dscomm_backend_rank(group, odd->call.rank, odd->call.pid, who),
        odd->call.text, others, rest->call.text);
}
