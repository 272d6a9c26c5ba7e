/* SPDX-License-Identifier: BSD-3-Clause */
/* The topology of a machine, see topology.h. */
#include "config.h"

#include "env/topology.h"

#include <hwloc/linux.h>
#include <sys/stat.h>

/* Parts of hwloc that are left out: they find devices of other kinds, for which
 * they start the libraries of these, or bind this thread to each processor in
 * turn. */
static const char *const unwanted[] = {"cuda",   "gl",   "levelzero", "nvml",
                                       "opencl", "rsmi", "x86"};

/* path: NULL, or a file of XML. */
static int load(hwloc_topology_t *hwloc, const char *path, bool devices)
{
    if (hwloc_topology_init(hwloc) < 0)
        return -1;
    for (size_t i = 0; i < G_N_ELEMENTS(unwanted); i++)
        hwloc_topology_set_components(
            *hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, unwanted[i]);
    if (path && hwloc_topology_set_xml(*hwloc, path) < 0)
        return -1;
    hwloc_topology_set_flags(*hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (devices) {
        hwloc_topology_set_type_filter(*hwloc, HWLOC_OBJ_BRIDGE,
                                       HWLOC_TYPE_FILTER_KEEP_ALL);
        hwloc_topology_set_type_filter(*hwloc, HWLOC_OBJ_PCI_DEVICE,
                                       HWLOC_TYPE_FILTER_KEEP_ALL);
        hwloc_topology_set_type_filter(*hwloc, HWLOC_OBJ_OS_DEVICE,
                                       HWLOC_TYPE_FILTER_KEEP_ALL);
    }
    return hwloc_topology_load(*hwloc);
}

/* Job managers give their jobs the topology of this machine by HWLOC_XMLFILE.
 * hwloc treats it as another machine's then, and so does dscomm only if
 * HWLOC_THISSYSTEM says so. */
static bool is_another_machine(const char *path)
{
    const char *own = g_getenv("HWLOC_THISSYSTEM");

    return path || (own && g_ascii_strtoll(own, NULL, 10) == 0);
}

/* Whether process 1 is the system's init. Process 1 of a container may have
 * been bound by a launcher. The kernel gives its first namespace of processes
 * always this number. */
static bool sees_init(void)
{
    struct stat namespace;

    return stat("/proc/self/ns/pid", &namespace) == 0 &&
           namespace.st_ino == 0xeffffffc;
}

/* Returns the processors of a process that nobody has bound, where the system
 * keeps some for itself (isolcpus of the kernel, CPUAffinity of systemd): those
 * of init; NULL: as many as the cgroup allows. */
static hwloc_bitmap_t unbound_new(hwloc_topology_t hwloc)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    if (sees_init() && hwloc_linux_get_tid_cpubind(hwloc, 1, set) == 0) {
        hwloc_bitmap_and(set, set, hwloc_topology_get_allowed_cpuset(hwloc));
        if (!hwloc_bitmap_iszero(set))
            return set;
    }
    hwloc_bitmap_free(set);
    return NULL;
}

dscomm_topology_t *dscomm_priv_topology_new(const char *path, bool devices)
{
    dscomm_topology_t *topology = g_new0(dscomm_topology_t, 1);
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();

    topology->allowed = allowed;
    topology->is_other = is_another_machine(path);
    if (load(&topology->hwloc, path, devices) < 0)
        hwloc_bitmap_zero(allowed);
    else if (topology->is_other)
        hwloc_bitmap_copy(allowed,
                          hwloc_topology_get_allowed_cpuset(topology->hwloc));
    else if (hwloc_linux_get_tid_cpubind(topology->hwloc, 0, allowed) == 0)
        hwloc_bitmap_and(allowed, allowed,
                         hwloc_topology_get_topology_cpuset(topology->hwloc));
    else
        hwloc_bitmap_zero(allowed);
    if (!hwloc_bitmap_iszero(allowed)) {
        topology->unbound =
            topology->is_other ? NULL : unbound_new(topology->hwloc);
        return topology;
    }
    dscomm_priv_topology_free(topology);
    return NULL;
}

bool dscomm_priv_topology_is_bound(const dscomm_topology_t *topology)
{
    hwloc_const_bitmap_t unbound =
        topology->unbound ? topology->unbound
                          : hwloc_topology_get_allowed_cpuset(topology->hwloc);

    return !hwloc_bitmap_isincluded(unbound, topology->allowed);
}

void dscomm_priv_topology_free(dscomm_topology_t *topology)
{
    if (!topology)
        return;
    if (topology->hwloc)
        hwloc_topology_destroy(topology->hwloc);
    hwloc_bitmap_free(topology->allowed);
    hwloc_bitmap_free(topology->unbound);
    g_free(topology);
}

hwloc_obj_t dscomm_priv_topology_next_core(const dscomm_topology_t *topology,
                                           hwloc_const_bitmap_t set,
                                           hwloc_obj_t prev)
{
    const int depth =
        hwloc_get_type_or_below_depth(topology->hwloc, HWLOC_OBJ_CORE);

    do
        prev = hwloc_get_next_obj_by_depth(topology->hwloc, depth, prev);
    while (prev && !hwloc_bitmap_intersects(prev->cpuset, set));
    return prev;
}

int dscomm_priv_topology_count_cores(const dscomm_topology_t *topology,
                                     hwloc_const_bitmap_t set)
{
    hwloc_obj_t core = NULL;
    int count = 0;

    while ((core = dscomm_priv_topology_next_core(topology, set, core)))
        count++;
    return count;
}

/* For a node without processors of its own, such as high-bandwidth memory,
 * hwloc gives the processors near it. At least one other node then has the
 * same processors, or some of them. */
static bool is_memory_only(hwloc_topology_t hwloc, hwloc_obj_t node)
{
    const int depth = HWLOC_TYPE_DEPTH_NUMANODE;
    hwloc_obj_t other = hwloc_get_obj_by_depth(hwloc, depth, 0);

    for (; other; other = other->next_cousin)
        if (!hwloc_bitmap_iszero(other->cpuset) &&
            hwloc_bitmap_isincluded(other->cpuset, node->cpuset) &&
            (!hwloc_bitmap_isequal(other->cpuset, node->cpuset) ||
             other->os_index < node->os_index))
            return true;
    return false;
}

hwloc_obj_t dscomm_priv_topology_next_node(const dscomm_topology_t *topology,
                                           hwloc_const_bitmap_t set,
                                           hwloc_obj_t prev)
{
    do
        prev = hwloc_get_next_obj_by_type(topology->hwloc, HWLOC_OBJ_NUMANODE,
                                          prev);
    while (prev && (!hwloc_bitmap_intersects(prev->cpuset, set) ||
                    is_memory_only(topology->hwloc, prev)));
    return prev;
}

void dscomm_priv_topology_count(const dscomm_topology_t *topology,
                                int *ret_cores, int *ret_nodes,
                                int *ret_cores_per_node)
{
    hwloc_const_bitmap_t allowed = topology->allowed;
    hwloc_bitmap_t own = hwloc_bitmap_alloc();
    hwloc_obj_t node = NULL;
    bool equal = true;
    int nodes = 0, each = 0;

    for (; (node = dscomm_priv_topology_next_node(topology, allowed, node));
         nodes++) {
        int here;

        hwloc_bitmap_and(own, node->cpuset, allowed);
        here = dscomm_priv_topology_count_cores(topology, own);
        equal = equal && (!nodes || here == each);
        each = here;
    }
    hwloc_bitmap_free(own);
    equal = equal && nodes > 1;
    *ret_cores = dscomm_priv_topology_count_cores(topology, allowed);
    *ret_nodes = equal ? nodes : 0;
    *ret_cores_per_node = equal ? each : 0;
}

char *dscomm_priv_topology_text(hwloc_const_bitmap_t set)
{
    const size_t size = (size_t)hwloc_bitmap_list_snprintf(NULL, 0, set) + 1;
    char *text = g_malloc(size);

    hwloc_bitmap_list_snprintf(text, size, set);
    return text;
}
