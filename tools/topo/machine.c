/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees by hwloc, see machine.h. */
#include "config.h"

#include "tools/topo/machine.h"

#include "tools/common/topology.h"

#include <errno.h>

/* Classes of PCI, the upper 16 bits. */
enum {
    CLASS_VGA = 0x0300,
    CLASS_3D = 0x0302,
    CLASS_DISPLAY = 0x0380,
    CLASS_ACCELERATOR = 0x1200
};

/* Makers of GPUs that compute and also call themselves VGA; other VGA devices
 * are those of management controllers and emulators. */
enum { VENDOR_AMD = 0x1002, VENDOR_NVIDIA = 0x10de, VENDOR_INTEL = 0x8086 };

static bool is_gpu(const struct hwloc_pcidev_attr_s *pci)
{
    switch (pci->class_id) {
    case CLASS_3D:
    case CLASS_DISPLAY:
    case CLASS_ACCELERATOR:
        return true;
    case CLASS_VGA:
        return pci->vendor_id == VENDOR_NVIDIA ||
               pci->vendor_id == VENDOR_AMD || pci->vendor_id == VENDOR_INTEL;
    default:
        return false;
    }
}

/* Returns the device of the system that a NIC is, that for RDMA first; NULL:
 * the PCI device is no NIC. */
static hwloc_obj_t nic_of(hwloc_obj_t device)
{
    hwloc_obj_t found = NULL;

    for (hwloc_obj_t child = device->io_first_child; child;
         child = child->next_sibling) {
        if (child->type != HWLOC_OBJ_OS_DEVICE)
            continue;
        if (child->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
            return child;
        if (child->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK && !found)
            found = child;
    }
    return found;
}

static char *address_of(const struct hwloc_pcidev_attr_s *pci)
{
    return g_strdup_printf("%04x:%02x:%02x.%01x", (unsigned)pci->domain,
                           pci->bus, pci->dev, pci->func);
}

static void node_describe(topo_node_t *node,
                          const struct hwloc_pcidev_attr_s *pci)
{
    node->address = address_of(pci);
    node->class = (unsigned)pci->class_id << 8;
    node->vendor = pci->vendor_id;
    node->device = pci->device_id;
}

static void device_add(topo_node_t *parent, hwloc_obj_t object)
{
    const struct hwloc_pcidev_attr_s *pci = &object->attr->pcidev;
    const hwloc_obj_t nic = nic_of(object);
    const char *maker = hwloc_obj_get_info_by_name(object, "PCIDevice");
    topo_node_t *node;

    if (!nic && !is_gpu(pci))
        return;
    node = topo_node_add(parent, nic ? TOPO_NIC : TOPO_GPU);
    node_describe(node, pci);
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

/* Adds a host bridge below the NUMA node that it is near, or below the root if
 * it is as near to several. */
static void host_bridge_add(topo_tree_t *tree, hwloc_topology_t hwloc,
                            hwloc_obj_t bridge)
{
    const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(hwloc, bridge);
    topo_node_t *parent = NULL, *node;

    if (near && hwloc_bitmap_weight(near->nodeset) == 1)
        parent = numa_find(tree, (unsigned)hwloc_bitmap_first(near->nodeset));
    if (!parent)
        parent = tree->root;
    node = topo_node_add(parent, TOPO_HOST_BRIDGE);
    children_add(node, bridge);
    if (!node->children->len)
        g_ptr_array_remove(parent->children, node);
}

static void numa_nodes_add(topo_tree_t *tree, hwloc_topology_t hwloc)
{
    hwloc_obj_t object = NULL;

    while ((object = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE,
                                                object))) {
        topo_node_t *node = topo_node_add(tree->root, TOPO_NUMA);

        node->numa = (int)object->os_index;
        node->cpus = tool_topology_text(object->cpuset);
    }
}

topo_tree_t *topo_machine(const char *path, char **ret_problem)
{
    tool_topology_t *topology = tool_topology_open(path, true);
    hwloc_obj_t bridge = NULL;
    topo_tree_t *tree;

    if (!topology) {
        *ret_problem =
            path ? g_strdup_printf("%s: it cannot be read, or is no XML that "
                                   "hwloc has exported",
                                   path)
                 : g_strdup("hwloc cannot find this machine's topology");
        return NULL;
    }
    tree = topo_tree_new(path ? path : "this machine");
    tree->root->name = g_strdup(hwloc_obj_get_info_by_name(
        hwloc_get_root_obj(topology->hwloc), "CPUModel"));
    numa_nodes_add(tree, topology->hwloc);
    while ((bridge = hwloc_get_next_bridge(topology->hwloc, bridge)))
        if (bridge->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST)
            host_bridge_add(tree, topology->hwloc, bridge);
    topo_tree_end(tree);
    tool_topology_free(topology);
    return tree;
}
