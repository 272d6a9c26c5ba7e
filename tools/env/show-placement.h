/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env --placement`. */
#ifndef TOOLS_ENV_PLACEMENT_H
#define TOOLS_ENV_PLACEMENT_H

#include <dscomm/env.h>
#include <glib.h>

typedef struct {
    const char *devices; /* PCI addresses with commas between, or NULL */
    gboolean rebind, json;
} tool_env_placement_t;

/* Appends to text what is advised. Other than TOOL_OK: a sentence went to
 * stderr. */
int tool_env_placement(const dscomm_env_t *env,
                       const tool_env_placement_t *options, GString *text);

/* Appends an object with the reason why nothing can be advised. */
void tool_env_placement_error(const char *sentence, GString *text);

/* Does it. No thread may have been started. */
int tool_env_bind(const dscomm_env_t *env, const tool_env_placement_t *options);

#endif
