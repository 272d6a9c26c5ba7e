/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers between guards: every byte that a call must not change is checked. */
#include "config.h"

#include "tests/backends/conform.h"

#include <stdlib.h>
#include <string.h>

#define GUARD 64

static void *get_memory(dscomm_group_t *group, size_t size)
{
    void *memory = NULL;

    if (!group)
        return malloc(size);
    return CHECK_OK(dscomm_mem_alloc(group, size, &memory)) ? memory : NULL;
}

int area_make(area_t *area, size_t bytes, size_t offset, dscomm_group_t *group)
{
    memset(area, 0, sizeof *area);
    area->group = group;
    area->bytes = bytes;
    area->total = bytes + offset + 2 * GUARD;
    area->base = get_memory(group, area->total);
    area->want = malloc(area->total);
    if (!check(area->base && area->want, "no memory for %zu bytes", bytes)) {
        area_drop(area);
        return 0;
    }
    memset(area->base, 0xa5, area->total);
    area->data = area->base + GUARD + offset;
    memset(area->data, 0x5c, bytes);
    area_keep(area);
    return 1;
}

void area_keep(area_t *area)
{
    memcpy(area->want, area->base, area->total);
}

void *area_expect(area_t *area, size_t offset)
{
    return area->want + (area->data - area->base) + offset;
}

int area_check(const area_t *area, const char *what)
{
    size_t i = 0;

    if (!area->base || memcmp(area->base, area->want, area->total) == 0)
        return 1;
    while (area->base[i] == area->want[i])
        i++;
    return check(0, "%s: byte %td of %zu is 0x%02x, want 0x%02x", what,
                 area->base + i - area->data, area->bytes, area->base[i],
                 area->want[i]);
}

void area_drop(area_t *area)
{
    if (area->group && area->base)
        CHECK_OK(dscomm_mem_free(area->group, area->base));
    else
        free(area->base);
    free(area->want);
    memset(area, 0, sizeof *area);
}
