/* SPDX-License-Identifier: BSD-3-Clause */
/* A profile: entries of one rank or of several, and the order in which they are
 * shown. */
#ifndef PROFILER_PROFILE_H
#define PROFILER_PROFILE_H

#include "profiler/table.h"

#include <dscomm/profiler.h>
#include <glib.h>

#define PROFILE_VIEWS 6 /* dscomm_profile_by_t */

/* Operations in one bucket of a histogram. */
typedef struct {
    uint32_t bucket;
    uint64_t count;
} profile_bucket_t;

/* Counts of the operations with one key. min_ns is INT64_MAX if there are
 * none. */
typedef struct {
    row_kind_t kind;
    int coll, group_size;
    const char *op, *group, *site; /* of the profile's texts; site: or codec */
    uint64_t value; /* as in row_key_t; of a range it is 0 */
    int ranks;
    /* By first use: of the first rank that has the entry, from 1; plus 2^32 for
     * each rank before that one. */
    uint64_t order;
    uint64_t count, failed, bytes;
    uint64_t sent, plain; /* bytes, as in dscomm_note_t */
    uint64_t device_count; /* of operations that a device has timed */
    int64_t device_ns;
    int64_t total_ns, waited_ns, min_ns, max_ns;
    /* Collectives that are compared, as in dscomm_profile_t: the times of the
     * fastest rank, and by how much this entry's were longer. Not packed. */
    uint64_t compared;
    int64_t fastest_ns, lag_ns;
    GArray *histogram; /* profile_bucket_t, ascending */
} profile_entry_t;

struct dscomm_profile {
    GStringChunk *texts;
    GHashTable *entries; /* profile_entry_t, each its own key */
    GHashTable *classes; /* those that only DSCOMM_PROFILE_BY_CLASS shows */
    GPtrArray *views[PROFILE_VIEWS]; /* in order; owns nothing */
    int ranks, world_size;
    GString *missing;
    uint64_t dropped;
    GPtrArray *traces; /* trace_t, of the ranks that have events; trace.h */
    GArray *arrivals; /* dscomm_profile_arrival_t, in order */
    /* Collectives without an arrival: a rank that is in the profile has no
     * event of them, or no other rank is. 0 in a profile of one rank. */
    uint64_t unmatched;
    GArray *stragglers; /* dscomm_profile_straggler_t, in order */
};

dscomm_profile_t *dscomm_priv_profile_new(int world_size);

/* Adds the counts of entry, which stays the caller's, with its texts. */
void dscomm_priv_profile_add(dscomm_profile_t *profile,
                             const profile_entry_t *entry);
/* Makes the views; nothing may be added any more. */
void dscomm_priv_profile_finish(dscomm_profile_t *profile);

/* The time below which percent per cent of the entry's operations are; 0 if
 * there are none. */
int64_t dscomm_priv_profile_percentile(const profile_entry_t *entry,
                                       unsigned percent);

/* The table's counts, as entries of a profile. */
void dscomm_priv_profile_add_table(dscomm_profile_t *profile,
                                   const table_t *table);

/* Writes profile as bytes, equal on all machines; the caller frees them. So
 * that there are at most most bytes, or 1 KiB, entries with the shortest times
 * are left out, and the oldest events; both are counted. Entries take at most
 * half of the bytes if there are events. unpack adds them to another profile.
 * False: data is malformed, and nothing of it has been added. */
GByteArray *dscomm_priv_profile_pack(const dscomm_profile_t *profile,
                                     size_t most);
bool dscomm_priv_profile_unpack(dscomm_profile_t *profile, const void *data,
                                size_t size);

/* Notes that the counts of a rank are missing. */
void dscomm_priv_profile_miss(dscomm_profile_t *profile, int rank);

/* Write a profile in one format. */
void dscomm_priv_write_summary(const dscomm_profile_t *profile, GString *out);
void dscomm_priv_write_deepspeed(const dscomm_profile_t *profile, GString *out);
void dscomm_priv_write_json(const dscomm_profile_t *profile, GString *out);
void dscomm_priv_write_csv(const dscomm_profile_t *profile, GString *out);
void dscomm_priv_write_prometheus(const dscomm_profile_t *profile,
                                  GString *out);

/* Appends text in JSON's quotes; what is not UTF-8 is made so. */
void dscomm_priv_json_text(const char *text, GString *out);

/* Row index of a view; false beyond the last. */
bool dscomm_priv_profile_get(const dscomm_profile_t *profile,
                             dscomm_profile_by_t by, size_t index,
                             dscomm_profile_row_t *ret_row);

/* Times of another rank may be wrong, but must do no harm. */
static inline int64_t profile_time_sum(int64_t a, int64_t b)
{
    return (int64_t)(((uint64_t)a + (uint64_t)b) & INT64_MAX);
}

/* "copy_in" and so on, as in dscomm_profile_row_t. */
const char *dscomm_priv_phase_name(dscomm_phase_t phase);

/* The formats by name, "summary" first; NULL beyond the last. */
const char *dscomm_priv_format_name(int format);

#endif
