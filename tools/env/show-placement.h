/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env --placement`. */
#ifndef TOOLS_ENV_PLACEMENT_H
#define TOOLS_ENV_PLACEMENT_H

#include <dscomm/env.h>
#include <glib.h>

typedef struct {
    const char *devices; /* PCI addresses, separated by commas; or NULL */
    gboolean rebind, json;
} tool_env_placement_t;

/* Appends the placement to text, or, as JSON, the reason why there is none.
 * Returns the exit status. */
int tool_env_placement(const dscomm_env_t *env,
                       const tool_env_placement_t *options, GString *text);

/* Binds the process. No other thread may exist. */
int tool_env_bind(const dscomm_env_t *env, const tool_env_placement_t *options);

#endif
