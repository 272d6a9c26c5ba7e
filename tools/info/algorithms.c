/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm info --algorithms`: what carries out each collective, by bytes. */
#include "config.h"

#include "tools/common/tool.h"
#include "tools/info/info.h"

#include <dscomm/info.h>
#include <stdio.h>
#include <string.h>

#define NAME_WIDTH 17
#define BYTES_WIDTH 15
#define ALGORITHM_WIDTH 20

gboolean tool_info_reduces(dscomm_coll_t coll)
{
    return coll == DSCOMM_COLL_REDUCE || coll == DSCOMM_COLL_ALL_REDUCE ||
           coll == DSCOMM_COLL_REDUCE_SCATTER ||
           coll == DSCOMM_COLL_REDUCE_SCATTER_V;
}

/* "16K" if that is exact, as DSCOMM_ALGORITHM reads it. */
static char *size_text(guint64 bytes)
{
    static const char units[] = {'\0', 'K', 'M', 'G', 'T'};
    guint unit = 0;

    while (bytes && bytes % 1024 == 0 && unit + 1 < G_N_ELEMENTS(units)) {
        bytes /= 1024;
        unit++;
    }
    return g_strdup_printf("%" G_GUINT64_FORMAT "%.1s", bytes, &units[unit]);
}

/* "64K-1M", "1048577-", "all". */
static char *range_text(guint64 from, guint64 to)
{
    char *first = size_text(from);
    char *last = to == G_MAXUINT64 ? g_strdup("") : size_text(to);
    char *text = from == 0 && to == G_MAXUINT64
                     ? g_strdup("all")
                     : g_strdup_printf("%s-%s", first, last);

    g_free(first);
    g_free(last);
    return text;
}

/* The algorithm used, and the one without DSCOMM_ALGORITHM; the notes say why
 * a rule is skipped. */
static char *choice_text(const dscomm_choice_info_t *info)
{
    if (!info->by_setting)
        return g_strdup(info->by_default);
    if (strcmp(info->by_setting, "native") == 0)
        return g_strdup_printf("native, else %s", info->by_default);
    return g_strdup_printf("%s (default: %s)", info->by_setting,
                           info->by_default);
}

static gboolean choice_is_same(const dscomm_choice_info_t *a,
                               const dscomm_choice_info_t *b)
{
    return a->by_default == b->by_default && a->by_setting == b->by_setting;
}

/* Once each. what: "" or " of SOMETHING". */
static void note_passed(const char *coll, const char *what,
                        const dscomm_choice_info_t *info, GPtrArray *notes)
{
    char *note;

    if (!info->passed_over)
        return;
    note = g_strdup_printf("%s:%s is passed over%s: %s", coll,
                           info->passed_over, what, info->why);
    if (g_ptr_array_find_with_equal_func(notes, note, g_str_equal, NULL))
        g_free(note);
    else
        g_ptr_array_add(notes, note);
}

/* One row a range; narrow: for sums that are rounded once. */
static void print_row(const char *name, const dscomm_choice_info_t *info,
                      const dscomm_choice_info_t *narrow)
{
    char *range = range_text(info->from, MIN(info->to, narrow->to));
    char *choice = choice_text(info), *other = choice_text(narrow);

    printf("  %-*s %-*s ", NAME_WIDTH, name, BYTES_WIDTH, range);
    if (choice_is_same(info, narrow))
        printf("%s\n", choice);
    else
        printf("%-*s %s\n", ALGORITHM_WIDTH, choice, other);
    g_free(range);
    g_free(choice);
    g_free(other);
}

static void print_choices(dscomm_coll_t coll, int ranks, int nodes,
                          GPtrArray *notes)
{
    const char *const full_name = dscomm_coll_name(coll);
    const char *name = full_name;
    dscomm_choice_info_t info = {.size = sizeof info}, narrow = info;
    guint64 from = 0;

    do {
        if (dscomm_choice_info(ranks, nodes, coll, DSCOMM_FLOAT32, DSCOMM_SUM,
                               from, &info) < 0 ||
            dscomm_choice_info(ranks, nodes, coll, DSCOMM_BFLOAT16, DSCOMM_SUM,
                               from, &narrow) < 0)
            return;
        info.from = from;
        print_row(name, &info, &narrow);
        note_passed(full_name, "", &info, notes);
        if (info.passed_over != narrow.passed_over)
            note_passed(full_name, " by sums of bfloat16", &narrow, notes);
        name = "";
        from = MIN(info.to, narrow.to) + 1;
    } while (from);
}

gboolean tool_info_fits(const dscomm_algorithm_info_t *info, int ranks,
                        int nodes)
{
    return (!info->power_of_two || !(ranks & (ranks - 1))) &&
           (!info->two_levels || (nodes > 1 && nodes < ranks));
}

static void print_available(dscomm_coll_t coll, int ranks, int nodes)
{
    dscomm_algorithm_info_t info = {.size = sizeof info};
    const char *before = "";

    printf("  %-*s ", NAME_WIDTH, dscomm_coll_name(coll));
    for (size_t i = 0; dscomm_algorithm_info(i, &info) == DSCOMM_OK; i++) {
        if (info.coll != (int)coll || !tool_info_fits(&info, ranks, nodes))
            continue;
        printf("%s%s", before, info.name);
        before = ", ";
    }
    printf("\n");
}

const char *tool_info_algorithm_setting(void)
{
    dscomm_setting_info_t info = {.size = sizeof info};

    for (size_t i = 0; dscomm_setting_info(i, &info) == DSCOMM_OK; i++)
        if (strcmp(info.name, "DSCOMM_ALGORITHM") == 0)
            return info.value;
    return NULL;
}

gboolean tool_info_algorithms_known(void)
{
    dscomm_choice_info_t info = {.size = sizeof info};

    return dscomm_choice_info(2, 1, DSCOMM_COLL_BARRIER, DSCOMM_UINT8,
                              DSCOMM_SUM, 0, &info) == DSCOMM_OK;
}

/* Prints the setting, and the notes about its rules. */
static void print_setting(const GPtrArray *notes)
{
    const char *setting = tool_info_algorithm_setting();
    char *printable;

    if (!setting)
        return;
    printable = tool_printable(setting);
    printf("  as DSCOMM_ALGORITHM=%s says\n", printable);
    g_free(printable);
    for (guint i = 0; i < notes->len; i++)
        printf("  %s\n", (const char *)notes->pdata[i]);
}

void tool_info_print_algorithms(int ranks, int nodes)
{
    GPtrArray *notes = g_ptr_array_new_with_free_func(g_free);
    char *place = nodes > 1
                      ? g_strdup_printf("%d ranks on %d nodes", ranks, nodes)
                      : g_strdup_printf("%d ranks", ranks);

    printf("Algorithms, for %s, where the backend has none of its own:\n",
           place);
    printf("  %-*s %-*s %-*s %s\n", NAME_WIDTH, "", BYTES_WIDTH, "bytes",
           ALGORITHM_WIDTH, "algorithm", "sums of bfloat16");
    for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++)
        print_choices((dscomm_coll_t)coll, ranks, nodes, notes);
    print_setting(notes);
    printf("\nAll algorithms for %s:\n", place);
    for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++)
        print_available((dscomm_coll_t)coll, ranks, nodes);
    g_ptr_array_free(notes, TRUE);
    g_free(place);
}
