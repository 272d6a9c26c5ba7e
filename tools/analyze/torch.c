/* SPDX-License-Identifier: BSD-3-Clause */
/* See torch.h. PyTorch's flight recorder writes a pickle of a dictionary for
 * each rank, FOLDER/rank_N. These have what its analyzer reads, in version 2.10
 * of that form. Its members that a dump lacks are left out. */
#include "config.h"

#include "tools/analyze/torch.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

/* The pickle, of protocol 2: a program for a machine with a stack. */

static void pickle_op(GString *out, char op)
{
    g_string_append_c(out, op);
}

/* Appends the bytes of a number, the lowest one first. */
static void pickle_bytes(GString *out, guint64 number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        g_string_append_c(out, (char)(number >> 8 * i & 0xff));
}

static void pickle_int(GString *out, gint64 number)
{
    if (number >= G_MININT32 && number <= G_MAXINT32) {
        pickle_op(out, 'J');
        pickle_bytes(out, (guint64)number, 4);
        return;
    }
    g_string_append(out, "\x8a\x08");
    pickle_bytes(out, (guint64)number, 8);
}

static void pickle_text(GString *out, const char *text)
{
    const size_t bytes = strlen(text);

    pickle_op(out, 'X');
    pickle_bytes(out, bytes, 4);
    g_string_append_len(out, text, (gssize)bytes);
}

/* Begins and ends a dictionary, whose keys and values come between. */
static void pickle_dict(GString *out)
{
    g_string_append(out, "}(");
}

static void pickle_dict_end(GString *out)
{
    pickle_op(out, 'u');
}

static void pickle_list(GString *out)
{
    g_string_append(out, "](");
}

static void pickle_list_end(GString *out)
{
    pickle_op(out, 'e');
}

static void pickle_flag(GString *out, bool flag)
{
    pickle_op(out, flag ? '\x88' : '\x89');
}

/* Members of a dictionary. */

static void member_int(GString *out, const char *name, gint64 number)
{
    pickle_text(out, name);
    pickle_int(out, number);
}

static void member_text(GString *out, const char *name, const char *text)
{
    pickle_text(out, name);
    pickle_text(out, text);
}

/* Adds a time in ns, or None if it is 0. */
static void member_time(GString *out, const char *name, gint64 time_ns)
{
    pickle_text(out, name);
    if (time_ns)
        pickle_int(out, time_ns);
    else
        pickle_op(out, 'N');
}

/* The sizes of a collective's buffers, in counts of the call. PARTS: count for
 * each rank; UNEVEN: they may differ between ranks, or there are none. The
 * analyzer compares no empty sizes. */
typedef enum { SIZE_COUNT, SIZE_PARTS, SIZE_UNEVEN } size_kind_t;

static const struct {
    const char *operation, *name; /* ours, PyTorch's */
    size_kind_t input, output;
} operations[] = {
    {"broadcast", "broadcast", SIZE_COUNT, SIZE_COUNT},
    {"reduce", "reduce", SIZE_COUNT, SIZE_COUNT},
    {"all_reduce", "all_reduce", SIZE_COUNT, SIZE_COUNT},
    {"all_gather", "all_gather", SIZE_COUNT, SIZE_PARTS},
    {"all_gather_v", "all_gather_v", SIZE_UNEVEN, SIZE_UNEVEN},
    {"reduce_scatter", "reduce_scatter", SIZE_PARTS, SIZE_COUNT},
    {"reduce_scatter_v", "reduce_scatter_v", SIZE_UNEVEN, SIZE_UNEVEN},
    {"gather", "gather", SIZE_COUNT, SIZE_PARTS},
    {"gather_v", "gather", SIZE_UNEVEN, SIZE_UNEVEN},
    {"scatter", "scatter", SIZE_PARTS, SIZE_COUNT},
    {"scatter_v", "scatter", SIZE_UNEVEN, SIZE_UNEVEN},
    {"all_to_all", "all_to_all", SIZE_PARTS, SIZE_PARTS},
    {"all_to_all_v", "all_to_all", SIZE_UNEVEN, SIZE_UNEVEN},
    {"barrier", "barrier", SIZE_UNEVEN, SIZE_UNEVEN},
    {"send", "send", SIZE_COUNT, SIZE_COUNT},
    {"recv", "recv", SIZE_COUNT, SIZE_COUNT},
};

/* The index of the call's operation; -1 if PyTorch has none. */
static int operation_find(const call_t *call)
{
    for (size_t i = 0; i < G_N_ELEMENTS(operations); i++)
        if (strcmp(operations[i].operation, call->operation) == 0)
            return (int)i;
    return -1;
}

static void member_sizes(GString *out, const char *name, const call_t *call,
                         size_kind_t kind)
{
    const gint64 parts = kind == SIZE_PARTS ? call->member->group->size : 1;

    pickle_text(out, name);
    pickle_list(out);
    pickle_list(out);
    if (kind != SIZE_UNEVEN)
        pickle_int(out, MIN(call->count, G_MAXINT64 / MAX(parts, 1)) * parts);
    pickle_list_end(out);
    pickle_list_end(out);
}

static void member_dtypes(GString *out, const char *name, const char *dtype)
{
    static const char *const names[][2] = {
        {"int8", "Char"},
        {"uint8", "Byte"},
        {"int16", "Short"},
        {"uint16", "UInt16"},
        {"int32", "Int"},
        {"uint32", "UInt32"},
        {"int64", "Long"},
        {"uint64", "UInt64"},
        {"float16", "Half"},
        {"bfloat16", "BFloat16"},
        {"float32", "Float"},
        {"float64", "Double"},
        {"float8_e4m3", "Float8_e4m3fn"},
        {"float8_e5m2", "Float8_e5m2"},
        {"bool", "Bool"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (strcmp(names[i][0], dtype) == 0)
            dtype = names[i][1];
    pickle_text(out, name);
    pickle_list(out);
    pickle_text(out, dtype);
    pickle_list_end(out);
}

/* A process group of the analyzer: a group, or two ranks of it, of which one
 * sends messages with one tag to the other. */
typedef struct {
    char *name; /* the same on all ranks, and of no other process group */
    char *description;
    char *ranks; /* "[0, 2]" */
    gint64 enqueued, completed; /* last sequence of this rank */
} process_group_t;

static void process_group_free(void *data)
{
    process_group_t *group = data;

    g_free(group->name);
    g_free(group->description);
    g_free(group->ranks);
    g_free(group);
}

/* NULL: there is none of that name. */
static process_group_t *process_group_find(const GPtrArray *groups,
                                           const char *name)
{
    for (guint i = 0; i < groups->len; i++) {
        process_group_t *group = g_ptr_array_index(groups, i);

        if (strcmp(group->name, name) == 0)
            return group;
    }
    return NULL;
}

/* Takes over the texts. */
static process_group_t *process_group_add(GPtrArray *groups, char *name,
                                          char *description, char *ranks)
{
    process_group_t *group = g_new0(process_group_t, 1);

    *group = (process_group_t){name, description, ranks, 0, 0};
    g_ptr_array_add(groups, group);
    return group;
}

/* "[0, 2]": the numbers in the world; g_free(). */
static char *group_ranks(const group_t *group)
{
    GString *text = g_string_new("[");

    for (int r = 0; r < group->size; r++)
        g_string_append_printf(text, "%s%d", r ? ", " : "",
                               group_world_rank(group, r));
    g_string_append_c(text, ']');
    return g_string_free(text, false);
}

/* The process group of the messages from one rank to another. */
static process_group_t *messages_group(GPtrArray *groups, const call_t *call,
                                       int from, int to)
{
    const group_t *group = call->member->group;
    char *name = g_strdup_printf("%s %d->%d tag %" G_GINT64_FORMAT, group->id,
                                 from, to, call->tag);
    process_group_t *found = process_group_find(groups, name);

    if (found) {
        g_free(name);
        return found;
    }
    return process_group_add(
        groups, name,
        g_strdup_printf("%s, messages from rank %d to %d", group->name, from,
                        to),
        from == to ? g_strdup_printf("[%d]", from)
                   : g_strdup_printf("[%d, %d]", MIN(from, to), MAX(from, to)));
}

/* The file of one rank. */
typedef struct {
    GString *entries;
    GPtrArray *groups; /* process_group_t */
    int written; /* entries */
} file_t;

/* A call, as the analyzer sees it. */
typedef struct {
    process_group_t *group;
    gint64 sequence;
    bool is_message;
    char name[64]; /* "nccl:send 0->1" */
} entry_t;

static void add_frame(GString *out, const call_t *call)
{
    const rank_t *rank = call->member->rank;
    char *place = g_strdup_printf("rank %d, pid %d on %s, call", rank->number,
                                  rank->pid, rank->host);

    pickle_text(out, "frames");
    pickle_list(out);
    pickle_dict(out);
    member_text(out, "name", call->call);
    member_text(out, "filename", place);
    member_int(out, "line", call->serial);
    pickle_dict_end(out);
    pickle_list_end(out);
    g_free(place);
}

/* A call that has failed is what its rank was in when the group ended, so it
 * has started and was not completed. */
static void add_state(GString *out, const call_t *call)
{
    member_text(out, "state", call->completed ? "completed" : "started");
    member_int(out, "time_created_ns", call->called_ns);
    member_time(out, "time_discovered_started_ns", call->called_ns);
    member_time(out, "time_discovered_completed_ns",
                call->completed ? MAX(call->ended_ns, call->called_ns) : 0);
    pickle_text(out, "retired");
    pickle_flag(out, call->completed || call->failed);
}

static void add_entry(file_t *file, const call_t *call, const entry_t *entry)
{
    const int operation = operation_find(call);
    GString *out = file->entries;

    pickle_dict(out);
    member_int(out, "record_id", file->written++);
    member_int(out, "pg_id", 0);
    pickle_text(out, "process_group");
    pickle_text(out, entry->group->name);
    pickle_text(out, entry->group->description);
    pickle_op(out, '\x86'); /* a pair of the last two */
    member_int(out, "collective_seq_id", entry->sequence);
    member_int(out, "p2p_seq_id", entry->is_message ? entry->sequence : 0);
    member_int(out, "op_id", call->serial);
    member_text(out, "profiling_name", entry->name);
    member_sizes(out, "input_sizes", call, operations[operation].input);
    member_dtypes(out, "input_dtypes", call->dtype);
    member_sizes(out, "output_sizes", call, operations[operation].output);
    member_dtypes(out, "output_dtypes", call->dtype);
    pickle_text(out, "is_p2p");
    pickle_flag(out, entry->is_message);
    add_state(out, call);
    add_frame(out, call);
    pickle_dict_end(out);
    entry->group->enqueued = entry->sequence;
    if (call->completed)
        entry->group->completed = entry->sequence;
}

static void add_collective(file_t *file, const call_t *call)
{
    const group_t *group = call->member->group;
    entry_t entry = {.sequence = call->sequence};

    /* Older calls are no longer in the record of some rank. */
    if (call->sequence < group->first_common)
        return;
    entry.group = process_group_find(file->groups, group->id);
    g_snprintf(entry.name, sizeof entry.name, "nccl:%s",
               operations[operation_find(call)].name);
    add_entry(file, call, &entry);
}

/* Adds a message that has not completed; the analyzer cannot match others,
 * because their partner may no longer be in the record. */
static void add_message(file_t *file, const call_t *call)
{
    const group_t *group = call->member->group;
    const bool sends = strcmp(call->operation, "send") == 0;
    const int own = call->member->rank->number;
    entry_t entry = {.is_message = true};
    int peer, from, to;

    if (call->completed || call->peer < 0 || call->peer >= group->size ||
        call->tag < 0)
        return;
    peer = group_world_rank(group, (int)call->peer);
    from = sends ? own : peer;
    to = sends ? peer : own;
    entry.group = messages_group(file->groups, call, from, to);
    entry.sequence = entry.group->enqueued + 1;
    /* Numbers in the process group, whose ranks are in ascending order. */
    if (sends)
        g_snprintf(entry.name, sizeof entry.name, "nccl:send %d->%d", from > to,
                   to > from);
    else
        g_snprintf(entry.name, sizeof entry.name, "nccl:recv %d<-%d", to > from,
                   from > to);
    add_entry(file, call, &entry);
}

static void add_config(GString *out, const GPtrArray *groups)
{
    pickle_text(out, "pg_config");
    pickle_dict(out);
    for (guint i = 0; i < groups->len; i++) {
        const process_group_t *group = g_ptr_array_index(groups, i);

        pickle_text(out, group->name);
        pickle_dict(out);
        member_text(out, "name", group->name);
        member_text(out, "desc", group->description);
        member_text(out, "ranks", group->ranks);
        pickle_dict_end(out);
    }
    pickle_dict_end(out);
    pickle_text(out, "pg_status");
    pickle_dict(out);
    for (guint i = 0; i < groups->len; i++) {
        const process_group_t *group = g_ptr_array_index(groups, i);

        pickle_text(out, group->name);
        pickle_dict(out);
        member_int(out, "last_enqueued_collective", group->enqueued);
        member_int(out, "last_started_collective", group->enqueued);
        member_int(out, "last_completed_collective", group->completed);
        pickle_dict_end(out);
    }
    pickle_dict_end(out);
}

/* Adds the groups of the rank, also those in which it has made no call. ranks:
 * of each group of the dumps. */
static void add_groups(const dumps_t *dumps, char *const *ranks,
                       const rank_t *rank, file_t *file)
{
    for (guint i = 0; i < dumps->groups->len; i++) {
        const group_t *group = g_ptr_array_index(dumps->groups, i);

        for (guint k = 0; k < group->members->len; k++) {
            const member_t *member = g_ptr_array_index(group->members, k);

            if (member->rank == rank)
                process_group_add(file->groups, g_strdup(group->id),
                                  g_strdup(group->name), g_strdup(ranks[i]));
        }
    }
}

/* The pickle of a rank; g_string_free(). */
static GString *rank_pickle(const dumps_t *dumps, char *const *ranks,
                            const rank_t *rank)
{
    file_t file = {g_string_new(NULL),
                   g_ptr_array_new_with_free_func(process_group_free), 0};
    GString *out = g_string_new("\x80\x02");

    add_groups(dumps, ranks, rank, &file);
    for (guint i = 0; i < rank->entries->len; i++) {
        const call_t *call = &g_array_index(rank->entries, call_t, i);

        if (!rank_lacks_group(call) && operation_find(call) >= 0)
            (call->collective ? add_collective : add_message)(&file, call);
    }
    pickle_dict(out);
    member_text(out, "version", "2.10");
    member_text(out, "comm_lib_version", PACKAGE_STRING);
    add_config(out, file.groups);
    pickle_text(out, "entries");
    pickle_list(out);
    g_string_append_len(out, file.entries->str, (gssize)file.entries->len);
    pickle_list_end(out);
    pickle_dict_end(out);
    pickle_op(out, '.');
    g_string_free(file.entries, true);
    g_ptr_array_free(file.groups, true);
    return out;
}

/* Makes the folder, unless it exists and is empty. */
static char *folder_prepare(const char *path)
{
    GError *error = NULL;
    GDir *folder;
    char *problem = NULL;

    if (g_mkdir(path, 0777) == 0)
        return NULL;
    if (errno != EEXIST)
        return g_strdup_printf("%s: %s", path, g_strerror(errno));
    folder = g_dir_open(path, 0, &error);
    if (!folder) {
        problem = g_strdup(error->message);
        g_error_free(error);
        return problem;
    }
    if (g_dir_read_name(folder))
        problem = g_strdup_printf("%s is not empty, and PyTorch's analyzer "
                                  "reads all files there; name a new folder",
                                  path);
    g_dir_close(folder);
    return problem;
}

/* The worlds of the dumps, each with its number, from 1. */
static GHashTable *worlds_number(const dumps_t *dumps)
{
    GHashTable *worlds = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < dumps->ranks->len; i++) {
        const rank_t *rank = g_ptr_array_index(dumps->ranks, i);

        if (!g_hash_table_contains(worlds, rank->world))
            g_hash_table_insert(
                worlds, (char *)rank->world,
                GUINT_TO_POINTER(g_hash_table_size(worlds) + 1));
    }
    return worlds;
}

/* Writes FOLDER/rank_N; if there are several worlds, FOLDER/world_M/rank_N. */
static char *file_write(const char *folder, GHashTable *worlds,
                        const rank_t *rank, const GString *pickle)
{
    char *own =
        g_hash_table_size(worlds) > 1
            ? g_strdup_printf(
                  "%s/world_%u", folder,
                  GPOINTER_TO_UINT(g_hash_table_lookup(worlds, rank->world)))
            : g_strdup(folder);
    char *path = g_strdup_printf("%s/rank_%d", own, rank->number);
    GError *error = NULL;
    char *problem = NULL;

    if (g_mkdir(own, 0777) && errno != EEXIST)
        problem = g_strdup_printf("%s: %s", own, g_strerror(errno));
    else if (!g_file_set_contents(path, pickle->str, (gssize)pickle->len,
                                  &error))
        problem = g_strdup(error->message);
    g_clear_error(&error);
    g_free(path);
    g_free(own);
    return problem;
}

char *torch_write(const dumps_t *dumps, const char *folder)
{
    char *problem = folder_prepare(folder);
    char **ranks = g_new0(char *, dumps->groups->len + 1);
    GHashTable *worlds = worlds_number(dumps);

    for (guint i = 0; i < dumps->groups->len && !problem; i++)
        ranks[i] = group_ranks(g_ptr_array_index(dumps->groups, i));
    for (guint i = 0; i < dumps->ranks->len && !problem; i++) {
        const rank_t *rank = g_ptr_array_index(dumps->ranks, i);
        GString *pickle = rank_pickle(dumps, ranks, rank);

        problem = file_write(folder, worlds, rank, pickle);
        g_string_free(pickle, true);
    }
    g_strfreev(ranks);
    g_hash_table_destroy(worlds);
    return problem;
}
