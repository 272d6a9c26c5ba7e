/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement, see placement.h. */
#include "config.h"

#include "env/placement.h"

#include "env/devices.h"

#include <string.h>

/* Processors among which ranks choose: those of a NUMA node or socket, those
 * near a device, or those of a list */
typedef struct {
    hwloc_const_bitmap_t set; /* NULL: unknown; part of the topology */
    char *name; /* for sentences; NULL: nothing is known */
    hwloc_obj_t device; /* PCI device, or NULL */
    char *absent; /* a given device that does not exist; or NULL */
} domain_t;

typedef struct {
    const dscomm_place_question_t *question;
    domain_t *domains; /* one for each device, node or socket */
    int count;
    bool in_turn; /* ranks have domains in turn, else in blocks */
    dscomm_placement_t *result;
} state_t;

/* Returns the NUMA node that has exactly these processors, or NULL. */
static hwloc_obj_t find_node(const state_t *s, hwloc_const_bitmap_t set)
{
    hwloc_obj_t node = NULL;

    do
        node = dscomm_priv_topology_next_node(s->question->topology, set, node);
    while (node && !hwloc_bitmap_isequal(node->cpuset, set));
    return node;
}

/* Sets domain to the processors near the device. On a machine with several
 * nodes that does not know which are near, these are all processors. */
static void place_device(const state_t *s, hwloc_obj_t device,
                         const char *address, domain_t *domain)
{
    hwloc_topology_t hwloc = s->question->topology->hwloc;
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(hwloc, device);
    hwloc_obj_t node = find_node(s, near->cpuset);

    if (node) {
        domain->name =
            g_strdup_printf("NUMA node %u, near %s", node->os_index, address);
    } else if (!hwloc_bitmap_isequal(
                   near->cpuset, hwloc_topology_get_topology_cpuset(hwloc))) {
        domain->name = g_strdup_printf("those near %s", address);
    }
    domain->set = near->cpuset;
    domain->device = device;
}

static void read_device(const state_t *s, const char *text, domain_t *domain)
{
    char *address = dscomm_priv_pci_address(text);
    hwloc_obj_t device;

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

/* Domains of the devices that are given, or else of those that are visible. */
static void read_devices(state_t *s)
{
    const dscomm_place_question_t *q = s->question;
    char **found = NULL, *problem = NULL;
    const char *const *devices = q->devices;

    s->in_turn = true;
    if (!devices || !devices[0]) {
        found = dscomm_priv_devices_visible(q->topology, q->visible, &problem);
        devices = (const char *const *)found;
    }
    if (!devices) {
        s->result->why = problem;
        return;
    }
    s->count = (int)g_strv_length((char **)devices);
    s->domains = g_new0(domain_t, s->count);
    for (int i = 0; i < s->count; i++)
        read_device(s, devices[i], &s->domains[i]);
    g_strfreev(found);
}

/* The only domain. */
static void read_one(state_t *s, hwloc_const_bitmap_t set, const char *name)
{
    s->domains = g_new0(domain_t, 1);
    s->domains[0].set = set;
    s->domains[0].name = g_strdup(name);
    s->count = 1;
}

/* Returns the next NUMA node or socket with processors that may be used. */
static hwloc_obj_t next_object(const dscomm_topology_t *topology,
                               dscomm_place_kind_t kind, hwloc_obj_t prev)
{
    if (kind == DSCOMM_PLACE_NUMA)
        return dscomm_priv_topology_next_node(topology, topology->allowed,
                                              prev);
    do
        prev = hwloc_get_next_obj_by_type(topology->hwloc, HWLOC_OBJ_PACKAGE,
                                          prev);
    while (prev && !hwloc_bitmap_intersects(prev->cpuset, topology->allowed));
    return prev;
}

/* The only domain is the whole machine. */
static void read_machine(state_t *s)
{
    const dscomm_topology_t *topology = s->question->topology;

    read_one(s, topology->allowed,
             topology->is_other ? "the machine" : "this machine");
}

/* One domain for each NUMA node, or socket. If there is none, the only domain
 * is the whole machine. */
static void read_objects(state_t *s)
{
    const dscomm_topology_t *topology = s->question->topology;
    const dscomm_place_kind_t kind = s->question->rule->kind;
    const bool is_numa = kind == DSCOMM_PLACE_NUMA;
    const int most = hwloc_get_nbobjs_by_type(
        topology->hwloc, is_numa ? HWLOC_OBJ_NUMANODE : HWLOC_OBJ_PACKAGE);
    hwloc_obj_t object = NULL;

    s->domains = g_new0(domain_t, MAX(most, 0));
    while ((object = next_object(topology, kind, object))) {
        domain_t *domain = &s->domains[s->count++];

        domain->set = object->cpuset;
        domain->name = g_strdup_printf(is_numa ? "NUMA node %u" : "socket %u",
                                       object->os_index);
    }
    if (s->count)
        return;
    g_free(s->domains);
    read_machine(s);
}

static void read_domains(state_t *s)
{
    const dscomm_place_rule_t *rule = s->question->rule;

    switch (rule->kind) {
    case DSCOMM_PLACE_NONE:
        s->result->why = g_strdup("nothing is to be bound");
        s->result->kept = true;
        break;
    case DSCOMM_PLACE_GPU:
        read_devices(s);
        break;
    case DSCOMM_PLACE_CORE:
        read_machine(s);
        break;
    case DSCOMM_PLACE_LIST:
        read_one(s, rule->list, "the list");
        break;
    case DSCOMM_PLACE_NUMA:
    case DSCOMM_PLACE_SOCKET:
        read_objects(s);
        break;
    }
}

/* Returns the index of a rank's domain. */
static int domain_of(const state_t *s, int local_rank)
{
    if (s->in_turn)
        return local_rank % s->count;
    return (int)((gint64)local_rank * s->count / s->question->local_size);
}

/* Returns how many ranks below limit have this domain. */
static gint64 ranks_below(const state_t *s, int domain, int limit)
{
    const gint64 size = s->question->local_size, count = s->count;
    gint64 first, end;

    if (s->in_turn)
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
        core = dscomm_priv_topology_next_core(s->question->topology, set, core);
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
    dscomm_placement_t *result = s->result;
    const int all =
        dscomm_priv_topology_count_cores(s->question->topology, set);
    const bool one = s->question->rule->kind == DSCOMM_PLACE_CORE;
    int index = 0, sharers = count_sharers(s, domain, &index), first;

    if (all < sharers) {
        result->why =
            g_strdup_printf("%d ranks are more than the %d core%s of "
                            "%s that may be used",
                            sharers, all, all == 1 ? "" : "s", domain->name);
        return;
    }
    result->cores = one ? 1 : all / sharers + (index < all % sharers);
    first = one ? index : index * (all / sharers) + MIN(index, all % sharers);
    take_cores(s, set, first, result->cores);
    result->bind = true;
    result->why = g_strdup_printf(
        "%d of the %d core%s of %s, for %d rank%s", result->cores, all,
        all == 1 ? "" : "s", domain->name, sharers, sharers == 1 ? "" : "s");
}

/* Chooses processors of a domain whose processors are known. */
static void decide_in(const state_t *s, const domain_t *domain)
{
    const dscomm_topology_t *topology = s->question->topology;
    const dscomm_place_rule_t *rule = s->question->rule;
    dscomm_placement_t *result = s->result;
    const bool bound = dscomm_priv_topology_is_bound(topology);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    char *mask = dscomm_priv_topology_text(topology->allowed);

    hwloc_bitmap_and(set, domain->set, topology->allowed);
    if (hwloc_bitmap_iszero(set))
        result->warning =
            g_strdup_printf("the %s, %s, has no processor of %s; it is kept",
                            bound ? "launcher's mask" : "mask of this process",
                            mask, domain->name);
    else if (rule->list && !hwloc_bitmap_isequal(set, rule->list))
        result->warning = g_strdup_printf(
            "the list has processors that may not be used; those that may are "
            "%s",
            mask);
    result->kept = hwloc_bitmap_iszero(set) || (bound && !rule->force);
    if (result->kept)
        result->why = bound ? g_strdup_printf("bound to %s already, by the "
                                              "launcher",
                                              mask)
                            : g_strdup_printf("no processor of %s may be used, "
                                              "only %s",
                                              domain->name, mask);
    else
        domain_share(s, domain, set);
    g_free(mask);
    hwloc_bitmap_free(set);
}

/* Returns the NUMA node that has all of these processors; -1: none. */
static int node_of(const dscomm_topology_t *topology, hwloc_const_bitmap_t set)
{
    hwloc_obj_t node = NULL;

    do
        node = dscomm_priv_topology_next_node(topology, set, node);
    while (node && !hwloc_bitmap_isincluded(set, node->cpuset));
    return node ? (int)node->os_index : -1;
}

/* Finds what is near the device, or else the processors. */
static void find_near(const state_t *s, const domain_t *domain)
{
    const dscomm_topology_t *topology = s->question->topology;
    dscomm_placement_t *result = s->result;
    hwloc_obj_t object = domain->device;
    const char *nic = NULL;

    if (object)
        result->device = dscomm_priv_pci_text(&object->attr->pcidev);
    if (result->bind)
        result->node = node_of(topology, result->processors);
    if (!object && result->bind)
        object =
            hwloc_get_obj_covering_cpuset(topology->hwloc, result->processors);
    if (object)
        nic = dscomm_priv_nic_nearest(topology, object, result->local_rank);
    result->nic = g_strdup(nic);
}

static void placement_decide(const state_t *s)
{
    const domain_t *domain = &s->domains[domain_of(s, s->question->local_rank)];
    dscomm_placement_t *result = s->result;

    if (domain->absent) {
        result->why = g_strdup("the device is not there");
        result->warning =
            g_strdup_printf("the machine has no PCI device %s", domain->absent);
    } else if (!domain->name) {
        result->why = g_strdup("the machine does not tell which "
                               "processors are near the device");
    } else {
        decide_in(s, domain);
    }
    find_near(s, domain);
}

dscomm_placement_t *dscomm_priv_place(const dscomm_place_question_t *question)
{
    dscomm_placement_t *result = g_new0(dscomm_placement_t, 1);
    state_t s = {.question = question, .result = result};

    result->local_rank = question->local_rank;
    result->processors = hwloc_bitmap_alloc();
    result->node = -1;
    if (question->local_rank < 0 ||
        question->local_size <= question->local_rank)
        result->why = g_strdup("the environment does not tell which rank of "
                               "this node this is");
    else if (!question->topology)
        result->why = g_strdup("the machine does not tell its "
                               "processors");
    else
        read_domains(&s);
    if (s.count)
        placement_decide(&s);
    for (int i = 0; i < s.count; i++) {
        g_free(s.domains[i].name);
        g_free(s.domains[i].absent);
    }
    g_free(s.domains);
    return result;
}

void dscomm_priv_placement_free(dscomm_placement_t *placement)
{
    if (!placement)
        return;
    hwloc_bitmap_free(placement->processors);
    g_free(placement->device);
    g_free(placement->nic);
    g_free(placement->why);
    g_free(placement->warning);
    g_free(placement);
}

dscomm_affinity_t
dscomm_priv_placement_affinity(const dscomm_placement_t *placement,
                               const dscomm_topology_t *topology)
{
    hwloc_const_bitmap_t set = placement->processors;
    const bool several =
        hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_NUMANODE) > 1;
    dscomm_affinity_t affinity = {
        .words = (size_t)hwloc_bitmap_last(set) / (8 * sizeof(long)) + 1,
        .node = several ? placement->node : -1,
    };

    affinity.mask = g_new(unsigned long, affinity.words);
    for (size_t i = 0; i < affinity.words; i++)
        affinity.mask[i] = hwloc_bitmap_to_ith_ulong(set, (unsigned)i);
    return affinity;
}

int dscomm_priv_placement_apply(const dscomm_placement_t *placement,
                                const dscomm_topology_t *topology,
                                int *ret_memory)
{
    dscomm_affinity_t affinity;
    int threads, error;
    char number[16];

    *ret_memory = 0;
    if (topology->is_other)
        return 0;
    affinity = dscomm_priv_placement_affinity(placement, topology);
    error = dscomm_priv_affinity_process(&affinity, &threads);
    if (!error)
        *ret_memory = dscomm_priv_affinity_memory(&affinity);
    g_free(affinity.mask);
    g_snprintf(number, sizeof number, "%d", placement->cores);
    if (!error && threads == 1)
        g_setenv("OMP_NUM_THREADS", number, FALSE);
    return error;
}
