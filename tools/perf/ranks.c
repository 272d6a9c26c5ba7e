/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks and their processors, see ranks.h. */
#include "config.h"

#include "tools/common/topology.h"
#include "tools/perf/ranks.h"

#include <string.h>
#include <unistd.h>

static dscomm_status_t meet(perf_run_t *run, dscomm_group_t *group)
{
    perf_rank_t self = {.pid = getpid(), .processor = -1};

    if (gethostname(self.host, sizeof self.host - 1) != 0)
        strcpy(self.host, "unknown");
    return dscomm_all_gather(group, &self, run->everyone, sizeof self,
                             DSCOMM_UINT8, NULL);
}

static void count_locals(perf_run_t *run)
{
    for (int i = 0; i < run->ranks; i++) {
        perf_rank_t *rank = &run->everyone[i];
        rank->local = rank->locals = 0;
        for (int k = 0; k < run->ranks; k++) {
            int same = strcmp(rank->host, run->everyone[k].host) == 0;
            rank->locals += same;
            rank->local += same && k < i;
        }
    }
}

static dscomm_status_t tell_processors(perf_run_t *run, dscomm_group_t *group,
                                       int mine)
{
    int *all = g_new(int, run->ranks);
    dscomm_status_t status =
        dscomm_all_gather(group, &mine, all, 1, DSCOMM_INT32, NULL);

    for (int i = 0; i < run->ranks && status == DSCOMM_OK; i++)
        run->everyone[i].processor = all[i];
    g_free(all);
    return status;
}

int perf_processor_count(const tool_topology_t *topology)
{
    return topology ? hwloc_bitmap_weight(topology->allowed) : 0;
}

/* The only processor that this process was started on, or -1. */
static int processor_bound(const tool_topology_t *topology)
{
    return perf_processor_count(topology) == 1
               ? hwloc_bitmap_first(topology->allowed)
               : -1;
}

static int processor_nth(hwloc_const_bitmap_t set, int n)
{
    int processor = hwloc_bitmap_first(set);

    while (n-- > 0)
        processor = hwloc_bitmap_next(set, processor);
    return processor;
}

/* The order of processors: one of each core, then the others. */
static int processor_pick(const tool_topology_t *topology, int index)
{
    hwloc_bitmap_t set = hwloc_bitmap_dup(topology->allowed);
    int cores, processor;

    hwloc_bitmap_singlify_per_core(topology->hwloc, set, 0);
    cores = hwloc_bitmap_weight(set);
    if (index >= cores) {
        hwloc_bitmap_andnot(set, topology->allowed, set);
        index -= cores;
    }
    processor = processor_nth(set, index);
    hwloc_bitmap_free(set);
    return processor;
}

/* Binds this thread, of the local-th of locals ranks on its host, to a
 * processor of its own, cores before their second threads, if there are enough.
 * One that is bound to a single processor already stays there. Returns the
 * processor, or -1: not bound to a single one. */
static int processor_bind(const tool_topology_t *topology, int local,
                          int locals)
{
    const int count = perf_processor_count(topology);
    hwloc_bitmap_t one;
    int processor, result;

    if (count <= 1 || count < locals)
        return processor_bound(topology);
    processor = processor_pick(topology, local);
    one = hwloc_bitmap_alloc();
    hwloc_bitmap_only(one, (unsigned)processor);
    result = hwloc_set_cpubind(topology->hwloc, one, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(one);
    return result == 0 ? processor : -1;
}

dscomm_status_t perf_ranks_place(perf_run_t *run, dscomm_group_t *group)
{
    dscomm_status_t status = meet(run, group);
    perf_rank_t *self = &run->everyone[run->rank];
    int processor;

    if (status != DSCOMM_OK)
        return status;
    count_locals(run);
    if (run->options->unpinned)
        processor = processor_bound(run->topology);
    else
        processor = processor_bind(run->topology, self->local, self->locals);
    return tell_processors(run, group, processor);
}

dscomm_status_t perf_agree(const perf_run_t *run, gboolean ok, int *ret_first)
{
    int first = ok ? run->ranks : run->rank;
    dscomm_status_t status = dscomm_all_reduce(run->group, &first, &first, 1,
                                               DSCOMM_INT32, DSCOMM_MIN, NULL);

    if (status == DSCOMM_OK)
        *ret_first = first;
    return status;
}
