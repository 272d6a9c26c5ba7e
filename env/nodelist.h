/* SPDX-License-Identifier: BSD-3-Clause */
/* Slurm's lists of nodes and of tasks, as in SLURM_STEP_NODELIST and
 * SLURM_STEP_TASKS_PER_NODE. */
#ifndef ENV_NODELIST_H
#define ENV_NODELIST_H

#include "env/view.h"

#include <stdint.h>

/* Writes the first host of a list as "rack[1-2]-n[08-10],login" to *ret_host,
 * to be freed; the whole list is checked before. Elements are separated by
 * commas or blanks outside of brackets; each element is at most 65536 hosts, a
 * host at most 255 bytes of letters, digits, '-', '_' and '.'. */
env_problem_t dscomm_priv_nodelist_first(const char *text, char **ret_host);

/* Reads a list such as "2(x3),1": 2, 2, 2 and 1 tasks. */
typedef struct {
    int64_t nodes;
    int64_t tasks; /* of all nodes */
    int64_t here; /* of the node asked for; -1: there is no such node */
} env_tasks_t;

env_problem_t dscomm_priv_tasks(const char *text, int64_t node,
                                env_tasks_t *ret_tasks);

#endif
