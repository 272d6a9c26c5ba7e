/* SPDX-License-Identifier: BSD-3-Clause */
/* NVLinks by NVML, see nvml.h. */
#include "config.h"

#include "tools/topo/nvml.h"

#include "env/nvml.h"

#define LINKS_MOST 18 /* NVML_NVLINK_MAX_LINKS */
#define ENABLED 1

static void links_add(const dscomm_nvml_t *nvml, const topo_tree_t *tree,
                      void *device, topo_node_t *gpu)
{
    for (unsigned link = 0; link < LINKS_MOST; link++) {
        dscomm_nvml_pci_t remote = {.domain = 0};
        char *target;
        int state = 0;

        if (nvml->link_state(device, link, &state) != DSCOMM_NVML_SUCCESS ||
            state != ENABLED ||
            nvml->link_remote(device, link, &remote) != DSCOMM_NVML_SUCCESS)
            continue;
        target = dscomm_priv_nvml_address(&remote);
        topo_nvlink_add(
            gpu, target,
            topo_tree_find(tree, target) ? gpu->class : TOPO_NVSWITCH, 1);
        g_free(target);
    }
}

static void gpu_add(const dscomm_nvml_t *nvml, const topo_tree_t *tree,
                    unsigned index)
{
    char name[96] = "";
    dscomm_nvml_pci_t pci = {.domain = 0};
    void *device = NULL;
    topo_node_t *gpu;
    char *address;

    if (nvml->get(index, &device) != DSCOMM_NVML_SUCCESS ||
        nvml->pci(device, &pci) != DSCOMM_NVML_SUCCESS)
        return;
    address = dscomm_priv_nvml_address(&pci);
    gpu = topo_tree_find(tree, address);
    g_free(address);
    if (!gpu)
        return;
    if (nvml->name(device, name, sizeof name) == DSCOMM_NVML_SUCCESS) {
        g_free(gpu->name);
        gpu->name = g_strdup(name);
    }
    links_add(nvml, tree, device, gpu);
}

const char *topo_nvml_add(topo_tree_t *tree)
{
    dscomm_nvml_t nvml;
    const char *why = dscomm_priv_nvml_start(&nvml);
    unsigned count = 0;

    if (why)
        return why;
    if (nvml.count(&count) == DSCOMM_NVML_SUCCESS)
        for (unsigned i = 0; i < count; i++)
            gpu_add(&nvml, tree, i);
    nvml.shutdown();
    return NULL;
}
