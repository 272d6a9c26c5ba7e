/* SPDX-License-Identifier: BSD-3-Clause */
/* See finding.h. */
#include "config.h"

#include "tools/analyze/finding.h"

#define OLD_S 0.01 /* ranks of a healthy job wait as long for each other */

finding_t *finding_add(GPtrArray *findings, const char *kind, const char *group,
                       gint64 sequence, char *text)
{
    finding_t *finding = g_new0(finding_t, 1);

    *finding = (finding_t){kind, group, sequence,
                           g_array_new(false, false, sizeof(int)), text};
    g_ptr_array_add(findings, finding);
    return finding;
}

void finding_add_rank(finding_t *finding, int rank)
{
    g_array_append_val(finding->ranks, rank);
}

void finding_free(void *data)
{
    finding_t *finding = data;

    g_array_free(finding->ranks, true);
    g_free(finding->text);
    g_free(finding);
}

void append_ranks(GString *text, const GArray *ranks, guint count)
{
    g_string_append(text, count == 1 ? "rank" : "ranks");
    for (guint i = 0; i < MIN(ranks->len, RANKS_SHOWN); i++)
        g_string_append_printf(text, "%s %d", i ? "," : "",
                               g_array_index(ranks, int, i));
    if (count > RANKS_SHOWN)
        g_string_append_printf(text, " and %u more", count - RANKS_SHOWN);
}

double call_age(const call_t *call)
{
    return (double)MAX(call->member->rank->written_ns - call->called_ns, 0) /
           1e9;
}

bool call_is_old(const call_t *call)
{
    return call_age(call) >= OLD_S;
}

char *rank_activity(const rank_t *rank)
{
    const guint count = rank->entries->len;
    const call_t *last = NULL;

    for (guint i = count; i > 0; i--) {
        last = &g_array_index(rank->entries, call_t, i - 1);
        if (!last->completed && !last->failed)
            return g_strdup_printf("in %s of group '%s' for %.3g s", last->call,
                                   last->member->group->name, call_age(last));
    }
    if (!count)
        return g_strdup("in no call, and had made none");
    last = &g_array_index(rank->entries, call_t, count - 1);
    /* A call that has failed is what its rank was in when the group ended. */
    if (last->failed && last->ended_ns)
        return g_strdup_printf(
            "in %s of group '%s' for %.3g s, until it failed", last->call,
            last->member->group->name,
            (double)MAX(last->ended_ns - last->called_ns, 0) / 1e9);
    return g_strdup_printf("in no call; its last, %s of group '%s', was made "
                           "%.3g s before and has completed",
                           last->call, last->member->group->name,
                           call_age(last));
}
