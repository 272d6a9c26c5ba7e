/* SPDX-License-Identifier: BSD-3-Clause */
/* Deadlines of works, see progress.h. */
#include "config.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/group/failure.h"
#include "lib/group/published.h"
#include "lib/work/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define EARLY_AFTER_MS 1000
#define LAST_LOOK_MS 600 /* before the deadline */
/* The time between two tests or waits counts for at most this part of the
 * deadline: a program that was stopped or computed for long has not waited. */
#define GAP_PART 4

/* For messages: returns the oldest pending child of a compound, or work if it
 * is none. NULL if no child is pending. */
static dscomm_work_t *work_oldest_part(dscomm_work_t *work)
{
    dscomm_work_t *child;

    if (!work->kind->child_end)
        return work;
    for (child = work->group->works.pending; child; child = child->next)
        if (child->compound == work)
            return child;
    return NULL;
}

/* Writes "rank 3" or "any rank" to text, of size bytes; returns text. */
static const char *append_number(char *text, size_t size, const char *what,
                                 int which)
{
    if (which == -1)
        snprintf(text, size, "any %s", what);
    else
        snprintf(text, size, "%s %d", what, which);
    return text;
}

void dscomm_priv_work_describe(const dscomm_work_t *work, char *text,
                               size_t size)
{
    const dscomm_call_t *call = &work->call;
    char rank[32], tag[32];

    if (call->type == CALL_COLLECTIVE)
        dscomm_coll_describe(&call->coll, text, size);
    else if (call->type == CALL_ACCESS)
        dscomm_priv_access_text(call, text, size);
    else if (call->p2p.receive)
        snprintf(
            text, size, "recv from %s with %s",
            append_number(rank, sizeof rank, "rank", call->p2p.message.peer),
            append_number(tag, sizeof tag, "tag", call->p2p.message.tag));
    else
        snprintf(text, size, "send to rank %d with tag %d",
                 call->p2p.message.peer, call->p2p.message.tag);
}

/* Revokes the group and ends all its works. */
static void break_group(dscomm_group_t *group, const dscomm_failure_t *failure)
{
    char text[DSCOMM_ERROR_MAX];

    dscomm_priv_group_revoke(group, failure);
    if (!dscomm_priv_works_broken(group))
        dscomm_priv_works_cancel(group, failure->status,
                                 dscomm_priv_failure_sentence(failure, text));
}

/* Puts the first late rank, and what it is waited for, into *ret_failure.
 * ERR_MISMATCH and another record if the ranks have made different calls. */
static dscomm_status_t timeout_explain(dscomm_group_t *group,
                                       dscomm_work_t *culprit,
                                       dscomm_failure_t *ret_failure)
{
    if (culprit && culprit->kind->overdue)
        return culprit->kind->overdue(culprit, ret_failure);
    if (group->ops.explain)
        dscomm_priv_group_accuse(
            group,
            group->ops.explain(group->impl, culprit ? &culprit->request : NULL,
                               ret_failure->detail, sizeof ret_failure->detail),
            ret_failure);
    return DSCOMM_OK;
}

/* Returns detail without the name of the call, what, that it may begin with,
 * because the sentence has that before. */
static const char *detail_rest(const dscomm_group_t *group, const char *what,
                               const char *detail)
{
    char begin[256];

    snprintf(begin, sizeof begin, "%s of group '%s' ", what,
             group->identity.name);
    return detail + (g_str_has_prefix(detail, begin) ? strlen(begin) : 0);
}

/* Time without progress that is allowed for work, or for the compound of which
 * it is a child. */
static int work_timeout_ms(const dscomm_work_t *work)
{
    const dscomm_work_t *own = work->compound ? work->compound : work;

    return own->timeout_ms ? own->timeout_ms : own->group->timeout_ms;
}

/* Ends the group because timeout_ms have passed. 0 if there was progress
 * meanwhile. */
static int work_expire(dscomm_group_t *group, dscomm_work_t *culprit,
                       int timeout_ms)
{
    const uint64_t before = group->works.completed;
    char what[128] = "a coalesced call";
    const dscomm_coll_args_t *args = NULL;
    dscomm_failure_t failure;
    int peer = -1;

    if (culprit && culprit->call.type == CALL_COLLECTIVE)
        args = &culprit->call.coll;
    if (culprit && culprit->call.type == CALL_MESSAGE)
        peer = culprit->call.p2p.message.peer;
    dscomm_priv_group_blame(group, DSCOMM_ERR_TIMEOUT, DSCOMM_FAILURE_SILENT,
                            peer, args, &failure);
    if (culprit)
        dscomm_priv_work_describe(culprit, what, sizeof(what));
    if (timeout_explain(group, culprit, &failure) < 0) {
        break_group(group, &failure);
        return 1;
    }
    if (group->works.completed != before)
        return 0;
    dscomm_backend_failure_detail(
        &failure,
        "%s of group '%s' (rank %d of %d) made no progress for %d ms%s%s", what,
        group->identity.name, group->rank, group->size, timeout_ms,
        *failure.detail ? ": " : "", detail_rest(group, what, failure.detail));
    if (culprit && culprit->call.type == CALL_MESSAGE)
        dscomm_priv_failure_follow(group, timeout_ms, &failure);
    dscomm_priv_group_learn_culprit(group, &failure);
    /* a rank that waited for this one may have timed out before */
    dscomm_priv_group_share_failure(group, &failure);
    break_group(group, &failure);
    return 1;
}

/* Time without progress, in ns, after which the next diagnosis is made. It
 * doubles each time. The last diagnosis comes shortly before the deadline, to
 * find out whether the store answers. */
static int64_t next_look_ns(const dscomm_group_t *group)
{
    const int64_t first =
        CLAMP(group->timeout_ms / 4, 1, FIRST_LOOK_MS) * NS_PER_MS;
    const int64_t last =
        (group->timeout_ms - MIN(group->timeout_ms / 4, LAST_LOOK_MS)) *
        NS_PER_MS;
    const int64_t next = first << group->works.looks;

    if (next <= last)
        return next;
    return group->works.looks && next / 2 >= last ? INT64_MAX : last;
}

/* Makes a diagnosis if it is time for the next one. 1 if that ends the group.
 */
static int diagnosis_look(dscomm_group_t *group, dscomm_work_t *culprit)
{
    dscomm_failure_t failure;

    if (!culprit || !culprit->kind->look ||
        group->works.stalled < next_look_ns(group))
        return 0;
    group->works.looks++;
    if (culprit->kind->look(culprit, &failure) == DSCOMM_OK)
        return 0;
    break_group(group, &failure);
    return 1;
}

/* Called after EARLY_AFTER_MS without progress: lets the oldest pending
 * schedule post early receives, which show whether another rank has made
 * another call. Other ranks may not have begun the oldest schedule. */
static void post_early(dscomm_group_t *group)
{
    dscomm_work_t *work = group->works.pending;

    while (work && !work->kind->post_early)
        work = work->next;
    if (work)
        work->kind->post_early(work);
}

/* Counts time without progress over all waits and tests, so that a program that
 * only waits for short times learns of a mismatch too. */
static void count_wait(dscomm_group_t *group, int64_t now)
{
    if (group->works.wait_seen != group->works.completed) {
        group->works.wait_seen = group->works.completed;
        group->works.wait_last = 0;
        group->works.stalled = 0;
        group->works.looks = 0;
    }
    if (group->works.wait_last)
        group->works.stalled += MAX(now - group->works.wait_last, 0);
    group->works.wait_last = now;
    if (group->works.stalled >=
        MIN(EARLY_AFTER_MS, group->timeout_ms / 2) * NS_PER_MS)
        post_early(group);
}

/* True if the waits and tests of work have together taken as long as its
 * deadline, without progress on the group. */
static bool is_overdue(dscomm_work_t *work, int64_t now)
{
    const dscomm_group_t *group = work->group;
    const int64_t deadline_ns =
        dscomm_priv_clock_after(0, work_timeout_ms(work));

    if (!work->looked_ns || work->seen != group->works.completed)
        work->waited_ns = 0;
    else
        work->waited_ns +=
            CLAMP(now - work->looked_ns, 0, deadline_ns / GAP_PART);
    work->looked_ns = MAX(work->looked_ns, now); /* clocks differ by a tick */
    work->seen = group->works.completed;
    return work->waited_ns >= deadline_ns;
}

int dscomm_priv_work_over(dscomm_work_t *work, int64_t now)
{
    dscomm_group_t *group = work->group;

    if (dscomm_priv_works_broken(group))
        return 1;
    /* A loop of tests runs many times within a tick. */
    if (now == work->looked_ns && work->seen == group->works.completed)
        return 0;
    count_wait(group, now);
    if (work->call.internal)
        return 0;
    if (work->call.deadline_ns)
        return work->kind->expire(work, now);
    if (!is_overdue(work, now))
        return diagnosis_look(group, work_oldest_part(work));
    return work_expire(group, work_oldest_part(work), work_timeout_ms(work));
}

/* Ends receives whose own deadlines have passed. Returns a work that has
 * exceeded its deadline, or NULL. */
static dscomm_work_t *find_overdue(dscomm_group_t *group, int64_t now)
{
    dscomm_work_t *overdue = NULL, *work, *next;

    for (work = group->works.pending; work; work = next) {
        next = work->next;
        if (work->call.internal)
            continue;
        if (work->call.deadline_ns)
            work->kind->expire(work, now);
        else if (is_overdue(work, now) && !overdue)
            overdue = work;
    }
    return overdue;
}

static dscomm_work_t *first_to_look_at(const dscomm_group_t *group)
{
    dscomm_work_t *work = group->works.pending;

    while (work && !work->kind->look)
        work = work->next;
    return work;
}

void dscomm_priv_works_expire(dscomm_group_t *group, int64_t now)
{
    dscomm_work_t *overdue;

    if (!group->works.pending || dscomm_priv_works_broken(group))
        return;
    group->works.expiring = 1;
    count_wait(group, now);
    overdue = find_overdue(group, now);
    if (overdue)
        work_expire(group, overdue, work_timeout_ms(overdue));
    else
        diagnosis_look(group, first_to_look_at(group));
    group->works.expiring = 0;
}
