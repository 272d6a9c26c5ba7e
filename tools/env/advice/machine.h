/* SPDX-License-Identifier: BSD-3-Clause */
/* The properties of a machine that matter to an mpirun, read below the root of
 * a question. */
#ifndef TOOLS_ADVICE_MACHINE_H
#define TOOLS_ADVICE_MACHINE_H

#include "tools/env/advice/rules.h"

/* A file below root, or NULL; g_free(). */
char *tool_root_file(const char *root, const char *path);

/* Sets facts device: an RDMA device is active; rdma: one that UCX drives;
 * no_rdma: one that UCX does not drive, and why; fabric: an active device that
 * others drive; mtl: the part of Open MPI that uses fabric. */
void tool_advice_devices(advice_state_t *state);

/* Sets facts wanted: the interfaces that the user names; subnet and interface:
 * the IPv4 network to use; choice: there are others (network.c). */
void tool_advice_network(advice_state_t *state);

#endif
