/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs and NICs of a machine, by hwloc. */
#ifndef ENV_DEVICES_H
#define ENV_DEVICES_H

#include "env/topology.h"

/* Whether a PCI device is a GPU that computes. */
bool dscomm_priv_device_is_gpu(hwloc_obj_t device);

/* Returns the system's device of a NIC, that for RDMA first; NULL: the PCI
 * device is no NIC. */
hwloc_obj_t dscomm_priv_device_nic(hwloc_obj_t device);

/* Returns a PCI address as "0000:1a:00.0"; g_free(). */
char *dscomm_priv_pci_text(const struct hwloc_pcidev_attr_s *pci);

/* Converts a PCI address, in any form that tools print, to that form; NULL if
 * text is not a PCI address; g_free(). */
char *dscomm_priv_pci_address(const char *text);

/* Returns the PCI addresses of the GPUs that a program sees, in its order:
 * those that visible lists, a value of CUDA_VISIBLE_DEVICES, by numbers or, on
 * this machine, by names, for which NVML is loaded; NULL: all. To be
 * freed by g_strfreev(). NULL and *ret_problem, g_free(): there is none, or
 * they are not known. */
char **dscomm_priv_devices_visible(const dscomm_topology_t *topology,
                                   const char *visible, char **ret_problem);

/* Returns the name of the NIC nearest to an object, that is with the longest
 * common path from the machine; of several which are equally near, the one for
 * this local rank. If any NIC is for RDMA, only such ones count. NULL: there is
 * none, or the topology has no devices. */
const char *dscomm_priv_nic_nearest(const dscomm_topology_t *topology,
                                    hwloc_obj_t object, int local_rank);

#endif
