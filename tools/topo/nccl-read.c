/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads NCCL's XML. Below "system" there is a "cpu" for each NUMA node, below
 * it "pci" for bridges and devices, and in these "gpu" with "nvlink", and "nic"
 * with "net". */
#include "config.h"

#include "tools/topo/nccl.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MOST 64 /* of elements */
#define PROCESSORS_MOST 65536

typedef struct {
    topo_tree_t *tree;
    topo_node_t *node; /* the innermost one that is open; NULL: no system yet */
    GPtrArray *open; /* the node of each element that is open, or NULL */
} reader_t;

/* Returns an attribute, or NULL. */
static const char *attribute(const char **names, const char **values,
                             const char *name)
{
    for (; *names; names++, values++)
        if (!strcmp(*names, name))
            return *values;
    return NULL;
}

/* Converts NCCL's mask "ffff,00000000" to "32-47"; g_free(). */
static char *mask_text(const char *mask)
{
    GString *text = g_string_new(NULL);
    char **words = g_strsplit(mask, ",", -1);
    const guint count = MIN(g_strv_length(words), PROCESSORS_MOST / 32);
    int first = -1;

    for (guint bit = 0; bit <= 32 * count; bit++) {
        const guint word = bit / 32;
        const guint64 value =
            word < count ? g_ascii_strtoull(words[count - 1 - word], NULL, 16)
                         : 0;
        const bool set = value >> bit % 32 & 1;

        if (set && first < 0)
            first = (int)bit;
        if (set || first < 0)
            continue;
        g_string_append_printf(text, "%s%d", text->len ? "," : "", first);
        if ((int)bit - 1 > first)
            g_string_append_printf(text, "-%u", bit - 1);
        first = -1;
    }
    g_strfreev(words);
    return g_string_free(text, FALSE);
}

static unsigned hexadecimal(const char *text)
{
    return text ? (unsigned)strtoul(text, NULL, 16) : 0;
}

/* Returns a number from 0 to most; missing if text is NULL. */
static int decimal(const char *text, int missing, int most)
{
    return text ? (int)CLAMP(g_ascii_strtoll(text, NULL, 10), 0, most)
                : missing;
}

/* A CPU is a NUMA node and the host bridge of all its devices. */
static topo_node_t *cpu_begin(reader_t *reader, const char **names,
                              const char **values)
{
    topo_node_t *numa = topo_node_add(reader->tree->root, TOPO_NUMA);
    const char *number = attribute(names, values, "numaid");
    const char *mask = attribute(names, values, "affinity");

    numa->numa = decimal(number, -1, PROCESSORS_MOST);
    if (mask)
        numa->cpus = mask_text(mask);
    return topo_node_add(numa, TOPO_HOST_BRIDGE);
}

static topo_node_t *pci_begin(topo_node_t *parent, const char **names,
                              const char **values)
{
    topo_node_t *node = topo_node_add(parent, TOPO_BRIDGE);
    const char *width = attribute(names, values, "link_width");

    node->address = g_strdup(attribute(names, values, "busid"));
    node->class = hexadecimal(attribute(names, values, "class"));
    node->vendor = hexadecimal(attribute(names, values, "vendor"));
    node->device = hexadecimal(attribute(names, values, "device"));
    node->width = decimal(width, 0, 64);
    if (attribute(names, values, "link_speed"))
        node->gt_s =
            g_ascii_strtod(attribute(names, values, "link_speed"), NULL);
    return node;
}

static void nvlink_begin(topo_node_t *gpu, const char **names,
                         const char **values)
{
    const char *target = attribute(names, values, "target");
    const char *count = attribute(names, values, "count");

    if (target)
        topo_nvlink_add(gpu, target,
                        hexadecimal(attribute(names, values, "tclass")),
                        decimal(count, 1, 1000));
}

static void element_begin(GMarkupParseContext *context, const char *element,
                          const char **names, const char **values, void *arg,
                          GError **error)
{
    reader_t *reader = arg;
    topo_node_t *node = reader->node, *fresh = NULL;

    (void)context;
    if (reader->open->len == DEPTH_MOST)
        g_set_error(error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT,
                    "it has more than %d elements in each other", DEPTH_MOST);
    else if (!node && strcmp(element, "system") != 0)
        g_set_error(error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT,
                    "it begins with <%s>, and not with <system>", element);
    else if (!strcmp(element, "system"))
        fresh = reader->tree->root;
    else if (!strcmp(element, "cpu"))
        fresh = cpu_begin(reader, names, values);
    else if (!strcmp(element, "pci"))
        fresh = pci_begin(node, names, values);
    else if (!strcmp(element, "gpu") && node->kind == TOPO_BRIDGE)
        node->kind = TOPO_GPU;
    else if (!strcmp(element, "nic") && node->kind == TOPO_BRIDGE)
        node->kind = TOPO_NIC;
    else if (!strcmp(element, "net") && node->kind == TOPO_NIC && !node->name)
        node->name = g_strdup(attribute(names, values, "name"));
    else if (!strcmp(element, "nvlink") && node->kind == TOPO_GPU)
        nvlink_begin(node, names, values);
    g_ptr_array_add(reader->open, fresh);
    if (fresh)
        reader->node = fresh;
}

static void element_end(GMarkupParseContext *context, const char *element,
                        void *arg, GError **error)
{
    reader_t *reader = arg;
    topo_node_t *node = g_ptr_array_index(reader->open, reader->open->len - 1);

    (void)context;
    (void)element;
    (void)error;
    g_ptr_array_set_size(reader->open, (gint)reader->open->len - 1);
    if (!node || !node->parent)
        return;
    reader->node =
        node->kind == TOPO_HOST_BRIDGE ? reader->tree->root : node->parent;
}

bool topo_is_nccl(const char *text)
{
    return strstr(text, "<system") != NULL && !strstr(text, "<topology");
}

topo_tree_t *topo_nccl_read(const char *source, const char *text,
                            char **ret_problem)
{
    static const GMarkupParser parser = {.start_element = element_begin,
                                         .end_element = element_end};
    reader_t reader = {topo_tree_new(source), NULL, g_ptr_array_new()};
    GMarkupParseContext *context =
        g_markup_parse_context_new(&parser, 0, &reader, NULL);
    GError *error = NULL;
    const bool good = g_markup_parse_context_parse(context, text, -1, &error) &&
                      g_markup_parse_context_end_parse(context, &error);

    g_markup_parse_context_free(context);
    g_ptr_array_unref(reader.open);
    if (good) {
        topo_tree_end(reader.tree);
        return reader.tree;
    }
    *ret_problem = g_strdup_printf("%s: %s", source, error->message);
    g_error_free(error);
    topo_tree_free(reader.tree);
    return NULL;
}
