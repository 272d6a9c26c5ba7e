/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that this server has not served, because their job secret is
 * another than the server's, or only one of both has one. Such a process
 * reports that before it gives up, on a connection of its own, so that the
 * members of its job do not wait for it.
 *
 * The server keeps the reports under REFUSED_KEY, where whoever waits looks for
 * them (dscomm_priv_roster_refused()). Everyone can report. The kernel tells
 * which reports are from a process of the server's user on this machine: such a
 * report can end a start-up. All others are part of the sentence after the
 * start-up has failed for want of members. */
#ifndef LIB_STORE_REFUSED_H
#define LIB_STORE_REFUSED_H

#include "lib/store/tcp/socket.h"

/* Text: a line with the number of reports, and with 1 if the server has a
 * secret; then one with four fields, tabs between them, for each report that is
 * kept: 1 if the kernel vouches for it, its world, the address, the process. */
#define REFUSED_KEY "dscomm/refused"
#define REFUSED_LOOKUPS_MAX 16 /* reports whose user a server looks for */
#define REFUSED_KEPT_MAX 4 /* reports of strangers that are kept */
#define REFUSED_TEXT_MAX                                                       \
    ((REFUSED_LOOKUPS_MAX + REFUSED_KEPT_MAX) *                                \
     (sizeof(dscomm_priv_rank_t) + SOCKET_NAME_MAX + 8))

typedef struct {
    bool guarded, quiet; /* the server has a secret; logs no report */
    char world[sizeof((dscomm_priv_rank_t *)NULL)->world]; /* the server's */
    unsigned count, lookups, strangers; /* reports; lookups; strangers kept */
    char kept[REFUSED_TEXT_MAX]; /* their lines */
} dscomm_priv_refused_t;

/* world: of the job that the server serves; "": not known. */
void dscomm_priv_refused_init(dscomm_priv_refused_t *refused, const char *world,
                              bool guarded, bool quiet);
/* rank reports on the connection fd, from peer. */
void dscomm_priv_refused_note(dscomm_priv_refused_t *refused, int fd,
                              const char *peer, const dscomm_priv_rank_t *rank);
/* The value of REFUSED_KEY; g_free(). */
char *dscomm_priv_refused_text(const dscomm_priv_refused_t *refused);

#endif
