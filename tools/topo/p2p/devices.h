/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between CUDA devices, and between each and the host. */
#ifndef TOOLS_TOPO_DEVICES_H
#define TOOLS_TOPO_DEVICES_H

#include "tools/topo/p2p/pairs.h"
#include "tools/topo/tree.h"

/* Measures the devices that CUDA shows this process; tree tells how they are
 * connected. NULL and a sentence, g_free(): there is no driver or device, or
 * it failed. */
topo_pairs_t *topo_devices(const topo_tree_t *tree, const topo_copies_t *copies,
                           char **ret_problem);

#endif
