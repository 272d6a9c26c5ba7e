/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures of trees, see picture.h. */
#include "config.h"

#include "tools/topo/picture.h"

/* Pixels. */
#define CELL_WIDTH 56
#define CELL_HEIGHT 28
#define MARGIN 70
#define LEGEND 20 /* height of a line */

/* From near to far. */
static const char *const colours[TOPO_LINKS] = {
    [TOPO_SELF] = "#eeeeee", [TOPO_NV] = "#1a9850",  [TOPO_PIX] = "#91cf60",
    [TOPO_PXB] = "#d9ef8b",  [TOPO_PHB] = "#fee08b", [TOPO_NODE] = "#fc8d59",
    [TOPO_SYS] = "#d73027",
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
                    "    n%u -- n%u [label=\"NV%d\", color=\"%s\", "
                    "constraint=false];\n",
                    device_at(tree, a)->number, device_at(tree, b)->number,
                    link.count, colours[TOPO_NV]);
        }
    g_string_append(text, "}\n");
}

static void append_word(GString *text, int x, int y, const char *word)
{
    char *escaped = g_markup_escape_text(word, -1);

    g_string_append_printf(text,
                           "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">"
                           "%s</text>\n",
                           x, y, escaped);
    g_free(escaped);
}

static void append_row(const topo_tree_t *tree, guint row, bool *seen,
                       GString *text)
{
    const int y = MARGIN + (int)row * CELL_HEIGHT;

    append_word(text, MARGIN / 2, y + CELL_HEIGHT * 2 / 3,
                device_at(tree, row)->label);
    append_word(text, MARGIN + (int)row * CELL_WIDTH + CELL_WIDTH / 2,
                MARGIN - CELL_HEIGHT / 3, device_at(tree, row)->label);
    for (guint i = 0; i < tree->devices->len; i++) {
        const topo_link_t link =
            topo_link(device_at(tree, row), device_at(tree, i));
        const int x = MARGIN + (int)i * CELL_WIDTH;
        char *word = topo_link_text(link);

        seen[link.kind] = true;
        g_string_append_printf(
            text,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\" "
            "stroke=\"white\"/>\n",
            x, y, CELL_WIDTH, CELL_HEIGHT, colours[link.kind]);
        append_word(text, x + CELL_WIDTH / 2, y + CELL_HEIGHT * 2 / 3, word);
        g_free(word);
    }
}

void topo_svg(const topo_tree_t *tree, GString *text)
{
    const int count = (int)tree->devices->len;
    const int below = MARGIN + count * CELL_HEIGHT + LEGEND;
    bool seen[TOPO_LINKS] = {false};
    int y = below;

    g_string_append_printf(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        MAX(2 * MARGIN + count * CELL_WIDTH, 480), below + TOPO_LINKS * LEGEND);
    for (guint row = 0; row < tree->devices->len; row++)
        append_row(tree, row, seen, text);
    for (int kind = TOPO_NV; kind < TOPO_LINKS; kind++) {
        char *word = topo_link_text((topo_link_t){(topo_link_kind_t)kind, 0});

        if (seen[kind]) {
            g_string_append_printf(text,
                                   "<text x=\"%d\" y=\"%d\">%s: %s</text>\n",
                                   MARGIN, y, kind == TOPO_NV ? "NV#" : word,
                                   topo_link_meaning((topo_link_kind_t)kind));
            y += LEGEND;
        }
        g_free(word);
    }
    g_string_append(text, "</svg>\n");
}
