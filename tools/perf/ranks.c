/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks, their processors and their two buffers, see ranks.h. */
#include "config.h"

#include "tools/common/crowd.h"
#include "tools/common/memory.h"
#include "tools/common/topology.h"
#include "tools/perf/accelerator.h"
#include "tools/perf/ranks.h"
#include "tools/perf/verify.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALIGNMENT 4096

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

static dscomm_status_t share_processors(perf_run_t *run, dscomm_group_t *group,
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

/* Fills run->crowd; this rank is bound to a processor, or, if that is -1, may
 * use all that it could at its start. */
static dscomm_status_t share_places(perf_run_t *run, dscomm_group_t *group,
                                    int processor)
{
    tool_place_t own, *all = g_new(tool_place_t, run->ranks);
    hwloc_bitmap_t one = hwloc_bitmap_alloc();
    dscomm_status_t status;

    if (processor >= 0)
        hwloc_bitmap_only(one, (unsigned)processor);
    else if (run->topology)
        hwloc_bitmap_copy(one, run->topology->allowed);
    tool_place_fill(&own, hwloc_bitmap_iszero(one) ? NULL : one);
    hwloc_bitmap_free(one);
    status =
        dscomm_all_gather(group, &own, all, sizeof own, DSCOMM_UINT8, NULL);
    if (status == DSCOMM_OK)
        run->crowd = tool_crowd_text(all, run->ranks);
    g_free(all);
    return status;
}

/* Returns the number of processors that this process could use at its start; 0:
 * unknown. */
static int processor_count(const dscomm_topology_t *topology)
{
    return topology ? hwloc_bitmap_weight(topology->allowed) : 0;
}

/* Returns the only processor to which this process was bound at its start, or
 * -1. */
static int processor_bound(const dscomm_topology_t *topology)
{
    return processor_count(topology) == 1
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

/* Returns number index in the order in which processors are used: one of each
 * core, then the others. */
static int processor_pick(const dscomm_topology_t *topology, int index)
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
 * processor of its own, if there are enough; each core's first processor is
 * used before its second. A thread that is already bound to a single processor
 * stays there. Returns the processor, or -1 if the thread is not bound to a
 * single one. */
static int processor_bind(const dscomm_topology_t *topology, int local,
                          int locals)
{
    const int count = processor_count(topology);
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
    status = share_processors(run, group, processor);
    return status == DSCOMM_OK ? share_places(run, group, processor) : status;
}

dscomm_status_t perf_agree(const perf_run_t *run, bool ok, int *ret_first)
{
    int first = ok ? run->ranks : run->rank;
    dscomm_status_t status = dscomm_all_reduce(run->group, &first, &first, 1,
                                               DSCOMM_INT32, DSCOMM_MIN, NULL);

    if (status == DSCOMM_OK)
        *ret_first = first;
    return status;
}

static bool is_enough(const perf_run_t *run, size_t bytes,
                      size_t *ret_available)
{
    size_t locals = (size_t)run->everyone[run->rank].locals;

    *ret_available = tool_memory_available();
    return bytes <= *ret_available / 2 / locals;
}

static bool allocate(perf_run_t *run, size_t bytes, void **ret_buffer)
{
    void *buffer = NULL;

    if (run->options->registered) {
        if (dscomm_mem_alloc(run->group, bytes, &buffer) != DSCOMM_OK)
            return false;
    } else if (posix_memalign(&buffer, ALIGNMENT, bytes) != 0) {
        return false;
    }
    *ret_buffer = buffer;
    return true;
}

/* Fills buffers with bytes that are not zero, because lines of zeros may be
 * stored faster than others. */
static void touch(perf_run_t *run, size_t bytes)
{
    memset(run->send, 0x3f, bytes);
    memset(run->recv, 0x3f, bytes);
}

static int buffers_fail(const perf_run_t *run, size_t bytes, size_t available)
{
    int locals = run->everyone[run->rank].locals;
    char *each = g_format_size_full(2 * bytes, G_FORMAT_SIZE_IEC_UNITS);
    char *left = g_format_size_full(available, G_FORMAT_SIZE_IEC_UNITS);

    tool_fail(0, "perf",
              "out of memory: buffers are %s a rank, for %d rank%s on %s, "
              "which has %s left; choose a smaller size with -e",
              each, locals, locals == 1 ? "" : "s",
              run->everyone[run->rank].host, left);
    g_free(each);
    g_free(left);
    return TOOL_FAILED;
}

/* Allocates buffers in memory of a device, and host memory beside them. NULL,
 * or what is wrong; g_free(). */
static char *allocate_device(perf_run_t *run, size_t bytes)
{
    char *problem = perf_accelerator_open(run->everyone[run->rank].local);

    if (!problem)
        problem = perf_accelerator_alloc(bytes, &run->send);
    if (!problem)
        problem = perf_accelerator_alloc(bytes, &run->recv);
    if (!problem && (posix_memalign(&run->host_send, ALIGNMENT, bytes) != 0 ||
                     posix_memalign(&run->host_recv, ALIGNMENT, bytes) != 0))
        problem = g_strdup("no memory");
    return problem;
}

static int device_buffers_new(perf_run_t *run, size_t bytes)
{
    size_t available;
    const bool enough = is_enough(run, bytes, &available);
    char *problem = enough ? allocate_device(run, bytes) : NULL;
    int first, status = TOOL_FAILED;

    if (perf_agree(run, enough && !problem, &first) != DSCOMM_OK)
        perf_fail("start");
    else if (first == run->ranks)
        status = TOOL_OK;
    else if (first == run->rank && !enough)
        buffers_fail(run, bytes, available);
    else if (first == run->rank)
        tool_fail(0, "perf",
                  "--accelerator: rank %d: %s; without --accelerator, buffers "
                  "are in memory of the host",
                  run->rank, problem);
    g_free(problem);
    if (status != TOOL_OK)
        perf_buffers_free(run);
    return status;
}

int perf_buffers_new(perf_run_t *run)
{
    /* at least ALIGNMENT bytes, because an operation's arguments must not be
     * NULL */
    size_t bytes = MAX(run->options->max, ALIGNMENT), available;

    if (run->options->accelerator)
        return device_buffers_new(run, bytes);
    bool enough = is_enough(run, bytes, &available);
    bool ok = enough && allocate(run, bytes, &run->send) &&
              allocate(run, bytes, &run->recv);
    int first;

    if (perf_agree(run, ok, &first) != DSCOMM_OK)
        return perf_fail("start");
    if (first == run->ranks)
        touch(run, bytes);
    else if (first == run->rank && enough && run->options->registered)
        return perf_fail("buffers");
    else if (first == run->rank)
        return buffers_fail(run, bytes, available);
    return first == run->ranks ? TOOL_OK : TOOL_FAILED;
}

void perf_buffers_free(perf_run_t *run)
{
    if (run->options->accelerator) {
        perf_accelerator_free(run->send);
        perf_accelerator_free(run->recv);
        free(run->host_send);
        free(run->host_recv);
    } else if (run->options->registered) {
        dscomm_mem_free(run->group, run->send);
        dscomm_mem_free(run->group, run->recv);
    } else {
        free(run->send);
        free(run->recv);
    }
    run->send = run->recv = NULL;
}

/* Returns the call with buffers in host memory. */
static perf_call_t host_call(const perf_run_t *run, const perf_call_t *call)
{
    char *const from[] = {run->send, run->recv};
    char *const to[] = {run->host_send, run->host_recv};
    const size_t bytes = MAX(run->options->max, ALIGNMENT);
    perf_call_t host = *call;

    for (int i = 0; i < 2; i++) {
        const char *end = from[i] + bytes;

        if ((char *)call->send >= from[i] && (char *)call->send < end)
            host.send = to[i] + ((char *)call->send - from[i]);
        if ((char *)call->recv >= from[i] && (char *)call->recv < end)
            host.recv = to[i] + ((char *)call->recv - from[i]);
    }
    return host;
}

/* Copies the used bytes of both buffers to the device, or from it. */
static dscomm_status_t copy_buffers(const perf_run_t *run,
                                    const perf_call_t *call, bool to_device)
{
    void *const device[] = {run->send, run->recv};
    void *const host[] = {run->host_send, run->host_recv};
    const size_t bytes = call->total * call->size;
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < 2 && bytes && status == DSCOMM_OK; i++)
        status =
            dscomm_device_copy(to_device ? device[i] : host[i],
                               to_device ? host[i] : device[i], bytes, NULL);
    return status;
}

dscomm_status_t perf_buffers_fill(const perf_run_t *run,
                                  const perf_call_t *call, guint32 seed)
{
    if (!run->host_send) {
        perf_fill(call, seed);
        return DSCOMM_OK;
    }
    perf_call_t host = host_call(run, call);
    perf_fill(&host, seed);
    return copy_buffers(run, call, true);
}

dscomm_status_t perf_buffers_wrong(const perf_run_t *run,
                                   const perf_call_t *call, guint32 seed,
                                   gint64 *ret_wrong)
{
    perf_call_t host = *call;
    dscomm_status_t status = DSCOMM_OK;

    if (run->host_send) {
        host = host_call(run, call);
        status = copy_buffers(run, call, false);
    }
    *ret_wrong = status == DSCOMM_OK ? perf_count_wrong(&host, seed) : 0;
    return status;
}
