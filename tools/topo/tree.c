/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees of machines, see tree.h. */
#include "config.h"

#include "tools/topo/tree.h"

#include <string.h>

static const struct {
    const char *name, *meaning;
} links[TOPO_LINKS] = {
    [TOPO_SELF] = {"X", "itself"},
    [TOPO_NV] = {"NV#", "so many NVLinks"},
    [TOPO_PIX] = {"PIX", "at most one PCI bridge, or switch"},
    [TOPO_PXB] = {"PXB", "several PCI bridges, but no host bridge"},
    [TOPO_PHB] = {"PHB", "a PCI host bridge, that is the processor"},
    [TOPO_NODE] = {"NODE", "several host bridges of one NUMA node"},
    [TOPO_SYS] = {"SYS", "the link between NUMA nodes"},
};

static void nvlink_clear(void *link)
{
    g_free(((topo_nvlink_t *)link)->target);
}

static void node_free(void *data)
{
    topo_node_t *node = data;

    g_ptr_array_unref(node->children);
    g_array_unref(node->nvlinks);
    g_free(node->label);
    g_free(node->name);
    g_free(node->address);
    g_free(node->cpus);
    g_free(node->caches);
    g_free(node->nccl);
    g_free(node->nccl_inside);
    g_free(node);
}

static topo_node_t *node_new(topo_node_t *parent, topo_kind_t kind)
{
    topo_node_t *node = g_new0(topo_node_t, 1);

    node->kind = kind;
    node->parent = parent;
    node->numa = -1;
    node->children = g_ptr_array_new_with_free_func(node_free);
    node->nvlinks = g_array_new(FALSE, FALSE, sizeof(topo_nvlink_t));
    g_array_set_clear_func(node->nvlinks, nvlink_clear);
    return node;
}

topo_tree_t *topo_tree_new(const char *source)
{
    topo_tree_t *tree = g_new0(topo_tree_t, 1);

    tree->root = node_new(NULL, TOPO_MACHINE);
    tree->devices = g_ptr_array_new();
    tree->source = g_strdup(source);
    return tree;
}

void topo_tree_free(topo_tree_t *tree)
{
    if (!tree)
        return;
    node_free(tree->root);
    g_ptr_array_unref(tree->devices);
    g_free(tree->source);
    g_free(tree);
}

topo_node_t *topo_node_add(topo_node_t *parent, topo_kind_t kind)
{
    topo_node_t *node = node_new(parent, kind);

    g_ptr_array_add(parent->children, node);
    return node;
}

void topo_nvlink_add(topo_node_t *gpu, const char *target, unsigned class,
                     int count)
{
    topo_nvlink_t link = {g_strdup(target), class, count};

    for (guint i = 0; i < gpu->nvlinks->len; i++) {
        topo_nvlink_t *other = &g_array_index(gpu->nvlinks, topo_nvlink_t, i);

        if (g_strcmp0(other->target, target) != 0)
            continue;
        other->count += count;
        g_free(link.target);
        return;
    }
    g_array_append_val(gpu->nvlinks, link);
}

/* Adds the devices of a kind to the tree's list, in the tree's order. */
static void devices_add(topo_tree_t *tree, topo_node_t *node, topo_kind_t kind)
{
    if (node->kind == kind)
        g_ptr_array_add(tree->devices, node);
    for (guint i = 0; i < node->children->len; i++)
        devices_add(tree, g_ptr_array_index(node->children, i), kind);
}

static int compare_addresses(const void *a, const void *b)
{
    const topo_node_t *const *x = a, *const *y = b;

    if ((*x)->kind != (*y)->kind)
        return (*x)->kind < (*y)->kind ? -1 : 1;
    return g_strcmp0((*x)->address, (*y)->address);
}

static void nodes_number(topo_node_t *node, unsigned *next)
{
    node->number = (*next)++;
    for (guint i = 0; i < node->children->len; i++)
        nodes_number(g_ptr_array_index(node->children, i), next);
}

void topo_tree_end(topo_tree_t *tree)
{
    int counts[2] = {0, 0};
    unsigned next = 0;

    nodes_number(tree->root, &next);
    devices_add(tree, tree->root, TOPO_GPU);
    devices_add(tree, tree->root, TOPO_NIC);
    g_ptr_array_sort(tree->devices, compare_addresses);
    for (guint i = 0; i < tree->devices->len; i++) {
        topo_node_t *device = g_ptr_array_index(tree->devices, i);
        const bool is_nic = device->kind == TOPO_NIC;

        g_free(device->label);
        device->label =
            g_strdup_printf("%s%d", is_nic ? "NIC" : "GPU", counts[is_nic]++);
    }
}

static topo_node_t *node_find(topo_node_t *node, const char *address)
{
    topo_node_t *found =
        node->address && !g_ascii_strcasecmp(node->address, address) ? node
                                                                     : NULL;

    for (guint i = 0; !found && i < node->children->len; i++)
        found = node_find(g_ptr_array_index(node->children, i), address);
    return found;
}

topo_node_t *topo_tree_find(const topo_tree_t *tree, const char *address)
{
    return node_find(tree->root, address);
}

int topo_node_numa(const topo_node_t *node)
{
    while (node && node->numa < 0)
        node = node->parent;
    return node ? node->numa : -1;
}

static const topo_node_t *common_ancestor(const topo_node_t *a,
                                          const topo_node_t *b)
{
    for (; a; a = a->parent)
        for (const topo_node_t *other = b; other; other = other->parent)
            if (other == a)
                return a;
    return NULL;
}

/* Counts the bridges between a node and one above it. */
static int bridges_between(const topo_node_t *node, const topo_node_t *above)
{
    int count = 0;

    for (node = node->parent; node && node != above; node = node->parent)
        count += node->kind == TOPO_BRIDGE;
    return count;
}

/* Counts a GPU's NVLinks to a target; if target is NULL, those to switches. */
static int nvlinks_to(const topo_node_t *gpu, const char *target)
{
    int count = 0;

    for (guint i = 0; i < gpu->nvlinks->len; i++) {
        const topo_nvlink_t *link =
            &g_array_index(gpu->nvlinks, topo_nvlink_t, i);

        if (target ? !g_ascii_strcasecmp(link->target, target)
                   : link->class == TOPO_NVSWITCH)
            count += link->count;
    }
    return count;
}

/* NVLinks between two GPUs: direct ones, or those of the one with fewer to the
 * switches, which connect all. */
static int nvlinks_between(const topo_node_t *a, const topo_node_t *b)
{
    int direct = 0;

    if (a->kind != TOPO_GPU || b->kind != TOPO_GPU)
        return 0;
    if (b->address)
        direct = nvlinks_to(a, b->address);
    if (!direct && a->address)
        direct = nvlinks_to(b, a->address);
    return direct ? direct : MIN(nvlinks_to(a, NULL), nvlinks_to(b, NULL));
}

/* By PCI alone. */
static topo_link_kind_t pci_link(const topo_node_t *a, const topo_node_t *b)
{
    const topo_node_t *common = common_ancestor(a, b);
    const int numa = topo_node_numa(a);

    switch (common->kind) {
    case TOPO_BRIDGE:
        return bridges_between(a, common) > 1 || bridges_between(b, common) > 1
                   ? TOPO_PXB
                   : TOPO_PIX;
    case TOPO_HOST_BRIDGE:
        return TOPO_PHB;
    case TOPO_NUMA:
        return TOPO_NODE;
    case TOPO_MACHINE:
        return numa >= 0 && numa == topo_node_numa(b) ? TOPO_NODE : TOPO_SYS;
    default:
        return TOPO_PIX; /* parts of one device */
    }
}

topo_link_t topo_link(const topo_node_t *a, const topo_node_t *b)
{
    const int count = a == b ? 0 : nvlinks_between(a, b);

    if (a == b)
        return (topo_link_t){TOPO_SELF, 0};
    if (count)
        return (topo_link_t){TOPO_NV, count};
    return (topo_link_t){pci_link(a, b), 0};
}

char *topo_link_text(topo_link_t link)
{
    return link.kind == TOPO_NV ? g_strdup_printf("NV%d", link.count)
                                : g_strdup(links[link.kind].name);
}

const char *topo_link_meaning(topo_link_kind_t kind)
{
    return links[kind].meaning;
}

/* Bytes a second of the PCI link above a node, without its coding: 8 of 10 bits
 * to 5 GT/s, 128 of 130 above; 0: unknown. */
static double link_rate(const topo_node_t *node)
{
    if (node->gt_s > 0 && node->width > 0)
        return node->gt_s * 1e9 / 8 * node->width *
               (node->gt_s > 5 ? 128.0 / 130 : 0.8);
    return node->link_rate;
}

/* Lowers *limit to the rates of the links from a node to one above it. */
static void limit_by(double *limit, const topo_node_t *node,
                     const topo_node_t *above)
{
    for (; node && node != above; node = node->parent)
        if (link_rate(node) > 0 && (*limit <= 0 || link_rate(node) < *limit))
            *limit = link_rate(node);
}

double topo_path_limit(const topo_node_t *a, const topo_node_t *b)
{
    const topo_node_t *above = b ? common_ancestor(a, b) : NULL;
    double limit = 0;

    limit_by(&limit, a, above);
    limit_by(&limit, b, above);
    return limit;
}
