/* SPDX-License-Identifier: BSD-3-Clause */
/* Failure records of a group: making them, and how the group ends. */
#include "config.h"

#include "lib/group/failure.h"

#include "lib/base/attr.h"
#include "lib/base/node.h"
#include "lib/group/recorded.h"
#include "lib/group/world.h"
#include "lib/rendezvous/processes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REASON_MAX 256 /* bytes of an abort's reason */

/* Returns the number in group. A rank outside group keeps its world number. */
int dscomm_backend_rank_number(const dscomm_group_t *group, int rank)
{
    const dscomm_group_identity_t *identity = group ? &group->identity : NULL;

    if (!identity || !identity->world || !identity->from_world || rank < 0 ||
        rank >= identity->world->size || identity->from_world[rank] < 0)
        return rank;
    return identity->from_world[rank];
}

/* Returns the pid of a rank of the world that runs on this machine; 0: it is
 * not known. */
static int64_t rank_find_pid(const dscomm_group_t *group, int rank)
{
    dscomm_recorded_group_t *seen = dscomm_priv_recorded_open(group);
    const int64_t pid = seen ? dscomm_priv_recorded_pid(seen, rank) : 0;

    dscomm_priv_recorded_close(seen);
    return pid;
}

/* Returns the pid of a rank of the world, and its node's name. pid is given if
 * the process runs on this machine; 0: returns what is known without a request
 * to the store. */
static int64_t rank_find_process(const dscomm_group_t *group, int rank,
                                 int64_t pid, char node[DSCOMM_NODE_MAX])
{
    const dscomm_meeting_t *meeting =
        group && group->identity.world ? &group->identity.world->meeting : NULL;

    *node = '\0';
    if (!pid && meeting && rank == meeting->rank)
        pid = getpid();
    if (!pid && meeting && meeting->processes)
        pid = dscomm_priv_processes_find(meeting->processes, rank, node);
    if (!pid)
        pid = rank_find_pid(group, rank);
    if (pid && !*node)
        dscomm_priv_node_name(node);
    return pid;
}

static void failure_accuse(const dscomm_group_t *group, int rank, int64_t pid,
                           dscomm_failure_t *failure)
{
    failure->rank = rank;
    failure->group_rank = dscomm_backend_rank_number(group, rank);
    failure->pid = rank_find_process(group, rank, pid, failure->host);
}

void dscomm_priv_group_accuse(const dscomm_group_t *group, int rank,
                              dscomm_failure_t *failure)
{
    if (rank >= 0 && rank < group->size)
        failure_accuse(group, group->identity.world_ranks[rank], 0, failure);
}

void dscomm_priv_group_accuse_world(const dscomm_group_t *group, int rank,
                                    dscomm_failure_t *failure)
{
    const int *from_world = group->identity.from_world;

    if (rank >= 0 && (!from_world || from_world[rank] >= 0))
        failure_accuse(group, rank, 0, failure);
}

void dscomm_backend_failure(const dscomm_group_t *group, dscomm_status_t status,
                            dscomm_failure_kind_t kind, int rank, int64_t pid,
                            dscomm_failure_t *ret_failure)
{
    *ret_failure = (dscomm_failure_t)DSCOMM_FAILURE_INIT;
    ret_failure->status = status;
    ret_failure->kind = kind;
    if (group)
        g_strlcpy(ret_failure->group, group->identity.name,
                  sizeof ret_failure->group);
    if (rank >= 0)
        failure_accuse(group, rank, pid, ret_failure);
}

void dscomm_backend_failure_last(const dscomm_group_t *group,
                                 dscomm_status_t status,
                                 dscomm_failure_t *ret_failure)
{
    dscomm_failure_t last;
    int self = -1;

    if (dscomm_priv_failure_last(status, ret_failure))
        return;
    if (group && status == DSCOMM_ERR_NO_MEMORY)
        self = group->identity.world_ranks[group->rank];
    last = *ret_failure;
    dscomm_backend_failure(group, status, last.kind, self, 0, ret_failure);
    if (group && group->life.creation)
        dscomm_backend_failure_detail(ret_failure, "group '%s': %s",
                                      group->identity.name, last.detail);
    else
        memcpy(ret_failure->detail, last.detail, sizeof last.detail);
}

const char *dscomm_backend_rank(const dscomm_group_t *group, int rank,
                                int64_t pid,
                                char text[DSCOMM_CREATION_RANK_MAX])
{
    char node[DSCOMM_NODE_MAX];

    pid = rank_find_process(group, rank, pid, node);
    return dscomm_priv_process_describe(dscomm_backend_rank_number(group, rank),
                                        rank, pid, node, text);
}

void dscomm_priv_group_blame(const dscomm_group_t *group,
                             dscomm_status_t status, dscomm_failure_kind_t kind,
                             int rank, const dscomm_coll_args_t *args,
                             dscomm_failure_t *ret_failure)
{
    dscomm_backend_failure(group, status, kind, -1, 0, ret_failure);
    dscomm_priv_group_accuse(group, rank, ret_failure);
    if (!args)
        return;
    ret_failure->coll = args->coll;
    ret_failure->sequence = args->sequence;
}

static const dscomm_group_part_t *const none[] = {NULL};
const dscomm_group_part_t *const *dscomm_priv_group_parts = none;

void dscomm_priv_group_parts_call(dscomm_group_t *group,
                                  dscomm_part_event_t event)
{
    for (const dscomm_group_part_t *const *part = dscomm_priv_group_parts;
         *part; part++)
        if ((*part)->on[event])
            (*part)->on[event](group);
}

static void group_note_revocation(dscomm_group_t *group)
{
    if (atomic_fetch_or(&group->state, GROUP_REVOKED) & GROUP_REVOKED)
        return;
    dscomm_priv_group_parts_call(group, PART_REVOKED);
}

void dscomm_priv_group_revoke(dscomm_group_t *group,
                              const dscomm_failure_t *failure)
{
    group->ops.revoke(group->impl, failure);
    group_note_revocation(group);
}

dscomm_status_t dscomm_priv_group_give_up(dscomm_group_t *group,
                                          dscomm_status_t status)
{
    dscomm_failure_t failure;

    dscomm_backend_failure_last(group, status, &failure);
    dscomm_priv_group_revoke(group, &failure);
    return status;
}

/* False if a rank of the world, which has died, had not called a collective. */
static bool rank_may_have_called(const dscomm_group_t *group, int rank,
                                 uint64_t sequence)
{
    dscomm_recorded_group_t *seen = dscomm_priv_recorded_open(group);
    const bool may =
        !seen || dscomm_priv_recorded_may_have_called(seen, rank, sequence);

    dscomm_priv_recorded_close(seen);
    return may;
}

void dscomm_priv_group_interrupt(dscomm_group_t *group,
                                 const dscomm_coll_args_t *args)
{
    dscomm_interrupted_t *interrupted = &group->works.interrupted;

    if (atomic_load(&interrupted->is_set))
        return;
    interrupted->coll = args->coll;
    interrupted->sequence = args->sequence;
    dscomm_coll_describe(args, interrupted->text, sizeof interrupted->text);
    atomic_store(&interrupted->is_set, true);
}

/* Returns the group's status. A backend that saw a rank die while it carried
 * messages does not know their collective, so that is added here, before what
 * the backend has found. */
static dscomm_status_t status_get(const dscomm_group_t *group,
                                  dscomm_failure_t *ret_failure)
{
    const dscomm_status_t status = group->ops.status(group->impl, ret_failure);
    const dscomm_interrupted_t *interrupted = &group->works.interrupted;

    if (status == DSCOMM_OK || !ret_failure ||
        ret_failure->kind != DSCOMM_FAILURE_DIED || ret_failure->coll >= 0 ||
        (*ret_failure->detail && *ret_failure->detail != '(') ||
        !atomic_load(&interrupted->is_set))
        return status;
    ret_failure->coll = interrupted->coll;
    ret_failure->sequence = interrupted->sequence;
    dscomm_backend_failure_detail(
        ret_failure, "%s %s%s%s",
        rank_may_have_called(group, ret_failure->rank, interrupted->sequence)
            ? "during"
            : "before",
        interrupted->text, *ret_failure->detail ? " " : "",
        ret_failure->detail);
    return status;
}

dscomm_status_t dscomm_priv_group_revoked(dscomm_group_t *group,
                                          dscomm_failure_t *ret_failure)
{
    dscomm_status_t status = status_get(group, ret_failure);

    if (status != DSCOMM_OK)
        group_note_revocation(group);
    return status;
}

void dscomm_priv_group_failed(dscomm_group_t *group)
{
    dscomm_priv_group_revoked(group, NULL);
}

dscomm_status_t dscomm_priv_invalid(const dscomm_group_t *group,
                                    const char *name, const char *format, ...)
{
    char text[DSCOMM_ERROR_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return dscomm_fail(DSCOMM_ERR_INVALID, "%s on group '%s': %s", name,
                       group->identity.name, text);
}

dscomm_status_t dscomm_priv_group_alive(const dscomm_group_t *group,
                                        const char *name)
{
    if (!group)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: group is NULL", name);
    if (dscomm_priv_group_is(group, GROUP_FREED))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s on group '%s': the group was finalized or freed "
                           "before; make a new one",
                           name, group->identity.name);
    if (dscomm_priv_group_forked(group))
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "%s on group '%s': process forked after "
                           "dscomm_init; call dscomm_init again in the child",
                           name, group->identity.name);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_group_usable(dscomm_group_t *group,
                                         const char *name)
{
    char text[DSCOMM_ERROR_MAX];
    dscomm_failure_t failure;
    dscomm_status_t status = dscomm_priv_group_alive(group, name);

    if (status < 0)
        return status;
    status = dscomm_priv_group_revoked(group, &failure);
    if (status < 0)
        dscomm_fail(status, "%s: %s", name,
                    dscomm_priv_failure_sentence(&failure, text));
    return status;
}

dscomm_status_t dscomm_priv_group_ready(dscomm_group_t *group, const char *name)
{
    dscomm_status_t status = dscomm_priv_group_usable(group, name);

    if (status == DSCOMM_OK && dscomm_priv_group_is(group, GROUP_COALESCING))
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "%s on group '%s': not allowed between "
                           "coalesce_begin and _end",
                           name, group->identity.name);
    return status;
}

dscomm_status_t dscomm_group_abort(dscomm_group_t *group, const char *reason)
{
    dscomm_failure_t failure;
    dscomm_status_t status =
        dscomm_priv_group_alive(group, "dscomm_group_abort");

    if (status < 0)
        return status;
    dscomm_priv_group_blame(group, DSCOMM_ERR_ABORTED, DSCOMM_FAILURE_ABORTED,
                            group->rank, NULL, &failure);
    if (reason)
        dscomm_priv_quote(reason, failure.detail, REASON_MAX);
    dscomm_priv_group_revoke(group, &failure);
    return DSCOMM_OK;
}

/* Returns the status for the user, and notes in the group's state that the user
 * has asked; any thread may set these bits. */
static dscomm_status_t status_read(const dscomm_group_t *group,
                                   dscomm_failure_t *ret_failure)
{
    dscomm_group_t *own = (dscomm_group_t *)group;
    const dscomm_status_t status = dscomm_priv_group_revoked(own, ret_failure);

    if (status < 0)
        dscomm_priv_group_set(own, GROUP_STATUS_READ);
    return status;
}

dscomm_status_t dscomm_group_status(const dscomm_group_t *group)
{
    dscomm_failure_t failure;
    dscomm_status_t status =
        dscomm_priv_group_alive(group, "dscomm_group_status");

    if (status < 0)
        return status;
    status = status_read(group, &failure);
    return status < 0 ? dscomm_backend_fail(&failure) : DSCOMM_OK;
}

dscomm_status_t dscomm_group_failure(const dscomm_group_t *group,
                                     dscomm_failure_t *ret_failure)
{
    const char *name = "dscomm_group_failure";
    dscomm_failure_t failure;
    dscomm_status_t status = dscomm_priv_group_alive(group, name);

    if (status == DSCOMM_OK)
        status = dscomm_priv_info_check(
            name, "ret_failure", ret_failure ? &ret_failure->size : NULL);
    if (status < 0)
        return status;
    if (status_read(group, &failure) == DSCOMM_OK)
        return dscomm_fail(DSCOMM_ERR_NOT_FOUND,
                           "%s: nothing has ended group '%s'", name,
                           group->identity.name);
    dscomm_priv_info_copy(&failure, sizeof failure, ret_failure);
    return DSCOMM_OK;
}
