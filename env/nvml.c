/* SPDX-License-Identifier: BSD-3-Clause */
/* NVIDIA's management library, see nvml.h. */
#include "config.h"

#include "env/nvml.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

#define SLOT(member, symbol)                                                   \
    {                                                                          \
        offsetof(dscomm_nvml_t, member), symbol                                \
    }
/* Those before OPTIONAL must be there. */
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
    SLOT(get_by_uuid, "nvmlDeviceGetHandleByUUID"),
    SLOT(mig_parent, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle"),
    SLOT(uuid, "nvmlDeviceGetUUID"),
};
#define OPTIONAL (G_N_ELEMENTS(slots) - 3)

const char *dscomm_priv_nvml_start(dscomm_nvml_t *ret_nvml)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    *ret_nvml = (dscomm_nvml_t){0};
    if (!library)
        return dlerror();
    for (size_t i = 0; i < G_N_ELEMENTS(slots); i++) {
        void *function = dlsym(library, slots[i].symbol);

        if (!function && i < OPTIONAL)
            return "libnvidia-ml.so.1 is too old";
        *(void **)((char *)ret_nvml + slots[i].offset) = function;
    }
    return ret_nvml->init() == DSCOMM_NVML_SUCCESS ? NULL
                                                   : "NVML does not start";
}

char *dscomm_priv_nvml_address(const dscomm_nvml_pci_t *pci)
{
    return g_strdup_printf("%04x:%02x:%02x.0", pci->domain, pci->bus,
                           pci->device);
}

/* Finds the GPUs whose UUID begins like this. Returns their number, and the
 * last one. */
static int gpus_find(const dscomm_nvml_t *nvml, const char *begin,
                     void **ret_device)
{
    unsigned count = 0;
    int found = 0;

    if (nvml->count(&count) != DSCOMM_NVML_SUCCESS)
        return 0;
    for (unsigned i = 0; i < count; i++) {
        char uuid[DSCOMM_NVML_UUID_MOST] = "";
        void *device = NULL;

        if (nvml->get(i, &device) != DSCOMM_NVML_SUCCESS ||
            nvml->uuid(device, uuid, sizeof uuid) != DSCOMM_NVML_SUCCESS ||
            !g_str_has_prefix(uuid, begin))
            continue;
        *ret_device = device;
        found++;
    }
    return found;
}

/* Returns how many devices have this name, and the last one's GPU. */
static int devices_find(const dscomm_nvml_t *nvml, const char *name,
                        void **ret_device)
{
    void *part = NULL;

    if (!g_str_has_prefix(name, "MIG-"))
        return gpus_find(nvml, name, ret_device);
    return nvml->get_by_uuid(name, &part) == DSCOMM_NVML_SUCCESS &&
           nvml->mig_parent(part, ret_device) == DSCOMM_NVML_SUCCESS;
}

char *dscomm_priv_nvml_find(const dscomm_nvml_t *nvml, const char *name,
                            char **ret_problem)
{
    dscomm_nvml_pci_t pci = {.domain = 0};
    void *device = NULL;
    const bool can = nvml->uuid && (!g_str_has_prefix(name, "MIG-") ||
                                    (nvml->get_by_uuid && nvml->mig_parent));
    int found;

    if (!can) {
        *ret_problem = g_strdup_printf(
            "CUDA_VISIBLE_DEVICES: NVML is too old to know %s; give numbers, "
            "or update the driver",
            name);
        return NULL;
    }
    found = devices_find(nvml, name, &device);
    if (found == 1 && nvml->pci(device, &pci) == DSCOMM_NVML_SUCCESS)
        return dscomm_priv_nvml_address(&pci);
    *ret_problem = g_strdup_printf(
        found > 1 ? "CUDA_VISIBLE_DEVICES: several GPUs have names that begin "
                    "with %s; give more of it"
                  : "CUDA_VISIBLE_DEVICES: NVML knows no device %s, or not its "
                    "PCI address; nvidia-smi -L lists them",
        name);
    return NULL;
}
