/* SPDX-License-Identifier: BSD-3-Clause */
/* A profile as bytes, by which ranks send theirs to rank 0. All numbers are
 * unsigned, in groups of 7 bits, lowest first, with a high bit in all bytes but
 * the last; a number that may be negative is doubled, and then odd; a text is
 * its length and its bytes. Events follow each other from the last to begin to
 * the first, each after a 1, with the difference of their begins. Bytes from
 * another rank are checked. */
#include "config.h"

#include "profiler/trace.h"

#include <string.h>

#define MAGIC "dscomm-profile 3"
/* largest numbers of a valid profile */
#define ENTRIES_MAX 65536
#define TEXT_MAX_BYTES 4096
#define EVENTS_MAX (2 * RING_EVENTS * RINGS)
#define TIME_MAX (INT64_MAX / 4) /* sums of two do not overflow */

static void pack_number(GByteArray *out, uint64_t number)
{
    do {
        const guint8 byte = (number & 0x7f) | (number > 0x7f ? 0x80 : 0);

        g_byte_array_append(out, &byte, 1);
        number >>= 7;
    } while (number);
}

static void pack_text(GByteArray *out, const char *text)
{
    const size_t length = MIN(strlen(text), TEXT_MAX_BYTES);

    pack_number(out, length);
    g_byte_array_append(out, (const guint8 *)text, (guint)length);
}

static void pack_signed(GByteArray *out, int64_t number)
{
    pack_number(out, (uint64_t)number << 1 ^ (uint64_t)(number >> 63));
}

static void pack_entry(GByteArray *out, const profile_entry_t *entry)
{
    pack_number(out, entry->kind);
    pack_number(out, (uint64_t)(entry->coll + 1));
    pack_number(out, (uint64_t)entry->group_size);
    pack_text(out, entry->op);
    pack_text(out, entry->group);
    pack_text(out, entry->site);
    pack_number(out, entry->value);
    pack_number(out, entry->order);
    pack_number(out, entry->count);
    pack_number(out, entry->failed);
    pack_number(out, entry->bytes);
    pack_number(out, entry->sent);
    pack_number(out, entry->plain);
    pack_number(out, entry->device_count);
    pack_number(out, (uint64_t)entry->device_ns);
    pack_number(out, (uint64_t)entry->total_ns);
    pack_number(out, (uint64_t)entry->waited_ns);
    pack_number(out, (uint64_t)entry->min_ns);
    pack_number(out, (uint64_t)entry->max_ns);
    pack_number(out, entry->histogram->len);
    for (guint i = 0; i < entry->histogram->len; i++) {
        const profile_bucket_t *b =
            &g_array_index(entry->histogram, profile_bucket_t, i);

        pack_number(out, b->bucket);
        pack_number(out, b->count);
    }
}

static void pack_event(GByteArray *out, const event_t *event, int64_t next_ns)
{
    pack_number(out, 1);
    pack_number(out, (uint64_t)(next_ns - event->begin_ns));
    pack_number(out, (uint64_t)(event->end_ns - event->begin_ns));
    pack_number(out, event->kind);
    pack_number(out, event->thread);
    pack_number(out, event->text);
    if (event->kind == EVENT_RANGE)
        return;
    pack_number(out, event->group);
    pack_number(out, event->coll);
    pack_number(out, event->dtype);
    pack_number(out, event->is_async | (unsigned)event->has_phases << 1);
    pack_number(out, event->sequence);
    pack_number(out, event->bytes);
    pack_signed(out, event->op);
    pack_signed(out, event->peer);
    pack_signed(out, event->tag);
    pack_signed(out, event->status);
    for (int i = 0; event->has_phases && i < EVENT_PHASES; i++)
        pack_number(out, event_phase(event, i));
}

/* The bytes of an event are fewer than this. */
#define EVENT_BYTES 128

/* Returns the number of events that have no room. */
static uint64_t pack_events(GByteArray *out, const trace_t *trace, size_t most)
{
    guint left = trace->events->len;
    int64_t next = left ? trace_event(trace, left - 1)->begin_ns : 0;

    pack_signed(out, next);
    for (; left && out->len + EVENT_BYTES < most; left--) {
        pack_event(out, trace_event(trace, left - 1), next);
        next = trace_event(trace, left - 1)->begin_ns;
    }
    pack_number(out, 0);
    return left;
}

/* Packs what the events of trace refer to. */
static void pack_tables(GByteArray *out, const trace_t *trace)
{
    pack_number(out, trace->groups->len);
    for (guint i = 0; i < trace->groups->len; i++) {
        const trace_group_t *group =
            &g_array_index(trace->groups, trace_group_t, i);

        pack_text(out, group->id);
        pack_text(out, group->name);
        pack_number(out, (uint64_t)group->size);
        pack_signed(out, group->rank);
    }
    pack_number(out, trace->texts->len);
    for (guint i = 0; i < trace->texts->len; i++)
        pack_text(out, g_ptr_array_index(trace->texts, i));
    pack_number(out, trace->threads->len);
    for (guint i = 0; i < trace->threads->len; i++) {
        const event_thread_t *thread =
            &g_array_index(trace->threads, event_thread_t, i);

        pack_number(out, (uint64_t)thread->tid);
        pack_text(out, thread->name);
    }
}

/* Leaves out all events if their tables have no room. */
static void pack_trace(GByteArray *out, const trace_t *trace, size_t most)
{
    GByteArray *tables = g_byte_array_new();

    pack_signed(out, trace->rank);
    pack_number(out, (uint64_t)trace->pid);
    pack_text(out, trace->host);
    pack_signed(out, trace->offset_ns);
    pack_signed(out, trace->error_ns);
    pack_tables(tables, trace);
    if (out->len + tables->len + EVENT_BYTES < most) {
        g_byte_array_append(out, tables->data, tables->len);
        pack_number(out, trace->dropped + pack_events(out, trace, most));
    } else {
        pack_number(out, 0); /* groups */
        pack_number(out, 0); /* texts */
        pack_number(out, 0); /* threads */
        pack_signed(out, 0);
        pack_number(out, 0); /* events */
        pack_number(out, trace->dropped + trace->events->len);
    }
    g_byte_array_unref(tables);
}

static gint entry_compare_times(gconstpointer a, gconstpointer b)
{
    const profile_entry_t *x = a, *y = b;

    return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

/* Packs the entries with the longest times that have room. */
static void pack_entries(GByteArray *out, const dscomm_profile_t *profile,
                         size_t most)
{
    GList *entries = g_list_sort(g_hash_table_get_keys(profile->entries),
                                 entry_compare_times);
    GByteArray *packed = g_byte_array_new();
    uint64_t dropped = profile->dropped, count = 0;

    for (const GList *item = entries; item; item = item->next) {
        const profile_entry_t *entry = item->data;
        const guint before = packed->len;

        pack_entry(packed, entry);
        count++;
        if (out->len + packed->len <= most)
            continue;
        g_byte_array_set_size(packed, before);
        count--;
        if (entry->kind == ROW_SIZE || entry->kind == ROW_CLASS)
            dropped += entry->count + entry->failed;
    }
    pack_number(out, dropped);
    pack_number(out, count);
    g_byte_array_append(out, packed->data, packed->len);
    g_byte_array_unref(packed);
    g_list_free(entries);
}

/* The rest of a part beside its entries, and of a trace beside its tables and
 * events, is shorter. */
#define HEAD_BYTES 512

GByteArray *dscomm_priv_profile_pack(const dscomm_profile_t *profile,
                                     size_t most)
{
    const size_t room = most > 2 * HEAD_BYTES ? most - HEAD_BYTES : HEAD_BYTES;
    GByteArray *out = g_byte_array_new();

    g_byte_array_append(out, (const guint8 *)MAGIC, sizeof MAGIC - 1);
    pack_entries(out, profile, profile->traces->len ? room / 2 : room);
    pack_number(out, profile->traces->len);
    for (guint i = 0; i < profile->traces->len; i++)
        pack_trace(out, profile_trace(profile, i), most);
    return out;
}

/* The rest of the bytes. bad: something was malformed; then all numbers are 0
 * and all texts are empty. */
typedef struct {
    const uint8_t *at, *end;
    bool bad;
} reader_t;

/* Reads a number of at most most. */
static uint64_t unpack_number(reader_t *reader, uint64_t most)
{
    uint64_t number = 0;

    for (unsigned shift = 0; !reader->bad; shift += 7) {
        if (reader->at == reader->end || shift > 63) {
            reader->bad = true;
            break;
        }
        number |= (uint64_t)(*reader->at & 0x7f) << shift;
        if (!(*reader->at++ & 0x80))
            break;
    }
    if (number > most)
        reader->bad = true;
    return reader->bad ? 0 : number;
}

/* Reads a number from -most to most. */
static int64_t unpack_signed(reader_t *reader, int64_t most)
{
    const uint64_t coded = unpack_number(reader, UINT64_MAX);
    const int64_t number = (int64_t)(coded >> 1 ^ -(coded & 1));

    reader->bad |= number > most || number < -most;
    return reader->bad ? 0 : number;
}

static int64_t unpack_time(reader_t *reader)
{
    return (int64_t)unpack_number(reader, INT64_MAX);
}

/* Reads a text into buffer, of TEXT_MAX_BYTES + 1. */
static const char *unpack_text(reader_t *reader, char *buffer)
{
    const size_t length = (size_t)unpack_number(reader, TEXT_MAX_BYTES);

    if ((size_t)(reader->end - reader->at) < length ||
        memchr(reader->at, 0, length))
        reader->bad = true;
    if (reader->bad)
        return "";
    memcpy(buffer, reader->at, length);
    buffer[length] = '\0';
    reader->at += length;
    return buffer;
}

static void unpack_histogram(reader_t *reader, profile_entry_t *entry)
{
    const uint64_t count = unpack_number(reader, HISTOGRAM_BUCKETS);
    uint64_t next = 0;

    g_array_set_size(entry->histogram, 0);
    for (uint64_t i = 0; i < count && !reader->bad; i++) {
        const uint64_t bucket = unpack_number(reader, HISTOGRAM_BUCKETS - 1);
        const profile_bucket_t b = {(uint32_t)bucket,
                                    unpack_number(reader, UINT64_MAX)};

        reader->bad |= bucket < next;
        next = bucket + 1;
        g_array_append_val(entry->histogram, b);
    }
}

/* The highest value of a key, by its kind. */
static uint64_t value_most(row_kind_t kind)
{
    if (kind == ROW_CLASS)
        return 64;
    if (kind == ROW_PHASE)
        return 65 * (1 << PHASE_BITS) - 1;
    return kind == ROW_PEER ? INT32_MAX : UINT64_MAX;
}

/* Reads all entries; adds them to profile unless it is NULL. */
static void unpack_entries(reader_t *reader, dscomm_profile_t *profile)
{
    static const int kinds = ROW_PHASE;
    char op[TEXT_MAX_BYTES + 1], group[TEXT_MAX_BYTES + 1];
    char site[TEXT_MAX_BYTES + 1];
    const uint64_t count = unpack_number(reader, ENTRIES_MAX);
    profile_entry_t entry = {
        .ranks = 1,
        .histogram = g_array_new(FALSE, FALSE, sizeof(profile_bucket_t)),
    };

    for (uint64_t i = 0; i < count && !reader->bad; i++) {
        entry.kind = (row_kind_t)unpack_number(reader, (uint64_t)kinds);
        entry.coll = (int)unpack_number(reader, DSCOMM_COLL_COUNT) - 1;
        entry.group_size = (int)unpack_number(reader, INT32_MAX);
        entry.op = unpack_text(reader, op);
        entry.group = unpack_text(reader, group);
        entry.site = unpack_text(reader, site);
        entry.value = unpack_number(reader, value_most(entry.kind));
        reader->bad |= entry.kind == ROW_PHASE &&
                       PHASE_OF(entry.value) >= DSCOMM_PHASE_COUNT;
        entry.order = unpack_number(reader, UINT32_MAX);
        if (profile)
            entry.order += (uint64_t)profile->ranks << 32;
        entry.count = unpack_number(reader, UINT64_MAX);
        entry.failed = unpack_number(reader, UINT64_MAX);
        entry.bytes = unpack_number(reader, UINT64_MAX);
        entry.sent = unpack_number(reader, UINT64_MAX);
        entry.plain = unpack_number(reader, UINT64_MAX);
        entry.device_count = unpack_number(reader, UINT64_MAX);
        entry.device_ns = unpack_time(reader);
        entry.total_ns = unpack_time(reader);
        entry.waited_ns = unpack_time(reader);
        entry.min_ns = unpack_time(reader);
        entry.max_ns = unpack_time(reader);
        unpack_histogram(reader, &entry);
        if (profile && !reader->bad)
            dscomm_priv_profile_add(profile, &entry);
    }
    g_array_unref(entry.histogram);
}

/* Reads a text, of the chunk texts. */
static const char *unpack_chunk(reader_t *reader, GStringChunk *texts)
{
    char text[TEXT_MAX_BYTES + 1];

    return g_string_chunk_insert_const(texts, unpack_text(reader, text));
}

static void unpack_groups(reader_t *reader, GStringChunk *texts, trace_t *trace)
{
    const uint64_t count = unpack_number(reader, TABLE_GROUPS);

    for (uint64_t i = 0; i < count && !reader->bad; i++) {
        trace_group_t group = {.id = unpack_chunk(reader, texts)};

        group.name = unpack_chunk(reader, texts);
        group.size = (int)unpack_number(reader, INT32_MAX);
        group.rank = (int)unpack_signed(reader, INT32_MAX);
        g_array_append_val(trace->groups, group);
    }
}

static void unpack_names(reader_t *reader, GStringChunk *texts, trace_t *trace)
{
    uint64_t count = unpack_number(reader, UINT16_MAX);
    char name[TEXT_MAX_BYTES + 1];

    for (uint64_t i = 0; i < count && !reader->bad; i++)
        g_ptr_array_add(trace->texts, (gpointer)unpack_chunk(reader, texts));
    count = unpack_number(reader, THREADS);
    for (uint64_t i = 0; i < count && !reader->bad; i++) {
        event_thread_t thread = {.tid = (int)unpack_number(reader, INT32_MAX)};

        g_strlcpy(thread.name, unpack_text(reader, name), sizeof thread.name);
        g_array_append_val(trace->threads, thread);
    }
}

/* Reads an event that began before next_ns. */
static event_t unpack_event(reader_t *reader, const trace_t *trace,
                            int64_t next_ns)
{
    event_t event = {.begin_ns =
                         next_ns - (int64_t)unpack_number(reader, TIME_MAX)};
    unsigned flags;

    reader->bad |= event.begin_ns < -TIME_MAX;
    event.end_ns = event.begin_ns + (int64_t)unpack_number(reader, TIME_MAX);
    event.kind = (uint8_t)unpack_number(reader, EVENT_KINDS - 1);
    event.thread = (uint16_t)unpack_number(reader, UINT16_MAX);
    event.text = (uint16_t)unpack_number(reader, UINT16_MAX);
    reader->bad |= event.thread >= trace->threads->len ||
                   event.text >= trace->texts->len || !trace->groups->len;
    if (event.kind == EVENT_RANGE)
        return event;
    event.group = (uint16_t)unpack_number(reader, UINT16_MAX);
    event.coll = (uint8_t)unpack_number(reader, DSCOMM_COLL_COUNT - 1);
    event.dtype = (uint8_t)unpack_number(reader, UINT8_MAX);
    flags = (unsigned)unpack_number(reader, 3);
    event.is_async = flags & 1;
    event.has_phases = flags >> 1 & 1;
    event.sequence = unpack_number(reader, UINT64_MAX);
    event.bytes = unpack_number(reader, UINT64_MAX);
    event.op = (int32_t)unpack_signed(reader, INT32_MAX);
    event.peer = (int32_t)unpack_signed(reader, INT32_MAX);
    event.tag = (int32_t)unpack_signed(reader, INT32_MAX);
    event.status = (int16_t)unpack_signed(reader, INT16_MAX);
    for (int i = 0; event.has_phases && i < EVENT_PHASES; i++)
        event.phases |= unpack_number(reader, UINT16_MAX) << 16 * i;
    reader->bad |= event.group >= trace->groups->len;
    return event;
}

static void unpack_events(reader_t *reader, trace_t *trace)
{
    int64_t next = unpack_signed(reader, TIME_MAX);

    while (!reader->bad && unpack_number(reader, 1)) {
        const event_t event = unpack_event(reader, trace, next);

        next = event.begin_ns;
        reader->bad |= trace->events->len == EVENTS_MAX;
        if (!reader->bad)
            g_array_append_val(trace->events, event);
    }
    for (guint i = 0; i < trace->events->len / 2; i++) {
        event_t *a = &g_array_index(trace->events, event_t, i);
        event_t *b =
            &g_array_index(trace->events, event_t, trace->events->len - 1 - i);
        const event_t swapped = *a;

        *a = *b;
        *b = swapped;
    }
}

static void unpack_trace(reader_t *reader, dscomm_profile_t *profile)
{
    trace_t *trace = dscomm_priv_trace_add(profile);

    trace->rank = (int)unpack_signed(reader, INT32_MAX);
    trace->pid = (int)unpack_number(reader, INT32_MAX);
    trace->host = unpack_chunk(reader, profile->texts);
    trace->offset_ns = unpack_signed(reader, TIME_MAX);
    trace->error_ns = unpack_signed(reader, TIME_MAX);
    unpack_groups(reader, profile->texts, trace);
    unpack_names(reader, profile->texts, trace);
    unpack_events(reader, trace);
    trace->dropped = unpack_number(reader, UINT64_MAX);
}

/* Reads all traces; a profile has one at most. */
static void unpack_traces(reader_t *reader, dscomm_profile_t *profile)
{
    const guint before = profile->traces->len;

    if (unpack_number(reader, 1))
        unpack_trace(reader, profile);
    reader->bad |= reader->at != reader->end;
    if (reader->bad)
        g_ptr_array_set_size(profile->traces, (gint)before);
}

bool dscomm_priv_profile_unpack(dscomm_profile_t *profile, const void *data,
                                size_t size)
{
    const size_t magic = sizeof MAGIC - 1;
    reader_t reader = {data, (const uint8_t *)data + size, false};
    reader_t check;
    uint64_t dropped;

    if (size < magic || memcmp(data, MAGIC, magic) != 0)
        return false;
    reader.at += magic;
    dropped = unpack_number(&reader, UINT64_MAX);
    check = reader;
    unpack_entries(&check, NULL);
    unpack_traces(&check, profile);
    if (check.bad)
        return false;
    unpack_entries(&reader, profile);
    profile->dropped += dropped;
    profile->ranks++;
    return true;
}
