/* SPDX-License-Identifier: BSD-3-Clause */
/* NVLinks by NVML, see nvml.h. */
#include "config.h"

#include "tools/topo/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#define LINKS_MOST 18 /* NVML_NVLINK_MAX_LINKS */
#define SUCCESS 0
#define ENABLED 1
/* nvmlPciInfo_t */
typedef struct {
    char bus_legacy[16];
    unsigned domain, bus, device, ids, subsystem;
    char bus_id[32];
} pci_t;

typedef struct {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*get)(unsigned index, void **device);
    int (*pci)(void *device, pci_t *pci);
    int (*name)(void *device, char *name, unsigned size);
    int (*link_state)(void *device, unsigned link, int *state);
    int (*link_remote)(void *device, unsigned link, pci_t *pci);
} nvml_t;

#define SLOT(member, symbol)                                                   \
    {                                                                          \
        offsetof(nvml_t, member), symbol                                       \
    }
static const struct {
    size_t offset;
    const char *symbol;
} slots[] = {
    SLOT(init, "nvmlInit_v2"),
    SLOT(shutdown, "nvmlShutdown"),
    SLOT(count, "nvmlDeviceGetCount_v2"),
    SLOT(get, "nvmlDeviceGetHandleByIndex_v2"),
    SLOT(pci, "nvmlDeviceGetPciInfo_v3"),
    SLOT(name, "nvmlDeviceGetName"),
    SLOT(link_state, "nvmlDeviceGetNvLinkState"),
    SLOT(link_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2"),
};

static bool nvml_load(void *library, nvml_t *ret_nvml)
{
    for (size_t i = 0; i < G_N_ELEMENTS(slots); i++) {
        void *function = dlsym(library, slots[i].symbol);

        if (!function)
            return false;
        *(void **)((char *)ret_nvml + slots[i].offset) = function;
    }
    return true;
}

static char *address_of(const pci_t *pci)
{
    return g_strdup_printf("%04x:%02x:%02x.0", pci->domain, pci->bus,
                           pci->device);
}

static void links_add(const nvml_t *nvml, const topo_tree_t *tree, void *device,
                      topo_node_t *gpu)
{
    for (unsigned link = 0; link < LINKS_MOST; link++) {
        pci_t remote = {.domain = 0};
        char *target;
        int state = 0;

        if (nvml->link_state(device, link, &state) != SUCCESS ||
            state != ENABLED ||
            nvml->link_remote(device, link, &remote) != SUCCESS)
            continue;
        target = address_of(&remote);
        topo_nvlink_add(
            gpu, target,
            topo_tree_find(tree, target) ? gpu->class : TOPO_NVSWITCH, 1);
        g_free(target);
    }
}

static void gpu_add(const nvml_t *nvml, const topo_tree_t *tree, unsigned index)
{
    char name[96] = "";
    pci_t pci = {.domain = 0};
    void *device = NULL;
    topo_node_t *gpu;
    char *address;

    if (nvml->get(index, &device) != SUCCESS ||
        nvml->pci(device, &pci) != SUCCESS)
        return;
    address = address_of(&pci);
    gpu = topo_tree_find(tree, address);
    g_free(address);
    if (!gpu)
        return;
    if (nvml->name(device, name, sizeof name) == SUCCESS) {
        g_free(gpu->name);
        gpu->name = g_strdup(name);
    }
    links_add(nvml, tree, device, gpu);
}

const char *topo_nvml_add(topo_tree_t *tree)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    unsigned count = 0;
    nvml_t nvml;

    if (!library)
        return dlerror();
    if (!nvml_load(library, &nvml))
        return "libnvidia-ml.so.1 is too old";
    if (nvml.init() != SUCCESS)
        return "NVML does not start";
    if (nvml.count(&count) == SUCCESS)
        for (unsigned i = 0; i < count; i++)
            gpu_add(&nvml, tree, i);
    nvml.shutdown();
    dlclose(library);
    return NULL;
}
