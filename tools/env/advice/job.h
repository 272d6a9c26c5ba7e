/* SPDX-License-Identifier: BSD-3-Clause */
/* The size of a job, its hosts, and the host of rank 0. */
#ifndef TOOLS_ADVICE_JOB_H
#define TOOLS_ADVICE_JOB_H

#include "tools/env/advice/rules.h"

#define ADVICE_NODES_MAX 100000
#define ADVICE_RANKS_MAX 4096 /* on each node */
#define ADVICE_JOB_MAX (ADVICE_NODES_MAX * ADVICE_RANKS_MAX)

/* Sets the numbers of nodes and ranks: those of the question, else of the
 * given arguments, else of the scheduler, else one node with a rank for each
 * core. Sets facts several, hosts-given, few-slots, hosts and master. */
void tool_advice_job(advice_state_t *state);

#endif
