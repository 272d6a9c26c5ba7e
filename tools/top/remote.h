/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of other nodes, whose dscomm run samples them on request. */
#ifndef TOOLS_REMOTE_H
#define TOOLS_REMOTE_H

#include "tools/common/sample.h"

#include <dscomm/store.h>

typedef struct {
    int nodes, own; /* number of nodes, and this one's */
    dscomm_store_t *store; /* of the job; NULL: there is one node */
} remote_t;

/* Finds the store of a job of several nodes in the environment of one of its
 * ranks. Returns NULL, or a sentence if the other nodes cannot be asked;
 * g_free(). */
char *remote_open(remote_t *remote, const GArray *samples);
/* Adds the samples of the other nodes, about a second old, and asks for the
 * next ones. */
void remote_add(remote_t *remote, GArray *samples);
void remote_close(remote_t *remote);

#endif
