/* SPDX-License-Identifier: BSD-3-Clause */
/* The bootstrap is for ranks that do not know rank 0's address, but that a
 * launcher has connected, for example by MPI. The backend sends them the
 * address; rank 0 serves the store at a free port. */
#ifndef LIB_BOOTSTRAP_H
#define LIB_BOOTSTRAP_H

#include "lib/rendezvous/rendezvous.h"

/* Sets url and job of a join with ask set, and size if it is not known. If no
 * backend can do this, url stays; if it is NULL, the status is ERR_ENVIRONMENT
 * with join->problem. */
dscomm_status_t dscomm_priv_bootstrap(dscomm_join_t *join);

#endif
