/* SPDX-License-Identifier: BSD-3-Clause */
/* A table in the layout of DeepSpeed's log_summary: operations in the order in
 * which they were first used, and their sizes. With events, so is the breakdown
 * of show_straggler. */
#include "config.h"

#include "profiler/profile.h"
#include "profiler/profiler.h"
#include "profiler/text.h"

#include <string.h>

/* A row of the profile. */
typedef struct {
    dscomm_profile_row_t row;
    const profile_entry_t *entry;
    uint64_t order; /* of the first row of its operation and call site */
} line_t;

/* The rows of one operation, call site and size: DeepSpeed knows no groups. */
typedef struct {
    uint64_t bytes, count;
    double total_ns, alg_bytes, bus_bytes;
    uint64_t compared;
    double fastest_ns, lag_ns;
} sum_t;

/* Writes a line, or none if there is nothing to say. */
typedef void (*put_sum_t)(const sum_t *sum, GString *out);

#define CELL "%-20s"

/* Writes a line of 7 cells. */
static void put_line(const char *const *cells, GString *out)
{
    for (int i = 0; i < 7; i++)
        g_string_append_printf(out, CELL, cells[i]);
    g_string_append_c(out, '\n');
}

static void put_total(const sum_t *sum, GString *out)
{
    const double ns = MAX(sum->total_ns, 1);
    char size[32], cells[5][32];

    if (!sum->count)
        return;
    dscomm_priv_size_text(sum->bytes, size, sizeof size);
    g_snprintf(cells[0], 32, "%" G_GUINT64_FORMAT, sum->count);
    g_snprintf(cells[1], 32, "%.2f", sum->total_ns / 1e6);
    g_snprintf(cells[2], 32, "%.2f", sum->total_ns / 1e6 / (double)sum->count);
    g_snprintf(cells[3], 32, "%.2f", sum->alg_bytes * 8 / ns);
    g_snprintf(cells[4], 32, "%.2f", sum->bus_bytes * 8 / ns);
    put_line((const char *const[]){"", size, cells[0], cells[1], cells[2],
                                   cells[3], cells[4]},
             out);
}

static void put_breakdown(const sum_t *sum, GString *out)
{
    const double n = (double)sum->compared;
    char size[32], cells[5][32];

    if (!sum->compared)
        return;
    dscomm_priv_size_text(sum->bytes, size, sizeof size);
    g_snprintf(cells[0], 32, "%" G_GUINT64_FORMAT, sum->compared);
    g_snprintf(cells[1], 32, "%.2f", sum->fastest_ns / 1e6);
    g_snprintf(cells[2], 32, "%.2f", sum->lag_ns / 1e6);
    g_snprintf(cells[3], 32, "%.2f", sum->fastest_ns / 1e6 / n);
    g_snprintf(cells[4], 32, "%.2f", sum->lag_ns / 1e6 / n);
    put_line((const char *const[]){"", size, cells[0], cells[1], cells[2],
                                   cells[3], cells[4]},
             out);
}

static void put_name(const dscomm_profile_row_t *row, GString *out)
{
    char *site = g_strdup(row->site);

    dscomm_priv_text_blank(site);
    if (*site)
        g_string_append_printf(out, "%s | [Caller Func: %s]\n", row->op, site);
    else
        g_string_append_printf(out, "%s\n", row->op);
    g_free(site);
}

static int name_compare(const dscomm_profile_row_t *x,
                        const dscomm_profile_row_t *y)
{
    const int order = strcmp(x->op, y->op);

    return order ? order : strcmp(x->site, y->site);
}

/* Rows of one name side by side, the first one used first. */
static gint line_compare_names(gconstpointer a, gconstpointer b)
{
    const line_t *x = a, *y = b;
    const int order = name_compare(&x->row, &y->row);

    return order ? order : (x->order > y->order) - (x->order < y->order);
}

static gint line_compare(gconstpointer a, gconstpointer b)
{
    const line_t *x = a, *y = b;
    int order = (x->order > y->order) - (x->order < y->order);

    if (!order)
        order = name_compare(&x->row, &y->row);
    return order
               ? order
               : (x->row.bytes > y->row.bytes) - (x->row.bytes < y->row.bytes);
}

/* The rows by size, in the order of the table. */
static GArray *lines_make(const dscomm_profile_t *profile)
{
    const GPtrArray *view = profile->views[DSCOMM_PROFILE_BY_SIZE];
    GArray *lines = g_array_new(FALSE, FALSE, sizeof(line_t));
    line_t line;

    for (guint i = 0;
         dscomm_priv_profile_get(profile, DSCOMM_PROFILE_BY_SIZE, i, &line.row);
         i++) {
        line.entry = g_ptr_array_index(view, i);
        line.order = line.entry->order;
        g_array_append_val(lines, line);
    }
    g_array_sort(lines, line_compare_names);
    for (guint i = 1; i < lines->len; i++) {
        const line_t *before = &g_array_index(lines, line_t, i - 1);
        line_t *next = &g_array_index(lines, line_t, i);

        if (!name_compare(&before->row, &next->row))
            next->order = before->order;
    }
    g_array_sort(lines, line_compare);
    return lines;
}

static void sum_add(sum_t *sum, const line_t *line)
{
    const dscomm_profile_row_t *row = &line->row;

    sum->bytes = row->bytes;
    sum->count += row->count;
    sum->total_ns += (double)row->total_ns;
    sum->alg_bytes += row->algbw * (double)row->total_ns / 1e9;
    sum->bus_bytes += row->busbw * (double)row->total_ns / 1e9;
    sum->compared += line->entry->compared;
    sum->fastest_ns += (double)line->entry->fastest_ns;
    sum->lag_ns += (double)line->entry->lag_ns;
}

/* Writes the lines of one operation, from index first on, below its name, or
 * nothing. Returns the index of the next operation. */
static guint put_operation(const GArray *lines, guint first, put_sum_t put,
                           GString *out)
{
    const line_t *line = &g_array_index(lines, line_t, first);
    GString *text = g_string_new(NULL);
    sum_t sum = {0};
    guint i;

    for (i = first; i < lines->len; i++) {
        const line_t *next = &g_array_index(lines, line_t, i);

        if (name_compare(&line->row, &next->row))
            break;
        if (sum.bytes != next->row.bytes) {
            put(&sum, text);
            memset(&sum, 0, sizeof sum);
        }
        sum_add(&sum, next);
    }
    put(&sum, text);
    if (text->len) {
        put_name(&line->row, out);
        g_string_append_len(out, text->str, (gssize)text->len);
    }
    g_string_free(text, TRUE);
    return i;
}

static void put_table(const GArray *lines, const char *const *heads,
                      put_sum_t put, GString *out)
{
    put_line(heads, out);
    for (guint i = 0; i < lines->len;)
        i = put_operation(lines, i, put, out);
}

void dscomm_priv_write_deepspeed(const dscomm_profile_t *profile, GString *out)
{
    static const char *const totals[] = {"Comm. Op",        "Message Size",
                                         "Count",           "Total Latency(ms)",
                                         "Avg Latency(ms)", "tput_avg (Gbps)",
                                         "busbw_avg (Gbps)"};
    static const char *const breakdown[] = {
        "Comm. Op",           "Message Size",        "Count",
        "Total comm lat(ms)", "Total straggler(ms)", "Avg comm lat(ms)",
        "Avg straggler(ms)"};
    GArray *lines = lines_make(profile);

    put_table(lines, totals, put_total, out);
    if (profile->arrivals->len) {
        g_string_append(out, "_______________________________\n"
                             "Breakdown with straggler effect\n"
                             "-------------------------------\n");
        put_table(lines, breakdown, put_breakdown, out);
    }
    g_array_unref(lines);
}
