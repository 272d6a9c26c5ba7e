/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees as text, see matrix.h. */
#include "config.h"

#include "tools/topo/matrix.h"

#include "tools/common/json.h"
#include "tools/common/tool.h"

#define ADDRESS 13 /* characters of the column */

static const topo_node_t *device_at(const topo_tree_t *tree, guint index)
{
    return g_ptr_array_index(tree->devices, index);
}

static const topo_node_t *numa_of(const topo_tree_t *tree,
                                  const topo_node_t *device)
{
    const int numa = topo_node_numa(device);

    for (guint i = 0; i < tree->root->children->len; i++) {
        const topo_node_t *node = g_ptr_array_index(tree->root->children, i);

        if (node->kind == TOPO_NUMA && node->numa == numa)
            return node;
    }
    return NULL;
}

static void append_devices(const topo_tree_t *tree, GString *text)
{
    for (guint i = 0; i < tree->devices->len; i++) {
        const topo_node_t *device = device_at(tree, i);
        const double limit = topo_path_limit(device, NULL);
        char *name = tool_printable(device->name ? device->name : "");

        g_string_append_printf(text, "%-6s %-*s%s%s", device->label,
                               *name || limit > 0 ? ADDRESS : 0,
                               device->address ? device->address : "-",
                               *name ? " " : "", name);
        if (limit > 0)
            g_string_append_printf(text, "%s PCI %.3g GB/s", *name ? "," : "",
                                   limit / 1e9);
        g_string_append_c(text, '\n');
        g_free(name);
    }
    if (tree->devices->len)
        g_string_append_printf(text, "\n");
}

static void append_row(const topo_tree_t *tree, guint row, bool *seen,
                       GString *text)
{
    const topo_node_t *device = device_at(tree, row);
    const topo_node_t *numa = numa_of(tree, device);
    const int number = topo_node_numa(device);

    g_string_append_printf(text, "%-6s", device->label);
    for (guint i = 0; i < tree->devices->len; i++) {
        const topo_link_t link = topo_link(device, device_at(tree, i));
        char *word = topo_link_text(link);

        seen[link.kind] = true;
        g_string_append_printf(text, " %-6s", word);
        g_free(word);
    }
    if (number >= 0)
        g_string_append_printf(text, " %-5d", number);
    else
        g_string_append_printf(text, " %-5s", "-");
    g_string_append_printf(text, " %s\n",
                           numa && numa->cpus ? numa->cpus : "-");
}

static void append_matrix(const topo_tree_t *tree, GString *text)
{
    bool seen[TOPO_LINKS] = {false};

    g_string_append_printf(text, "%-6s", "");
    for (guint i = 0; i < tree->devices->len; i++)
        g_string_append_printf(text, " %-6s", device_at(tree, i)->label);
    g_string_append_printf(text, " %-5s %s\n", "NUMA", "processors");
    for (guint i = 0; i < tree->devices->len; i++)
        append_row(tree, i, seen, text);
    g_string_append_printf(text, "\n");
    for (int kind = TOPO_NV; kind < TOPO_LINKS; kind++) {
        char *word = topo_link_text((topo_link_t){(topo_link_kind_t)kind, 0});

        if (seen[kind])
            g_string_append_printf(text, "%-5s %s\n",
                                   kind == TOPO_NV ? "NV#" : word,
                                   topo_link_meaning((topo_link_kind_t)kind));
        g_free(word);
    }
}

static void append_numa(const topo_node_t *node, GString *text)
{
    g_string_append_printf(text, "NUMA node %d: processors %s", node->numa,
                           node->cpus && *node->cpus ? node->cpus : "none");
    if (node->cores)
        g_string_append_printf(text, ", %d core%s", node->cores,
                               node->cores == 1 ? "" : "s");
    if (node->caches && *node->caches)
        g_string_append_printf(text, ", %s", node->caches);
    if (node->memory) {
        char *size = g_format_size_full(node->memory, G_FORMAT_SIZE_IEC_UNITS);

        g_string_append_printf(text, ", %s of memory", size);
        g_free(size);
    }
    g_string_append_c(text, '\n');
}

void topo_text(const topo_tree_t *tree, GString *text)
{
    char *model = tool_printable(tree->root->name ? tree->root->name : "");

    g_string_append_printf(text, "Topology of %s%s%s\n", tree->source,
                           *model ? ": " : "", model);
    g_free(model);
    for (guint i = 0; i < tree->root->children->len; i++) {
        const topo_node_t *node = g_ptr_array_index(tree->root->children, i);

        if (node->kind == TOPO_NUMA)
            append_numa(node, text);
    }
    g_string_append_printf(text, "\n");
    append_devices(tree, text);
    if (tree->devices->len)
        append_matrix(tree, text);
    else
        g_string_append(text, TOPO_NO_DEVICES "\n");
}

static void add_device(JsonBuilder *builder, const topo_tree_t *tree,
                       const topo_node_t *device)
{
    tool_json_object(builder, NULL);
    tool_json_text(builder, "label", device->label);
    tool_json_text(builder, "kind", device->kind == TOPO_GPU ? "gpu" : "nic");
    tool_json_text(builder, "name", device->name);
    tool_json_text(builder, "pci", device->address);
    if (topo_node_numa(device) >= 0)
        tool_json_number(builder, "numa", topo_node_numa(device));
    else
        tool_json_text(builder, "numa", NULL);
    if (topo_path_limit(device, NULL) > 0)
        tool_json_real(builder, "pci_gb_s", "%.3f",
                       topo_path_limit(device, NULL) / 1e9);
    tool_json_object(builder, "links");
    for (guint i = 0; i < tree->devices->len; i++) {
        const topo_node_t *other = device_at(tree, i);
        char *word = topo_link_text(topo_link(device, other));

        tool_json_text(builder, other->label, word);
        g_free(word);
    }
    json_builder_end_object(builder);
    json_builder_end_object(builder);
}

void topo_json(const topo_tree_t *tree, GString *text)
{
    JsonBuilder *builder = json_builder_new();

    tool_json_object(builder, NULL);
    tool_json_text(builder, "source", tree->source);
    tool_json_text(builder, "processor", tree->root->name);
    tool_json_array(builder, "numa_nodes");
    for (guint i = 0; i < tree->root->children->len; i++) {
        const topo_node_t *node = g_ptr_array_index(tree->root->children, i);

        if (node->kind != TOPO_NUMA)
            continue;
        tool_json_object(builder, NULL);
        tool_json_number(builder, "numa", node->numa);
        tool_json_text(builder, "processors", node->cpus);
        tool_json_number(builder, "cores", node->cores);
        tool_json_text(builder, "caches", node->caches);
        tool_json_number(builder, "memory", (gint64)node->memory);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
    tool_json_array(builder, "devices");
    for (guint i = 0; i < tree->devices->len; i++)
        add_device(builder, tree, device_at(tree, i));
    json_builder_end_array(builder);
    json_builder_end_object(builder);
    tool_json_end(builder, true, text);
}
