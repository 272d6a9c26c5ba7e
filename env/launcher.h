/* SPDX-License-Identifier: BSD-3-Clause */
/* Who am I: rank, world size and the master's address, from the environment. */
#ifndef ENV_LAUNCHER_H
#define ENV_LAUNCHER_H

#include <dscomm/status.h>

/* -1 and "" mean: not known. */
typedef struct {
    char source[32]; /* "dscomm", "torchrun", "openmpi", "torch", "singleton" */
    int rank, world_size;
    int local_rank, local_size, node_rank;
    char
        master_addr[256]; /* all ranks on one node: 127.0.0.1 where not given */
    int master_port;
    int agent_store; /* 1: the launcher serves the store */
    char run_id[128]; /* distinguishes jobs and restarts that share a store */
} dscomm_launch_t;

/* Pure function of the lookup: get(name, arg) returns a variable's value or
 * NULL. An empty value counts as unset. All numbers are of one source; only the
 * master's address and port may be of another. Contradictions, half pairs and
 * malformed numbers are ERR_ENVIRONMENT with a sentence that names variable and
 * value. */
dscomm_status_t
dscomm_priv_launch_discover(const char *(*get)(const char *name, void *arg),
                            void *arg, dscomm_launch_t *ret_launch);

#endif
