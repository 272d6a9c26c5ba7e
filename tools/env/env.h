/* SPDX-License-Identifier: BSD-3-Clause */
/* The outputs of `dscomm env`. */
#ifndef TOOLS_ENV_H
#define TOOLS_ENV_H

#include <dscomm/env.h>
#include <glib.h>

/* For people, lines; explain: each source, too. Appended to text. */
void tool_env_print(const dscomm_env_t *env, gboolean explain, GString *text);

/* One line, an object with everything. */
void tool_env_print_json(const dscomm_env_t *env, gboolean explain,
                         GString *text);

/* As commands of the shell; after dscomm_env_export(). */
void tool_env_print_exports(GString *text);

#endif
