/* SPDX-License-Identifier: BSD-3-Clause */
/* The summary for people, whose columns are as wide as they must be. */
#include "config.h"

#include "profiler/profile.h"
#include "profiler/profiler.h"
#include "profiler/text.h"

#include <string.h>

#define COLUMNS_MAX 16
#define SPACE "  " /* between columns */

/* Rows of texts, by which the columns' widths are found. */
typedef struct {
    GPtrArray *cells; /* row after row */
    size_t widths[COLUMNS_MAX];
    unsigned columns;
} grid_t;

void dscomm_priv_size_text(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"B",  "KB", "MB", "GB",
                                        "TB", "PB", "EB"};
    unsigned unit = 0;
    double value = (double)bytes;
    char number[32];

    if (!bytes) {
        g_strlcpy(text, "0B", size);
        return;
    }
    for (; value >= 1024 && unit < G_N_ELEMENTS(units) - 1; unit++)
        value /= 1024;
    g_ascii_formatd(number, sizeof number, "%.2f", value);
    /* Python's round() and str(): 1.0, 1.5, 678.86 */
    if (number[strlen(number) - 1] == '0')
        number[strlen(number) - 1] = '\0';
    g_snprintf(text, size, "%s %s", number, units[unit]);
}

static void size_range_text(const dscomm_profile_row_t *row, char *text,
                            size_t size)
{
    char first[32], last[32];

    dscomm_priv_size_text(row->bytes, first, sizeof first);
    dscomm_priv_size_text(row->bytes_most, last, sizeof last);
    if (row->bytes == row->bytes_most)
        g_strlcpy(text, first, size);
    else
        g_snprintf(text, size, "%s to %s", first, last);
}

static void grid_add(grid_t *grid, unsigned column, char *text)
{
    dscomm_priv_text_blank(text);
    grid->widths[column] = MAX(grid->widths[column], strlen(text));
    g_ptr_array_add(grid->cells, text);
}

/* Texts are left, numbers right. */
static void grid_print(const grid_t *grid, unsigned texts, GString *out)
{
    for (guint i = 0; i < grid->cells->len; i++) {
        const unsigned column = i % grid->columns;
        const int width = (int)grid->widths[column];
        const char *cell = g_ptr_array_index(grid->cells, i);

        if (column < texts)
            g_string_append_printf(out, "%s%-*s", column ? SPACE : "", width,
                                   cell);
        else
            g_string_append_printf(out, SPACE "%*s", width, cell);
        if (column == grid->columns - 1)
            g_string_append_c(out, '\n');
    }
}

static void grid_begin(grid_t *grid, const char *const *heads, unsigned columns)
{
    memset(grid, 0, sizeof *grid);
    grid->cells = g_ptr_array_new_with_free_func(g_free);
    grid->columns = columns;
    for (unsigned i = 0; i < columns; i++)
        grid_add(grid, i, g_strdup(heads[i]));
}

static void grid_end(grid_t *grid)
{
    g_ptr_array_unref(grid->cells);
}

static char *ms_text(int64_t ns)
{
    return g_strdup_printf("%.2f", (double)ns / 1e6);
}

/* The time that callers have waited; "-" if no wait of theirs was for one
 * operation alone. */
static char *waited_text(const dscomm_profile_row_t *row)
{
    return row->waited_ns ? ms_text(row->waited_ns) : g_strdup("-");
}

static char *us_text(int64_t ns)
{
    return g_strdup_printf("%.2f", (double)ns / 1e3);
}

static char *gb_text(double bandwidth)
{
    return bandwidth > 0 ? g_strdup_printf("%.3f", bandwidth / 1e9)
                         : g_strdup("-");
}

#define SITE_CHARS 60 /* of a call site; the rest is cut off */

static char *site_text(const dscomm_profile_row_t *row)
{
    char *site, *text;

    if (!*row->site)
        return g_strdup(row->op);
    if (g_utf8_strlen(row->site, -1) <= SITE_CHARS)
        return g_strdup_printf("%s [%s]", row->op, row->site);
    site = g_utf8_substring(row->site, 0, SITE_CHARS);
    text = g_strdup_printf("%s [%s...]", row->op, site);
    g_free(site);
    return text;
}

/* The columns of all tables after the ones that say what the row is. */
#define HEADS                                                                  \
    "Count", "Failed", "Total(ms)", "Waited(ms)", "Avg(us)", "Min(us)",        \
        "p50(us)", "p99(us)", "Max(us)", "algbw(GB/s)", "busbw(GB/s)"

static void grid_add_counts(grid_t *grid, const dscomm_profile_row_t *row,
                            unsigned column)
{
    char *cells[] = {
        g_strdup_printf("%" G_GUINT64_FORMAT, row->count),
        g_strdup_printf("%" G_GUINT64_FORMAT, row->failed),
        ms_text(row->total_ns),
        waited_text(row),
        us_text(row->mean_ns),
        us_text(row->min_ns),
        us_text(row->p50_ns),
        us_text(row->p99_ns),
        us_text(row->max_ns),
        gb_text(row->algbw),
        gb_text(row->busbw),
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cells); i++)
        grid_add(grid, column + i, cells[i]);
}

static void print_operations(const dscomm_profile_t *profile, GString *out)
{
    static const char *const heads[] = {"Comm. Op", "Group", "Message Size",
                                        HEADS};
    dscomm_profile_row_t row;
    char size[80];
    grid_t grid;

    grid_begin(&grid, heads, G_N_ELEMENTS(heads));
    for (size_t i = 0;
         dscomm_priv_profile_get(profile, DSCOMM_PROFILE_BY_SIZE, i, &row);
         i++) {
        size_range_text(&row, size, sizeof size);
        grid_add(&grid, 0, site_text(&row));
        grid_add(&grid, 1,
                 g_strdup_printf("%s (%d)", row.group, row.group_size));
        grid_add(&grid, 2, g_strdup(size));
        grid_add_counts(&grid, &row, 3);
    }
    grid_print(&grid, 3, out);
    grid_end(&grid);
}

static void print_peers(const dscomm_profile_t *profile, GString *out)
{
    static const char *const heads[] = {"Messages", "Group",      "Peer",
                                        "Count",    "Failed",     "Bytes",
                                        "Avg(us)",  "algbw(GB/s)"};
    dscomm_profile_row_t row;
    grid_t grid;

    if (!profile->views[DSCOMM_PROFILE_BY_PEER]->len)
        return;
    grid_begin(&grid, heads, G_N_ELEMENTS(heads));
    for (size_t i = 0;
         dscomm_priv_profile_get(profile, DSCOMM_PROFILE_BY_PEER, i, &row);
         i++) {
        char *cells[] = {
            g_strdup(row.op),
            g_strdup_printf("%s (%d)", row.group, row.group_size),
            row.peer < 0 ? g_strdup("any") : g_strdup_printf("%d", row.peer),
            g_strdup_printf("%" G_GUINT64_FORMAT, row.count),
            g_strdup_printf("%" G_GUINT64_FORMAT, row.failed),
            g_strdup_printf("%" G_GUINT64_FORMAT, row.total_bytes),
            us_text(row.mean_ns),
            gb_text(row.algbw),
        };

        for (unsigned j = 0; j < G_N_ELEMENTS(cells); j++)
            grid_add(&grid, j, cells[j]);
    }
    g_string_append_c(out, '\n');
    grid_print(&grid, 2, out);
    grid_end(&grid);
}

/* Text of a number of bytes, which may be negative. */
static char *bytes_text(int64_t bytes)
{
    char text[32];

    dscomm_priv_size_text(bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes, text,
                          sizeof text);
    return g_strconcat(bytes < 0 ? "-" : "", text, NULL);
}

/* The part of the plain form's bytes that was saved. */
static char *saved_text(const dscomm_profile_row_t *row)
{
    if (!row->plain_bytes)
        return g_strdup("-");
    return g_strdup_printf("%.1f", (double)row->saved_bytes * 100 /
                                       (double)row->plain_bytes);
}

static void print_codecs(const dscomm_profile_t *profile, GString *out)
{
    static const char *const heads[] = {
        "Compressed", "Group",   "Message Size", "Count", "Failed", "Avg(us)",
        "p50(us)",    "p99(us)", "Sent",         "Plain", "Saved",  "Saved(%)"};
    dscomm_profile_row_t row;
    grid_t grid;

    if (!profile->views[DSCOMM_PROFILE_BY_CODEC]->len)
        return;
    grid_begin(&grid, heads, G_N_ELEMENTS(heads));
    for (size_t i = 0;
         dscomm_priv_profile_get(profile, DSCOMM_PROFILE_BY_CODEC, i, &row);
         i++) {
        char *cells[] = {
            g_strdup_printf("%s (%s)", row.op, row.codec),
            g_strdup_printf("%s (%d)", row.group, row.group_size),
            bytes_text((int64_t)row.bytes),
            g_strdup_printf("%" G_GUINT64_FORMAT, row.count),
            g_strdup_printf("%" G_GUINT64_FORMAT, row.failed),
            us_text(row.mean_ns),
            us_text(row.p50_ns),
            us_text(row.p99_ns),
            bytes_text((int64_t)row.sent_bytes),
            bytes_text((int64_t)row.plain_bytes),
            bytes_text(row.saved_bytes),
            saved_text(&row),
        };

        for (unsigned j = 0; j < G_N_ELEMENTS(cells); j++)
            grid_add(&grid, j, cells[j]);
    }
    g_string_append_c(out, '\n');
    grid_print(&grid, 3, out);
    grid_end(&grid);
}

static void print_phases(const dscomm_profile_t *profile, GString *out)
{
    static const char *const heads[] = {"Phases", "Group", "Message Size",
                                        "Phase",  "Count", "Total(ms)",
                                        "Avg(us)"};
    dscomm_profile_row_t row;
    char size[80];
    grid_t grid;

    if (!profile->views[DSCOMM_PROFILE_BY_PHASE]->len)
        return;
    grid_begin(&grid, heads, G_N_ELEMENTS(heads));
    for (size_t i = 0;
         dscomm_priv_profile_get(profile, DSCOMM_PROFILE_BY_PHASE, i, &row);
         i++) {
        size_range_text(&row, size, sizeof size);
        grid_add(&grid, 0, g_strdup(row.op));
        grid_add(&grid, 1,
                 g_strdup_printf("%s (%d)", row.group, row.group_size));
        grid_add(&grid, 2, g_strdup(size));
        grid_add(&grid, 3, g_strdup(row.phase));
        grid_add(&grid, 4, g_strdup_printf("%" G_GUINT64_FORMAT, row.count));
        grid_add(&grid, 5, ms_text(row.total_ns));
        grid_add(&grid, 6, us_text(row.mean_ns));
    }
    g_string_append_c(out, '\n');
    grid_print(&grid, 4, out);
    grid_end(&grid);
}

static void print_ranges(const dscomm_profile_t *profile, GString *out)
{
    static const char *const heads[] = {"Range",   "Count",   "Total(ms)",
                                        "Avg(us)", "Min(us)", "p50(us)",
                                        "p99(us)", "Max(us)"};
    dscomm_profile_row_t row;
    grid_t grid;

    if (!profile->views[DSCOMM_PROFILE_BY_RANGE]->len)
        return;
    grid_begin(&grid, heads, G_N_ELEMENTS(heads));
    for (size_t i = 0;
         dscomm_priv_profile_get(profile, DSCOMM_PROFILE_BY_RANGE, i, &row);
         i++) {
        char *cells[] = {
            g_strdup(row.op),
            g_strdup_printf("%" G_GUINT64_FORMAT, row.count),
            ms_text(row.total_ns),
            us_text(row.mean_ns),
            us_text(row.min_ns),
            us_text(row.p50_ns),
            us_text(row.p99_ns),
            us_text(row.max_ns),
        };

        for (unsigned j = 0; j < G_N_ELEMENTS(cells); j++)
            grid_add(&grid, j, cells[j]);
    }
    g_string_append_c(out, '\n');
    grid_print(&grid, 1, out);
    grid_end(&grid);
}

/* A time and the rank that it is about; "-" if there is none. */
static char *wait_text(int64_t ns, int rank)
{
    return rank < 0 ? g_strdup("-")
                    : g_strdup_printf("%d (%.2f)", rank, (double)ns / 1e6);
}

static void print_stragglers(const dscomm_profile_t *profile, GString *out)
{
    static const char *const heads[] = {"Rank",
                                        "Host",
                                        "Collectives",
                                        "Last",
                                        "Late(ms)",
                                        "Max late(ms)",
                                        "Others waited(ms)",
                                        "Waited(ms)",
                                        "Mostly for rank (ms)"};
    grid_t grid;

    if (!profile->arrivals->len)
        return;
    grid_begin(&grid, heads, G_N_ELEMENTS(heads));
    for (guint i = 0; i < profile->stragglers->len; i++) {
        const dscomm_profile_straggler_t *row =
            &g_array_index(profile->stragglers, dscomm_profile_straggler_t, i);
        char *cells[] = {
            g_strdup_printf("%d", row->rank),
            g_strdup(row->host),
            g_strdup_printf("%" G_GUINT64_FORMAT, row->collectives),
            g_strdup_printf("%" G_GUINT64_FORMAT, row->last),
            ms_text(row->late_ns),
            ms_text(row->late_most_ns),
            ms_text(row->others_waited_ns),
            ms_text(row->waited_ns),
            wait_text(row->waited_for_ns, row->waited_for),
        };

        for (unsigned j = 0; j < G_N_ELEMENTS(cells); j++)
            grid_add(&grid, j, cells[j]);
    }
    g_string_append_c(out, '\n');
    grid_print(&grid, 2, out);
    grid_end(&grid);
}

/* Notes collectives that the stragglers do not have. */
static void print_unmatched(const dscomm_profile_t *profile, GString *out)
{
    if (profile->unmatched)
        g_string_append_printf(out,
                               "Not in the times of stragglers: "
                               "%" G_GUINT64_FORMAT " collectives, because a "
                               "rank has no event of them.\n",
                               profile->unmatched);
}

static void print_events(const dscomm_profile_t *profile, GString *out)
{
    dscomm_profile_info_t info = {.size = sizeof info};

    dscomm_profile_info(profile, &info);
    if (info.events_dropped)
        g_string_append_printf(out,
                               "Events that are not kept: %" G_GUINT64_FORMAT
                               ", the oldest ones; %" G_GUINT64_FORMAT
                               " are.\n",
                               info.events_dropped, info.events);
}

void dscomm_priv_write_summary(const dscomm_profile_t *profile, GString *out)
{
    print_operations(profile, out);
    print_peers(profile, out);
    print_codecs(profile, out);
    print_phases(profile, out);
    print_ranges(profile, out);
    print_stragglers(profile, out);
    if (profile->world_size > 1)
        g_string_append_printf(out, "\nSums over %d of %d ranks.\n",
                               profile->ranks, profile->world_size);
    if (profile->missing->len)
        g_string_append_printf(out, "Missing ranks: %s.\n",
                               profile->missing->str);
    if (profile->dropped)
        g_string_append_printf(out,
                               "Not counted for lack of room: "
                               "%" G_GUINT64_FORMAT " operations and ranges.\n",
                               profile->dropped);
    print_unmatched(profile, out);
    print_events(profile, out);
}
