/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that share processors, see crowd.h. */
#include "config.h"

#include "tools/common/crowd.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

void tool_place_fill(tool_place_t *place, hwloc_const_bitmap_t set)
{
    const int size = (int)sizeof place->processors;

    memset(place, 0, sizeof *place);
    if (gethostname(place->host, sizeof place->host - 1) != 0)
        g_strlcpy(place->host, "unknown", sizeof place->host);
    if (set &&
        hwloc_bitmap_snprintf(place->processors, (size_t)size, set) >= size)
        *place->processors = '\0';
}

/* Counts the ranks of a rank's host that may use no processors but its own. */
static int sharers_count(const tool_place_t *places, const hwloc_bitmap_t *sets,
                         int count, int rank)
{
    int sharers = 0;

    for (int i = 0; i < count; i++)
        sharers += !strcmp(places[i].host, places[rank].host) &&
                   hwloc_bitmap_isincluded(sets[i], sets[rank]);
    return sharers;
}

char *tool_crowd_text(const tool_place_t *places, int count)
{
    hwloc_bitmap_t *sets = g_new(hwloc_bitmap_t, count);
    char *text = NULL;

    for (int i = 0; i < count; i++) {
        sets[i] = hwloc_bitmap_alloc_full();
        if (*places[i].processors)
            hwloc_bitmap_sscanf(sets[i], places[i].processors);
    }
    for (int i = 0; i < count && !text; i++) {
        const int sharers = sharers_count(places, sets, count, i);
        const int processors = hwloc_bitmap_weight(sets[i]);

        if (processors > 0 && sharers > processors) /* -1: unknown */
            text = g_strdup_printf("%d ranks share %d processor%s of %s and "
                                   "wait for their turn",
                                   sharers, processors,
                                   processors == 1 ? "" : "s", places[i].host);
    }
    for (int i = 0; i < count; i++)
        hwloc_bitmap_free(sets[i]);
    g_free(sets);
    return text;
}
