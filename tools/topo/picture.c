/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures of trees, see picture.h. */
#include "config.h"

#include "tools/topo/picture.h"

#include "tools/topo/grid.h"

/* From near to far. */
static const guint32 colours[TOPO_LINKS] = {
    [TOPO_SELF] = 0xeeeeee, [TOPO_NV] = 0x1a9850,  [TOPO_PIX] = 0x91cf60,
    [TOPO_PXB] = 0xd9ef8b,  [TOPO_PHB] = 0xfee08b, [TOPO_NODE] = 0xfc8d59,
    [TOPO_SYS] = 0xd73027,
};

static const topo_node_t *device_at(const topo_tree_t *tree, guint index)
{
    return g_ptr_array_index(tree->devices, index);
}

/* Returns what a node of the graph is called; g_free(). */
static char *dot_label(const topo_node_t *node)
{
    switch (node->kind) {
    case TOPO_MACHINE:
        return g_strdup(node->name ? node->name : "machine");
    case TOPO_NUMA:
        return g_strdup_printf("NUMA node %d\\n%s", node->numa,
                               node->cpus ? node->cpus : "");
    case TOPO_HOST_BRIDGE:
        return g_strdup("host bridge");
    case TOPO_BRIDGE:
        return g_strdup_printf("bridge\\n%s",
                               node->address ? node->address : "");
    default:
        return g_strdup_printf("%s\\n%s\\n%s", node->label,
                               node->name ? node->name : "",
                               node->address ? node->address : "");
    }
}

static void append_dot(const topo_node_t *node, GString *text)
{
    char *label = dot_label(node), *escaped = g_strescape(label, "\\");
    const bool is_device = node->kind == TOPO_GPU || node->kind == TOPO_NIC;

    g_string_append_printf(text, "    n%u [label=\"%s\"%s];\n", node->number,
                           escaped, is_device ? ", style=filled" : "");
    g_free(escaped);
    g_free(label);
    for (guint i = 0; i < node->children->len; i++) {
        const topo_node_t *child = g_ptr_array_index(node->children, i);

        append_dot(child, text);
        g_string_append_printf(text, "    n%u -- n%u;\n", node->number,
                               child->number);
    }
}

void topo_dot(const topo_tree_t *tree, GString *text)
{
    g_string_append(text, "graph topology {\n    node [shape=box];\n");
    append_dot(tree->root, text);
    for (guint a = 0; a < tree->devices->len; a++)
        for (guint b = a + 1; b < tree->devices->len; b++) {
            const topo_link_t link =
                topo_link(device_at(tree, a), device_at(tree, b));

            if (link.kind == TOPO_NV)
                g_string_append_printf(
                    text,
                    "    n%u -- n%u [label=\"NV%d\", color=\"#%06x\", "
                    "constraint=false];\n",
                    device_at(tree, a)->number, device_at(tree, b)->number,
                    link.count, colours[TOPO_NV]);
        }
    g_string_append(text, "}\n");
}

static void add_meanings(GPtrArray *lines, const bool *seen)
{
    for (int kind = TOPO_NV; kind < TOPO_LINKS; kind++) {
        char *word = topo_link_text((topo_link_t){(topo_link_kind_t)kind, 0});

        if (seen[kind])
            g_ptr_array_add(
                lines,
                g_strdup_printf("%s: %s", kind == TOPO_NV ? "NV#" : word,
                                topo_link_meaning((topo_link_kind_t)kind)));
        g_free(word);
    }
}

static void grid_clear(void *grid)
{
    topo_grid_free(grid);
}

char *topo_picture(const topo_tree_t *tree, const char *path)
{
    const guint count = tree->devices->len;
    char **names = g_new0(char *, count + 1), *problem;
    GPtrArray *grids = g_ptr_array_new_with_free_func(grid_clear);
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    topo_grid_t *grid;
    bool seen[TOPO_LINKS] = {false};

    for (guint i = 0; i < count; i++)
        names[i] = device_at(tree, i)->label;
    grid = topo_grid_new(g_strdup_printf("Devices of %s", tree->source), names,
                         count);
    for (guint i = 0; i < count * count; i++) {
        const topo_link_t link =
            topo_link(device_at(tree, i / count), device_at(tree, i % count));

        seen[link.kind] = true;
        grid->cells[i].colour = colours[link.kind];
        grid->cells[i].text = topo_link_text(link);
    }
    g_ptr_array_add(grids, grid);
    add_meanings(lines, seen);
    if (!count)
        g_ptr_array_add(lines, g_strdup(TOPO_NO_DEVICES));
    problem = topo_grids_save(path, grids, lines);
    g_ptr_array_unref(grids);
    g_ptr_array_unref(lines);
    g_free(names);
    return problem;
}
