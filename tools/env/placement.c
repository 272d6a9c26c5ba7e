/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement, see placement.h. */
#include "config.h"

#include "tools/env/placement.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Processors among which ranks choose: those of a NUMA node, or those near a
 * device */
typedef struct {
    hwloc_const_bitmap_t set; /* NULL: unknown; part of the topology */
    int node; /* -1: unknown */
    char *name; /* for sentences; NULL: nothing is known */
    char *absent; /* a given device that does not exist; or NULL */
} domain_t;

typedef struct {
    const tool_placement_question_t *question;
    const char *const *devices; /* NULL: no device is given */
    domain_t *domains; /* one for each device, or for each NUMA node */
    int count;
    tool_placement_t *result;
} state_t;

char *tool_pci_address(const char *text)
{
    unsigned domain, bus, device, function;
    int end = 0;

    if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function,
               &end) != 4) {
        domain = 0;
        end = 0;
        if (sscanf(text, "%2x:%2x.%1x%n", &bus, &device, &function, &end) != 3)
            return NULL;
    }
    if (text[end] || text[strspn(text, "0123456789abcdefABCDEF:.")] ||
        device > 0x1f || function > 7)
        return NULL;
    return g_strdup_printf("%04x:%02x:%02x.%x", domain, bus, device, function);
}

/* Returns the NUMA node that has exactly these processors, or NULL. */
static hwloc_obj_t find_node(const state_t *s, hwloc_const_bitmap_t set)
{
    hwloc_obj_t node = NULL;

    do
        node = tool_topology_next_node(s->question->topology, set, node);
    while (node && !hwloc_bitmap_isequal(node->cpuset, set));
    return node;
}

/* Sets domain to the processors near the device. On a machine with several
 * nodes that does not know which are near, these are all processors. */
static void place_device(const state_t *s, hwloc_obj_t device, char *address,
                         domain_t *domain)
{
    hwloc_topology_t hwloc = s->question->topology->hwloc;
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(hwloc, device);
    hwloc_obj_t node = find_node(s, near->cpuset);

    if (node) {
        domain->node = (int)node->os_index;
        domain->name =
            g_strdup_printf("NUMA node %d, near %s", domain->node, address);
    } else if (!hwloc_bitmap_isequal(
                   near->cpuset, hwloc_topology_get_topology_cpuset(hwloc))) {
        domain->name = g_strdup_printf("those near %s", address);
    }
    domain->set = near->cpuset;
}

static void read_device(const state_t *s, const char *text, domain_t *domain)
{
    char *address = tool_pci_address(text);
    hwloc_obj_t device;

    domain->node = -1;
    if (!address)
        return;
    device =
        hwloc_get_pcidev_by_busidstring(s->question->topology->hwloc, address);
    if (device)
        place_device(s, device, address, domain);
    else
        domain->absent = g_strdup(address);
    g_free(address);
}

static void read_devices(state_t *s)
{
    s->count = (int)g_strv_length((char **)s->devices);
    s->domains = g_new0(domain_t, s->count);
    for (int i = 0; i < s->count; i++)
        read_device(s, s->devices[i], &s->domains[i]);
}

/* One domain for each NUMA node with processors that may be used. If there is
 * none, the only domain is the whole machine. */
static void placement_read_nodes(state_t *s)
{
    const tool_topology_t *topology = s->question->topology;
    hwloc_const_bitmap_t allowed = topology->allowed;
    hwloc_obj_t node = NULL;
    const int most =
        hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_NUMANODE);

    s->domains = g_new0(domain_t, most + 1);
    while ((node = tool_topology_next_node(topology, allowed, node))) {
        domain_t *domain = &s->domains[s->count++];

        domain->set = node->cpuset;
        domain->node = (int)node->os_index;
        domain->name = g_strdup_printf("NUMA node %d", domain->node);
    }
    if (s->count)
        return;
    s->domains[0] = (domain_t){allowed, -1, g_strdup("this machine"), NULL};
    s->count = 1;
}

/* Returns the index of a rank's domain: devices are assigned round robin, NUMA
 * nodes to blocks of neighbouring ranks. */
static int domain_of(const state_t *s, int local_rank)
{
    if (s->devices)
        return local_rank % s->count;
    return (int)((gint64)local_rank * s->count / s->question->local_size);
}

/* Returns how many ranks below limit have this domain. */
static gint64 ranks_below(const state_t *s, int domain, int limit)
{
    const gint64 size = s->question->local_size, count = s->count;
    gint64 first, end;

    if (s->devices)
        return limit > domain ? (limit - domain - 1) / count + 1 : 0;
    first = (domain * size + count - 1) / count;
    end = ((domain + 1) * size + count - 1) / count;
    return MAX(MIN(end, limit) - first, 0);
}

/* Returns the number of ranks that share the domain; *ret_index: which of them
 * local_rank is. */
static int count_sharers(const state_t *s, const domain_t *own, int *ret_index)
{
    gint64 count = 0, index = 0;

    for (int d = 0; d < s->count; d++) {
        const domain_t *domain = &s->domains[d];

        if (!domain->set || !hwloc_bitmap_isequal(domain->set, own->set))
            continue;
        count += ranks_below(s, d, s->question->local_size);
        index += ranks_below(s, d, s->question->local_rank);
    }
    *ret_index = (int)index;
    return (int)count;
}

/* Adds to the result count cores, from number first on, of the cores with
 * processors in set: all of their processors that are in set. */
static void take_cores(const state_t *s, hwloc_const_bitmap_t set, int first,
                       int count)
{
    hwloc_bitmap_t taken = s->result->processors;
    hwloc_obj_t core = NULL;

    for (int i = 0; i < first + count; i++) {
        core = tool_topology_next_core(s->question->topology, set, core);
        if (i >= first)
            hwloc_bitmap_or(taken, taken, core->cpuset);
    }
    hwloc_bitmap_and(taken, taken, set);
}

/* Takes this rank's contiguous share; if the shares are unequal, the first
 * ranks have one core more. */
static void domain_share(const state_t *s, const domain_t *domain,
                         hwloc_const_bitmap_t set)
{
    tool_placement_t *result = s->result;
    const int all = tool_topology_count_cores(s->question->topology, set);
    int index = 0, sharers = count_sharers(s, domain, &index);

    if (all < sharers) {
        result->why = g_strdup_printf("%d ranks, but %d cores, of %s: not "
                                      "bound",
                                      sharers, all, domain->name);
        return;
    }
    result->cores = all / sharers + (index < all % sharers);
    take_cores(s, set, index * (all / sharers) + MIN(index, all % sharers),
               result->cores);
    result->bind = true;
    result->node = domain->node;
    result->why = g_strdup_printf("%d of the %d cores of %s, for %d rank%s",
                                  result->cores, all, domain->name, sharers,
                                  sharers == 1 ? "" : "s");
}

/* Chooses processors of a domain whose processors are known. */
static void decide_in(const state_t *s, const domain_t *domain)
{
    const tool_topology_t *topology = s->question->topology;
    tool_placement_t *result = s->result;
    bool bound = !hwloc_bitmap_isequal(
        topology->allowed, hwloc_topology_get_topology_cpuset(topology->hwloc));
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    char *mask = tool_topology_text(topology->allowed);

    hwloc_bitmap_and(set, domain->set, topology->allowed);
    if (hwloc_bitmap_iszero(set))
        result->warning =
            g_strdup_printf("the launcher's mask, %s, has no processor of %s; "
                            "it is kept",
                            mask, domain->name);
    if (result->warning || (bound && !s->question->force))
        result->why = g_strdup_printf("bound to %s already, by the launcher "
                                      "or a container",
                                      mask);
    else
        domain_share(s, domain, set);
    g_free(mask);
    hwloc_bitmap_free(set);
}

static void placement_decide(const state_t *s)
{
    const domain_t *domain = &s->domains[domain_of(s, s->question->local_rank)];
    tool_placement_t *result = s->result;

    if (domain->absent) {
        result->why = g_strdup("unknown: the device is not there");
        result->warning = g_strdup_printf("this machine has no PCI device %s",
                                          domain->absent);
    } else if (!domain->name) {
        result->why = g_strdup("unknown: the machine does not tell which "
                               "processors are near the device");
    } else {
        decide_in(s, domain);
    }
}

tool_placement_t *tool_place(const tool_placement_question_t *question)
{
    tool_placement_t *result = g_new0(tool_placement_t, 1);
    state_t *s = g_new0(state_t, 1);

    s->question = question;
    s->result = result;
    result->local_rank = question->local_rank;
    result->processors = hwloc_bitmap_alloc();
    s->devices =
        question->devices && question->devices[0] ? question->devices : NULL;
    result->node = -1;
    if (question->local_rank < 0 ||
        question->local_size <= question->local_rank) {
        result->why = g_strdup("unknown: which rank of this node this is");
    } else if (!s->question->topology) {
        result->why = g_strdup("unknown: the machine does not tell its "
                               "processors");
    } else {
        if (s->devices)
            read_devices(s);
        else
            placement_read_nodes(s);
        placement_decide(s);
    }
    for (int i = 0; i < s->count; i++) {
        g_free(s->domains[i].name);
        g_free(s->domains[i].absent);
    }
    g_free(s->domains);
    g_free(s);
    return result;
}

void tool_placement_free(tool_placement_t *placement)
{
    if (!placement)
        return;
    hwloc_bitmap_free(placement->processors);
    g_free(placement->why);
    g_free(placement->warning);
    g_free(placement);
}
