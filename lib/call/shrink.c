/* SPDX-License-Identifier: BSD-3-Clause */
/* Going on after a failure: the survivors of a group agree on who is left, and
 * make a group of these ranks.
 *
 * They agree in a store, in rounds numbered from 1. If rank 0 serves the
 * world's store, which may have ended with it, they use the standby store,
 * always and all of them, because those who used different ones would not find
 * each other. Keys of round K, in the part of the store that belongs to the
 * failed group:
 *
 *     shrink/K/here/R     rank R has come
 *     shrink/K/members    who goes on, and with which backend
 *     shrink/K/joined/R   rank R has opened its part of the new group
 *     shrink/K/result     "ok", or the packed record of a failure
 *
 * Each rank waits until all others have come or have ended, proposes the ranks
 * that have come as members, opens the new group with them, and proposes a
 * result. members and result are written by dscomm_store_compare_set(), so the
 * first proposal counts for all ranks, whatever each of them has seen. If a
 * member died meanwhile, that is the result, and the others begin the next
 * round without it. A rank that is no member of a round is left out for good,
 * so there are fewer rounds than ranks. */
#include "config.h"

#include "lib/call/group-new.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/group/failure.h"
#include "lib/group/world.h"
#include "lib/rendezvous/processes.h"
#include "lib/store/store.h"
#include "lib/work/pending.h"
#include "lib/work/work.h"

#include <stdio.h>
#include <string.h>

#define NAME "dscomm_group_shrink"
/* Least time for a round, so that ranks that came at the last moment meet in
 * the next round; and time to read and write after the end of a round; in ms.
 */
#define ROUND_LEAST_MS 1000
#define ROUND_GRACE_MS 1000
/* How long the rank that was silent is awaited, in ms. */
#define SILENT_MS 1000
/* Pause between two looks into the store: first, longest. */
#define PAUSE_NS (NS_PER_MS / 2)
#define PAUSE_MOST_NS (10 * NS_PER_MS)
#define KEY_MAX 24 /* bytes of "joined/" and a rank */
#define OK_TEXT "ok"

/* The state of a rank. One that is GONE stays so in later rounds. */
typedef enum { RANK_AWAITED, RANK_CAME, RANK_GONE } rank_state_t;

typedef struct {
    dscomm_group_t *group; /* that has failed */
    const dscomm_group_attr_t *attr;
    dscomm_store_t *base; /* of the new group and of the group's part below */
    dscomm_store_t *part; /* view of the failed group's keys */
    dscomm_store_t *store; /* view of the keys of this round */
    unsigned round;
    int64_t end_ns; /* of the call; later, if a round needs the time */
    rank_state_t *state; /* of each rank of group */
    /* The rank that was silent in the failed group, and until when it is
     * awaited; -1: none. It may live, and be blamed only because a backend did
     * not see another rank's death. */
    int silent;
    int64_t silent_end_ns;
    int *members, count;
    bool same_backend; /* the members' and this rank's */
    /* for one look: a request, and the key of each rank */
    dscomm_priv_look_t *looks;
    char (*keys)[KEY_MAX];
} shrink_t;

static dscomm_status_t fail_memory(const dscomm_group_t *group)
{
    return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                       NAME " on group '%s': no memory for %d ranks",
                       group->identity.name, group->size);
}

/* Fails for a rank that does not go on. */
static dscomm_status_t fail_left_out(const dscomm_group_t *group,
                                     const char *why)
{
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       NAME " on group '%s': the others go on without this "
                            "rank, which has number %d there, because %s; call "
                            "dscomm_finalize() and end the process",
                       group->identity.name, group->rank, why);
}

/* True if a rank that caused such a failure cannot be part of a new group. */
static bool excludes_culprit(const dscomm_failure_t *failure)
{
    return failure->kind == DSCOMM_FAILURE_DIED ||
           failure->kind == DSCOMM_FAILURE_SILENT ||
           failure->kind == DSCOMM_FAILURE_LEFT;
}

/* Marks the culprit as gone. Returns false if it is not to be excluded, not
 * known, or no rank of the group. */
static bool shrink_exclude(shrink_t *shrink, const dscomm_failure_t *failure)
{
    const dscomm_group_identity_t *identity = &shrink->group->identity;

    if (!excludes_culprit(failure) || failure->rank < 0 ||
        failure->rank >= identity->world->size ||
        identity->from_world[failure->rank] < 0)
        return false;
    shrink->state[identity->from_world[failure->rank]] = RANK_GONE;
    return true;
}

/* Marks ranks whose processes have ended. */
static void shrink_note_ends(shrink_t *shrink)
{
    const dscomm_group_t *group = shrink->group;

    for (int r = 0; r < group->size; r++)
        if (r != group->rank && shrink->state[r] != RANK_GONE &&
            dscomm_priv_processes_ended(
                group->identity.world->meeting.processes,
                group->identity.world_ranks[r]))
            shrink->state[r] = RANK_GONE;
}

/* Gives up the rank that was silent if it has not come by now. */
static void shrink_note_silence(shrink_t *shrink)
{
    if (shrink->silent >= 0 && dscomm_priv_clock() >= shrink->silent_end_ns &&
        shrink->state[shrink->silent] == RANK_AWAITED)
        shrink->state[shrink->silent] = RANK_GONE;
}

static bool is_any_awaited(const shrink_t *shrink)
{
    for (int r = 0; r < shrink->group->size; r++)
        if (shrink->state[r] == RANK_AWAITED)
            return true;
    return false;
}

/* Looks, by one request, whether the key final is there, whose last will was
 * carried out, and which awaited ranks have written their mark. */
static dscomm_status_t shrink_look(shrink_t *shrink, const char *mark,
                                   const char *final, bool *ret_final)
{
    const dscomm_meeting_t *meeting = &shrink->group->identity.world->meeting;
    size_t count = 2;
    dscomm_status_t status;

    shrink->looks[0] =
        (dscomm_priv_look_t){.store = shrink->store, .key = final};
    shrink->looks[1] = dscomm_priv_processes_key(shrink->base);
    for (int r = 0; r < shrink->group->size; r++) {
        if (shrink->state[r] != RANK_AWAITED)
            continue;
        snprintf(shrink->keys[r], KEY_MAX, "%s/%d", mark, r);
        shrink->looks[count++] = (dscomm_priv_look_t){.store = shrink->store,
                                                      .key = shrink->keys[r]};
    }
    status = dscomm_priv_store_look(shrink->looks, count);
    if (status < 0)
        return status;
    dscomm_priv_processes_read(meeting->processes, &shrink->looks[1]);
    count = 2;
    for (int r = 0; r < shrink->group->size; r++)
        if (shrink->state[r] == RANK_AWAITED && shrink->looks[count++].present)
            shrink->state[r] = RANK_CAME;
    *ret_final = shrink->looks[0].present;
    return DSCOMM_OK;
}

/* Waits until the key final is there, or no rank is awaited any more, or the
 * round's end. */
static dscomm_status_t shrink_await(shrink_t *shrink, const char *mark,
                                    const char *final)
{
    int64_t pause_ns = PAUSE_NS;
    bool done = false;
    dscomm_status_t status;

    for (;;) {
        const int64_t left_ns = shrink->end_ns - dscomm_priv_clock();

        shrink_note_ends(shrink);
        /* The look moves what the group sends: a member may not know of the
         * failure yet. */
        shrink->group->ops.status(shrink->group->impl, NULL);
        status = shrink_look(shrink, mark, final, &done);
        shrink_note_silence(shrink);
        if (status < 0 || done || !is_any_awaited(shrink) || left_ns <= 0)
            return status;
        dscomm_backend_progress_others(shrink->group);
        g_usleep((gulong)(MIN(pause_ns, left_ns) / 1000));
        pause_ns = MIN(2 * pause_ns, PAUSE_MOST_NS);
    }
}

/* Gives the next wait the rest of the call's time, or a little more. */
static void round_extend(shrink_t *shrink)
{
    const int least = MIN(shrink->attr->timeout_ms, ROUND_LEAST_MS);

    shrink->end_ns = MAX(shrink->end_ns,
                         dscomm_priv_clock_after(dscomm_priv_clock(), least));
    dscomm_priv_store_limit(shrink->store, shrink->end_ns,
                            shrink->end_ns + ROUND_GRACE_MS * NS_PER_MS);
}

static dscomm_status_t shrink_mark(const shrink_t *shrink, const char *mark)
{
    char key[KEY_MAX];

    snprintf(key, sizeof key, "%s/%d", mark, shrink->group->rank);
    return dscomm_store_set(shrink->store, key, "", 0);
}

static dscomm_status_t fail_senseless(const dscomm_group_t *group)
{
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       NAME " on group '%s': what the survivors have agreed on "
                            "makes no sense; another program uses the store",
                       group->identity.name);
}

/* Reads the members: a digit for each rank of the group, and the backend. */
static dscomm_status_t members_read(shrink_t *shrink, const char *text,
                                    size_t size)
{
    const size_t ranks = (size_t)shrink->group->size;

    if (size <= ranks || strspn(text, "01") != ranks || text[ranks] != ' ')
        return fail_senseless(shrink->group);
    shrink->count = 0;
    for (size_t r = 0; r < ranks; r++) {
        shrink->state[r] = text[r] == '1' ? RANK_AWAITED : RANK_GONE;
        if (text[r] == '1')
            shrink->members[shrink->count++] = (int)r;
    }
    shrink->same_backend = !strcmp(text + ranks + 1, shrink->attr->backend);
    return DSCOMM_OK;
}

/* Proposes the ranks that have come as members, and finds who the members are.
 */
static dscomm_status_t members_agree(shrink_t *shrink)
{
    const size_t ranks = (size_t)shrink->group->size;
    const size_t size = ranks + 1 + strlen(shrink->attr->backend);
    char *own = g_try_malloc(size + 1);
    void *value;
    size_t length;
    dscomm_status_t status;

    if (!own)
        return fail_memory(shrink->group);
    for (size_t r = 0; r < ranks; r++)
        own[r] = shrink->state[r] == RANK_CAME ? '1' : '0';
    snprintf(own + ranks, size + 1 - ranks, " %s", shrink->attr->backend);
    status = dscomm_store_compare_set(shrink->store, "members", "", 0, own,
                                      size, &value, &length);
    g_free(own);
    if (status < 0)
        return status;
    status = members_read(shrink, value, length);
    dscomm_store_free(value);
    return status;
}

/* Fails if a member has ended or has not opened its part of the new group. */
static dscomm_status_t members_check(const shrink_t *shrink)
{
    const dscomm_group_t *group = shrink->group;

    for (int i = 0; i < shrink->count; i++) {
        const int r = shrink->members[i];
        const bool gone = shrink->state[r] == RANK_GONE;
        dscomm_failure_t failure;

        if (shrink->state[r] == RANK_CAME)
            continue;
        dscomm_priv_group_blame(
            group, gone ? DSCOMM_ERR_PEER_FAILED : DSCOMM_ERR_TIMEOUT,
            gone ? DSCOMM_FAILURE_DIED : DSCOMM_FAILURE_SILENT, r, NULL,
            &failure);
        dscomm_backend_failure_detail(&failure, "in " NAME);
        return dscomm_backend_fail(&failure);
    }
    return DSCOMM_OK;
}

/* Opens the new group, and waits for the other members to do so. *ret_group is
 * set if this rank's part is open, even if the call fails. */
static dscomm_status_t round_open(shrink_t *shrink, dscomm_group_t **ret_group)
{
    dscomm_status_t status;

    if (!shrink->same_backend)
        return dscomm_fail(DSCOMM_ERR_MISMATCH,
                           NAME " on group '%s': rank %d asks for backend %s, "
                                "others for another; give all the same",
                           shrink->group->identity.name, shrink->group->rank,
                           shrink->attr->backend);
    status = dscomm_priv_group_survivors(
        shrink->group, shrink->members, shrink->count, shrink->attr,
        shrink->end_ns, shrink->round, ret_group);
    if (status == DSCOMM_OK)
        status = shrink_mark(shrink, "joined");
    if (status < 0)
        return status;
    shrink->state[shrink->group->rank] = RANK_CAME;
    round_extend(shrink);
    status = shrink_await(shrink, "joined", "result");
    return status < 0 ? status : members_check(shrink);
}

/* Proposes status, with this thread's last failure, as the round's result, and
 * returns the result. *ret_final: no other round can help. */
static dscomm_status_t result_agree(shrink_t *shrink, dscomm_status_t status,
                                    bool *ret_final)
{
    char own[DSCOMM_FAILURE_PACKED] = OK_TEXT;
    size_t size = sizeof OK_TEXT - 1;
    dscomm_failure_t failure;
    void *value;

    if (status < 0) {
        dscomm_backend_failure_last(shrink->group, status, &failure);
        size = dscomm_backend_failure_pack(&failure, own);
    }
    status = dscomm_store_compare_set(shrink->store, "result", "", 0, own, size,
                                      &value, &size);
    *ret_final = true;
    if (status < 0)
        return status;
    if (size == sizeof OK_TEXT - 1 && !memcmp(value, OK_TEXT, size)) {
        dscomm_store_free(value);
        return DSCOMM_OK;
    }
    if (dscomm_backend_failure_unpack(value, size, &failure)) {
        *ret_final = !shrink_exclude(shrink, &failure);
        status = dscomm_backend_fail(&failure);
    } else {
        status = fail_senseless(shrink->group);
    }
    dscomm_store_free(value);
    return status;
}

/* Looks for the result of a round in which this rank is a member. If there is
 * one, this rank took part in an earlier call, or another member has failed
 * already. */
static dscomm_status_t round_is_over(shrink_t *shrink, bool *ret_over)
{
    const char *key = "result";
    int present = 0;
    dscomm_status_t status =
        dscomm_store_check(shrink->store, &key, 1, &present);

    *ret_over = present;
    return status;
}

static dscomm_status_t fail_shrunk(const dscomm_group_t *group)
{
    return dscomm_fail(DSCOMM_ERR_STATE,
                       NAME " on group '%s': this group has shrunk before; "
                            "shrink the group that came of that",
                       group->identity.name);
}

/* This round has a result. If this rank has begun it in an earlier call, goes
 * on to the next one, unless the group has shrunk. */
static dscomm_status_t round_repeat(shrink_t *shrink, bool is_earlier,
                                    bool *ret_final)
{
    dscomm_status_t status = result_agree(shrink, DSCOMM_OK, ret_final);

    if (status < 0) {
        *ret_final = *ret_final && !is_earlier;
        return status;
    }
    return fail_shrunk(shrink->group);
}

static dscomm_status_t round_join(shrink_t *shrink, bool *ret_final,
                                  dscomm_group_t **ret_group)
{
    dscomm_group_t *group = NULL;
    dscomm_status_t status = round_open(shrink, &group);

    status = result_agree(shrink, status, ret_final);
    if (status == DSCOMM_OK && group)
        *ret_group = group;
    else if (group)
        dscomm_priv_group_drop(group);
    return status;
}

/* Runs one round. On failure, *ret_final tells whether another one may
 * follow. */
static dscomm_status_t round_run(shrink_t *shrink, bool *ret_final,
                                 dscomm_group_t **ret_group)
{
    dscomm_group_t *group = shrink->group;
    const bool is_earlier = shrink->round <= group->life.shrink_rounds;
    bool over = false;
    dscomm_status_t status;

    *ret_final = true;
    group->life.shrink_rounds = MAX(group->life.shrink_rounds, shrink->round);
    for (int r = 0; r < group->size; r++)
        if (shrink->state[r] != RANK_GONE)
            shrink->state[r] = RANK_AWAITED;
    status = shrink_mark(shrink, "here");
    shrink->state[group->rank] = RANK_CAME;
    if (status == DSCOMM_OK)
        status = shrink_await(shrink, "here", "members");
    if (status == DSCOMM_OK)
        status = members_agree(shrink);
    if (status < 0)
        return status;
    if (shrink->state[group->rank] == RANK_GONE)
        return fail_left_out(group, "it was judged dead or came too late");
    status = round_is_over(shrink, &over);
    if (status < 0)
        return status;
    return over ? round_repeat(shrink, is_earlier, ret_final)
                : round_join(shrink, ret_final, ret_group);
}

/* Runs rounds until one succeeds or none can follow. */
static dscomm_status_t shrink_run(shrink_t *shrink, dscomm_group_t **ret_group)
{
    char prefix[KEY_MAX];
    bool final = false;
    dscomm_status_t status = DSCOMM_ERR_TIMEOUT;

    while (!final) {
        snprintf(prefix, sizeof prefix, "shrink/%u", ++shrink->round);
        status = dscomm_store_prefix(shrink->part, prefix, &shrink->store);
        if (status < 0)
            return status;
        round_extend(shrink);
        status = round_run(shrink, &final, ret_group);
        dscomm_store_close(shrink->store);
        if (status == DSCOMM_OK)
            return status;
    }
    return status;
}

/* Opens the failed group's part of the store. */
static dscomm_status_t shrink_open_store(shrink_t *shrink)
{
    const dscomm_group_t *group = shrink->group;
    char prefix[DSCOMM_GROUP_ID_MAX + 8];

    shrink->base = dscomm_priv_group_base_after(group);
    if (!shrink->base)
        return dscomm_fail(DSCOMM_ERR_STATE,
                           NAME " on group '%s': this rank could not open the "
                                "standby store when it joined the world "
                                "(DSCOMM_LOG=info tells why)",
                           group->identity.name);
    snprintf(prefix, sizeof prefix, "g/%s", group->identity.id);
    return dscomm_store_prefix(shrink->base, prefix, &shrink->part);
}

/* Adds to the failure of a store that ended with rank 0 what helps. */
static dscomm_status_t explain_store(const shrink_t *shrink,
                                     dscomm_status_t status)
{
    const dscomm_meeting_t *meeting = &shrink->group->identity.world->meeting;

    if ((status != DSCOMM_ERR_IO && status != DSCOMM_ERR_PEER_FAILED) ||
        !meeting->serves || meeting->has_standby ||
        !dscomm_priv_processes_ended(meeting->processes, 0))
        return status;
    return dscomm_fail(status,
                       NAME " on group '%s': rank 0 has ended, and with it the "
                            "store, by which the others would agree; start the "
                            "ranks by a launcher that serves the store, such "
                            "as dscomm run",
                       shrink->group->identity.name);
}

static dscomm_status_t shrink_begin(shrink_t *shrink,
                                    const dscomm_failure_t *failure)
{
    const dscomm_group_t *group = shrink->group;

    if (!shrink->state || !shrink->members || !shrink->looks || !shrink->keys)
        return fail_memory(group);
    shrink->silent = -1;
    if (shrink_exclude(shrink, failure) &&
        failure->kind == DSCOMM_FAILURE_SILENT) {
        shrink->silent = group->identity.from_world[failure->rank];
        shrink->silent_end_ns = dscomm_priv_clock_after(
            dscomm_priv_clock(), MIN(shrink->attr->timeout_ms, SILENT_MS));
        shrink->state[shrink->silent] = RANK_AWAITED;
    }
    if (shrink->state[group->rank] == RANK_GONE)
        return fail_left_out(group, "the failure is its own");
    return shrink_open_store(shrink);
}

/* Shrinks a group of several ranks. */
static dscomm_status_t shrink_many(dscomm_group_t *group,
                                   const dscomm_group_attr_t *attr,
                                   const dscomm_failure_t *failure,
                                   dscomm_group_t **ret_group)
{
    const gsize ranks = (gsize)group->size;
    shrink_t shrink = {
        .group = group,
        .attr = attr,
        .end_ns =
            dscomm_priv_clock_after(dscomm_priv_clock(), attr->timeout_ms),
        .state = g_try_new0(rank_state_t, ranks),
        .members = g_try_new(int, ranks),
        .looks = g_try_new(dscomm_priv_look_t, ranks + 2),
        .keys = g_try_malloc_n(ranks, KEY_MAX),
    };
    dscomm_status_t status = shrink_begin(&shrink, failure);

    if (status == DSCOMM_OK) {
        /* without the processes, the deadline tells who has ended */
        (void)dscomm_priv_processes_learn(
            group->identity.world->meeting.processes, shrink.base,
            group->identity.world_ranks, group->size);
        status = explain_store(&shrink, shrink_run(&shrink, ret_group));
    }
    dscomm_store_close(shrink.part);
    g_free(shrink.keys);
    g_free(shrink.looks);
    g_free(shrink.members);
    g_free(shrink.state);
    return status;
}

/* Ends the works of a group that has failed. */
static void end_works(dscomm_group_t *group)
{
    pthread_mutex_lock(&group->works.lock);
    dscomm_priv_works_broken(group);
    dscomm_priv_pending_settle(group);
    pthread_mutex_unlock(&group->works.lock);
}

/* Returns a rank of group whose process has ended, or -1. */
static int group_find_dead(const dscomm_group_t *group)
{
    const dscomm_meeting_t *meeting = &group->identity.world->meeting;

    for (int r = 0; r < group->size; r++)
        if (r != group->rank &&
            dscomm_priv_processes_ended(meeting->processes,
                                        group->identity.world_ranks[r]))
            return r;
    return -1;
}

/* Revokes a group that seems to work although the process of a rank has ended.
 * The caller may know of that by another group, such as that of a compressor.
 */
static void group_detect_death(dscomm_group_t *group)
{
    const dscomm_meeting_t *meeting = &group->identity.world->meeting;
    dscomm_store_t *base = dscomm_priv_group_base_after(group);
    dscomm_failure_t failure;
    dscomm_priv_look_t look;
    int dead;

    if (!base || dscomm_priv_processes_learn(meeting->processes, base,
                                             group->identity.world_ranks,
                                             group->size) < 0)
        return;
    dead = group_find_dead(group);
    if (dead < 0) { /* on another machine */
        look = dscomm_priv_processes_key(base);
        if (dscomm_priv_store_look(&look, 1) == DSCOMM_OK)
            dscomm_priv_processes_read(meeting->processes, &look);
        dead = group_find_dead(group);
    }
    if (dead < 0)
        return;
    dscomm_priv_group_blame(group, DSCOMM_ERR_PEER_FAILED, DSCOMM_FAILURE_DIED,
                            dead, NULL, &failure);
    dscomm_priv_group_revoke(group, &failure);
}

/* Shrinks a group of one rank. A failure leaves the only round to the next
 * call. */
static dscomm_status_t shrink_alone(dscomm_group_t *group,
                                    const dscomm_group_attr_t *attr,
                                    dscomm_group_t **ret_group)
{
    static const int self = 0;
    dscomm_status_t status;

    if (group->life.shrink_rounds)
        return fail_shrunk(group);
    status = dscomm_priv_group_survivors(
        group, &self, 1, attr,
        dscomm_priv_clock_after(dscomm_priv_clock(), attr->timeout_ms), 1,
        ret_group);
    group->life.shrink_rounds = status == DSCOMM_OK;
    return status;
}

static dscomm_status_t shrink_check(dscomm_group_t *group,
                                    const dscomm_group_attr_t *attr,
                                    dscomm_group_t *const *ret_group,
                                    dscomm_group_attr_t *ret_attr,
                                    dscomm_failure_t *ret_failure)
{
    dscomm_status_t status = dscomm_priv_group_alive(group, NAME);

    if (status == DSCOMM_OK)
        status = dscomm_priv_group_attr_fill(group, NAME, attr, ret_attr);
    if (status < 0)
        return status;
    if (!ret_group)
        return dscomm_fail(DSCOMM_ERR_INVALID, NAME ": ret_group is NULL");
    if (ret_attr->members_only)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           NAME ": attr.members_only is for "
                                "dscomm_group_new(); the members of this group "
                                "are those that survive");
    if (dscomm_priv_group_revoked(group, ret_failure) == DSCOMM_OK)
        group_detect_death(group);
    if (dscomm_priv_group_revoked(group, ret_failure) == DSCOMM_OK)
        return dscomm_fail(DSCOMM_ERR_STATE,
                           NAME
                           " on group '%s': the group works; only a group "
                           "that has failed shrinks. Make a smaller one by "
                           "dscomm_group_new(), or end this one by "
                           "dscomm_group_abort()",
                           group->identity.name);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_group_shrink(dscomm_group_t *group,
                                    const dscomm_group_attr_t *attr,
                                    dscomm_group_t **ret_group)
{
    dscomm_group_attr_t merged = DSCOMM_GROUP_ATTR_INIT;
    dscomm_failure_t failure;
    dscomm_status_t status =
        shrink_check(group, attr, ret_group, &merged, &failure);

    if (status < 0)
        return status;
    end_works(group);
    if (group->size > 1)
        return shrink_many(group, &merged, &failure, ret_group);
    return shrink_alone(group, &merged, ret_group);
}
