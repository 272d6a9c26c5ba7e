/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees by hwloc, see machine.h. */
#include "config.h"

#include "tools/topo/machine.h"

#include "env/devices.h"
#include "tools/common/topology.h"

/* Reads a number at the beginning of a file that Linux has for a PCI device of
 * this machine; 0: there is none. */
static double number_read(const char *address, const char *name)
{
    char *path = g_strdup_printf("/sys/bus/pci/devices/%s/%s", address, name);
    char *text = NULL;
    double number = 0;

    if (g_file_get_contents(path, &text, NULL, NULL))
        number = g_ascii_strtod(text, NULL);
    g_free(text);
    g_free(path);
    return number > 0 && number < 1e4 ? number : 0;
}

static void node_describe(topo_node_t *node,
                          const struct hwloc_pcidev_attr_s *pci)
{
    node->address = dscomm_priv_pci_text(pci);
    node->link_rate = pci->linkspeed * 1e9;
    node->class = (unsigned)pci->class_id << 8;
    node->vendor = pci->vendor_id;
    node->device = pci->device_id;
}

static void device_add(topo_node_t *parent, hwloc_obj_t object)
{
    const hwloc_obj_t nic = dscomm_priv_device_nic(object);
    const char *maker = hwloc_obj_get_info_by_name(object, "PCIDevice");
    topo_node_t *node;

    if (!nic && !dscomm_priv_device_is_gpu(object))
        return;
    node = topo_node_add(parent, nic ? TOPO_NIC : TOPO_GPU);
    node_describe(node, &object->attr->pcidev);
    node->name = g_strdup(nic ? nic->name : maker);
}

/* Adds what is below an object of hwloc. */
static void children_add(topo_node_t *parent, hwloc_obj_t object)
{
    for (hwloc_obj_t child = object->io_first_child; child;
         child = child->next_sibling) {
        topo_node_t *node;

        if (child->type == HWLOC_OBJ_PCI_DEVICE)
            device_add(parent, child);
        if (child->type != HWLOC_OBJ_BRIDGE)
            continue;
        node = topo_node_add(parent, TOPO_BRIDGE);
        node_describe(node, &child->attr->bridge.upstream.pci);
        children_add(node, child);
        if (!node->children->len)
            g_ptr_array_remove(parent->children, node);
    }
}

static topo_node_t *numa_find(const topo_tree_t *tree, unsigned number)
{
    for (guint i = 0; i < tree->root->children->len; i++) {
        topo_node_t *node = g_ptr_array_index(tree->root->children, i);

        if (node->kind == TOPO_NUMA && node->numa == (int)number)
            return node;
    }
    return NULL;
}

/* The only NUMA node with processors that an object is near; NULL: there are
 * several. Memory of GPUs has nodes of its own, without processors. */
static topo_node_t *numa_near(const topo_tree_t *tree,
                              const dscomm_topology_t *topology,
                              hwloc_obj_t object)
{
    const hwloc_obj_t first =
        dscomm_priv_topology_next_node(topology, object->cpuset, NULL);

    if (!first ||
        dscomm_priv_topology_next_node(topology, object->cpuset, first))
        return NULL;
    return numa_find(tree, first->os_index);
}

/* Adds a host bridge below the NUMA node that it is near, or below the root if
 * it is as near to several. */
static void host_bridge_add(topo_tree_t *tree,
                            const dscomm_topology_t *topology,
                            hwloc_obj_t bridge)
{
    const hwloc_obj_t near =
        hwloc_get_non_io_ancestor_obj(topology->hwloc, bridge);
    topo_node_t *parent = near ? numa_near(tree, topology, near) : NULL, *node;

    if (!parent)
        parent = tree->root;
    node = topo_node_add(parent, TOPO_HOST_BRIDGE);
    children_add(node, bridge);
    if (!node->children->len)
        g_ptr_array_remove(parent->children, node);
}

/* Appends "L3 2 x 32 MiB" if the processors of set have caches of that type. */
static void append_caches(hwloc_topology_t hwloc, hwloc_const_bitmap_t set,
                          hwloc_obj_type_t type, const char *name,
                          GString *text)
{
    const int count = hwloc_get_nbobjs_inside_cpuset_by_type(hwloc, set, type);
    hwloc_obj_t cache;
    char *size;

    if (count < 1)
        return;
    cache = hwloc_get_obj_inside_cpuset_by_type(hwloc, set, type, 0);
    size = g_format_size_full(cache->attr->cache.size, G_FORMAT_SIZE_IEC_UNITS);
    g_string_append_printf(text, "%s%s ", text->len ? ", " : "", name);
    if (count > 1)
        g_string_append_printf(text, "%d x ", count);
    g_string_append(text, size);
    g_free(size);
}

static char *caches_of(hwloc_topology_t hwloc, hwloc_const_bitmap_t set)
{
    GString *text = g_string_new(NULL);

    append_caches(hwloc, set, HWLOC_OBJ_L3CACHE, "L3", text);
    append_caches(hwloc, set, HWLOC_OBJ_L2CACHE, "L2", text);
    append_caches(hwloc, set, HWLOC_OBJ_L1CACHE, "L1", text);
    return g_string_free(text, FALSE);
}

/* The most that both a device and the port above it can do; 0: unknown. */
static double most_read(const char *address, const char *name)
{
    char *of_port = g_strconcat("../", name, NULL);
    const double own = number_read(address, name);
    const double port = number_read(address, of_port);

    g_free(of_port);
    return port > 0 && port < own ? port : own;
}

/* Returns a number of lanes, or 0 for one that no link has. */
static int lanes_of(double width)
{
    return width > TOPO_LANES_MOST ? 0 : (int)width;
}

/* Reads the speeds of PCI links, of which hwloc gives only some. */
static void links_read(topo_node_t *node)
{
    if (node->address) {
        node->gt_s = number_read(node->address, "current_link_speed");
        node->width =
            lanes_of(number_read(node->address, "current_link_width"));
        node->most_gt_s = most_read(node->address, "max_link_speed");
        node->most_width = lanes_of(most_read(node->address, "max_link_width"));
    }
    for (guint i = 0; i < node->children->len; i++)
        links_read(g_ptr_array_index(node->children, i));
}

static void numa_nodes_add(topo_tree_t *tree, hwloc_topology_t hwloc)
{
    hwloc_obj_t object = NULL;

    while ((object = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE,
                                                object))) {
        topo_node_t *node = topo_node_add(tree->root, TOPO_NUMA);

        node->numa = (int)object->os_index;
        node->cpus = dscomm_priv_topology_text(object->cpuset);
        node->cores = hwloc_get_nbobjs_inside_cpuset_by_type(
            hwloc, object->cpuset, HWLOC_OBJ_CORE);
        node->caches = caches_of(hwloc, object->cpuset);
        node->memory = object->attr->numanode.local_memory;
    }
}

/* The processor's name; NULL: hwloc knows none. */
static char *model_of(hwloc_topology_t hwloc)
{
    const hwloc_obj_t package =
        hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE, 0);

    return package ? g_strdup(hwloc_obj_get_info_by_name(package, "CPUModel"))
                   : NULL;
}

topo_tree_t *topo_machine(const char *path, char **ret_problem)
{
    dscomm_topology_t *topology = tool_topology_open(path, true);
    hwloc_obj_t bridge = NULL;
    topo_tree_t *tree;

    if (!topology) {
        *ret_problem = tool_topology_problem(path);
        return NULL;
    }
    tree = topo_tree_new(path ? path : "this machine");
    tree->root->name = model_of(topology->hwloc);
    numa_nodes_add(tree, topology->hwloc);
    while ((bridge = hwloc_get_next_bridge(topology->hwloc, bridge)))
        if (bridge->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST)
            host_bridge_add(tree, topology, bridge);
    topo_tree_end(tree);
    if (!path)
        links_read(tree->root);
    dscomm_priv_topology_free(topology);
    return tree;
}
