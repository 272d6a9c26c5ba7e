/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding: the processors on which each rank of this node may run. */
#ifndef TOOLS_BIND_H
#define TOOLS_BIND_H

#include "env/affinity.h"

/* The binding of each rank; a rank without a mask is not bound. */
typedef struct {
    dscomm_affinity_t *ranks; /* NULL: no rank is bound */
    int *cores; /* of each rank */
    int count;
} tool_binding_t;

/* Returns an exit status: TOOL_OK if text is a word of --bind; else TOOL_USAGE,
 * and a sentence goes to stderr. */
int tool_bind_check(const char *text);

/* Chooses the processors of so many ranks by a word of --bind, which is
 * correct, or NULL. A sentence goes to stderr if a rank is not bound, for
 * example because there are more ranks than cores. No other thread may
 * exist. */
tool_binding_t tool_bind_choose(const char *command, const char *text,
                                int ranks);
void tool_bind_free(tool_binding_t *binding);

/* Binds this process as rank; only system calls. */
void tool_bind_apply(const tool_binding_t *binding, int rank);

/* The number of cores of a rank; 1 if it is not bound. */
int tool_bind_cores(const tool_binding_t *binding, int rank);

#endif
