/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that this process may still take. */
#ifndef TOOLS_MEMORY_H
#define TOOLS_MEMORY_H

#include <glib.h>

/* Returns the bytes that processes of this host, or of its container, can still
 * allocate, as far as known, but for some that others need. */
gsize tool_memory_available(void);

#endif
