/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tools put into JSON: it is UTF-8, arguments, the environment and
 * names of files are any bytes. */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <json-glib/json-glib.h>

/* NULL becomes null. */
void tool_json_value(JsonBuilder *builder, const char *text);
void tool_json_text(JsonBuilder *builder, const char *name, const char *text);
void tool_json_number(JsonBuilder *builder, const char *name, gint64 number);
/* Frees builder and returns what was built, to be freed. */
char *tool_json_end(JsonBuilder *builder, gboolean pretty);

#endif
