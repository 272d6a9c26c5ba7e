/* SPDX-License-Identifier: BSD-3-Clause */
/* What of a machine matters to an mpirun, read below a root. */
#ifndef TOOLS_ADVICE_MACHINE_H
#define TOOLS_ADVICE_MACHINE_H

#include <glib.h>

typedef struct {
    char *rdma; /* an active device that UCX drives, or NULL */
    char *no_rdma; /* a device that is there, and why UCX does not drive it */
    char *fabric; /* an active device that others drive, or NULL */
    const char *mtl; /* by which Open MPI uses that; NULL: by none */
    gboolean device; /* one is active */
    char *interface, *subnet; /* of the network to use, or NULL */
    gboolean choice; /* there are other interfaces as well */
} tool_advice_machine_t;

/* A file below root, or NULL; g_free(). */
char *tool_root_file(const char *root, const char *path);

/* wanted: interfaces, as of DSCOMM_SOCKET_IFNAME, or NULL. */
void tool_advice_machine_read(const char *root, const char *wanted,
                              tool_advice_machine_t *ret_machine);
void tool_advice_machine_clear(tool_advice_machine_t *machine);

/* One part each (tools/env/advice/network.c). */
void tool_advice_machine_network(const char *root, const char *wanted,
                                 tool_advice_machine_t *machine);

#endif
