/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/group/creation.h"
#include "lib/group/failure.h"
#include "lib/group/published.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/group/world.h"
#include "lib/rendezvous/processes.h"
#include "lib/store/store.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Longest time between two checks, and time limit of one check, in ms. */
#define NAMED_MOST 8 /* missing ranks */
#define MOST_LOOK_MS 100
/* Longest time from a lost connection to the rank's reason, in ms. The kernel
 * closes a process's sockets before the process has ended. */
#define LOST_MS 1000
/* Time that rank 0 waits for ranks that have not read the failure, in ms. */
#define GRACE_MS 500
#define PAUSE_US 2000
/* Longest time that a rank which knows no culprit waits for its parent to end,
 * in ms. It is more than MOST_LOOK_MS. */
#define PARENT_MS 250
/* Longest time that a rank which knows no culprit then waits for a rank of
 * another machine that knows one, in ms: that rank may see the silence
 * MOST_LOOK_MS later, waits for its own parent, and reads processes. With
 * PARENT_MS it is less than the time in which the store is used after the
 * deadline (OPEN_GRACE_MS in group.c). */
#define CULPRIT_MS 600
#define LOOK_GAP 25 /* ms between looks */

/* Key for each rank that has read the failure. */
#define READ_KEY "read/%d"

void dscomm_priv_creation_begin(dscomm_creation_t *creation,
                                dscomm_group_t *group, dscomm_group_t *parent,
                                int open_ms)
{
    const int64_t now = dscomm_priv_clock();

    *creation = (dscomm_creation_t){.parent = parent,
                                    .pause_ms = DSCOMM_CREATION_LOOK_MS};
    creation->end_ns = dscomm_priv_clock_after(now, open_ms);
    creation->next_ns = dscomm_priv_clock_after(now, creation->pause_ms);
    group->life.creation = creation;
}

static dscomm_creation_t *creation_of(const dscomm_backend_args_t *args)
{
    return args->group ? args->group->life.creation : NULL;
}

int dscomm_priv_creation_left(const dscomm_backend_args_t *args)
{
    if (!creation_of(args))
        return args->open_ms;
    return MIN(args->open_ms,
               dscomm_priv_clock_left(creation_of(args)->end_ns));
}

static const dscomm_meeting_t *meeting_of(const dscomm_group_t *group)
{
    return &group->identity.world->meeting;
}

static int has_ended(const dscomm_group_t *group, int world_rank)
{
    return world_rank != meeting_of(group)->rank &&
           dscomm_priv_processes_ended(meeting_of(group)->processes,
                                       world_rank);
}

static bool is_silent(const dscomm_group_t *group)
{
    return dscomm_priv_store_silent(group->life.base, NULL);
}

/* Reads the processes of this node's ranks. They are needed only in a long
 * wait, or for a sentence about a rank. */
static void learn_once(const dscomm_group_t *group)
{
    dscomm_creation_t *creation = group->life.creation;

    if (!creation->learned && !is_silent(group))
        creation->learned =
            dscomm_priv_stopped_learn(meeting_of(group), group->life.base,
                                      group->identity.world_ranks,
                                      group->size) == DSCOMM_OK;
}

/* Returns the world rank of a process that has ended, or -1. */
static int find_ended(const dscomm_group_t *group)
{
    learn_once(group);
    for (int i = 0; i < group->size; i++)
        if (has_ended(group, group->identity.world_ranks[i]))
            return group->identity.world_ranks[i];
    return -1;
}

/* OK, or the failure with which the parent was revoked. */
static dscomm_status_t parent_status(const dscomm_group_t *group)
{
    const dscomm_group_t *parent = group->life.creation->parent;
    dscomm_failure_t failure;

    if (!parent || parent->ops.status(parent->impl, &failure) == DSCOMM_OK)
        return DSCOMM_OK;
    return dscomm_backend_fail(&failure);
}

/* True if the parent was revoked and its backend notifies all its ranks. A
 * backend that notifies by messages may fail to, because messages are lost if
 * the sender ends soon. */
static bool is_notified(const dscomm_group_t *group)
{
    const dscomm_group_t *parent = group->life.creation->parent;

    return parent && parent->capabilities & DSCOMM_CAP_DEATH_DETECTION &&
           parent_status(group) < 0;
}

static void blame_dead(const dscomm_group_t *group, int world_rank,
                       dscomm_failure_t *ret_failure)
{
    dscomm_processes_t *processes = meeting_of(group)->processes;

    dscomm_backend_failure(group, DSCOMM_ERR_PEER_FAILED, DSCOMM_FAILURE_DIED,
                           world_rank, 0, ret_failure);
    dscomm_backend_failure_detail(
        ret_failure, "while group '%s' was made%s", group->identity.name,
        dscomm_priv_processes_pid(processes, world_rank)
            ? ""
            : ", or its host cannot be reached any more");
}

static dscomm_status_t fail_dead(const dscomm_group_t *group, int world_rank)
{
    dscomm_group_t *parent = group->life.creation->parent;
    dscomm_failure_t failure;

    blame_dead(group, world_rank, &failure);
    if (!parent)
        return dscomm_backend_fail(&failure);
    /* a rank ends if it finds another death while it makes another group; the
     * store ends with rank 0 */
    if ((world_rank || !dscomm_priv_group_is_served(group)) &&
        parent_status(group) == DSCOMM_OK)
        dscomm_priv_group_share_failure(parent, &failure);
    dscomm_priv_group_revoke(parent, &failure);
    return parent_status(group);
}

/* Fails because the store that rank 0 serves does not answer any more. */
static dscomm_status_t fail_served(const dscomm_group_t *group)
{
    const dscomm_meeting_t *meeting = meeting_of(group);
    const int here = dscomm_priv_processes_pid(meeting->processes, 0) != 0;
    const int64_t end = dscomm_priv_clock_after(dscomm_priv_clock(), LOST_MS);
    char who[DSCOMM_PROCESS_MAX];
    dscomm_failure_t failure;
    dscomm_status_t status;

    do {
        const int ended = has_ended(group, 0);

        status = parent_status(group);
        if (status < 0 || ended)
            return status < 0 ? status : fail_dead(group, 0);
        g_usleep(PAUSE_US);
    } while (here && !group->life.creation->lost && dscomm_priv_clock() < end);
    group->life.creation->lost = 1;
    if (here) {
        dscomm_backend_failure(group, DSCOMM_ERR_PEER_FAILED,
                               DSCOMM_FAILURE_LEFT, 0, 0, &failure);
        dscomm_backend_failure_detail(
            &failure,
            "%s, which serves the store, has left while the group was made",
            dscomm_priv_processes_describe(meeting->processes, 0, who));
    } else {
        blame_dead(group, 0, &failure);
    }
    return dscomm_backend_fail(&failure);
}

/* Fails with the cause of the last failure of a request to the store. */
static dscomm_status_t fail_store(const dscomm_group_t *group)
{
    if (dscomm_priv_group_is_served(group))
        return fail_served(group);
    return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                       "the store failed while the group was made: %s",
                       dscomm_last_error());
}

/* True if the store did not answer in time, or this rank has no memory for a
 * request. */
static int is_passing(dscomm_status_t status)
{
    return status == DSCOMM_ERR_TIMEOUT || status == DSCOMM_ERR_NO_MEMORY;
}

/* Handles a failed request to the store. A lack of answer is no failure of the
 * group: the caller knows the ranks that it waits for. */
static dscomm_status_t unanswered(const dscomm_group_t *group,
                                  dscomm_status_t status)
{
    return is_passing(status) ? DSCOMM_OK : fail_store(group);
}

static dscomm_status_t stored_failure(const dscomm_group_t *group)
{
    dscomm_failure_t failure;
    dscomm_status_t status =
        dscomm_priv_published_failure(group->life.store, &failure);

    if (status < 0)
        return unanswered(group, status);
    return failure.status < 0 ? dscomm_backend_fail(&failure) : status;
}

/* Reads from the store, in one request, whether the group has failed, and the
 * last wills. The request to a store that does not answer is short, because the
 * group may be made without it; after the deadline there is none. */
static dscomm_status_t look_in_store(const dscomm_group_t *group,
                                     bool *ret_failed)
{
    const dscomm_meeting_t *meeting = meeting_of(group);
    dscomm_priv_look_t looks[] = {
        {.key = DSCOMM_FAILED_KEY},
        dscomm_priv_processes_key(group->life.base),
    };
    dscomm_status_t status;

    if (is_silent(group) &&
        !dscomm_priv_clock_left(group->life.creation->end_ns))
        return DSCOMM_OK;
    status = dscomm_priv_look_store(group, &looks[0].store);
    if (status == DSCOMM_OK) {
        status = dscomm_priv_store_look(looks, G_N_ELEMENTS(looks));
        dscomm_store_close(looks[0].store);
    }
    if (status < 0)
        return unanswered(group, status);
    dscomm_priv_processes_read(meeting->processes, &looks[1]);
    *ret_failed = looks[0].present;
    return DSCOMM_OK;
}

/* Fails because a rank has ended without a known failure. If the store does not
 * answer, the rank most likely gave up waiting for the store, so it is not the
 * culprit. The caller adds what is known of the store. */
static dscomm_status_t explain_end(const dscomm_group_t *group, int world_rank)
{
    char who[DSCOMM_PROCESS_MAX];

    if (!is_silent(group))
        return fail_dead(group, world_rank);
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "%s has ended, and the store does not answer",
                       dscomm_priv_processes_describe(
                           meeting_of(group)->processes, world_rank, who));
}

/* Looks for a reason to give up. A process that has ended may have published a
 * failure before, so failures are read after processes. Last wills that are
 * read here count in the next check. */
static dscomm_status_t creation_look(const dscomm_group_t *group)
{
    const int ended = find_ended(group);
    dscomm_status_t status = parent_status(group);
    bool failed = false;

    if (status == DSCOMM_OK)
        status = look_in_store(group, &failed);
    if (status == DSCOMM_OK && failed)
        status = stored_failure(group);
    if (status == DSCOMM_OK && ended >= 0)
        status = explain_end(group, ended);
    return status;
}

dscomm_status_t dscomm_backend_creation_check(const dscomm_backend_args_t *args)
{
    dscomm_creation_t *creation = creation_of(args);
    const int64_t now = dscomm_priv_clock();
    dscomm_status_t status;

    if (!creation || now < creation->next_ns)
        return DSCOMM_OK;
    status = creation_look(args->group);
    creation->next_ns =
        dscomm_priv_clock_after(dscomm_priv_clock(), creation->pause_ms);
    creation->pause_ms = MIN(2 * creation->pause_ms, MOST_LOOK_MS);
    return status;
}

dscomm_status_t dscomm_backend_creation_lost(const dscomm_backend_args_t *args,
                                             int rank)
{
    const int64_t end = dscomm_priv_clock_after(dscomm_priv_clock(), LOST_MS);
    char who[DSCOMM_PROCESS_MAX];
    dscomm_status_t status = DSCOMM_OK;

    while (creation_of(args) && status == DSCOMM_OK &&
           dscomm_priv_clock() < end) {
        status = creation_look(args->group);
        if (status == DSCOMM_OK)
            g_usleep(PAUSE_US);
    }
    if (status < 0)
        return status;
    return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                       "%s closed its connection while the group was made",
                       dscomm_backend_creation_rank(args, rank, who));
}

dscomm_status_t dscomm_backend_creation_get(const dscomm_backend_args_t *args,
                                            const char *const *keys,
                                            size_t count, int timeout_ms,
                                            void **ret_values,
                                            size_t *ret_sizes)
{
    const dscomm_creation_t *creation = creation_of(args);
    const int64_t end =
        MIN(dscomm_priv_clock_after(dscomm_priv_clock(), timeout_ms),
            creation ? creation->end_ns : INT64_MAX);
    int slice = DSCOMM_CREATION_LOOK_MS;

    for (;;) {
        const int left = dscomm_priv_clock_left(end);
        dscomm_status_t status = dscomm_store_multi_get(
            args->store, keys, count, MIN(left, slice), ret_values, ret_sizes);
        dscomm_failure_t failure;

        if (status != DSCOMM_ERR_TIMEOUT || left <= slice)
            return status;
        status = dscomm_backend_creation_check(args);
        if (status < 0) {
            dscomm_priv_failure_last(status, &failure);
            if (dscomm_store_multi_get(args->store, keys, count, 0, ret_values,
                                       ret_sizes) == DSCOMM_OK)
                return DSCOMM_OK;
            return dscomm_backend_fail(&failure);
        }
        slice = MIN(2 * slice, MOST_LOOK_MS);
    }
}

const char *dscomm_backend_creation_rank(const dscomm_backend_args_t *args,
                                         int rank,
                                         char text[DSCOMM_CREATION_RANK_MAX])
{
    const int world_rank = args->world_ranks[rank];

    if (creation_of(args)) {
        learn_once(args->group);
        dscomm_priv_processes_describe(meeting_of(args->group)->processes,
                                       world_rank, text);
    } else {
        snprintf(text, DSCOMM_CREATION_RANK_MAX, "rank %d", world_rank);
    }
    return text;
}

dscomm_status_t
dscomm_backend_creation_missing(const dscomm_backend_args_t *args,
                                const char *const *keys)
{
    GString *list = g_string_new(NULL);
    char rank[DSCOMM_CREATION_RANK_MAX];
    int missing = 0, there;
    dscomm_status_t status;

    for (int r = 0; r < args->ranks && missing <= NAMED_MOST; r++) {
        there = 0;
        if (dscomm_store_check(args->store, &keys[r], 1, &there) < 0 || there)
            continue;
        if (missing++ < NAMED_MOST)
            g_string_append_printf(list, "%s%s", list->len ? ", " : "",
                                   dscomm_backend_creation_rank(args, r, rank));
    }
    status = dscomm_fail(
        DSCOMM_ERR_TIMEOUT,
        "%s%s did not come within %.1f s; did they reach the same call?",
        list->len ? list->str : "some ranks",
        missing > NAMED_MOST ? " and more" : "", args->open_ms / 1e3);
    g_string_free(list, TRUE);
    return status;
}

/* Waits until a rank of another machine, which may know more than this one, has
 * replaced the time-out in the store by one with a culprit. */
static void await_culprit(const dscomm_group_t *group,
                          dscomm_failure_t *failure)
{
    for (int ms = 0;
         ms < CULPRIT_MS && dscomm_priv_failure_is_unexplained(failure);
         ms += LOOK_GAP) {
        g_usleep(LOOK_GAP * 1000);
        if (dscomm_priv_failure_publish(group->life.store, failure) < 0)
            return;
    }
}

/* Adds to a time-out, once, which ranks of this machine are stopped or have
 * ended. If its record names nobody, although the sentence may, a stopped rank
 * is the culprit. Returns whether another machine may know more. */
static bool explain_timeout(const dscomm_group_t *group,
                            dscomm_failure_t *failure)
{
    const dscomm_meeting_t *meeting = meeting_of(group);
    int rank;

    if (failure->status != DSCOMM_ERR_TIMEOUT ||
        group->life.creation->explained || is_silent(group))
        return false;
    group->life.creation->explained = true;
    rank = dscomm_priv_stopped_append(meeting, group->identity.world_ranks,
                                      group->size, failure->detail,
                                      sizeof failure->detail);
    if (failure->rank < 0 && rank >= 0 && !has_ended(group, rank))
        dscomm_priv_group_accuse_world(group, rank, failure);
    return group->identity.nodes.count > 1;
}

/* Publishes this rank's last failure, or takes over the one in the store. */
static dscomm_status_t settle(const dscomm_group_t *group,
                              dscomm_status_t status)
{
    dscomm_failure_t failure;
    dscomm_status_t stored;
    bool awaits;

    dscomm_backend_failure_last(group, status, &failure);
    awaits = explain_timeout(group, &failure);
    if (group->life.creation->parent && failure.rank >= 0 &&
        failure.status == DSCOMM_ERR_TIMEOUT)
        dscomm_priv_child_publish(group->life.creation->parent, &failure);
    stored = dscomm_priv_failure_publish(group->life.store, &failure);
    if (awaits && stored == DSCOMM_OK)
        await_culprit(group, &failure);
    if (stored < 0 && dscomm_priv_failure_blames(status) && !is_passing(stored))
        return fail_store(group);
    return dscomm_backend_fail(&failure);
}

/* Gives the parent time to end: a missing rank may wait for one that keeps the
 * parent's ranks waiting, too, and these find out. The last sentence stays. */
static void await_parent(const dscomm_group_t *group)
{
    dscomm_group_t *parent = group->life.creation->parent;

    if (!parent || group->life.creation->parent_awaited)
        return;
    group->life.creation->parent_awaited = true;
    for (int ms = 0;
         ms < PARENT_MS && parent->ops.status(parent->impl, NULL) == DSCOMM_OK;
         ms += LOOK_GAP)
        g_usleep(LOOK_GAP * 1000);
}

dscomm_status_t dscomm_backend_creation_fail(const dscomm_backend_args_t *args,
                                             dscomm_status_t status)
{
    const dscomm_group_t *group = args->group;

    if (!creation_of(args) || !group->life.store)
        return status;
    if (status == DSCOMM_ERR_TIMEOUT && !is_silent(group))
        await_parent(group);
    if (dscomm_priv_failure_blames(status) && parent_status(group) < 0) {
        status = parent_status(group);
        if (is_notified(group))
            return status;
        group->life.creation->explained = true; /* by the parent */
    }
    return settle(group, status);
}

static int has_read(const dscomm_group_t *group, int rank)
{
    char text[32];
    const char *key = text;
    int present = 0;

    snprintf(text, sizeof text, READ_KEY, rank);
    return dscomm_store_check(group->life.store, &key, 1, &present) < 0 ||
           present;
}

/* Waits until the other ranks have read the failure: rank 0's store ends with
 * its process or with dscomm_init(). */
static void await_readers(const dscomm_group_t *group)
{
    const int64_t end = dscomm_priv_clock_after(dscomm_priv_clock(), GRACE_MS);

    find_ended(group);
    for (int r = 0; r < group->size; r++)
        while (r != group->rank &&
               !has_ended(group, group->identity.world_ranks[r]) &&
               !has_read(group, r) && dscomm_priv_clock() < end)
            g_usleep(PAUSE_US);
}

static void creation_note_read(const dscomm_group_t *group)
{
    char key[32];

    snprintf(key, sizeof key, READ_KEY, group->rank);
    dscomm_store_set(group->life.store, key, "", 0);
}

/* Keeps why a world was not made: ranks that had made it see from this that the
 * rank has ended because of another one. */
static void record_failure(const dscomm_group_t *group,
                           const dscomm_failure_t *failure)
{
    char text[DSCOMM_ERROR_MAX];

    dscomm_priv_recorder_fail(group->recorder, failure,
                              dscomm_priv_failure_sentence(failure, text));
}

dscomm_status_t dscomm_priv_creation_end(const dscomm_backend_args_t *args,
                                         dscomm_status_t status)
{
    dscomm_group_t *group = args->group;
    dscomm_failure_t failure;

    if (status < 0 && group->life.store) {
        status = dscomm_backend_creation_fail(args, status);
        dscomm_backend_failure_last(group, status, &failure);
        if (dscomm_priv_group_is_served(group) && !is_notified(group)) {
            if (meeting_of(group)->rank)
                creation_note_read(group);
            else
                await_readers(group);
        }
        dscomm_backend_fail(&failure);
        if (args->world)
            record_failure(group, &failure);
    }
    group->life.creation = NULL;
    return status;
}
