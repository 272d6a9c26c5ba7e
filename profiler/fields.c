/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON and CSV, both from one table of a row's members. */
#include "config.h"

#include "profiler/profile.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

typedef enum {
    FIELD_TEXT,
    FIELD_INT,
    FIELD_NUMBER,
    FIELD_SIGNED,
    FIELD_REAL
} field_type_t;

typedef struct {
    const char *name;
    field_type_t type;
    size_t offset;
} field_t;

#define FIELD_OF(struct_, type_, name_)                                        \
    {                                                                          \
#name_, FIELD_##type_, offsetof(struct_, name_)                        \
    }
#define FIELD(type_, name_) FIELD_OF(dscomm_profile_row_t, type_, name_)
#define STRAGGLER(type_, name_)                                                \
    FIELD_OF(dscomm_profile_straggler_t, type_, name_)
#define ARRIVAL(type_, name_) FIELD_OF(dscomm_profile_arrival_t, type_, name_)

static const field_t fields[] = {
    FIELD(TEXT, op),
    FIELD(TEXT, group),
    FIELD(INT, group_size),
    FIELD(TEXT, site),
    FIELD(INT, peer),
    FIELD(NUMBER, bytes),
    FIELD(NUMBER, bytes_most),
    FIELD(INT, ranks),
    FIELD(NUMBER, count),
    FIELD(NUMBER, failed),
    FIELD(NUMBER, total_bytes),
    FIELD(NUMBER, total_ns),
    FIELD(NUMBER, waited_ns),
    FIELD(NUMBER, min_ns),
    FIELD(NUMBER, mean_ns),
    FIELD(NUMBER, p50_ns),
    FIELD(NUMBER, p99_ns),
    FIELD(NUMBER, max_ns),
    FIELD(REAL, algbw),
    FIELD(REAL, busbw),
    FIELD(TEXT, codec),
    FIELD(NUMBER, sent_bytes),
    FIELD(NUMBER, plain_bytes),
    FIELD(SIGNED, saved_bytes),
    FIELD(TEXT, phase),
    FIELD(NUMBER, device_count),
    FIELD(NUMBER, device_ns),
};

static const field_t straggler_fields[] = {
    STRAGGLER(INT, rank),
    STRAGGLER(INT, pid),
    STRAGGLER(TEXT, host),
    STRAGGLER(NUMBER, collectives),
    STRAGGLER(NUMBER, last),
    STRAGGLER(NUMBER, late_ns),
    STRAGGLER(NUMBER, late_most_ns),
    STRAGGLER(NUMBER, others_waited_ns),
    STRAGGLER(NUMBER, waited_ns),
    STRAGGLER(INT, waited_for),
    STRAGGLER(NUMBER, waited_for_ns),
};

static const field_t arrival_fields[] = {
    ARRIVAL(TEXT, op),        ARRIVAL(TEXT, group),
    ARRIVAL(TEXT, group_id),  ARRIVAL(NUMBER, sequence),
    ARRIVAL(NUMBER, bytes),   ARRIVAL(INT, last),
    ARRIVAL(NUMBER, late_ns), ARRIVAL(NUMBER, waited_ns),
};

/* The collectives in JSON: those with the longest waits. */
#define ARRIVALS_SHOWN 100

static const char *const views[PROFILE_VIEWS] = {
    [DSCOMM_PROFILE_BY_SIZE] = "sizes",   [DSCOMM_PROFILE_BY_CLASS] = "classes",
    [DSCOMM_PROFILE_BY_PEER] = "peers",   [DSCOMM_PROFILE_BY_RANGE] = "ranges",
    [DSCOMM_PROFILE_BY_CODEC] = "codecs", [DSCOMM_PROFILE_BY_PHASE] = "phases",
};

void dscomm_priv_json_text(const char *text, GString *out)
{
    char *valid = g_utf8_make_valid(text, -1);

    g_string_append_c(out, '"');
    for (const char *c = valid; *c; c++) {
        if (*c == '"' || *c == '\\')
            g_string_append_printf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            g_string_append_printf(out, "\\u%04x", (unsigned char)*c);
        else
            g_string_append_c(out, *c);
    }
    g_string_append_c(out, '"');
    g_free(valid);
}

/* By RFC 4180, in UTF-8. */
static void put_csv_text(const char *text, GString *out)
{
    char *valid = g_utf8_make_valid(text, -1);
    const bool quoted = strpbrk(valid, ",\"\r\n") != NULL;

    if (quoted)
        g_string_append_c(out, '"');
    for (const char *c = valid; *c; c++)
        g_string_append_printf(out, *c == '"' ? "\"\"" : "%c", *c);
    if (quoted)
        g_string_append_c(out, '"');
    g_free(valid);
}

static void put_real(double value, GString *out)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append(out, g_ascii_formatd(text, sizeof text, "%.6g", value));
}

static void put_field(const field_t *field, const void *row,
                      void (*put_text)(const char *text, GString *out),
                      GString *out)
{
    const char *at = (const char *)row + field->offset;

    switch (field->type) {
    case FIELD_TEXT:
        put_text(*(const char *const *)at, out);
        break;
    case FIELD_INT:
        g_string_append_printf(out, "%d", *(const int *)at);
        break;
    case FIELD_NUMBER: /* none is negative */
        g_string_append_printf(out, "%" G_GUINT64_FORMAT,
                               *(const uint64_t *)at);
        break;
    case FIELD_SIGNED:
        g_string_append_printf(out, "%" G_GINT64_FORMAT, *(const int64_t *)at);
        break;
    case FIELD_REAL:
        put_real(*(const double *)at, out);
        break;
    }
}

static void put_json_row(const field_t *members, size_t count, const void *row,
                         GString *out)
{
    for (size_t i = 0; i < count; i++) {
        g_string_append_printf(out, "%s\"%s\": ", i ? ", " : "{",
                               members[i].name);
        put_field(&members[i], row, dscomm_priv_json_text, out);
    }
    g_string_append_c(out, '}');
}

/* Puts the first most of rows, of size bytes each. */
static void put_json_rows(const char *name, const field_t *members,
                          size_t count, const GArray *rows, size_t size,
                          guint most, GString *out)
{
    g_string_append_printf(out, ",\n \"%s\": [", name);
    for (guint i = 0; i < MIN(rows->len, most); i++) {
        g_string_append(out, i ? ",\n  " : "\n  ");
        put_json_row(members, count, rows->data + i * size, out);
    }
    g_string_append_c(out, ']');
}

static void put_json_stragglers(const dscomm_profile_t *profile, GString *out)
{
    dscomm_profile_info_t info = {.size = sizeof info};

    dscomm_profile_info(profile, &info);
    g_string_append_printf(out,
                           ",\n \"events\": %" G_GUINT64_FORMAT
                           ", \"events_dropped\": %" G_GUINT64_FORMAT
                           ", \"unmatched_collectives\": %" G_GUINT64_FORMAT,
                           info.events, info.events_dropped,
                           profile->unmatched);
    put_json_rows("stragglers", straggler_fields,
                  G_N_ELEMENTS(straggler_fields), profile->stragglers,
                  sizeof(dscomm_profile_straggler_t), UINT_MAX, out);
    put_json_rows("arrivals", arrival_fields, G_N_ELEMENTS(arrival_fields),
                  profile->arrivals, sizeof(dscomm_profile_arrival_t),
                  ARRIVALS_SHOWN, out);
}

void dscomm_priv_write_json(const dscomm_profile_t *profile, GString *out)
{
    dscomm_profile_row_t row;

    g_string_append_printf(out,
                           "{\"format\": \"dscomm-profile\", \"version\": 1,\n"
                           " \"world_size\": %d, \"ranks\": %d, "
                           "\"missing\": [%s], "
                           "\"dropped\": %" G_GUINT64_FORMAT,
                           profile->world_size, profile->ranks,
                           profile->missing->str, profile->dropped);
    for (unsigned by = 0; by < PROFILE_VIEWS; by++) {
        g_string_append_printf(out, ",\n \"%s\": [", views[by]);
        for (size_t i = 0;
             dscomm_priv_profile_get(profile, (dscomm_profile_by_t)by, i, &row);
             i++) {
            g_string_append(out, i ? ",\n  " : "\n  ");
            put_json_row(fields, G_N_ELEMENTS(fields), &row, out);
        }
        g_string_append_c(out, ']');
    }
    put_json_stragglers(profile, out);
    g_string_append(out, "}\n");
}

void dscomm_priv_write_csv(const dscomm_profile_t *profile, GString *out)
{
    dscomm_profile_row_t row;

    g_string_append(out, "by");
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        g_string_append_printf(out, ",%s", fields[i].name);
    g_string_append_c(out, '\n');
    for (unsigned by = 0; by < PROFILE_VIEWS; by++) {
        for (size_t i = 0;
             dscomm_priv_profile_get(profile, (dscomm_profile_by_t)by, i, &row);
             i++) {
            g_string_append(out, views[by]);
            for (size_t j = 0; j < G_N_ELEMENTS(fields); j++) {
                g_string_append_c(out, ',');
                put_field(&fields[j], &row, put_csv_text, out);
            }
            g_string_append_c(out, '\n');
        }
    }
}
