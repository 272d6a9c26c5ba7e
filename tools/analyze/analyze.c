/* SPDX-License-Identifier: BSD-3-Clause */
/* dscomm analyze: which rank is behind, in which operation, and what it was
 * doing. */
#include "config.h"

#include "tools/analyze/dump.h"
#include "tools/analyze/torch.h"
#include "tools/common/json.h"
#include "tools/common/tool.h"

#include <stdio.h>
#include <string.h>

#define LATE_S 0.001 /* ranks of several machines have no better clock */

/* A finding. */
typedef struct {
    const char *kind; /* "dead", "stopped", "mismatch", ... */
    const char *group; /* name, or NULL */
    gint64 sequence; /* 0: none */
    GArray *ranks; /* int: numbers in the world */
    char *text;
} finding_t;

static void finding_free(void *data)
{
    finding_t *finding = data;

    g_array_free(finding->ranks, true);
    g_free(finding->text);
    g_free(finding);
}

/* Adds a finding about no rank yet; owns text. */
static finding_t *finding_add(GPtrArray *findings, const char *kind,
                              const char *group, gint64 sequence, char *text)
{
    finding_t *finding = g_new0(finding_t, 1);

    *finding = (finding_t){kind, group, sequence,
                           g_array_new(false, false, sizeof(int)), text};
    g_ptr_array_add(findings, finding);
    return finding;
}

static gint64 member_sequence(const member_t *member)
{
    const call_t *last = member_last(member);

    return last ? last->sequence : 0;
}

static call_t *member_find(const member_t *member, gint64 sequence)
{
    for (guint i = 0; i < member->calls->len; i++) {
        call_t *call = g_ptr_array_index(member->calls, i);

        if (call->sequence == sequence)
            return call;
    }
    return NULL;
}

/* The seconds for which the call had run when the dump was written. */
static double call_age(const rank_t *rank, const call_t *call)
{
    return (double)MAX(rank->written_ns - call->called_ns, 0) / 1e9;
}

/* "in recv from rank 0 with tag 5 of group 'world' for 1.5 s", or that it was
 * in no call; g_free(). */
static char *rank_activity(const rank_t *rank)
{
    const guint count = rank->entries->len;
    const call_t *last = NULL;

    for (guint i = count; i > 0; i--) {
        last = &g_array_index(rank->entries, call_t, i - 1);
        if (!last->completed && !last->failed)
            return g_strdup_printf("in %s of group '%s' for %.3g s", last->call,
                                   last->group, call_age(rank, last));
    }
    if (!count)
        return g_strdup("in no call, and had made none");
    last = &g_array_index(rank->entries, call_t, count - 1);
    return g_strdup_printf("in no call; its last, %s of group '%s', was made "
                           "%.3g s before and has %s",
                           last->call, last->group, call_age(rank, last),
                           last->failed ? "failed" : "completed");
}

static void find_processes(const dumps_t *dumps, const char *process,
                           GPtrArray *findings)
{
    for (guint i = 0; i < dumps->ranks->len; i++) {
        const rank_t *rank = g_ptr_array_index(dumps->ranks, i);
        char *activity;

        if (strcmp(rank->process, process))
            continue;
        activity = rank_activity(rank);
        g_array_append_val(
            finding_add(findings, process, NULL, 0,
                        g_strdup_printf("rank %d (pid %d on %s) is %s; it was "
                                        "%s",
                                        rank->number, rank->pid, rank->host,
                                        process, activity))
                ->ranks,
            rank->number);
        g_free(activity);
    }
}

/* Appends "rank 0" or "ranks 0, 2" to text. */
static void append_ranks(GString *text, const GArray *ranks)
{
    g_string_append(text, ranks->len == 1 ? "rank" : "ranks");
    for (guint i = 0; i < ranks->len; i++)
        g_string_append_printf(text, "%s %d", i ? "," : "",
                               g_array_index(ranks, int, i));
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
    append_ranks(text, alike);
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

/* Appends the ranks that are in the call of leader, and for how long. */
static void append_waiting(const group_t *group, const member_t *leader,
                           GString *text)
{
    const gint64 sequence = member_sequence(leader);
    GArray *ranks = g_array_new(false, false, sizeof(int));
    double longest = 0;

    for (guint i = 0; i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);
        const call_t *call = member_find(member, sequence);

        if (!call)
            continue;
        longest = MAX(longest, call_age(member->rank, call));
        g_array_append_val(ranks, member->rank->number);
    }
    append_ranks(text, ranks);
    g_string_append_printf(text, " %s called %s, up to %.3g s before",
                           ranks->len == 1 ? "has" : "have",
                           member_last(leader)->call, longest);
    g_array_free(ranks, true);
}

/* True if a rank is behind. */
static bool find_behind(const group_t *group, GPtrArray *findings)
{
    const member_t *leader = find_leader(group);
    const gint64 most = leader ? member_sequence(leader) : 0;
    bool found = false;

    for (guint i = 0; i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);
        const gint64 last = member_sequence(member);
        finding_t *finding;
        GString *text;
        char *activity;

        if (last >= most || !member_is_known(member))
            continue;
        text = g_string_new(NULL);
        activity = rank_activity(member->rank);
        g_string_append_printf(text,
                               "group '%s': rank %d is behind: ", group->name,
                               member->rank->number);
        append_waiting(group, leader, text);
        g_string_append_printf(text,
                               "; rank %d has made %" G_GINT64_FORMAT
                               " collectives there, and was %s",
                               member->rank->number, last, activity);
        finding = finding_add(findings, "behind", group->name, most,
                              g_string_free(text, false));
        g_array_append_val(finding->ranks, member->rank->number);
        g_free(activity);
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

/* All ranks have made the last call, but some are still in it. */
static void find_incomplete(const group_t *group, GPtrArray *findings)
{
    const member_t *leader = find_leader(group);
    GArray *ranks = g_array_new(false, false, sizeof(int));

    for (guint i = 0; leader && i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);
        const call_t *last = member_last(member);

        if (last && !last->completed)
            g_array_append_val(ranks, member->rank->number);
    }
    if (ranks->len) {
        GString *text = g_string_new(NULL);
        finding_t *finding;

        g_string_append_printf(text, "group '%s': all ranks have called %s, ",
                               group->name, member_last(leader)->call);
        append_ranks(text, ranks);
        g_string_append(text, ranks->len == 1 ? " has not completed it"
                                              : " have not completed it");
        append_last(group, member_sequence(leader), text);
        finding =
            finding_add(findings, "incomplete", group->name,
                        member_sequence(leader), g_string_free(text, false));
        g_array_append_vals(finding->ranks, ranks->data, ranks->len);
    }
    g_array_free(ranks, true);
}

static void find_missing(const group_t *group, GPtrArray *findings)
{
    GString *text = g_string_new(NULL);
    GArray *missing = g_array_new(false, false, sizeof(int));
    guint next = 0;

    for (int r = 0; r < group->size; r++) {
        const member_t *member = next < group->members->len
                                     ? g_ptr_array_index(group->members, next)
                                     : NULL;

        if (member && member->number == r)
            next++;
        else
            g_array_append_val(missing, r);
    }
    if (missing->len) {
        g_string_append_printf(text, "group '%s': no dump has ", group->name);
        append_ranks(text, missing);
        g_string_append(text, " of the group");
        finding_add(findings, "missing", group->name, 0, g_strdup(text->str));
    }
    g_string_free(text, true);
    g_array_free(missing, true);
}

/* True if an earlier rank of the same world has a sentence. */
static bool is_explained(const dumps_t *dumps, guint number)
{
    const rank_t *rank = g_ptr_array_index(dumps->ranks, number);

    for (guint i = 0; i < number; i++) {
        const rank_t *earlier = g_ptr_array_index(dumps->ranks, i);

        if (earlier->sentence && strcmp(earlier->world, rank->world) == 0)
            return true;
    }
    return false;
}

/* In each world, the sentence of the first rank that has one; other ranks have
 * the same. */
static void find_failure(const dumps_t *dumps, GPtrArray *findings)
{
    for (guint i = 0; i < dumps->ranks->len; i++) {
        const rank_t *rank = g_ptr_array_index(dumps->ranks, i);

        if (rank->sentence && !is_explained(dumps, i))
            finding_add(findings, "failure", NULL, 0, g_strdup(rank->sentence));
    }
}

static void find_all(const dumps_t *dumps, GPtrArray *findings)
{
    find_failure(dumps, findings);
    find_processes(dumps, "dead", findings);
    find_processes(dumps, "stopped", findings);
    for (guint i = 0; i < dumps->groups->len; i++) {
        const group_t *group = g_ptr_array_index(dumps->groups, i);

        if (!find_mismatch(group, findings) && !find_behind(group, findings))
            find_incomplete(group, findings);
        find_missing(group, findings);
    }
}

static void print_text(const dumps_t *dumps, const GPtrArray *findings)
{
    for (guint i = 0; i < findings->len; i++) {
        const finding_t *finding = g_ptr_array_index(findings, i);
        char *text = tool_printable(finding->text);

        puts(text);
        g_free(text);
    }
    if (!findings->len)
        printf("nothing found in the records of %u rank%s\n", dumps->ranks->len,
               dumps->ranks->len == 1 ? "" : "s");
}

static void add_finding(JsonBuilder *builder, const finding_t *finding)
{
    tool_json_object(builder, NULL);
    tool_json_text(builder, "kind", finding->kind);
    tool_json_text(builder, "group", finding->group);
    tool_json_number(builder, "sequence", finding->sequence);
    tool_json_array(builder, "ranks");
    for (guint i = 0; i < finding->ranks->len; i++)
        tool_json_number(builder, NULL, g_array_index(finding->ranks, int, i));
    json_builder_end_array(builder);
    tool_json_text(builder, "text", finding->text);
    json_builder_end_object(builder);
}

static void print_json(const dumps_t *dumps, const GPtrArray *findings)
{
    JsonBuilder *builder = json_builder_new();
    GString *text = g_string_new(NULL);

    tool_json_object(builder, NULL);
    tool_json_number(builder, "ranks", dumps->ranks->len);
    tool_json_number(builder, "groups", dumps->groups->len);
    tool_json_array(builder, "findings");
    for (guint i = 0; i < findings->len; i++)
        add_finding(builder, g_ptr_array_index(findings, i));
    json_builder_end_array(builder);
    json_builder_end_object(builder);
    tool_json_end(builder, true, text);
    fputs(text->str, stdout);
    g_string_free(text, true);
}

/* Reads all paths, and writes them for PyTorch to folder unless that is NULL.
 * NULL, or a sentence; g_free(). */
static char *dumps_load(dumps_t *dumps, char **paths, const char *folder)
{
    char *problem = NULL;

    for (; *paths && !problem; paths++)
        problem = dumps_read(dumps, *paths);
    if (problem)
        return problem;
    dumps_sort(dumps);
    return folder ? torch_write(dumps, folder) : NULL;
}

static int analyze(char **paths, bool json, const char *torch)
{
    dumps_t *dumps = dumps_new();
    GPtrArray *findings = g_ptr_array_new_with_free_func(finding_free);
    char *problem = dumps_load(dumps, paths, torch);
    int status;

    if (problem) {
        status = tool_fail(TOOL_USAGE, "analyze", "%s", problem);
    } else {
        find_all(dumps, findings);
        (json ? print_json : print_text)(dumps, findings);
        status = findings->len ? TOOL_FAILED : TOOL_OK;
    }
    g_free(problem);
    g_ptr_array_free(findings, true);
    dumps_free(dumps);
    return status;
}

int tool_analyze(int argc, char **argv)
{
    gboolean json = false;
    char *torch = NULL;
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "Print it as JSON", NULL},
        {"torch", 0, 0, G_OPTION_ARG_FILENAME, &torch,
         "Write the dumps to FOLDER for PyTorch's analyzer, torchfrtrace",
         "FOLDER"},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    int status;

    if (!tool_parse(&argc, &argv, entries, "DUMP...",
                    "Finds, in dumps of the flight recorder (DSCOMM_DUMP), "
                    "which rank is behind, and what it was doing. A DUMP is a "
                    "file, a folder of them, or the pid of a rank or a dscomm "
                    "run that runs. The status is 0 if nothing "
                    "was found, 1 if something was, 2 if a file cannot be "
                    "read.",
                    false, NULL))
        status = TOOL_USAGE;
    else if (argc < 2)
        status = tool_fail(TOOL_USAGE, "analyze", "no dump is given");
    else
        status = analyze(argv + 1, json, torch);
    g_free(torch);
    return status;
}
