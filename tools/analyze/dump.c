/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading dumps, see dump.h. The file may contain anything. */
#include "config.h"

#include "tools/analyze/dump.h"

#include "lib/base/settings.h"
#include "lib/recorder/dump.h"
#include "tools/common/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)1 << 30) /* bytes */
#define DEPTH_MAX 16 /* of brackets; a dump has 6, the parser recurses */
/* Bytes for a value of JSON and what is made of it, as a reader needs them at
 * most; and for all else. */
#define VALUE_BYTES 256
#define SPARE_BYTES ((size_t)32 << 20)
#define RANK_GROUPS_MAX 4096 /* of a rank, in a dump */

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
    dumps->index = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return dumps;
}

void dumps_free(dumps_t *dumps)
{
    g_ptr_array_free(dumps->groups, true);
    g_ptr_array_free(dumps->ranks, true);
    g_ptr_array_free(dumps->parsers, true);
    g_hash_table_destroy(dumps->index);
    g_free(dumps);
}

/* The member of that type; NULL: it is another one, or there is none. */
static JsonNode *node_value(JsonNode *node, const char *name, GType type)
{
    JsonNode *member = tool_json_get(node, name);

    return member && JSON_NODE_HOLDS_VALUE(member) &&
                   json_node_get_value_type(member) == type
               ? member
               : NULL;
}

static gint64 node_int(JsonNode *node, const char *name)
{
    JsonNode *member = node_value(node, name, G_TYPE_INT64);

    return member ? json_node_get_int(member) : 0;
}

/* The member if it is from least to most; else least - 1. */
static int node_int_within(JsonNode *node, const char *name, int least,
                           int most)
{
    JsonNode *member = node_value(node, name, G_TYPE_INT64);
    const gint64 number = member ? json_node_get_int(member) : least - 1;

    return number < least || number > most ? least - 1 : (int)number;
}

static bool node_flag(JsonNode *node, const char *name)
{
    JsonNode *member = node_value(node, name, G_TYPE_BOOLEAN);

    return member && json_node_get_boolean(member);
}

static const char *node_text(JsonNode *node, const char *name)
{
    const char *text = tool_json_get_text(node, name);

    return text ? text : "?";
}

static group_t *group_get(dumps_t *dumps, const rank_t *rank, JsonNode *node)
{
    const char *id = node_text(node, "id");
    char *key = g_strdup_printf("group %s %s", id, rank->world);
    group_t *group = g_hash_table_lookup(dumps->index, key);

    if (group) {
        g_free(key);
        return group;
    }
    group = g_new0(group_t, 1);
    group->world = rank->world;
    group->id = id;
    group->name = node_text(node, "name");
    group->size = node_int_within(node, "size", 1, rank->size);
    group->members = g_ptr_array_new_with_free_func(member_free);
    g_ptr_array_add(dumps->groups, group);
    g_hash_table_insert(dumps->index, key, group);
    return group;
}

/* Adds rank to a group of its dump. Returns NULL if the group cannot be. */
static member_t *rank_join_group(dumps_t *dumps, const rank_t *rank,
                                 JsonNode *node)
{
    group_t *group = group_get(dumps, rank, node);
    member_t *member = g_new0(member_t, 1);

    member->rank = rank;
    member->group = group;
    member->number = node_int_within(node, "rank", 0, group->size - 1);
    member->calls = g_ptr_array_new();
    g_ptr_array_add(group->members, member);
    return group->size && member->number >= 0 ? member : NULL;
}

/* Adds rank to the groups of its dump; returns its members, by the number of
 * the group in the dump, or NULL if a group cannot be. */
static GHashTable *rank_join_groups(dumps_t *dumps, const rank_t *rank,
                                    JsonNode *node)
{
    GHashTable *members = g_hash_table_new(NULL, NULL);
    JsonArray *groups = tool_json_get_array(node, "groups");
    const guint count = groups ? json_array_get_length(groups) : 0;
    bool failed = count > RANK_GROUPS_MAX;

    for (guint i = 0; i < count && !failed; i++) {
        JsonNode *one = json_array_get_element(groups, i);
        member_t *member = rank_join_group(dumps, rank, one);
        const gint64 number = node_int(one, "number");

        failed = !member || !g_hash_table_insert(
                                members, GSIZE_TO_POINTER(number), member);
    }
    if (!failed)
        return members;
    g_hash_table_destroy(members);
    return NULL;
}

static call_t call_read(JsonNode *node)
{
    const char *state = node_text(node, "state");
    const char *operation = node_text(node, "operation");

    return (call_t){
        .serial = node_int(node, "serial"),
        .sequence = node_int(node, "sequence"),
        .fingerprint = node_int(node, "fingerprint"),
        .called_ns = node_int(node, "called_ns"),
        .ended_ns = node_int(node, "ended_ns"),
        .count = MAX(node_int(node, "count"), 0),
        .peer = node_int(node, "peer"),
        .tag = node_int(node, "tag"),
        .call = node_text(node, "call"),
        .operation = operation,
        .dtype = node_text(node, "dtype"),
        .async = node_flag(node, "async"),
        .completed = strcmp(state, "completed") == 0,
        .failed = strcmp(state, "failed") == 0,
        .collective =
            strcmp(operation, "send") != 0 && strcmp(operation, "recv") != 0,
    };
}

/* The group of calls whose group is not in the dump. */
static const group_t unknown_group = {.name = "?", .id = "?", .world = "?"};

/* True for an entry that stands for others: what a custom work calls. */
static bool is_composed(JsonNode *entry)
{
    return strcmp(node_text(entry, "operation"), "custom") == 0;
}

/* False if one of its groups cannot be. */
static bool rank_read_calls(dumps_t *dumps, rank_t *rank, JsonNode *node)
{
    GHashTable *members = rank_join_groups(dumps, rank, node);
    JsonArray *entries = tool_json_get_array(node, "entries");
    const guint count = entries ? json_array_get_length(entries) : 0;
    guint kept = 0;

    if (!members)
        return false;
    g_array_set_size(rank->entries, count);
    for (guint i = 0; i < count; i++) {
        JsonNode *one = json_array_get_element(entries, i);
        member_t *member = g_hash_table_lookup(
            members, GSIZE_TO_POINTER(node_int(one, "group")));
        call_t *call = &g_array_index(rank->entries, call_t, kept);

        if (is_composed(one))
            continue;
        kept++;
        *call = call_read(one);
        call->member = member ? member : &rank->stray;
        if (member && call->collective)
            g_ptr_array_add(member->calls, call);
    }
    g_array_set_size(rank->entries, kept);
    rank->calls -= count - kept;
    g_hash_table_destroy(members);
    return true;
}

static void rank_read_failure(rank_t *rank, JsonNode *node)
{
    rank->sentence = tool_json_get_text(node, "sentence");
    rank->failed_group = tool_json_get_text(node, "group");
    rank->failed_sequence = node_int(node, "sequence");
    rank->culprit = node_int_within(node, "rank", 0, DSCOMM_RANKS_MAX);
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

/* Makes the rank that node describes, without its calls. NULL: it cannot be. */
static rank_t *rank_new(JsonNode *root, JsonNode *node)
{
    const int size = node_int_within(node, "size", 1, DSCOMM_RANKS_MAX);
    const int number = node_int_within(node, "rank", 0, size - 1);
    rank_t *rank;

    if (!size || number < 0)
        return NULL;
    rank = g_new0(rank_t, 1);
    rank->world = node_text(node, "world");
    rank->number = number;
    rank->size = size;
    rank->written_ns = node_int(root, "written_ns");
    rank->pid = node_int_within(node, "pid", 0, G_MAXINT);
    rank->calls = node_int(node, "calls");
    rank->host = node_text(root, "host");
    rank->process = node_text(node, "process");
    rank->stray = (member_t){rank, &unknown_group, -1, NULL};
    rank->entries = g_array_new(false, true, sizeof(call_t));
    rank_read_failure(rank, tool_json_get(node, "failure"));
    return rank;
}

/* Reads the rank that node describes, unless a younger dump has it. Returns
 * NULL, or why the rank cannot be. */
static const char *rank_read(dumps_t *dumps, JsonNode *root, JsonNode *node)
{
    rank_t *rank = rank_new(root, node), *known;
    char *key;

    if (!rank)
        return "it has a rank whose number or world's size cannot be";
    key = g_strdup_printf("rank %d %s", rank->number, rank->world);
    known = g_hash_table_lookup(dumps->index, key);
    if (known && known->written_ns >= rank->written_ns) {
        rank_free(rank);
        g_free(key);
        return NULL;
    }
    if (known)
        rank_forget(dumps, known);
    g_ptr_array_add(dumps->ranks, rank);
    g_hash_table_insert(dumps->index, key, rank);
    return rank_read_calls(dumps, rank, node)
               ? NULL
               : "it has a rank with a group that cannot be";
}

/* True if a rank is there twice. */
static bool has_doubles(JsonArray *ranks)
{
    GHashTable *seen =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    bool doubles = false;

    for (guint i = 0; i < json_array_get_length(ranks) && !doubles; i++) {
        JsonNode *node = json_array_get_element(ranks, i);

        doubles =
            !g_hash_table_add(seen, g_strdup_printf("%" G_GINT64_FORMAT " %s",
                                                    node_int(node, "rank"),
                                                    node_text(node, "world")));
    }
    g_hash_table_destroy(seen);
    return doubles;
}

/* Reads what parser has loaded from source. */
static char *document_read(dumps_t *dumps, JsonParser *parser,
                           const char *source)
{
    JsonNode *root = json_parser_get_root(parser);
    JsonArray *ranks = tool_json_get_array(root, "ranks");
    const char *why = NULL;

    if (node_int(root, "dscomm_dump") != 1 || !ranks)
        return g_strdup_printf("%s: not a dump of this version of dscomm",
                               source);
    if (has_doubles(ranks))
        why = "it has a rank twice";
    for (guint i = 0; i < json_array_get_length(ranks) && !why; i++)
        why = rank_read(dumps, root, json_array_get_element(ranks, i));
    return why ? g_strdup_printf("%s: %s; nothing but dscomm should write "
                                 "dumps",
                                 source, why)
               : NULL;
}

static char *parse_fail(const char *source, GError *error)
{
    char *problem = g_strdup_printf("%s: %s", source, error->message);

    g_error_free(error);
    return problem;
}

/* True if c can be outside of strings. The parser also knows comments and other
 * quotes, which are no JSON. */
static bool is_json(char c)
{
    return g_ascii_isalnum(c) || (c && strchr(" \t\r\n+-.,:[]{}\"", c));
}

/* Whether the parser can read text without recursing too deeply, and has the
 * memory: it would end the process. Returns NULL, or a sentence. */
static const char *text_check(const char *text, size_t size)
{
    size_t values = 1, bytes;
    int depth = 0;
    bool quoted = false;
    void *probe;

    for (size_t i = 0; i < size; i++) {
        const char c = text[i];

        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && !is_json(c))
            return "it is not JSON";
        else if (!quoted && (c == '[' || c == '{') && ++depth > DEPTH_MAX)
            return "its brackets are nested too deeply for a dump";
        else if (!quoted && (c == ']' || c == '}'))
            depth--;
        if (!quoted && (c == '[' || c == '{' || c == ','))
            values += c == ',' ? 1 : 2;
    }
    bytes = values * VALUE_BYTES + 2 * size + SPARE_BYTES;
    probe = g_try_malloc(bytes);
    g_free(probe);
    return probe ? NULL : "there is not enough memory to read it";
}

static char *text_read(dumps_t *dumps, const char *source, const char *text,
                       size_t size)
{
    const char *why = text_check(text, size);
    GError *error = NULL;
    JsonParser *parser;

    if (why)
        return g_strdup_printf("%s: %s", source, why);
    parser = json_parser_new();
    g_ptr_array_add(dumps->parsers, parser);
    if (!json_parser_load_from_data(parser, text, (gssize)size, &error))
        return parse_fail(source, error);
    return document_read(dumps, parser, source);
}

/* Reads file to its end into *ret_text, g_free(). Returns NULL or a sentence.
 */
static const char *stream_read(FILE *file, char **ret_text, size_t *ret_size)
{
    size_t size = 0, room = 0, got;
    char *text = NULL;
    const char *why = NULL;

    do {
        char *more = text;

        if (size == room) {
            room = MAX(2 * room, 65536);
            more = room <= FILE_MAX ? g_try_realloc(text, room) : NULL;
        }
        if (!more) {
            why = room > FILE_MAX ? "it is larger than 1 GiB; no dump is"
                                  : "there is not enough memory to read it";
            break;
        }
        text = more;
        got = fread(text + size, 1, room - size, file);
        size += got;
    } while (got);
    if (!why && ferror(file))
        why = g_strerror(errno);
    *ret_text = text;
    *ret_size = size;
    return why;
}

static char *file_read(dumps_t *dumps, const char *path)
{
    FILE *file = fopen(path, "re");
    const char *why;
    char *text, *problem;
    size_t size;

    if (!file)
        return g_strdup_printf("%s: %s", path, g_strerror(errno));
    why = stream_read(file, &text, &size);
    fclose(file);
    problem = why ? g_strdup_printf("%s: %s", path, why)
                  : text_read(dumps, path, text, size);
    g_free(text);
    return problem;
}

/* Reads the records of a running job. */
static char *process_read(dumps_t *dumps, const char *pid)
{
    dscomm_recorder_t recorder;
    char *text = NULL, *problem;
    size_t size;
    FILE *file;
    const char *why =
        dscomm_priv_recorder_find(atol(pid), RECORDER_READ, &recorder);

    if (why)
        return g_strdup_printf("process %s: %s", pid, why);
    file = open_memstream(&text, &size);
    g_assert(file);
    dscomm_priv_recorder_print(&recorder, NULL, file);
    fclose(file);
    dscomm_priv_recorder_close(&recorder);
    problem = text_read(dumps, pid, text, size);
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
    for (guint i = 0; i < dumps->ranks->len; i++)
        ((rank_t *)g_ptr_array_index(dumps->ranks, i))->index = i;
    for (guint i = 0; i < dumps->groups->len; i++) {
        group_t *group = g_ptr_array_index(dumps->groups, i);

        g_ptr_array_sort(group->members, member_order);
        group->first_common = group_first_common(group);
    }
}
