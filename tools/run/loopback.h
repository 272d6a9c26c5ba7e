/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts that only their own machine reaches. */
#ifndef TOOLS_LOOPBACK_H
#define TOOLS_LOOPBACK_H

#include <glib.h>

/* Whether host is an address of the loopback interface, or a name to which the
 * file, as /etc/hosts, gives one first. No name server is asked, which may take
 * longer than anyone waits. */
gboolean tool_host_is_loopback(const char *file, const char *host);

#endif
