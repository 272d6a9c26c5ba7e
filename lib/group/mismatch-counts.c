/* SPDX-License-Identifier: BSD-3-Clause */
/* The culprit of a mismatch of counts. A pair of ranks disagrees on what one
 * sends to the other; the calls of the other ranks show which of the two is
 * wrong. */
#include "config.h"

#include "lib/base/clock.h"
#include "lib/group/failure.h"
#include "lib/group/published.h"
#include "lib/group/recorded.h"

#include <stdio.h>

#define VOTE_MS 200 /* time for which the calls of ranks are waited for */
#define VOTERS (RECORDER_COUNTS + 3) /* the root and the pair may be more */

/* The call of a rank. */
typedef struct {
    int rank; /* in the group */
    bool known;
    dscomm_recorded_t call;
    dscomm_recorder_detail_t detail;
    int contradicts, agrees; /* with so many others */
} voter_t;

typedef struct {
    const dscomm_group_t *group;
    uint64_t sequence;
    int count;
    voter_t voter[VOTERS];
} vote_t;

/* True if rank `from` sends something to rank `to`. */
static bool call_moves(const dscomm_recorded_t *call, int from, int to)
{
    return call->coll == DSCOMM_COLL_GATHER_V    ? to == call->peer
           : call->coll == DSCOMM_COLL_SCATTER_V ? from == call->peer
                                                 : true;
}

/* Finds the count that a voter sends to a rank, or expects from it; false: it
 * is not known. */
static bool voter_gives(const voter_t *voter, int peer, bool sends,
                        uint64_t *ret_count)
{
    const uint64_t *list =
        sends ? voter->detail.send_counts : voter->detail.counts;
    const bool listed = voter->call.coll !=
                        (sends ? DSCOMM_COLL_GATHER_V : DSCOMM_COLL_SCATTER_V);

    if (listed && peer >= RECORDER_COUNTS)
        return false;
    *ret_count = listed ? list[peer] : voter->call.count;
    return true;
}

/* Returns 1 if two voters disagree on what one sends to the other, 0 if they
 * agree, -1 if that is not known, or nothing is sent. */
static int pair_compare(const voter_t *from, const voter_t *to)
{
    uint64_t sent, expected;

    if (!call_moves(&from->call, from->rank, to->rank) ||
        !voter_gives(from, to->rank, true, &sent) ||
        !voter_gives(to, from->rank, false, &expected))
        return -1;
    return sent != expected;
}

static void vote_add(vote_t *vote, int rank)
{
    for (int i = 0; i < vote->count; i++)
        if (vote->voter[i].rank == rank)
            return;
    if (rank >= 0 && rank < vote->group->size && vote->count < VOTERS)
        vote->voter[vote->count++].rank = rank;
}

/* True if the flight recorder of this machine has the rank's calls, or will. */
static bool rank_is_near(const dscomm_group_t *group, int rank)
{
    const int *node = group->identity.nodes.node;

    return node[rank] == node[group->rank];
}

/* Reads the calls that are not known yet. Returns whether none is to come. */
static bool vote_read(vote_t *vote, const dscomm_recorded_group_t *seen)
{
    const int *world_ranks = vote->group->identity.world_ranks;
    bool complete = true;

    for (int i = 0; i < vote->count; i++) {
        voter_t *voter = &vote->voter[i];
        const int rank = world_ranks[voter->rank];
        const dscomm_recorder_slot_t *slot;

        if (voter->known)
            continue;
        slot =
            dscomm_priv_recorded_find(seen, rank, vote->sequence, &voter->call);
        voter->known = slot && (!voter->call.detail ||
                                dscomm_priv_recorder_read_detail(
                                    slot, &voter->call, &voter->detail));
        if (voter->known)
            vote_add(vote, voter->call.peer);
        else if (rank_is_near(vote->group, voter->rank))
            complete = false;
    }
    return complete;
}

/* The same. Ranks that have come since the last time are seen. */
static bool vote_look(vote_t *vote)
{
    dscomm_recorded_group_t *seen = dscomm_priv_recorded_open(vote->group);
    const bool complete = !seen || vote_read(vote, seen);

    dscomm_priv_recorded_close(seen);
    return complete;
}

/* Returns 1 if two voters contradict each other in either direction, 0 if they
 * agree, -1 if that is not known. */
static int voters_differ(const voter_t *one, const voter_t *other)
{
    if (!one->known || !other->known ||
        one->call.fingerprint != other->call.fingerprint)
        return -1;
    return MAX(pair_compare(one, other), pair_compare(other, one));
}

static void vote_count(vote_t *vote)
{
    for (int i = 0; i < vote->count; i++)
        for (int j = 0; j < i; j++) {
            voter_t *one = &vote->voter[i], *other = &vote->voter[j];
            const int differs = voters_differ(one, other);

            one->contradicts += differs > 0;
            other->contradicts += differs > 0;
            one->agrees += !differs;
            other->agrees += !differs;
        }
}

static void vote_count_messages(vote_t *vote, int own,
                                const dscomm_messages_seen_t *messages)
{
    for (int i = 0; i < vote->count; i++) {
        if (vote->voter[i].rank != own)
            continue;
        vote->voter[i].contradicts += messages->differ;
        vote->voter[i].agrees += messages->agree;
    }
}

static voter_t *vote_find(vote_t *vote, int rank)
{
    for (int i = 0; i < vote->count; i++)
        if (vote->voter[i].rank == rank)
            return &vote->voter[i];
    return NULL;
}

/* Counts the disagreement of the pair that failed, unless their calls have
 * shown it: the call of a rank on another machine is not known, and no counts
 * are for ranks from RECORDER_COUNTS on. */
static void vote_count_pair(vote_t *vote, int own, int other)
{
    voter_t *mine = vote_find(vote, own), *theirs = vote_find(vote, other);

    if (!mine || !theirs || mine == theirs || voters_differ(mine, theirs) >= 0)
        return;
    mine->contradicts++;
    theirs->contradicts++;
}

/* Contradictions count first, then agreement, of which there are fewer than two
 * for each rank. A rank that is not known contradicts the other one of its
 * pair. */
static int voter_score(const vote_t *vote, const voter_t *voter)
{
    const int weight = 2 * vote->group->size;

    return voter && voter->known ? voter->contradicts * weight - voter->agrees
                                 : weight;
}

/* Returns the number in the group of the rank that is the culprit; was: of the
 * present one. ret_tied: another rank may be it as well. */
static int vote_culprit(const vote_t *vote, int was, bool *ret_tied)
{
    const voter_t *best = NULL;

    for (int i = 0; i < vote->count; i++)
        if (vote->voter[i].rank == was)
            best = &vote->voter[i];
    *ret_tied = false;
    for (int i = 0; i < vote->count; i++) {
        const voter_t *voter = &vote->voter[i];
        const int lead = voter_score(vote, voter) - voter_score(vote, best);

        if (voter == best || !voter->contradicts || lead < 0)
            continue;
        *ret_tied = lead == 0;
        if (lead > 0)
            best = voter;
    }
    return best ? best->rank : was;
}

/* Waits until a rank of another machine, which may know better, has ended the
 * group. */
static void await_others(const dscomm_group_t *group)
{
    const int64_t end = dscomm_priv_clock_after(dscomm_priv_clock(), VOTE_MS);

    while (dscomm_priv_clock() < end &&
           group->ops.status(group->impl, NULL) == DSCOMM_OK)
        g_usleep(1000);
}

/* Counts, in the store, the ranks that doubt what a root has sent them. Each
 * gets one message only, so it cannot tell who is wrong; but a root that is
 * right for all others is right. True if this rank is the only one. */
static bool doubts_alone(const dscomm_group_t *group, uint64_t sequence)
{
    dscomm_store_t *store =
        group->size < 3 ? NULL : dscomm_priv_group_look_open(group);
    int64_t before, doubts = 0;
    char key[48];

    if (!store)
        return false;
    snprintf(key, sizeof key, "doubts/%llu", (unsigned long long)sequence);
    if (dscomm_store_add(store, key, 1, &before) == DSCOMM_OK) {
        await_others(group);
        dscomm_store_add(store, key, 0, &doubts);
    }
    dscomm_store_close(store);
    return doubts == 1;
}

/* Returns the culprit of two ranks that are equally likely. */
static int untie(const dscomm_group_t *group, const dscomm_failure_t *failure,
                 int culprit)
{
    if (failure->coll != DSCOMM_COLL_SCATTER_V ||
        failure->group_rank == group->rank) {
        await_others(group);
        return culprit;
    }
    return doubts_alone(group, failure->sequence) ? group->rank
                                                  : failure->group_rank;
}

void dscomm_backend_mismatch_counts(const dscomm_group_t *group,
                                    dscomm_failure_t *failure)
{
    const dscomm_messages_seen_t none = {0};

    dscomm_priv_mismatch_counts(group, &none, failure);
}

void dscomm_priv_mismatch_counts(const dscomm_group_t *group,
                                 const dscomm_messages_seen_t *messages,
                                 dscomm_failure_t *failure)
{
    const int64_t end = dscomm_priv_clock_after(dscomm_priv_clock(), VOTE_MS);
    vote_t *vote;
    bool tied;
    int culprit;

    if (!group || (failure->coll != DSCOMM_COLL_GATHER_V &&
                   failure->coll != DSCOMM_COLL_SCATTER_V &&
                   failure->coll != DSCOMM_COLL_ALL_TO_ALL_V))
        return;
    vote = g_try_new0(vote_t, 1);
    if (!vote)
        return;
    vote->group = group;
    vote->sequence = failure->sequence;
    for (int r = 0; r < RECORDER_COUNTS; r++)
        vote_add(vote, r);
    vote_add(vote, failure->group_rank);
    vote_add(vote, group->rank);
    while (!vote_look(vote) && dscomm_priv_clock() < end)
        g_usleep(1000);
    vote_count(vote);
    vote_count_messages(vote, group->rank, messages);
    vote_count_pair(vote, group->rank, failure->group_rank);
    culprit = vote_culprit(vote, failure->group_rank, &tied);
    g_free(vote);
    if (tied && group->identity.nodes.count > 1)
        culprit = untie(group, failure, culprit);
    dscomm_priv_group_accuse(group, culprit, failure);
}
