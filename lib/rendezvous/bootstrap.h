/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that cannot know where rank 0 is, but that their launcher has connected
 * in a backend's way, are told so by that backend: rank 0 serves the store at a
 * free port. */
#ifndef LIB_BOOTSTRAP_H
#define LIB_BOOTSTRAP_H

#include "lib/rendezvous/rendezvous.h"

/* For a join whose place is to be asked for. Sets url and job, and size where
 * that is not known. Without a backend that can tell, url stays as it is; then
 * one that is NULL is ERR_ENVIRONMENT with join->problem. */
dscomm_status_t dscomm_priv_bootstrap(dscomm_join_t *join);

#endif
