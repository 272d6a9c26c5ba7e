/* SPDX-License-Identifier: BSD-3-Clause */
/* The outputs of `dscomm env`. */
#ifndef TOOLS_ENV_H
#define TOOLS_ENV_H

#include <dscomm/env.h>
#include <glib.h>
#include <stdbool.h>

/* Appends lines for people to text; explain: with each source. */
void tool_env_print(const dscomm_env_t *env, bool explain, GString *text);

/* Appends one line with an object that has everything. */
void tool_env_print_json(const dscomm_env_t *env, bool explain, GString *text);

/* Appends shell commands; called after dscomm_env_export(). */
void tool_env_print_exports(GString *text);

#endif
