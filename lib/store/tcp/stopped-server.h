/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a TCP store does not answer: its server is a process of this machine that
 * is stopped, whoever has started it. Asks the kernel, and never the store. */
#ifndef LIB_STOPPED_SERVER_H
#define LIB_STOPPED_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* Writes "the store at PEER does not answer" to text, which has size bytes; and
 * if its server, whose address is given, is stopped on this machine,
 * ": its server (pid 812) is stopped by a signal". by_rank_0: rank 0 is the
 * server, and called so. */
void dscomm_priv_stopped_server(const char *peer,
                                const struct sockaddr_storage *address,
                                bool by_rank_0, char *text, size_t size);

#endif
