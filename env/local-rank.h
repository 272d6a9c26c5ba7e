/* SPDX-License-Identifier: BSD-3-Clause */
/* The local rank by which ranks of a node share its processors. */
#ifndef ENV_LOCAL_RANK_H
#define ENV_LOCAL_RANK_H

#include <dscomm/env.h>

/* With --virtual-local-rank, torchrun sets local rank 0 in all ranks of a node.
 * The true local rank, which this function returns, follows from RANK if all
 * nodes have equally many ranks. -1: unknown. */
int dscomm_priv_true_local_rank(const dscomm_env_t *env);

#endif
