/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding of this process as DSCOMM_BIND says. */
#ifndef ENV_BIND_H
#define ENV_BIND_H

#include <dscomm/status.h>

/* Binds all threads of this process, which is this rank of a world, if
 * DSCOMM_BIND is set; the first call of a process does it for all its worlds.
 * The result is logged; a rank that cannot be bound goes on.
 * ERR_ENVIRONMENT if the value is malformed, ERR_UNSUPPORTED if this libdscomm
 * was built without hwloc. */
dscomm_status_t dscomm_priv_bind(int rank, int world_size);

#endif
