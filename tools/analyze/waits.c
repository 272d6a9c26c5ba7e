/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rank waits for which other one: messages whose peer does nothing for
 * them, and ranks that wait for each other in a circle. */
#include "config.h"

#include "tools/analyze/finding.h"

#include <string.h>

/* What a rank waits in. */
typedef struct {
    const call_t *call; /* NULL: nothing */
    GArray *ranks; /* guint: indices of those that must act first */
    bool is_blocked; /* the rank can do nothing else */
    /* of the search */
    bool visited, on_path, in_cycle;
} wait_t;

static bool is_message(const call_t *call)
{
    return !call->collective && !rank_lacks_group(call);
}

static bool is_send(const call_t *call)
{
    return strcmp(call->operation, "send") == 0;
}

/* The call that the rank waits in: a blocking call that has not ended; or, if
 * it has left that, the first of the calls that failed at last; or else the
 * first work that has not ended. */
static const call_t *rank_current(const rank_t *rank)
{
    const call_t *failed = NULL, *work = NULL;

    for (guint i = rank->entries->len; i > 0; i--) {
        const call_t *call = &g_array_index(rank->entries, call_t, i - 1);

        if (call->completed && !call->async)
            break;
        if (call->completed)
            continue;
        if (!call->failed && !call->async)
            return call;
        if (call->failed)
            failed = call;
        else
            work = call;
    }
    return failed ? failed : work;
}

/* The member with that number in the group; NULL: no dump has it. */
static const member_t *group_find(const group_t *group, gint64 number)
{
    for (guint i = 0; i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);

        if (member->number == number)
            return member;
    }
    return NULL;
}

/* Messages of one rank to or from another. */
typedef struct {
    int waiting, completed;
} messages_t;

/* Counts the sends or receives of the member with a peer and a tag, up to the
 * call `last` if that is not NULL. any: also receives from any rank or with any
 * tag. */
static messages_t messages_count(const member_t *member, bool sends,
                                 gint64 peer, gint64 tag, bool any,
                                 const call_t *last)
{
    const GArray *entries = member->rank->entries;
    messages_t count = {0, 0};

    for (guint i = 0; i < entries->len; i++) {
        const call_t *call = &g_array_index(entries, call_t, i);

        if (last && call > last)
            break;
        if (!is_message(call) || call->member != member ||
            is_send(call) != sends)
            continue;
        if ((call->peer == peer || (any && call->peer < 0)) &&
            (call->tag == tag || (any && call->tag < 0)))
            *(call->completed ? &count.completed : &count.waiting) += 1;
    }
    return count;
}

/* Whether the member has received from any rank or with any tag. */
static bool member_receives_any(const member_t *member)
{
    const GArray *entries = member->rank->entries;

    for (guint i = 0; i < entries->len; i++) {
        const call_t *call = &g_array_index(entries, call_t, i);

        if (call->member == member && is_message(call) && !is_send(call) &&
            (call->peer < 0 || call->tag < 0))
            return true;
    }
    return false;
}

/* Whether peer has made the send for a receive, or the receive for a send. A
 * message of which both sides are still there is not counted from the first
 * one: records keep only the last calls. */
static bool message_is_met(const call_t *call, const member_t *peer)
{
    const member_t *own = call->member;
    const bool sends = is_send(call);
    const messages_t before = messages_count(own, sends, call->peer, call->tag,
                                             false, call),
                     done = messages_count(own, sends, call->peer, call->tag,
                                           false, NULL),
                     theirs = messages_count(peer, !sends, own->number,
                                             call->tag, sends, NULL);

    if (theirs.waiting >= before.waiting)
        return true;
    return rank_is_whole(own->rank) && rank_is_whole(peer->rank) &&
           !member_receives_any(sends ? peer : own) &&
           theirs.completed + theirs.waiting >= done.completed + before.waiting;
}

/* Whether some member has a send that a receive from any rank may take. */
static bool any_is_met(const call_t *call)
{
    const group_t *group = call->member->group;

    for (guint i = 0; i < group->members->len; i++) {
        const member_t *peer = g_ptr_array_index(group->members, i);

        if (messages_count(peer, true, call->member->number, call->tag, false,
                           NULL)
                .waiting)
            return true;
    }
    return false;
}

/* Finds for whom a call waits. */
static void wait_fill(wait_t *wait)
{
    const call_t *call = wait->call;
    const group_t *group = call->member->group;
    const member_t *peer;

    if (call->collective) {
        for (guint i = 0; i < group->members->len; i++) {
            peer = g_ptr_array_index(group->members, i);
            if (member_is_known(peer) &&
                (!member_last(peer) ||
                 member_last(peer)->sequence < call->sequence))
                g_array_append_val(wait->ranks, peer->rank->index);
        }
        return;
    }
    peer = group_find(group, call->peer);
    if (peer && !message_is_met(call, peer))
        g_array_append_val(wait->ranks, peer->rank->index);
}

/* A rank that has ended waits for nobody, unless all have. */
static bool some_live(const dumps_t *dumps)
{
    for (guint i = 0; i < dumps->ranks->len; i++) {
        const rank_t *rank = g_ptr_array_index(dumps->ranks, i);

        if (strcmp(rank->process, "running") == 0)
            return true;
    }
    return false;
}

static wait_t *waits_new(const dumps_t *dumps)
{
    wait_t *waits = g_new0(wait_t, dumps->ranks->len + 1);
    const bool live = some_live(dumps);

    for (guint i = 0; i < dumps->ranks->len; i++) {
        const rank_t *rank = g_ptr_array_index(dumps->ranks, i);
        wait_t *wait = &waits[i];

        wait->ranks = g_array_new(false, false, sizeof(guint));
        if (live && strcmp(rank->process, "running"))
            continue;
        wait->call = rank_current(rank);
        if (!wait->call || rank_lacks_group(wait->call) ||
            !call_is_old(wait->call)) {
            wait->call = NULL;
            continue;
        }
        wait->is_blocked = !wait->call->async || wait->call->failed;
        wait_fill(wait);
    }
    return waits;
}

/* "recv from rank 0 with tag 5 of group 'world'"; g_free(). */
static char *call_text(const call_t *call)
{
    return g_strdup_printf("%s of group '%s'", call->call,
                           call->member->group->name);
}

/* Adds the ranks of path from the index `first` on, each of which waits for the
 * next, and the last for the first. */
static void add_cycle(wait_t *waits, const GArray *path, guint first,
                      GPtrArray *findings)
{
    GString *who = g_string_new(NULL), *text = g_string_new(NULL);
    finding_t *finding = finding_add(
        findings, "cycle", waits[first].call->member->group->name, 0, NULL);
    const char *separator = "";
    bool found = false;

    for (guint i = 0; i < path->len; i++) {
        const guint index = g_array_index(path, guint, i);
        wait_t *wait = &waits[index];
        char *call;

        found = found || index == first;
        if (!found)
            continue;
        call = call_text(wait->call);
        wait->in_cycle = true;
        finding_add_rank(finding, wait->call->member->rank->number);
        g_string_append_printf(text, "%srank %d was in %s", separator,
                               wait->call->member->rank->number, call);
        separator = ", ";
        g_free(call);
    }
    append_ranks(who, finding->ranks, finding->ranks->len);
    finding->text = g_strdup_printf(
        "%s wait%s: %s", who->str,
        finding->ranks->len == 1 ? "s for itself" : " for each other",
        text->str);
    g_string_free(who, true);
    g_string_free(text, true);
}

/* Follows one way from each rank that was not visited; path: the ranks on it.
 * next: for each of them, how many of its ranks have been followed. */
static void find_cycles_from(wait_t *waits, guint start, GArray *path,
                             GArray *next, GPtrArray *findings)
{
    guint zero = 0, index = start;

    waits[start].visited = waits[start].on_path = true;
    g_array_append_val(path, index);
    g_array_append_val(next, zero);
    while (path->len) {
        wait_t *wait = &waits[g_array_index(path, guint, path->len - 1)];
        guint *position = &g_array_index(next, guint, next->len - 1);

        if (!wait->is_blocked || *position >= wait->ranks->len) {
            wait->on_path = false;
            g_array_set_size(path, path->len - 1);
            g_array_set_size(next, next->len - 1);
            continue;
        }
        index = g_array_index(wait->ranks, guint, (*position)++);
        if (waits[index].on_path && !waits[index].in_cycle) {
            add_cycle(waits, path, index, findings);
        } else if (!waits[index].visited) {
            waits[index].visited = waits[index].on_path = true;
            g_array_append_val(path, index);
            g_array_append_val(next, zero);
        }
    }
}

static void find_cycles(const dumps_t *dumps, wait_t *waits,
                        GPtrArray *findings)
{
    GArray *path = g_array_new(false, false, sizeof(guint));
    GArray *next = g_array_new(false, false, sizeof(guint));

    for (guint i = 0; i < dumps->ranks->len; i++)
        if (!waits[i].visited)
            find_cycles_from(waits, i, path, next, findings);
    g_array_free(path, true);
    g_array_free(next, true);
}

/* Adds the finding that no rank does its part in the message that a rank
 * waits for. */
static void find_unmet(const wait_t *wait, GPtrArray *findings)
{
    const call_t *call = wait->call;
    const group_t *group = call->member->group;
    const char *done = is_send(call) ? "received" : "sent";
    const int own = call->member->rank->number;
    const member_t *peer = group_find(group, call->peer);
    char *activity;

    if (call->peer < 0 && !any_is_met(call))
        finding_add(findings, "message", group->name, 0,
                    g_strdup_printf("group '%s': rank %d was in %s, which no "
                                    "rank has sent",
                                    group->name, own, call->call));
    if (!wait->ranks->len)
        return;
    activity = rank_activity(peer->rank);
    finding_add_rank(
        finding_add(findings, "message", group->name, 0,
                    g_strdup_printf("group '%s': rank %d was in %s, which rank "
                                    "%d has not %s; rank %d was %s",
                                    group->name, own, call->call,
                                    peer->rank->number, done,
                                    peer->rank->number, activity)),
        peer->rank->number);
    g_free(activity);
}

void find_waits(const dumps_t *dumps, GPtrArray *findings)
{
    wait_t *waits = waits_new(dumps);

    find_cycles(dumps, waits, findings);
    for (guint i = 0; i < dumps->ranks->len; i++) {
        if (waits[i].call && is_message(waits[i].call) && !waits[i].in_cycle)
            find_unmet(&waits[i], findings);
        g_array_free(waits[i].ranks, true);
    }
    g_free(waits);
}
