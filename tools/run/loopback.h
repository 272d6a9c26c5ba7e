/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts that only their own machine reaches. */
#ifndef TOOLS_LOOPBACK_H
#define TOOLS_LOOPBACK_H

#include <glib.h>

/* Whether host is an address of the loopback interface, or a name for which
 * the file, such as /etc/hosts, gives one first. No name server is queried,
 * because that may take too long. */
gboolean tool_host_is_loopback(const char *file, const char *host);

#endif
