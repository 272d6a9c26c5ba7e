/* SPDX-License-Identifier: BSD-3-Clause */
/* See view.h. A line has columns of fixed width, a bar, and the call, which
 * gets the rest. In a narrow terminal, columns are dropped for the call, and
 * then the line is cut. */
#include "config.h"

#include "tools/top/view.h"

#include "tools/common/tool.h"

#include <math.h>
#include <string.h>

#define BAR_LEAST 6
#define BAR_MOST 24
#define CALL_LEAST 12 /* below it, other columns are dropped */
#define LONG_S 1.0 /* a call of this duration is yellow */

#define NORMAL "\033[0m"
#define HEADER "\033[1;7m"
#define RED "\033[31m"
#define YELLOW "\033[33m"
#define CYAN "\033[36m"
/* A line is cleared before it is written: after its last column, a terminal
 * would clear that. */
#define FIRST "\033[H\033[K"
#define NEXT "\n\033[K"

enum { NODE, RANK, PID, PROCESS, CALLS, BYTES, WAIT, BAR, TIME, CALL, COLUMNS };

static const struct {
    const char *name;
    int width;
    bool right; /* aligned */
} column[COLUMNS] = {
    [NODE] = {"node", 4, true},    [RANK] = {"rank", 4, true},
    [PID] = {"pid", 8, true},      [PROCESS] = {"process", 7, false},
    [CALLS] = {"call/s", 6, true}, [BYTES] = {"byte/s", 6, true},
    [WAIT] = {"wait", 4, true},    [BAR] = {"", BAR_LEAST, false},
    [TIME] = {"time", 6, true},    [CALL] = {"in", CALL_LEAST, false},
};

/* Columns that are dropped for the call, the first one first. */
static const int dropped[] = {BAR, BYTES, CALLS, PID, TIME};

typedef struct {
    int width[COLUMNS]; /* characters; 0: not shown */
} layout_t;

/* The characters of all columns, with a blank between two. */
static int layout_total(const layout_t *layout)
{
    int total = -1;

    for (int i = 0; i < COLUMNS; i++)
        total += layout->width[i] ? layout->width[i] + 1 : 0;
    return total;
}

/* Finds the columns for a line of so many characters. */
static layout_t layout_fit(int columns, bool with_node)
{
    layout_t layout;
    int room, at = 0;

    for (int i = 0; i < COLUMNS; i++)
        layout.width[i] = i == NODE && !with_node ? 0 : column[i].width;
    for (size_t i = 0; i < G_N_ELEMENTS(dropped); i++)
        if (layout_total(&layout) > columns)
            layout.width[dropped[i]] = 0;
    room = columns - layout_total(&layout);
    if (layout.width[BAR]) {
        const int bar = (room + CALL_LEAST + BAR_LEAST) / 5;

        layout.width[BAR] = CLAMP(bar, BAR_LEAST, BAR_MOST);
        room -= layout.width[BAR] - BAR_LEAST;
    }
    layout.width[CALL] += room;
    for (int i = 0; i < COLUMNS; i++) {
        layout.width[i] = CLAMP(layout.width[i], 0, MAX(columns - at, 0));
        at += layout.width[i] ? layout.width[i] + 1 : 0;
    }
    return layout;
}

/* "999", "1.2k", "345M": 5 characters at most. */
static void number_format(double number, char *text, size_t size)
{
    static const char units[] = " kMGTPE";
    size_t unit = 0;

    while (number >= 999.5 && unit + 2 < sizeof units) {
        number /= 1000;
        unit++;
    }
    g_snprintf(text, size, number < 9.95 && unit ? "%.1f%.1s" : "%.0f%.1s",
               number, unit ? &units[unit] : "");
}

/* "12.3s", "5m12s", "27h": 6 characters at most. */
static void time_format(double seconds, char *text, size_t size)
{
    const int whole = (int)CLAMP(seconds, 0, 1e9);

    if (seconds < 99.95)
        g_snprintf(text, size, "%.1fs", seconds);
    else if (whole < 100 * 60)
        g_snprintf(text, size, "%dm%02ds", whole / 60, whole % 60);
    else if (whole < 100 * 3600)
        g_snprintf(text, size, "%dh%02dm", whole / 3600, whole / 60 % 60);
    else
        g_snprintf(text, size, "%dd", whole / 86400);
}

/* Appends text, which is printable, cut off or padded to width characters. */
static void append_cut(GString *out, const char *text, int width)
{
    const glong length = g_utf8_strlen(text, -1);

    if (length <= width) {
        g_string_append_printf(out, "%s%*s", text, (int)(width - length), "");
        return;
    }
    g_string_append_len(
        out, text, g_utf8_offset_to_pointer(text, MAX(width - 1, 0)) - text);
    if (width > 0)
        g_string_append_c(out, '>');
}

/* Appends a column of the line, after a blank unless it is the first. */
static void append_column(GString *out, const layout_t *layout, int which,
                          const char *text)
{
    const int width = layout->width[which];
    const int length = (int)g_utf8_strlen(text, -1);
    bool first = true;

    for (int i = 0; i < which; i++)
        first &= !layout->width[i];
    if (!width)
        return;
    if (!first)
        g_string_append_c(out, ' ');
    if (column[which].right && length < width)
        g_string_append_printf(out, "%*s", width - length, "");
    append_cut(out, text, column[which].right ? MIN(length, width) : width);
}

static void append_bar(GString *out, const layout_t *layout, double part,
                       const char *colour)
{
    const int width = layout->width[BAR];
    const int full = (int)lround(part * width);
    const bool blocks = g_get_charset(NULL);
    GString *bar = g_string_new(NULL);

    for (int i = 0; i < width; i++)
        g_string_append(bar, i < full ? (blocks ? "\u2588" : "#")
                                      : (blocks ? "\u2591" : "."));
    g_string_append(out, CYAN);
    append_column(out, layout, BAR, bar->str);
    g_string_append_printf(out, NORMAL "%s", colour);
    g_string_free(bar, true);
}

static void append_number(GString *out, const layout_t *layout, int which,
                          const char *format, double number)
{
    char text[32];

    g_snprintf(text, sizeof text, format, number);
    append_column(out, layout, which, text);
}

static void append_rank(GString *out, const layout_t *layout,
                        const sample_t *sample)
{
    const bool bad =
        sample->state == SLOT_DEAD || sample->state == SLOT_STOPPED;
    const bool is_long = *sample->current && sample->current_s >= LONG_S;
    const char *colour = bad ? RED : is_long ? YELLOW : "";
    char *current =
        tool_printable(*sample->current ? sample->current : "no call");
    char calls[16], bytes[16], wait[8], time[16];

    number_format(sample->calls_per_s, calls, sizeof calls);
    number_format(sample->bytes_per_s, bytes, sizeof bytes);
    sample_wait(sample, wait, sizeof wait);
    time_format(sample->current_s, time, sizeof time);
    g_string_append_printf(out, NEXT "%s", colour);
    append_number(out, layout, NODE, "%.0f", sample->node);
    append_number(out, layout, RANK, "%.0f", sample->rank);
    append_number(out, layout, PID, "%.0f", sample->pid);
    append_column(out, layout, PROCESS,
                  dscomm_priv_recorder_state_name(sample->state));
    append_column(out, layout, CALLS, calls);
    append_column(out, layout, BYTES, bytes);
    append_column(out, layout, WAIT, wait);
    append_bar(out, layout, sample->wait, colour);
    append_column(out, layout, TIME, time);
    append_column(out, layout, CALL, current);
    g_string_append(out, NORMAL);
    g_free(current);
}

/* Appends the first line. */
static void append_title(GString *out, const char *job, const GArray *samples,
                         int columns)
{
    static const char keys[] = " q: quit";
    const int width = (int)strlen(keys), nodes = samples_nodes(samples);
    char *printable = tool_printable(job);
    char *title = g_strdup_printf("job %s, %u rank%s on %d node%s", printable,
                                  samples->len, samples->len == 1 ? "" : "s",
                                  nodes, nodes == 1 ? "" : "s");

    g_string_append(out, FIRST);
    append_cut(out, title, columns > 2 * width ? columns - width : columns);
    g_string_append(out, columns > 2 * width ? keys : "");
    g_free(title);
    g_free(printable);
}

static void append_names(GString *out, const layout_t *layout)
{
    g_string_append(out, NEXT HEADER);
    for (int i = 0; i < COLUMNS; i++)
        append_column(out, layout, i, column[i].name);
    g_string_append(out, NORMAL);
}

/* Appends the last line. */
static void append_position(GString *out, guint first, guint last, guint count,
                            int columns)
{
    char *text = g_strdup_printf("ranks %u to %u of %u; j, k: down, up",
                                 first + 1, last, count);

    g_string_append(out, NEXT);
    append_cut(out, text, columns);
    g_free(text);
}

void view_draw(const char *job, const GArray *samples, guint first, int rows,
               int columns, GString *out)
{
    const layout_t layout = layout_fit(columns, samples_nodes(samples) > 1);
    const bool has_names = rows > 2, has_position = rows > 3;
    const int shown = MAX(rows - 1 - has_names - has_position, 0);
    const guint last = MIN(first + (guint)shown, samples->len);
    const bool is_part = first || last < samples->len;

    append_title(out, job, samples, columns);
    if (has_names)
        append_names(out, &layout);
    for (guint i = first; i < last; i++)
        append_rank(out, &layout, &g_array_index(samples, sample_t, i));
    if (has_position && is_part)
        append_position(out, first, last, samples->len, columns);
    if (1 + has_names + (int)(last - first) + (has_position && is_part) < rows)
        g_string_append(out, "\n\033[J");
}
