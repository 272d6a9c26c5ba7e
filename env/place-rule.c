/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of placement, see place-rule.h. */
#include "config.h"

#include "env/place-rule.h"

#include <glib.h>
#include <string.h>

#define PROCESSORS_MOST 65536
#define FORCE "force:"

static const char *const names[] = {
    [DSCOMM_PLACE_NONE] = "none", [DSCOMM_PLACE_NUMA] = "numa",
    [DSCOMM_PLACE_CORE] = "core", [DSCOMM_PLACE_SOCKET] = "socket",
    [DSCOMM_PLACE_GPU] = "gpu",   [DSCOMM_PLACE_LIST] = "list",
};

const char *dscomm_priv_place_kind_name(dscomm_place_kind_t kind)
{
    return names[kind];
}

/* Reads a number at *text and moves *text after it; -1: there is none, or it is
 * too large. */
static int read_number(const char **text)
{
    char *end;
    guint64 number;

    if (!g_ascii_isdigit(**text))
        return -1;
    number = g_ascii_strtoull(*text, &end, 10);
    *text = end;
    return number < PROCESSORS_MOST ? (int)number : -1;
}

static bool read_list(const char *text, hwloc_bitmap_t list)
{
    int least = 0;

    for (;; text++) {
        const int first = read_number(&text);
        int last = first;

        if (*text == '-') {
            text++;
            last = read_number(&text);
        }
        if (first < least || last < first)
            return false;
        hwloc_bitmap_set_range(list, (unsigned)first, last);
        least = last + 1;
        if (*text != ',')
            return *text == '\0';
    }
}

bool dscomm_priv_place_rule_read(const char *text,
                                 dscomm_place_rule_t *ret_rule,
                                 char **ret_problem)
{
    dscomm_place_rule_t rule = {.force = g_str_has_prefix(text, FORCE)};

    if (rule.force)
        text += strlen(FORCE);
    for (int i = 0; i < DSCOMM_PLACE_LIST; i++)
        if (strcmp(text, names[i]) == 0) {
            rule.kind = (dscomm_place_kind_t)i;
            *ret_rule = rule;
            return true;
        }
    rule.kind = DSCOMM_PLACE_LIST;
    rule.list = hwloc_bitmap_alloc();
    if (read_list(text, rule.list)) {
        *ret_rule = rule;
        return true;
    }
    hwloc_bitmap_free(rule.list);
    *ret_problem = g_strdup(
        g_ascii_isdigit(*text)
            ? "a list of processors has numbers below 65536 and ranges, "
              "ascending and without blanks, as 0-3,8,10-11"
            : "give none, core, numa, socket, gpu or a list of processors as "
              "0-3,8, with force: before it or not");
    return false;
}

void dscomm_priv_place_rule_clear(dscomm_place_rule_t *rule)
{
    hwloc_bitmap_free(rule->list);
    rule->list = NULL;
}
