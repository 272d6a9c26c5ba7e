/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices of all backends, for people and as JSON. */
#ifndef TOOLS_INFO_DEVICES_H
#define TOOLS_INFO_DEVICES_H

#include <json-glib/json-glib.h>

void info_print_devices(void);
/* Adds the member "devices". */
void info_add_devices(JsonBuilder *builder);

#endif
