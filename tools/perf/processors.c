/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding to processors, see perf-processors.h. */
#include "config.h"

#include "tools/perf/processors.h"

#include <glib.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static int allowed(cpu_set_t *ret_set)
{
    CPU_ZERO(ret_set);
    if (sched_getaffinity(0, sizeof *ret_set, ret_set) != 0)
        return 0;
    return CPU_COUNT(ret_set);
}

int perf_processor_count(void)
{
    cpu_set_t set;

    return allowed(&set);
}

/* Is it the first thread of its core? Where nobody says, it is. */
static gboolean is_first_thread(int processor)
{
    char *path = g_strdup_printf(
        "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
        processor);
    char *text = NULL;
    gboolean first = TRUE;

    if (g_file_get_contents(path, &text, NULL, NULL))
        first = strtol(text, NULL, 10) == processor;
    g_free(text);
    g_free(path);
    return first;
}

/* The index-th processor of set, first threads of cores before all others. */
static int pick(const cpu_set_t *set, int index)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET((size_t)i, set) &&
                is_first_thread(i) == (pass == 0) && index-- == 0)
                return i;
    return -1;
}

int perf_processor_bound(void)
{
    cpu_set_t set;

    return allowed(&set) == 1 ? pick(&set, 0) : -1;
}

int perf_processor_bind(int local, int locals)
{
    cpu_set_t set, one;
    int count = allowed(&set);

    if (count <= 1 || count < locals)
        return perf_processor_bound();
    int processor = pick(&set, local);
    if (processor < 0)
        return -1;
    CPU_ZERO(&one);
    CPU_SET((size_t)processor, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0 ? processor : -1;
}
