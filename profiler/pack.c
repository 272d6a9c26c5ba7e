/* SPDX-License-Identifier: BSD-3-Clause */
/* A profile as bytes, by which ranks send theirs to rank 0. All numbers are
 * unsigned, in groups of 7 bits, lowest first, with a high bit in all bytes but
 * the last; a text is its length and its bytes. Bytes from another rank are
 * checked. */
#include "config.h"

#include "profiler/profile.h"

#include <string.h>

#define MAGIC "dscomm-profile 1"
/* largest numbers of a valid profile */
#define ENTRIES_MAX 65536
#define TEXT_MAX_BYTES 4096

static void put_number(GByteArray *out, uint64_t number)
{
    do {
        const guint8 byte = (number & 0x7f) | (number > 0x7f ? 0x80 : 0);

        g_byte_array_append(out, &byte, 1);
        number >>= 7;
    } while (number);
}

static void put_text(GByteArray *out, const char *text)
{
    const size_t length = strnlen(text, TEXT_MAX_BYTES);

    put_number(out, length);
    g_byte_array_append(out, (const guint8 *)text, (guint)length);
}

static void put_entry(GByteArray *out, const profile_entry_t *entry)
{
    put_number(out, entry->kind);
    put_number(out, (uint64_t)(entry->coll + 1));
    put_number(out, (uint64_t)entry->group_size);
    put_text(out, entry->op);
    put_text(out, entry->group);
    put_text(out, entry->site);
    put_number(out, entry->value);
    put_number(out, entry->count);
    put_number(out, entry->failed);
    put_number(out, entry->bytes);
    put_number(out, (uint64_t)entry->total_ns);
    put_number(out, (uint64_t)entry->waited_ns);
    put_number(out, (uint64_t)entry->min_ns);
    put_number(out, (uint64_t)entry->max_ns);
    put_number(out, entry->histogram->len);
    for (guint i = 0; i < entry->histogram->len; i++) {
        const profile_bucket_t *b =
            &g_array_index(entry->histogram, profile_bucket_t, i);

        put_number(out, b->bucket);
        put_number(out, b->count);
    }
}

GByteArray *dscomm_priv_profile_pack(const dscomm_profile_t *profile)
{
    GByteArray *out = g_byte_array_new();
    GHashTableIter iter;
    gpointer key;

    g_byte_array_append(out, (const guint8 *)MAGIC, sizeof MAGIC - 1);
    put_number(out, profile->dropped);
    put_number(out, g_hash_table_size(profile->entries));
    g_hash_table_iter_init(&iter, profile->entries);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        put_entry(out, key);
    return out;
}

/* The rest of the bytes. bad: something was malformed; then all numbers are 0
 * and all texts are empty. */
typedef struct {
    const uint8_t *at, *end;
    bool bad;
} reader_t;

/* Reads a number of at most most. */
static uint64_t get_number(reader_t *reader, uint64_t most)
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

static int64_t get_time(reader_t *reader)
{
    return (int64_t)get_number(reader, INT64_MAX);
}

/* Reads a text into buffer, of TEXT_MAX_BYTES + 1. */
static const char *get_text(reader_t *reader, char *buffer)
{
    const size_t length = (size_t)get_number(reader, TEXT_MAX_BYTES);

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

static void get_histogram(reader_t *reader, profile_entry_t *entry)
{
    const uint64_t count = get_number(reader, HISTOGRAM_BUCKETS);
    uint64_t next = 0;

    g_array_set_size(entry->histogram, 0);
    for (uint64_t i = 0; i < count && !reader->bad; i++) {
        const uint64_t bucket = get_number(reader, HISTOGRAM_BUCKETS - 1);
        const profile_bucket_t b = {(uint32_t)bucket,
                                    get_number(reader, UINT64_MAX)};

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
    return kind == ROW_PEER ? INT32_MAX : UINT64_MAX;
}

/* Reads all entries; adds them to profile unless it is NULL. */
static void get_entries(reader_t *reader, dscomm_profile_t *profile)
{
    static const int kinds = ROW_RANGE;
    char op[TEXT_MAX_BYTES + 1], group[TEXT_MAX_BYTES + 1];
    char site[TEXT_MAX_BYTES + 1];
    const uint64_t count = get_number(reader, ENTRIES_MAX);
    profile_entry_t entry = {
        .ranks = 1,
        .histogram = g_array_new(FALSE, FALSE, sizeof(profile_bucket_t)),
    };

    for (uint64_t i = 0; i < count && !reader->bad; i++) {
        entry.kind = (row_kind_t)get_number(reader, (uint64_t)kinds);
        entry.coll = (int)get_number(reader, DSCOMM_COLL_COUNT) - 1;
        entry.group_size = (int)get_number(reader, INT32_MAX);
        entry.op = get_text(reader, op);
        entry.group = get_text(reader, group);
        entry.site = get_text(reader, site);
        entry.value = get_number(reader, value_most(entry.kind));
        entry.count = get_number(reader, UINT64_MAX);
        entry.failed = get_number(reader, UINT64_MAX);
        entry.bytes = get_number(reader, UINT64_MAX);
        entry.total_ns = get_time(reader);
        entry.waited_ns = get_time(reader);
        entry.min_ns = get_time(reader);
        entry.max_ns = get_time(reader);
        get_histogram(reader, &entry);
        if (profile && !reader->bad)
            dscomm_priv_profile_add(profile, &entry);
    }
    reader->bad |= reader->at != reader->end;
    g_array_unref(entry.histogram);
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
    dropped = get_number(&reader, UINT64_MAX);
    check = reader;
    get_entries(&check, NULL);
    if (check.bad)
        return false;
    get_entries(&reader, profile);
    profile->dropped += dropped;
    profile->ranks++;
    return true;
}
