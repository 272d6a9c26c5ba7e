/* SPDX-License-Identifier: BSD-3-Clause */
/* Findings in the collectives of one group. */
#include "config.h"

#include "tools/analyze/finding.h"

#include <string.h>

#define LATE_S 0.001 /* ranks of several machines have no better clock */

static gint64 member_sequence(const member_t *member)
{
    const call_t *last = member_last(member);

    return last ? last->sequence : 0;
}

/* Its calls are in the order of their sequence. */
static call_t *member_find(const member_t *member, gint64 sequence)
{
    guint low = 0, high = member->calls->len;

    while (low < high) {
        const guint middle = low + (high - low) / 2;
        call_t *call = g_ptr_array_index(member->calls, middle);

        if (call->sequence == sequence)
            return call;
        if (call->sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Appends which ranks have made the call of `like` in group, and adds them to
 * ranks. */
static void append_alike(const group_t *group, const call_t *like,
                         GString *text, GArray *ranks)
{
    GArray *alike = g_array_new(false, false, sizeof(int));

    for (guint i = 0; i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);
        const call_t *call = member_find(member, like->sequence);

        if (!call || call->fingerprint != like->fingerprint)
            continue;
        g_array_append_val(alike, member->rank->number);
        g_array_append_val(ranks, member->rank->number);
    }
    append_ranks(text, alike, alike->len);
    g_string_append_printf(text, " called %s", like->call);
    g_array_free(alike, true);
}

/* The first call of one that differs from the other's; NULL: none. */
static const call_t *first_difference(const member_t *one,
                                      const member_t *other)
{
    for (guint i = 0; i < one->calls->len; i++) {
        const call_t *call = g_ptr_array_index(one->calls, i);
        const call_t *same = member_find(other, call->sequence);

        if (same && same->fingerprint != call->fingerprint)
            return call;
    }
    return NULL;
}

/* True if a mismatch was found. */
static bool find_mismatch(const group_t *group, GPtrArray *findings)
{
    const member_t *first = NULL, *other = NULL;
    const call_t *oldest = NULL;
    finding_t *finding;
    GString *text;

    for (guint i = 1; i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);
        const call_t *call;

        first = g_ptr_array_index(group->members, 0);
        call = first_difference(first, member);
        if (!call || (oldest && oldest->sequence <= call->sequence))
            continue;
        oldest = call;
        other = member;
    }
    if (!oldest)
        return false;
    text = g_string_new(NULL);
    finding =
        finding_add(findings, "mismatch", group->name, oldest->sequence, NULL);
    g_string_append_printf(text, "group '%s': ", group->name);
    append_alike(group, oldest, text, finding->ranks);
    g_string_append(text, ", but ");
    append_alike(group, member_find(other, oldest->sequence), text,
                 finding->ranks);
    finding->text = g_string_free(text, false);
    return true;
}

/* The member that has made the most collectives; NULL: none has made any. */
static const member_t *find_leader(const group_t *group)
{
    const member_t *leader = NULL;

    for (guint i = 0; i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);

        if (member_sequence(member) > (leader ? member_sequence(leader) : 0))
            leader = member;
    }
    return leader;
}

/* The first collective after a sequence that some member has made and not
 * completed; if there is none, the last one of all. */
static const call_t *find_awaited(const group_t *group, gint64 after)
{
    const call_t *first = NULL;

    for (guint i = 0; i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);

        for (guint k = 0; k < member->calls->len; k++) {
            const call_t *call = g_ptr_array_index(member->calls, k);

            if (call->sequence > after && !call->completed &&
                (!first || call->sequence < first->sequence))
                first = call;
        }
    }
    return first ? first : member_last(find_leader(group));
}

/* Appends the ranks that have made the call, and how long ago. */
static void append_waiting(const group_t *group, const call_t *awaited,
                           GString *text)
{
    GArray *ranks = g_array_new(false, false, sizeof(int));
    double longest = 0;

    for (guint i = 0; i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);
        const call_t *call = member_find(member, awaited->sequence);

        if (!call)
            continue;
        longest = MAX(longest, call_age(call));
        g_array_append_val(ranks, member->rank->number);
    }
    append_ranks(text, ranks, ranks->len);
    g_string_append_printf(text, " %s called %s, up to %.3g s before",
                           ranks->len == 1 ? "has" : "have", awaited->call,
                           longest);
    g_array_free(ranks, true);
}

/* True if a rank has waited in the collective for more than a moment. */
static bool some_wait(const group_t *group, const call_t *awaited)
{
    for (guint i = 0; i < group->members->len; i++) {
        const call_t *call = member_find(g_ptr_array_index(group->members, i),
                                         awaited->sequence);

        if (call && call_is_old(call))
            return true;
    }
    return false;
}

/* Adds that the member is behind, if ranks wait for it or it will not come. */
static void add_behind(const group_t *group, const member_t *member,
                       GPtrArray *findings)
{
    const gint64 last = member_sequence(member);
    const call_t *awaited = find_awaited(group, last);
    GString *text;
    char *activity;

    if (strcmp(member->rank->process, "running") == 0 &&
        !some_wait(group, awaited))
        return;
    text = g_string_new(NULL);
    activity = rank_activity(member->rank);

    g_string_append_printf(text, "group '%s': rank %d is behind: ", group->name,
                           member->rank->number);
    append_waiting(group, awaited, text);
    g_string_append_printf(text,
                           "; rank %d has made %" G_GINT64_FORMAT
                           " collectives there, and was %s",
                           member->rank->number, last, activity);
    finding_add_rank(finding_add(findings, "behind", group->name,
                                 awaited->sequence, g_string_free(text, false)),
                     member->rank->number);
    g_free(activity);
}

/* True if a rank is behind, even if only for a moment. */
static bool find_behind(const group_t *group, GPtrArray *findings)
{
    const member_t *leader = find_leader(group);
    const gint64 most = leader ? member_sequence(leader) : 0;
    bool found = false;

    for (guint i = 0; i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);

        if (member_sequence(member) >= most || !member_is_known(member))
            continue;
        add_behind(group, member, findings);
        found = true;
    }
    return found;
}

/* Appends which rank has made the call last, if that was LATE_S or more after
 * the first one. */
static void append_last(const group_t *group, gint64 sequence, GString *text)
{
    const member_t *last = NULL;
    gint64 first_ns = G_MAXINT64, last_ns = 0;

    for (guint i = 0; i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);
        const call_t *call = member_find(member, sequence);

        if (!call)
            continue;
        first_ns = MIN(first_ns, call->called_ns);
        if (call->called_ns > last_ns) {
            last_ns = call->called_ns;
            last = member;
        }
    }
    if (last && (double)(last_ns - first_ns) / 1e9 >= LATE_S)
        g_string_append_printf(
            text, "; rank %d came last, %.3g s after the first",
            last->rank->number, (double)(last_ns - first_ns) / 1e9);
}

/* True if all ranks have been in the collective for more than a moment. */
static bool all_wait(const group_t *group, const call_t *awaited)
{
    for (guint i = 0; i < group->members->len; i++) {
        const call_t *call = member_find(g_ptr_array_index(group->members, i),
                                         awaited->sequence);

        if (call && !call_is_old(call))
            return false;
    }
    return true;
}

/* Appends which ranks have made a call that all ranks in the dumps have. */
static void append_callers(const group_t *group, GString *text)
{
    GArray *ranks = g_array_new(false, false, sizeof(int));

    for (guint i = 0; i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);

        g_array_append_val(ranks, member->rank->number);
    }
    if ((int)ranks->len == group->size) {
        g_string_append(text, "all ranks have");
    } else {
        append_ranks(text, ranks, ranks->len);
        g_string_append_printf(text, ", which the dumps have, %s",
                               ranks->len == 1 ? "has" : "have");
    }
    g_array_free(ranks, true);
}

/* All ranks in the dumps have made the same calls, but some have not completed
 * one: the first of these. */
static void find_incomplete(const group_t *group, GPtrArray *findings)
{
    const member_t *leader = find_leader(group);
    const call_t *call = leader ? find_awaited(group, 0) : NULL;
    GArray *ranks = g_array_new(false, false, sizeof(int));

    for (guint i = 0; call && i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);
        const call_t *own = member_find(member, call->sequence);

        if (own && !own->completed)
            g_array_append_val(ranks, member->rank->number);
    }
    if (ranks->len && all_wait(group, call)) {
        GString *text = g_string_new(NULL);
        finding_t *finding;

        g_string_append_printf(text, "group '%s': ", group->name);
        append_callers(group, text);
        g_string_append_printf(text, " called %s, ", call->call);
        append_ranks(text, ranks, ranks->len);
        g_string_append(text, ranks->len == 1 ? " has not completed it"
                                              : " have not completed it");
        append_last(group, call->sequence, text);
        finding = finding_add(findings, "incomplete", group->name,
                              call->sequence, g_string_free(text, false));
        g_array_append_vals(finding->ranks, ranks->data, ranks->len);
    }
    g_array_free(ranks, true);
}

/* Returns how many members of group no dump has; ranks: the first ones. */
static guint missing_ranks(const group_t *group, GArray *ranks)
{
    guint missing = 0;
    int next = 0;

    for (guint i = 0; i <= group->members->len; i++) {
        const member_t *member = i < group->members->len
                                     ? g_ptr_array_index(group->members, i)
                                     : NULL;
        const int number = member ? member->number : group->size;

        for (int r = next; r < number && ranks->len < RANKS_SHOWN; r++)
            g_array_append_val(ranks, r);
        missing += (guint)MAX(number - next, 0);
        next = MAX(next, number + 1);
    }
    return missing;
}

static void find_missing(const group_t *group, GPtrArray *findings)
{
    GString *text = g_string_new(NULL);
    GArray *ranks = g_array_new(false, false, sizeof(int));
    const guint missing = missing_ranks(group, ranks);

    if (missing) {
        g_string_append_printf(text, "group '%s': no dump has ", group->name);
        append_ranks(text, ranks, missing);
        g_string_append(text, " of the group");
        finding_add(findings, "missing", group->name, 0, g_strdup(text->str));
    }
    g_string_free(text, true);
    g_array_free(ranks, true);
}

void find_in_group(const group_t *group, GPtrArray *findings)
{
    if (!find_mismatch(group, findings) && !find_behind(group, findings))
        find_incomplete(group, findings);
    find_missing(group, findings);
}
