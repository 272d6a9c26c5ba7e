/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees as the XML files of NCCL (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE). */
#ifndef TOOLS_TOPO_NCCL_H
#define TOOLS_TOPO_NCCL_H

#include "tools/topo/tree.h"

/* Whether text begins like such a file. */
bool topo_is_nccl(const char *text);
/* NULL, and why, to be freed, if text is none. */
topo_tree_t *topo_nccl_read(const char *source, const char *text,
                            char **ret_problem);
/* Appends the XML of tree. */
void topo_nccl_write(const topo_tree_t *tree, GString *text);

#endif
