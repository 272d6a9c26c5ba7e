/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON for the tools: writing and reading. Texts may be any bytes; in JSON
 * they are UTF-8. */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <json-glib/json-glib.h>
#include <stdbool.h>

/* Adds a value: a member if name is not NULL, else an element of an array. */
void tool_json_object(JsonBuilder *builder, const char *name);
void tool_json_array(JsonBuilder *builder, const char *name);
void tool_json_flag(JsonBuilder *builder, const char *name, bool flag);
void tool_json_number(JsonBuilder *builder, const char *name, gint64 number);
/* Adds the number that the format of printf(3) prints, or a whole number if
 * format is NULL; null if it is not finite. */
void tool_json_real(JsonBuilder *builder, const char *name, const char *format,
                    double number);
/* NULL becomes null. */
void tool_json_text(JsonBuilder *builder, const char *name, const char *text);
/* Adds an array of texts; NULL is an empty one. */
void tool_json_texts(JsonBuilder *builder, const char *name,
                     char *const *texts);

/* Appends the JSON and a newline to text; frees builder. */
void tool_json_end(JsonBuilder *builder, bool pretty, GString *text);

/* A member of node; NULL if there is none, or node is NULL or no object. */
JsonNode *tool_json_get(JsonNode *node, const char *name);
/* Like tool_json_get(), for a member of a certain type: NULL, or 0, if the
 * member is of another type. */
const char *tool_json_get_text(JsonNode *node, const char *name);
double tool_json_get_number(JsonNode *node, const char *name);
JsonArray *tool_json_get_array(JsonNode *node, const char *name);

#endif
