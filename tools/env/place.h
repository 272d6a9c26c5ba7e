/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env --place`. */
#ifndef TOOLS_ENV_PLACE_H
#define TOOLS_ENV_PLACE_H

#include <dscomm/env.h>
#include <glib.h>

typedef struct {
    const char *bind; /* as DSCOMM_BIND, which NULL stands for */
    const char *devices; /* PCI addresses, separated by commas; or NULL */
    const char *input; /* hwloc's XML of another machine, or NULL */
    int ranks; /* show so many ranks of a node; 0: this one */
    gboolean json;
} tool_env_place_t;

/* Appends the placement to text, or, as JSON, the reason why there is none.
 * Returns the exit status. */
int tool_env_place(const dscomm_env_t *env, const tool_env_place_t *options,
                   GString *text);

/* Binds the process. No other thread may exist. */
int tool_env_bind(const dscomm_env_t *env, const tool_env_place_t *options);

#endif
