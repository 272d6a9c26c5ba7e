/* SPDX-License-Identifier: BSD-3-Clause */
/* NVLinks of this machine's GPUs, by NVIDIA's management library, which is
 * loaded if it is there. */
#ifndef TOOLS_TOPO_NVML_H
#define TOOLS_TOPO_NVML_H

#include "tools/topo/tree.h"

/* Adds NVLinks and names to the GPUs of tree. Returns NULL, or why there are
 * none; static, or dlerror()'s. */
const char *topo_nvml_add(topo_tree_t *tree);

#endif
