/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes NCCL's XML, see nccl-read.c. */
#include "config.h"

#include "tools/topo/nccl.h"

#include <stdlib.h>
#include <string.h>

#define INDENT 2

/* Appends an attribute, escaped; none if value is NULL. */
static void append_attribute(GString *text, const char *name, const char *value)
{
    char *escaped;

    if (!value)
        return;
    escaped = g_markup_escape_text(value, -1);
    g_string_append_printf(text, " %s=\"%s\"", name, escaped);
    g_free(escaped);
}

/* Converts "32-47" to NCCL's mask "0000ffff,00000000"; g_free(). */
static char *mask_of(const char *cpus)
{
    GArray *words = g_array_new(FALSE, TRUE, sizeof(guint32));
    GString *text = g_string_new(NULL);
    char **ranges = g_strsplit(cpus, ",", -1);

    for (char **range = ranges; *range && **range; range++) {
        char *end;
        const unsigned long first = strtoul(*range, &end, 10);
        const unsigned long last =
            *end == '-' ? strtoul(end + 1, NULL, 10) : first;

        if (last >= words->len * 32)
            g_array_set_size(words, (guint)(last / 32 + 1));
        for (unsigned long bit = first; bit <= last; bit++)
            g_array_index(words, guint32, bit / 32) |= 1u << bit % 32;
    }
    for (guint i = words->len; i-- > 0;)
        g_string_append_printf(text, "%08x%s", g_array_index(words, guint32, i),
                               i ? "," : "");
    g_strfreev(ranges);
    g_array_unref(words);
    return g_string_free(text, FALSE);
}

static void append_gpu(const topo_node_t *gpu, int indent, GString *text)
{
    const char *number = gpu->label ? gpu->label + strlen("GPU") : "0";

    g_string_append_printf(text, "%*s<gpu", indent, "");
    if (gpu->nccl_inside)
        g_string_append(text, gpu->nccl_inside);
    else
        g_string_append_printf(text, " dev=\"%s\" rank=\"%s\"", number, number);
    g_string_append(text, ">\n");
    for (guint i = 0; i < gpu->nvlinks->len; i++) {
        const topo_nvlink_t *link =
            &g_array_index(gpu->nvlinks, topo_nvlink_t, i);

        g_string_append_printf(text, "%*s<nvlink", indent + INDENT, "");
        append_attribute(text, "target", link->target);
        g_string_append_printf(text, " count=\"%d\" tclass=\"0x%06x\"/>\n",
                               link->count, link->class);
    }
    g_string_append_printf(text, "%*s</gpu>\n", indent, "");
}

static void append_nic(const topo_node_t *nic, int indent, GString *text)
{
    g_string_append_printf(text, "%*s<nic>\n%*s<net", indent, "",
                           indent + INDENT, "");
    append_attribute(text, "name", nic->name);
    if (nic->nccl_inside)
        g_string_append(text, nic->nccl_inside);
    else
        g_string_append_printf(text, " dev=\"%s\"",
                               nic->label ? nic->label + strlen("NIC") : "0");
    g_string_append_printf(text, "/>\n%*s</nic>\n", indent, "");
}

static void append_node(const topo_node_t *node, int indent, GString *text)
{
    const bool is_nic = node->kind == TOPO_NIC;
    const bool is_pci = node->kind == TOPO_BRIDGE || node->kind == TOPO_GPU ||
                        (is_nic && node->address);

    if (is_nic && !is_pci)
        append_nic(node, indent, text);
    if (is_pci) {
        char speed[G_ASCII_DTOSTR_BUF_SIZE];

        g_string_append_printf(text, "%*s<pci", indent, "");
        append_attribute(text, "busid", node->address);
        g_string_append_printf(text, " class=\"0x%06x\"", node->class);
        if (node->vendor || node->device)
            g_string_append_printf(text, " vendor=\"0x%04x\" device=\"0x%04x\"",
                                   node->vendor, node->device);
        if (node->most_gt_s > 0) {
            g_ascii_formatd(speed, sizeof speed, "%.1f", node->most_gt_s);
            g_string_append_printf(text, " link_speed=\"%s GT/s PCIe\"", speed);
        }
        if (node->most_width > 0)
            g_string_append_printf(text, " link_width=\"%d\"",
                                   node->most_width);
        g_string_append_printf(text, "%s>\n", node->nccl ? node->nccl : "");
        if (node->kind == TOPO_GPU)
            append_gpu(node, indent + INDENT, text);
        if (is_nic)
            append_nic(node, indent + INDENT, text);
        indent += INDENT;
    }
    for (guint i = 0; i < node->children->len; i++)
        append_node(g_ptr_array_index(node->children, i), indent, text);
    if (is_pci)
        g_string_append_printf(text, "%*s</pci>\n", indent - INDENT, "");
}

/* Devices that are near no NUMA node in particular go to the first one. hwloc's
 * XML has the rates at which links ran, and no more; NCCL wants what their ends
 * can, and finds attributes that are missing itself. */
void topo_nccl_write(const topo_tree_t *tree, GString *text)
{
    const GPtrArray *children = tree->root->children;
    bool first = true;

    g_string_append(text, "<system version=\"1\">\n");
    for (guint i = 0; i < children->len; i++) {
        const topo_node_t *node = g_ptr_array_index(children, i);
        char *mask;

        if (node->kind != TOPO_NUMA)
            continue;
        mask = mask_of(node->cpus ? node->cpus : "");
        g_string_append_printf(text, "%*s<cpu numaid=\"%d\"", INDENT, "",
                               node->numa);
        append_attribute(text, "affinity", mask);
        g_string_append_printf(text, "%s>\n", node->nccl ? node->nccl : "");
        append_node(node, 2 * INDENT, text);
        for (guint other = 0; first && other < children->len; other++) {
            const topo_node_t *bridge = g_ptr_array_index(children, other);

            if (bridge->kind != TOPO_NUMA)
                append_node(bridge, 2 * INDENT, text);
        }
        g_string_append_printf(text, "%*s</cpu>\n", INDENT, "");
        first = false;
        g_free(mask);
    }
    g_string_append(text, "</system>\n");
}
