/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding, see bind.h. With k cores, NUMA nodes or sockets, rank r of n gets
 * number r of the cores, and number r * k / n of the others: neighbouring ranks
 * are near each other. */
#include "config.h"

#include "tools/run/bind.h"

#include "tools/common/tool.h"
#include "tools/common/topology.h"

#include <errno.h>
#include <sched.h>

/* The next object of the kind with a processor that is allowed; NULL: none. */
static hwloc_obj_t next_object(const tool_topology_t *t, tool_bind_t bind,
                               hwloc_obj_t prev)
{
    if (bind == TOOL_BIND_CORE)
        return tool_topology_next_core(t, t->allowed, prev);
    if (bind == TOOL_BIND_NUMA)
        return tool_topology_next_node(t, t->allowed, prev);
    do
        prev = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_PACKAGE, prev);
    while (prev && !hwloc_bitmap_intersects(prev->cpuset, t->allowed));
    return prev;
}

/* All such objects. */
static GPtrArray *list_objects(const tool_topology_t *t, tool_bind_t bind)
{
    GPtrArray *objects = g_ptr_array_new();
    hwloc_obj_t object = NULL;

    while ((object = next_object(t, bind, object)))
        g_ptr_array_add(objects, object);
    return objects;
}

static void fill_masks(tool_binding_t *b, const tool_topology_t *t,
                       const GPtrArray *objects, bool by_core, int ranks)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    b->words = (size_t)hwloc_bitmap_last(t->allowed) / (8 * sizeof(long)) + 1;
    b->masks = g_new0(unsigned long, b->words *(size_t)ranks);
    for (int r = 0; r < ranks; r++) {
        const guint i = by_core
                            ? (guint)r
                            : (guint)((guint64)r * objects->len / (guint)ranks);
        const hwloc_obj_t object = g_ptr_array_index(objects, i);

        hwloc_bitmap_and(set, object->cpuset, t->allowed);
        for (size_t w = 0; w < b->words; w++)
            b->masks[(size_t)r * b->words + w] =
                hwloc_bitmap_to_ith_ulong(set, (unsigned)w);
    }
    hwloc_bitmap_free(set);
}

tool_binding_t tool_bind_choose(const char *command, tool_bind_t bind,
                                int ranks)
{
    tool_binding_t result = {NULL, 0};
    tool_topology_t *t;
    GPtrArray *objects;
    int cores;

    if (bind == TOOL_BIND_NONE)
        return result;
    t = tool_topology_new(false);
    if (!t) {
        tool_fail(0, command,
                  "no rank is bound: hwloc does not find the processors that "
                  "may be used; see lstopo(1)");
        return result;
    }
    cores = tool_topology_count_cores(t, t->allowed);
    objects = list_objects(t, bind);
    if (ranks > cores)
        tool_fail(0, command,
                  "no rank is bound: %d ranks are more than the %d core%s that "
                  "may be used",
                  ranks, cores, cores == 1 ? "" : "s");
    else if (objects->len == 0)
        tool_fail(0, command,
                  "no rank is bound: hwloc finds no %s here; use --bind core",
                  bind == TOOL_BIND_NUMA ? "NUMA node" : "socket");
    else
        fill_masks(&result, t, objects, bind == TOOL_BIND_CORE, ranks);
    g_ptr_array_free(objects, true);
    tool_topology_free(t);
    return result;
}

void tool_bind_free(tool_binding_t *b)
{
    g_clear_pointer(&b->masks, g_free);
}

int tool_bind_apply(const tool_binding_t *b, int rank)
{
    const unsigned long *mask;

    if (!b->masks)
        return 0;
    mask = b->masks + (size_t)rank * b->words;
    return sched_setaffinity(0, b->words * sizeof(*mask),
                             (const cpu_set_t *)(const void *)mask) < 0
               ? errno
               : 0;
}
