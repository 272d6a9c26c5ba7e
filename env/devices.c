/* SPDX-License-Identifier: BSD-3-Clause */
/* GPUs and NICs, see devices.h. */
#include "config.h"

#include "env/devices.h"

#include "env/nvidia.h"
#include "env/nvml.h"

#include <stdio.h>
#include <string.h>

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

bool dscomm_priv_device_is_gpu(hwloc_obj_t device)
{
    const struct hwloc_pcidev_attr_s *pci = &device->attr->pcidev;

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

hwloc_obj_t dscomm_priv_device_nic(hwloc_obj_t device)
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

static char *address_text(unsigned domain, unsigned bus, unsigned device,
                          unsigned function)
{
    return g_strdup_printf("%04x:%02x:%02x.%x", domain, bus, device, function);
}

char *dscomm_priv_pci_text(const struct hwloc_pcidev_attr_s *pci)
{
    return address_text((unsigned)pci->domain, pci->bus, pci->dev, pci->func);
}

char *dscomm_priv_pci_address(const char *text)
{
    unsigned domain, bus, device, function;
    int end = 0;

    if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function,
               &end) != 4) {
        domain = 0;
        end = 0;
        if (sscanf(text, "%2x:%2x.%1x%n", &bus, &device, &function, &end) != 3)
            return NULL;
    }
    if (text[end] || text[strspn(text, "0123456789abcdefABCDEF:.")] ||
        device > 0x1f || function > 7)
        return NULL;
    return address_text(domain, bus, device, function);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The addresses of all GPUs, in their order: CUDA's, if CUDA_DEVICE_ORDER is
 * PCI_BUS_ID or the GPUs are alike. If NVIDIA's are among them, they are those
 * that its driver lets this process use. *ret_reason: why there is none. */
static GPtrArray *list_gpus(const dscomm_topology_t *topology,
                            const char **ret_reason)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(g_free), *usable = NULL;
    hwloc_obj_t device = NULL;
    bool nvidia = false;

    while ((device = hwloc_get_next_pcidev(topology->hwloc, device))) {
        if (!dscomm_priv_device_is_gpu(device))
            continue;
        g_ptr_array_add(all, dscomm_priv_pci_text(&device->attr->pcidev));
        nvidia = nvidia || device->attr->pcidev.vendor_id == VENDOR_NVIDIA;
    }
    if (nvidia && !topology->is_other)
        usable = dscomm_priv_nvidia_gpus("");
    *ret_reason = usable ? "this process may use none of NVIDIA's GPUs"
                         : "hwloc finds no GPU";
    if (usable) {
        g_ptr_array_unref(all);
        all = usable;
    }
    g_ptr_array_sort(all, compare_texts);
    return all;
}

/* Whether a word is a name as nvidia-smi -L prints them. */
static bool is_name(const char *word)
{
    return g_str_has_prefix(word, "GPU-") || g_str_has_prefix(word, "MIG-");
}

/* Reads a number; one that gint64 cannot hold is G_MAXINT64. */
static bool number_read(const char *word, gint64 *ret_number)
{
    GError *error = NULL;
    bool known = g_ascii_string_to_signed(word, 10, G_MININT64, G_MAXINT64,
                                          ret_number, &error);

    if (g_error_matches(error, G_NUMBER_PARSER_ERROR,
                        G_NUMBER_PARSER_ERROR_OUT_OF_BOUNDS)) {
        *ret_number = G_MAXINT64;
        known = true;
    }
    g_clear_error(&error);
    return known;
}

/* Adds the address of the GPU with a name of NVIDIA's. Returns NULL, or why it
 * is not known; g_free(). */
static char *name_add(const dscomm_nvml_t *nvml, const char *name,
                      GPtrArray *chosen)
{
    char *problem = NULL;
    char *address = dscomm_priv_nvml_find(nvml, name, &problem);

    if (address)
        g_ptr_array_add(chosen, address);
    return problem;
}

/* Like CUDA, ends at the first number that no GPU has. Returns NULL, or why a
 * word is neither a number nor a name that is known; g_free(). nvml is NULL if
 * there are no names. */
static char *words_add(const GPtrArray *all, char *const *words,
                       const dscomm_nvml_t *nvml, GPtrArray *chosen)
{
    char *problem = NULL;

    for (; *words && !problem; words++) {
        gint64 number;

        if (nvml && is_name(*words)) {
            problem = name_add(nvml, *words, chosen);
            continue;
        }
        if (!number_read(*words, &number))
            return g_strdup("CUDA_VISIBLE_DEVICES has names in place of "
                            "numbers; give numbers there");
        if (number < 0 || number >= (gint64)all->len)
            break;
        g_ptr_array_add(chosen,
                        g_strdup(g_ptr_array_index(all, (guint)number)));
    }
    return problem;
}

/* Adds the GPUs that the list shows. Returns NULL, or why they are not known;
 * g_free(). NVML knows only this machine's. */
static char *visible_add(const dscomm_topology_t *topology,
                         const GPtrArray *all, const char *visible,
                         GPtrArray *chosen)
{
    char **words = g_strsplit(visible, ",", -1), *problem = NULL;
    const char *why = NULL;
    dscomm_nvml_t nvml;
    bool named = false;

    for (char **word = words; *word; word++)
        named = is_name(g_strstrip(*word)) || named;
    named = named && !topology->is_other;
    if (named)
        why = dscomm_priv_nvml_start(&nvml);
    if (why)
        problem =
            g_strdup_printf("CUDA_VISIBLE_DEVICES has names in place of "
                            "numbers, which only NVML knows: %s; give numbers "
                            "there",
                            why);
    else
        problem = words_add(all, words, named ? &nvml : NULL, chosen);
    if (named && !why)
        nvml.shutdown();
    g_strfreev(words);
    return problem;
}

char **dscomm_priv_devices_visible(const dscomm_topology_t *topology,
                                   const char *visible, char **ret_problem)
{
    const char *reason = NULL;
    GPtrArray *all = list_gpus(topology, &reason), *chosen = all;
    char *problem = all->len ? NULL : g_strdup(reason);

    if (all->len && visible) {
        chosen = g_ptr_array_new_with_free_func(g_free);
        problem = *visible ? visible_add(topology, all, visible, chosen) : NULL;
        g_ptr_array_unref(all);
        if (!problem && !chosen->len)
            problem = g_strdup("CUDA_VISIBLE_DEVICES shows no GPU");
    }
    if (problem) {
        *ret_problem = problem;
        g_ptr_array_unref(chosen);
        return NULL;
    }
    g_ptr_array_add(chosen, NULL);
    return (char **)g_ptr_array_free(chosen, FALSE);
}

static int depth_of(hwloc_obj_t object)
{
    int depth = 0;

    while ((object = object->parent))
        depth++;
    return depth;
}

/* The depth of the lowest object that both are or are below. */
static int common_depth(hwloc_obj_t a, hwloc_obj_t b)
{
    int depth_a = depth_of(a), depth_b = depth_of(b);

    for (; depth_a > depth_b; depth_a--)
        a = a->parent;
    for (; depth_b > depth_a; depth_b--)
        b = b->parent;
    for (; a != b; depth_a--) {
        a = a->parent;
        b = b->parent;
    }
    return depth_a;
}

/* The first NIC after prev, of all or of those for RDMA. */
static hwloc_obj_t next_nic(const dscomm_topology_t *topology, bool rdma,
                            hwloc_obj_t prev)
{
    while ((prev = hwloc_get_next_pcidev(topology->hwloc, prev))) {
        const hwloc_obj_t nic = dscomm_priv_device_nic(prev);

        if (nic &&
            (!rdma || nic->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS))
            return prev;
    }
    return NULL;
}

const char *dscomm_priv_nic_nearest(const dscomm_topology_t *topology,
                                    hwloc_obj_t object, int local_rank)
{
    const bool rdma = next_nic(topology, true, NULL) != NULL;
    GPtrArray *near = g_ptr_array_new();
    const char *name = NULL;
    hwloc_obj_t nic = NULL;
    int most = -1;

    while ((nic = next_nic(topology, rdma, nic))) {
        const int depth = common_depth(nic, object);

        if (depth > most)
            g_ptr_array_set_size(near, 0);
        if (depth >= most)
            g_ptr_array_add(near, nic);
        most = MAX(most, depth);
    }
    if (near->len) {
        nic = g_ptr_array_index(near, (guint)local_rank % near->len);
        name = dscomm_priv_device_nic(nic)->name;
    }
    g_ptr_array_free(near, TRUE);
    return name;
}
