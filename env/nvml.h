/* SPDX-License-Identifier: BSD-3-Clause */
/* NVIDIA's management library, which is loaded if it is there. */
#ifndef ENV_NVML_H
#define ENV_NVML_H

#include <glib.h>

#define DSCOMM_NVML_SUCCESS 0
#define DSCOMM_NVML_UUID_MOST 96 /* bytes, with the end */

/* nvmlPciInfo_t */
typedef struct {
    char bus_legacy[16];
    unsigned domain, bus, device, ids, subsystem;
    char bus_id[32];
} dscomm_nvml_pci_t;

/* Its functions. All return an nvmlReturn_t. get_by_uuid, mig_parent and uuid
 * are NULL if the library is too old to have them. */
typedef struct {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *ret_count);
    int (*get)(unsigned index, void **ret_device);
    int (*get_by_uuid)(const char *uuid, void **ret_device);
    int (*mig_parent)(void *part, void **ret_device);
    int (*pci)(void *device, dscomm_nvml_pci_t *ret_pci);
    int (*uuid)(void *device, char *uuid, unsigned size);
    int (*name)(void *device, char *name, unsigned size);
    int (*link_state)(void *device, unsigned link, int *ret_state);
    int (*link_remote)(void *device, unsigned link, dscomm_nvml_pci_t *ret_pci);
} dscomm_nvml_t;

/* Loads and starts the library, to be ended by its shutdown; it stays loaded.
 * Returns NULL, or why it is not there; static, or dlerror()'s. */
const char *dscomm_priv_nvml_start(dscomm_nvml_t *ret_nvml);

/* "0000:1a:00.0"; g_free(). */
char *dscomm_priv_nvml_address(const dscomm_nvml_pci_t *pci);

/* Returns the PCI address of the GPU that a name of CUDA_VISIBLE_DEVICES means:
 * a UUID or the beginning of only one, "GPU-8932f937"; or a part of a GPU,
 * "MIG-..." in full. g_free(). NULL: *ret_problem says why, g_free(). */
char *dscomm_priv_nvml_find(const dscomm_nvml_t *nvml, const char *name,
                            char **ret_problem);

#endif
