/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env --mpirun`. */
#ifndef TOOLS_ENV_MPIRUN_H
#define TOOLS_ENV_MPIRUN_H

#include "tools/env/advice/advice.h"

#include <stdbool.h>

typedef struct {
    const char *program; /* NULL: all that are found */
    int nodes, ranks_per_node; /* 0: not said */
    bool json;
    char *const *given; /* arguments to judge, or NULL */
} tool_env_mpirun_t;

/* Appends to text; returns the exit status. */
int tool_env_mpirun(const tool_env_mpirun_t *options, GString *text);

/* Appends an object with the reason why there is no advice. */
void tool_env_mpirun_error(const char *sentence, GString *text);

#endif
