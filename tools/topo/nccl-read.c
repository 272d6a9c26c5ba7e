/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads NCCL's XML. Below "system" there is a "cpu" for each NUMA node, below
 * it "pci" for bridges and devices, and in these "gpu" with "nvlink", and "nic"
 * with "net". */
#include "config.h"

#include "tools/topo/nccl.h"

#include "env/devices.h"

#include <string.h>

#define DEPTH_MOST 64 /* of elements */
#define PROCESSORS_MOST 65536
#define SPEED_MOST 1000 /* GT/s of a lane */

typedef struct {
    topo_tree_t *tree;
    topo_node_t *node; /* the innermost one that is open; NULL: no system yet */
    GPtrArray *open; /* the node of each element that is open, or NULL */
    char *host; /* of each <cpu>; NULL: there is none yet */
    GHashTable *seen; /* addresses of <pci> */
} reader_t;

/* An element that begins. */
typedef struct {
    const char *name;
    const char **names, **values; /* of attributes; NULL at the end */
    GError **error; /* the first one is kept */
} element_t;

/* Returns an attribute; NULL: there is none, or it is empty, as NCCL writes
 * what it does not know. */
static const char *attribute(const element_t *element, const char *name)
{
    for (guint i = 0; element->names[i]; i++)
        if (!strcmp(element->names[i], name))
            return *element->values[i] ? element->values[i] : NULL;
    return NULL;
}

/* Returns the attributes but those that are read otherwise, a list with NULL at
 * its end, as they are written again; NULL: there are none; g_free(). */
static char *attributes_text(const element_t *element,
                             const char *const *without)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; element->names[i]; i++) {
        char *value = g_markup_escape_text(element->values[i], -1);

        if (!g_strv_contains(without, element->names[i]))
            g_string_append_printf(text, " %s=\"%s\"", element->names[i],
                                   value);
        g_free(value);
    }
    return g_string_free(text, !text->len);
}

/* Refuses the value of an attribute that is not what it must be. */
static void attribute_refuse(const element_t *element, const char *name,
                             const char *what)
{
    if (!*element->error)
        g_set_error(element->error, G_MARKUP_ERROR,
                    G_MARKUP_ERROR_INVALID_CONTENT,
                    "<%s> has %s=\"%s\", which is no %s", element->name, name,
                    attribute(element, name), what);
}

/* Converts one word of a mask. */
static bool mask_word(const char *word, guint64 *ret_value)
{
    return g_ascii_string_to_unsigned(word, 16, 0, G_MAXUINT32, ret_value,
                                      NULL);
}

/* Converts NCCL's mask "ffff,00000000" to "32-47"; g_free(). NULL: it is none.
 */
static char *mask_text(const char *mask)
{
    GString *text = g_string_new(NULL);
    char **words = g_strsplit(mask, ",", -1);
    const guint count = g_strv_length(words);
    bool is_mask = count <= PROCESSORS_MOST / 32;
    int first = -1;

    for (guint bit = 0; is_mask && bit <= 32 * count; bit++) {
        const guint word = bit / 32;
        guint64 value = 0;
        bool set;

        is_mask = word == count || mask_word(words[count - 1 - word], &value);
        set = value >> bit % 32 & 1;
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
    return g_string_free(text, !is_mask);
}

static unsigned hexadecimal(const element_t *element, const char *name)
{
    const char *text = attribute(element, name);
    guint64 number = 0;

    if (text &&
        !g_ascii_string_to_unsigned(text + 2 * g_str_has_prefix(text, "0x"), 16,
                                    0, G_MAXUINT32, &number, NULL))
        attribute_refuse(element, name, "hexadecimal number of 32 bits");
    return (unsigned)number;
}

/* Returns a number from least to most; missing if there is no attribute. */
static int decimal(const element_t *element, const char *name, int missing,
                   int least, int most)
{
    const char *text = attribute(element, name);
    gint64 number = missing;
    char what[64];

    if (text &&
        !g_ascii_string_to_signed(text, 10, least, most, &number, NULL)) {
        g_snprintf(what, sizeof what, "number from %d to %d", least, most);
        attribute_refuse(element, name, what);
    }
    return (int)number;
}

/* Returns the number of "16.0 GT/s PCIe"; 0: unknown. */
static double link_speed(const element_t *element, const char *name)
{
    const char *text = attribute(element, name);
    char *end;
    double speed;

    if (!text || g_str_has_prefix(text, "Unknown"))
        return 0;
    speed = g_ascii_strtod(text, &end);
    if (speed > 0 && speed <= SPEED_MOST && g_str_has_prefix(end, " GT/s"))
        return speed;
    attribute_refuse(element, name, "speed, as \"16.0 GT/s PCIe\"");
    return 0;
}

/* Refuses XML that NCCL has fused from several hosts, whose NUMA nodes have the
 * same numbers. */
static void host_check(reader_t *reader, const element_t *element)
{
    const char *host = attribute(element, "host_hash");

    if (!reader->host)
        reader->host = g_strdup(host ? host : "");
    else if (strcmp(reader->host, host ? host : "") && !*element->error)
        g_set_error(element->error, G_MARKUP_ERROR,
                    G_MARKUP_ERROR_INVALID_CONTENT,
                    "it has <cpu> of several hosts; give the XML of one host");
}

/* A CPU is a NUMA node and the host bridge of all its devices. */
static topo_node_t *cpu_begin(reader_t *reader, const element_t *element)
{
    static const char *const read[] = {"numaid", "affinity", NULL};
    topo_node_t *numa = topo_node_add(reader->tree->root, TOPO_NUMA);
    const char *mask = attribute(element, "affinity");

    numa->numa = decimal(element, "numaid", -1, -1, PROCESSORS_MOST);
    if (mask)
        numa->cpus = mask_text(mask);
    if (mask && !numa->cpus)
        attribute_refuse(element, "affinity",
                         "mask of processors, as \"ffff,00000000\"");
    numa->nccl = attributes_text(element, read);
    host_check(reader, element);
    return topo_node_add(numa, TOPO_HOST_BRIDGE);
}

static char *bus_address(const element_t *element)
{
    const char *text = attribute(element, "busid");
    char *address = text ? dscomm_priv_pci_address(text) : NULL;

    if (text && !address)
        attribute_refuse(element, "busid", "PCI address, as \"0000:1a:00.0\"");
    return address;
}

/* Refuses an address that another element has. NCCL takes both, and finds the
 * first one only. */
static void address_check(reader_t *reader, const element_t *element,
                          const char *address)
{
    if (!g_hash_table_add(reader->seen, g_strdup(address)) && !*element->error)
        g_set_error(element->error, G_MARKUP_ERROR,
                    G_MARKUP_ERROR_INVALID_CONTENT,
                    "two <pci> have busid=\"%s\", but an address is that of "
                    "one device: give each its own, as lspci -D lists them",
                    address);
}

static topo_node_t *pci_begin(reader_t *reader, topo_node_t *parent,
                              const element_t *element)
{
    static const char *const read[] = {
        "busid", "class", "vendor", "device", "link_speed", "link_width", NULL};
    topo_node_t *node = topo_node_add(parent, TOPO_BRIDGE);

    node->address = bus_address(element);
    if (node->address)
        address_check(reader, element, node->address);
    node->nccl = attributes_text(element, read);
    node->class = hexadecimal(element, "class");
    node->vendor = hexadecimal(element, "vendor");
    node->device = hexadecimal(element, "device");
    node->gt_s = link_speed(element, "link_speed");
    node->width = decimal(element, "link_width", 0, 0, 255);
    if (node->width > TOPO_LANES_MOST)
        node->width = 0;
    node->most_gt_s = node->gt_s;
    node->most_width = node->width;
    return node;
}

/* A GPU is on PCI. */
static void gpu_begin(topo_node_t *node, const element_t *element)
{
    static const char *const none[] = {NULL};

    if (node->kind == TOPO_BRIDGE) {
        node->kind = TOPO_GPU;
        node->nccl_inside = attributes_text(element, none);
    } else {
        g_set_error(element->error, G_MARKUP_ERROR,
                    G_MARKUP_ERROR_INVALID_CONTENT,
                    "it has a <gpu> that is not in a <pci> of its own");
    }
}

/* A network interface that is not on PCI is in a CPU. Returns the node, if it
 * is a new one. */
static topo_node_t *nic_begin(topo_node_t *node)
{
    if (node->kind == TOPO_HOST_BRIDGE)
        return topo_node_add(node, TOPO_NIC);
    if (node->kind == TOPO_BRIDGE)
        node->kind = TOPO_NIC;
    return NULL;
}

/* Only the first one of a device is read. */
static void net_begin(topo_node_t *nic, const element_t *element)
{
    static const char *const read[] = {"name", NULL};

    if (nic->name || nic->nccl_inside)
        return;
    nic->name = g_strdup(attribute(element, "name"));
    nic->nccl_inside = attributes_text(element, read);
}

static void nvlink_begin(topo_node_t *gpu, const element_t *element)
{
    const char *target = attribute(element, "target");
    const unsigned class = hexadecimal(element, "tclass");
    const int count = decimal(element, "count", 1, 0, 1000);
    char *address = target ? dscomm_priv_pci_address(target) : NULL;

    /* A switch that a virtual machine does not see is "fffffff:ffff:ff". */
    if (target)
        topo_nvlink_add(gpu, address ? address : target, class, count);
    g_free(address);
}

static void element_begin(GMarkupParseContext *context, const char *name,
                          const char **names, const char **values, void *arg,
                          GError **error)
{
    const element_t element = {name, names, values, error};
    reader_t *reader = arg;
    topo_node_t *node = reader->node, *fresh = NULL;

    (void)context;
    if (reader->open->len == DEPTH_MOST)
        g_set_error(error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT,
                    "it has more than %d elements in each other", DEPTH_MOST);
    else if (!node && strcmp(name, "system") != 0)
        g_set_error(error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT,
                    "it begins with <%s>, and not with <system>", name);
    else if (!strcmp(name, "system"))
        fresh = reader->tree->root;
    else if (!strcmp(name, "cpu"))
        fresh = cpu_begin(reader, &element);
    else if (!strcmp(name, "pci"))
        fresh = pci_begin(reader, node, &element);
    else if (!strcmp(name, "gpu"))
        gpu_begin(node, &element);
    else if (!strcmp(name, "nic"))
        fresh = nic_begin(node);
    else if (!strcmp(name, "net") && node->kind == TOPO_NIC)
        net_begin(node, &element);
    else if (!strcmp(name, "nvlink") && node->kind == TOPO_GPU)
        nvlink_begin(node, &element);
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
    reader_t reader = {
        topo_tree_new(source), NULL, g_ptr_array_new(), NULL,
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    GMarkupParseContext *context = g_markup_parse_context_new(
        &parser, G_MARKUP_PREFIX_ERROR_POSITION, &reader, NULL);
    GError *error = NULL;
    const bool good = g_markup_parse_context_parse(context, text, -1, &error) &&
                      g_markup_parse_context_end_parse(context, &error);

    g_markup_parse_context_free(context);
    g_ptr_array_unref(reader.open);
    g_hash_table_unref(reader.seen);
    g_free(reader.host);
    if (good) {
        topo_tree_end(reader.tree);
        return reader.tree;
    }
    *ret_problem = g_strdup_printf("%s: %s", source, error->message);
    g_error_free(error);
    topo_tree_free(reader.tree);
    return NULL;
}
