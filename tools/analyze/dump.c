/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading dumps, see dump.h. The file may contain anything. */
#include "config.h"

#include "tools/analyze/dump.h"

#include "lib/base/settings.h"
#include "lib/recorder/dump.h"
#include "tools/common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void rank_free(void *data)
{
    rank_t *rank = data;

    g_array_free(rank->entries, true);
    g_free(rank);
}

static void member_free(void *data)
{
    member_t *member = data;

    g_ptr_array_free(member->calls, true);
    g_free(member);
}

static void group_free(void *data)
{
    group_t *group = data;

    g_ptr_array_free(group->members, true);
    g_free(group);
}

dumps_t *dumps_new(void)
{
    dumps_t *dumps = g_new0(dumps_t, 1);

    dumps->ranks = g_ptr_array_new_with_free_func(rank_free);
    dumps->groups = g_ptr_array_new_with_free_func(group_free);
    dumps->parsers = g_ptr_array_new_with_free_func(g_object_unref);
    return dumps;
}

void dumps_free(dumps_t *dumps)
{
    g_ptr_array_free(dumps->groups, true);
    g_ptr_array_free(dumps->ranks, true);
    g_ptr_array_free(dumps->parsers, true);
    g_free(dumps);
}

static gint64 get_int(JsonNode *node, const char *name)
{
    JsonNode *member = tool_json_get(node, name);

    return member && JSON_NODE_HOLDS_VALUE(member) ? json_node_get_int(member)
                                                   : 0;
}

static bool get_flag(JsonNode *node, const char *name)
{
    JsonNode *member = tool_json_get(node, name);

    return member && JSON_NODE_HOLDS_VALUE(member) &&
           json_node_get_boolean(member);
}

static const char *get_text(JsonNode *node, const char *name)
{
    const char *text = tool_json_get_text(node, name);

    return text ? text : "?";
}

static group_t *group_get(dumps_t *dumps, const char *world, JsonNode *node)
{
    const char *id = get_text(node, "id");
    group_t *group;

    for (guint i = 0; i < dumps->groups->len; i++) {
        group = g_ptr_array_index(dumps->groups, i);
        if (strcmp(group->id, id) == 0 && strcmp(group->world, world) == 0)
            return group;
    }
    group = g_new0(group_t, 1);
    group->world = world;
    group->id = id;
    group->name = get_text(node, "name");
    group->size = (int)CLAMP(get_int(node, "size"), 0, DSCOMM_RANKS_MAX);
    group->members = g_ptr_array_new_with_free_func(member_free);
    g_ptr_array_add(dumps->groups, group);
    return group;
}

/* Adds rank to the groups of its dump; returns its members, by the number of
 * the group in the dump. */
static GHashTable *rank_join_groups(dumps_t *dumps, rank_t *rank,
                                    JsonNode *node)
{
    GHashTable *members = g_hash_table_new(NULL, NULL);
    JsonArray *groups = tool_json_get_array(node, "groups");

    for (guint i = 0; groups && i < json_array_get_length(groups); i++) {
        JsonNode *one = json_array_get_element(groups, i);
        group_t *group = group_get(dumps, rank->world, one);
        member_t *member = g_new0(member_t, 1);

        member->rank = rank;
        member->group = group;
        member->number = (int)get_int(one, "rank");
        member->calls = g_ptr_array_new();
        g_ptr_array_add(group->members, member);
        g_hash_table_insert(
            members, GINT_TO_POINTER((int)get_int(one, "number")), member);
    }
    return members;
}

static call_t call_read(JsonNode *node)
{
    const char *state = get_text(node, "state");
    const char *operation = get_text(node, "operation");

    return (call_t){
        .serial = get_int(node, "serial"),
        .sequence = get_int(node, "sequence"),
        .fingerprint = get_int(node, "fingerprint"),
        .called_ns = get_int(node, "called_ns"),
        .ended_ns = get_int(node, "ended_ns"),
        .count = MAX(get_int(node, "count"), 0),
        .peer = get_int(node, "peer"),
        .tag = get_int(node, "tag"),
        .call = get_text(node, "call"),
        .operation = operation,
        .dtype = get_text(node, "dtype"),
        .async = get_flag(node, "async"),
        .completed = strcmp(state, "completed") == 0,
        .failed = strcmp(state, "failed") == 0,
        .collective =
            strcmp(operation, "send") != 0 && strcmp(operation, "recv") != 0,
    };
}

/* The group of calls whose group is not in the dump. */
static const group_t unknown_group = {.name = "?", .id = "?", .world = "?"};

static void rank_read_calls(dumps_t *dumps, rank_t *rank, JsonNode *node)
{
    GHashTable *members = rank_join_groups(dumps, rank, node);
    JsonArray *entries = tool_json_get_array(node, "entries");
    const guint count = entries ? json_array_get_length(entries) : 0;

    rank->entries = g_array_sized_new(false, true, sizeof(call_t), count);
    g_array_set_size(rank->entries, count);
    for (guint i = 0; i < count; i++) {
        JsonNode *one = json_array_get_element(entries, i);
        const int number = (int)get_int(one, "group");
        member_t *member =
            g_hash_table_lookup(members, GINT_TO_POINTER(number));
        call_t *call = &g_array_index(rank->entries, call_t, i);

        *call = call_read(one);
        call->member = member ? member : &rank->stray;
        if (member && call->collective)
            g_ptr_array_add(member->calls, call);
    }
    g_hash_table_destroy(members);
}

static void rank_read_failure(rank_t *rank, JsonNode *node)
{
    rank->sentence = tool_json_get_text(node, "sentence");
    rank->failed_group = tool_json_get_text(node, "group");
    rank->failed_sequence = get_int(node, "sequence");
    rank->culprit =
        tool_json_get(node, "rank") ? (int)get_int(node, "rank") : -1;
}

static void rank_forget(dumps_t *dumps, rank_t *rank)
{
    for (guint i = 0; i < dumps->groups->len; i++) {
        group_t *group = g_ptr_array_index(dumps->groups, i);

        for (guint k = group->members->len; k > 0; k--) {
            const member_t *member = g_ptr_array_index(group->members, k - 1);

            if (member->rank == rank)
                g_ptr_array_remove_index(group->members, k - 1);
        }
    }
    g_ptr_array_remove(dumps->ranks, rank);
}

static rank_t *rank_find(const dumps_t *dumps, const char *world, int number)
{
    for (guint i = 0; i < dumps->ranks->len; i++) {
        rank_t *rank = g_ptr_array_index(dumps->ranks, i);

        if (rank->number == number && strcmp(rank->world, world) == 0)
            return rank;
    }
    return NULL;
}

static void rank_read(dumps_t *dumps, JsonNode *root, JsonNode *node)
{
    const int number = (int)get_int(node, "rank");
    const char *world = get_text(node, "world");
    const gint64 written_ns = get_int(root, "written_ns");
    rank_t *rank = rank_find(dumps, world, number);

    if (rank && rank->written_ns >= written_ns)
        return;
    if (rank)
        rank_forget(dumps, rank);
    rank = g_new0(rank_t, 1);
    rank->world = world;
    rank->number = number;
    rank->written_ns = written_ns;
    rank->size = (int)get_int(node, "size");
    rank->pid = (int)get_int(node, "pid");
    rank->calls = get_int(node, "calls");
    rank->host = get_text(root, "host");
    rank->process = get_text(node, "process");
    rank->stray = (member_t){rank, &unknown_group, -1, NULL};
    rank_read_failure(rank, tool_json_get(node, "failure"));
    g_ptr_array_add(dumps->ranks, rank);
    rank_read_calls(dumps, rank, node);
}

/* Reads what parser has loaded from source. */
static char *document_read(dumps_t *dumps, JsonParser *parser,
                           const char *source)
{
    JsonNode *root = json_parser_get_root(parser);
    JsonArray *ranks = tool_json_get_array(root, "ranks");

    if (get_int(root, "dscomm_dump") != 1 || !ranks)
        return g_strdup_printf("%s: not a dump of this version of dscomm",
                               source);
    for (guint i = 0; i < json_array_get_length(ranks); i++)
        rank_read(dumps, root, json_array_get_element(ranks, i));
    return NULL;
}

static char *parse_fail(const char *source, GError *error)
{
    char *problem = g_strdup_printf("%s: %s", source, error->message);

    g_error_free(error);
    return problem;
}

static char *file_read(dumps_t *dumps, const char *path)
{
    JsonParser *parser = json_parser_new();
    GError *error = NULL;

    g_ptr_array_add(dumps->parsers, parser);
    if (!json_parser_load_from_file(parser, path, &error))
        return parse_fail(path, error);
    return document_read(dumps, parser, path);
}

/* Reads the records of a running job. */
static char *process_read(dumps_t *dumps, const char *pid)
{
    JsonParser *parser = json_parser_new();
    dscomm_recorder_t recorder;
    GError *error = NULL;
    char *text = NULL, *problem;
    size_t size;
    FILE *file;
    const char *why = dscomm_priv_recorder_find(atol(pid), &recorder);

    g_ptr_array_add(dumps->parsers, parser);
    if (why)
        return g_strdup_printf("process %s: %s", pid, why);
    file = open_memstream(&text, &size);
    g_assert(file);
    dscomm_priv_recorder_print(&recorder, NULL, file);
    fclose(file);
    dscomm_priv_recorder_close(&recorder);
    problem = json_parser_load_from_data(parser, text, (gssize)size, &error)
                  ? document_read(dumps, parser, pid)
                  : parse_fail(pid, error);
    free(text);
    return problem;
}

static char *folder_read(dumps_t *dumps, const char *path)
{
    GDir *folder = g_dir_open(path, 0, NULL);
    const char *name;
    char *problem = NULL;
    int count = 0;

    while (folder && !problem && (name = g_dir_read_name(folder))) {
        char *file = g_build_filename(path, name, NULL);

        if (g_str_has_suffix(name, ".json")) {
            problem = file_read(dumps, file);
            count++;
        }
        g_free(file);
    }
    if (folder)
        g_dir_close(folder);
    if (!problem && !count)
        problem = g_strdup_printf("%s: no file *.json is there", path);
    return problem;
}

char *dumps_read(dumps_t *dumps, const char *path)
{
    if (g_file_test(path, G_FILE_TEST_IS_DIR))
        return folder_read(dumps, path);
    if (!g_file_test(path, G_FILE_TEST_EXISTS) && *path &&
        !path[strspn(path, "0123456789")])
        return process_read(dumps, path);
    return file_read(dumps, path);
}

static int rank_order(const void *a, const void *b)
{
    const rank_t *const *one = a, *const *other = b;

    return (*one)->number - (*other)->number;
}

static int member_order(const void *a, const void *b)
{
    const member_t *const *one = a, *const *other = b;

    return (*one)->number - (*other)->number;
}

call_t *member_last(const member_t *member)
{
    const GPtrArray *calls = member->calls;

    return calls->len ? g_ptr_array_index(calls, calls->len - 1) : NULL;
}

bool rank_is_whole(const rank_t *rank)
{
    return rank->calls <= (gint64)rank->entries->len;
}

bool rank_lacks_group(const call_t *call)
{
    return call->member == &call->member->rank->stray;
}

bool member_is_known(const member_t *member)
{
    return member->calls->len || rank_is_whole(member->rank);
}

int group_world_rank(const group_t *group, int r)
{
    bool is_world = group->members->len > 0;

    for (guint i = 0; i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);

        if (member->number == r)
            return member->rank->number;
        if (member->number != member->rank->number ||
            member->rank->size != group->size)
            is_world = false;
    }
    return is_world ? r : -1 - r;
}

/* The last collective that any member has completed. */
static gint64 group_last_completed(const group_t *group)
{
    gint64 last = 0;

    for (guint i = 0; i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);

        for (guint k = member->calls->len; k > 0; k--) {
            const call_t *call = g_ptr_array_index(member->calls, k - 1);

            if (call->completed) {
                last = MAX(last, call->sequence);
                break;
            }
        }
    }
    return last;
}

static gint64 group_first_common(const group_t *group)
{
    gint64 first = 0;

    for (guint i = 0; i < group->members->len; i++) {
        const member_t *member = g_ptr_array_index(group->members, i);
        const call_t *oldest =
            member->calls->len ? g_ptr_array_index(member->calls, 0) : NULL;

        if (!rank_is_whole(member->rank))
            first = MAX(first, oldest ? oldest->sequence
                                      : group_last_completed(group) + 1);
    }
    return first;
}

void dumps_sort(dumps_t *dumps)
{
    g_ptr_array_sort(dumps->ranks, rank_order);
    for (guint i = 0; i < dumps->groups->len; i++) {
        group_t *group = g_ptr_array_index(dumps->groups, i);

        g_ptr_array_sort(group->members, member_order);
        group->first_common = group_first_common(group);
    }
}
