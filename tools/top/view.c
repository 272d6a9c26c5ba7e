/* SPDX-License-Identifier: BSD-3-Clause */
/* See view.h. A line has columns of fixed width, a bar, and the call, which
 * gets the rest. */
#include "config.h"

#include "tools/top/view.h"

#include "tools/common/tool.h"

#include <math.h>
#include <string.h>

#define FIXED 49 /* width of all columns but bar and call, with blanks */
#define NODE 5 /* width of the node's column */
#define BAR_LEAST 6
#define BAR_MOST 24
#define LONG_S 1.0 /* a call of this duration is yellow */

#define NORMAL "\033[0m"
#define HEADER "\033[1;7m"
#define RED "\033[31m"
#define YELLOW "\033[33m"
#define CYAN "\033[36m"
#define END "\033[0m\033[K\n"

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

static void append_bar(GString *out, double part, int width)
{
    const int full = (int)lround(part * width);
    const bool blocks = g_get_charset(NULL);

    g_string_append(out, CYAN);
    for (int i = 0; i < width; i++)
        g_string_append(out, i < full ? (blocks ? "\u2588" : "#")
                                      : (blocks ? "\u2591" : "."));
    g_string_append(out, NORMAL);
}

static void append_rank(GString *out, const sample_t *sample, bool with_node,
                        int bar, int rest)
{
    const bool bad =
        sample->state == SLOT_DEAD || sample->state == SLOT_STOPPED;
    const bool is_long = *sample->current && sample->current_s >= LONG_S;
    const char *colour = bad ? RED : is_long ? YELLOW : "";
    char *current =
        tool_printable(*sample->current ? sample->current : "no call");
    char calls[16], bytes[16], time[16];

    number_format(sample->calls_per_s, calls, sizeof calls);
    number_format(sample->bytes_per_s, bytes, sizeof bytes);
    time_format(sample->current_s, time, sizeof time);
    g_string_append(out, colour);
    if (with_node)
        g_string_append_printf(out, "%4d ", sample->node);
    g_string_append_printf(out, "%4d %8d %-7s %6s %6s %3.0f%% ", sample->rank,
                           sample->pid,
                           dscomm_priv_recorder_state_name(sample->state),
                           calls, bytes, 100 * sample->wait);
    append_bar(out, sample->wait, bar);
    g_string_append_printf(out, "%s %6s ", colour, time);
    append_cut(out, current, rest);
    g_string_append(out, END);
    g_free(current);
}

void view_draw(const char *job, const GArray *samples, guint first, int rows,
               int columns, GString *out)
{
    const int nodes = samples_nodes(samples);
    const int fixed = nodes > 1 ? FIXED + NODE : FIXED;
    const int bar = CLAMP((columns - fixed) / 5, BAR_LEAST, BAR_MOST);
    const int rest = MAX(columns - fixed - bar, 0);
    const guint shown = (guint)MAX(rows - 3, 0);
    const guint last = MIN(first + shown, samples->len);
    char *printable = tool_printable(job);
    char *title = g_strdup_printf("job %s, %u rank%s on %d node%s", printable,
                                  samples->len, samples->len == 1 ? "" : "s",
                                  nodes, nodes == 1 ? "" : "s");
    char *names =
        g_strdup_printf("%s%4s %8s %-7s %6s %6s %4s %-*s %6s %s",
                        nodes > 1 ? "node " : "", "rank", "pid", "process",
                        "call/s", "byte/s", "wait", bar, "", "time", "in");

    g_string_append(out, "\033[H");
    append_cut(out, title, columns - 8);
    g_string_append(out, " q: quit" END HEADER);
    append_cut(out, names, columns);
    g_string_append(out, END);
    for (guint i = first; i < last; i++)
        append_rank(out, &g_array_index(samples, sample_t, i), nodes > 1, bar,
                    rest);
    if (first || last < samples->len)
        g_string_append_printf(out, "ranks %u to %u of %u; j, k: down, up",
                               first + 1, last, samples->len);
    g_string_append(out, "\033[J");
    g_free(names);
    g_free(title);
    g_free(printable);
}
