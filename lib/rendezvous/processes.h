/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes of a world's ranks: their pids and hosts, and which of them
 * have ended, as far as this machine can know. */
#ifndef LIB_PROCESSES_H
#define LIB_PROCESSES_H

#include "lib/base/failure.h"
#include "lib/base/node.h"
#include "lib/store/store.h"

#include <stddef.h>
#include <stdint.h>

typedef struct dscomm_processes dscomm_processes_t;

/* new makes an object for so many ranks, of which nothing is known yet; NULL
 * without memory. */
dscomm_processes_t *dscomm_priv_processes_new(int size);
void dscomm_priv_processes_free(dscomm_processes_t *processes);

/* Records a rank's process, unless it is known; node and host are those of its
 * member record. */
void dscomm_priv_processes_add(dscomm_processes_t *processes, int rank,
                               int64_t pid, const char *node, const char *host);
/* Records the process of a rank from its member record, given as text in the
 * store's form. */
void dscomm_priv_processes_note(dscomm_processes_t *processes, int rank,
                                const void *text, size_t size);
/* The same for those of ranks (NULL: of the first count ranks) that are not
 * known yet, from store, a view of the world's keys, where all of them are.
 * Returns the status of the store. */
dscomm_status_t dscomm_priv_processes_learn(dscomm_processes_t *processes,
                                            dscomm_store_t *store,
                                            const int *ranks, int count);

/* leave_will makes the end of this process known: it leaves a last will in
 * store, a view of the world's keys, if its server supports that. withdraw_will
 * takes it back. Returns the status of the store. */
dscomm_status_t dscomm_priv_processes_leave_will(dscomm_store_t *store,
                                                 int rank);
void dscomm_priv_processes_withdraw_will(dscomm_store_t *store);
/* key returns the key of store, a view of the world's keys, that has the
 * executed last wills of all ranks, for dscomm_priv_store_look(). read reads
 * its value after that call. If there is none, no rank has died. */
dscomm_priv_look_t dscomm_priv_processes_key(dscomm_store_t *store);
void dscomm_priv_processes_read(dscomm_processes_t *processes,
                                const dscomm_priv_look_t *look);

/* Returns the first rank below count, except own, whose last will was carried
 * out; or -1. */
int dscomm_priv_processes_died(dscomm_processes_t *processes, int count,
                               int own);

/* 1 if the rank's process has ended, even if its parent has not reaped it; 0 if
 * it lives or is not known. For a process of another machine this is known only
 * after dscomm_priv_processes_read(). */
int dscomm_priv_processes_ended(dscomm_processes_t *processes, int rank);

/* Returns the pid of a known process of this machine; else 0. */
int64_t dscomm_priv_processes_pid(dscomm_processes_t *processes, int rank);

/* Returns the pid of a rank's process, and writes the name of its host to node;
 * 0 and "" if they are not known. */
int64_t dscomm_priv_processes_find(dscomm_processes_t *processes, int rank,
                                   char node[DSCOMM_NODE_MAX]);
/* Describes the process like dscomm_priv_process_describe(); returns text. */
const char *dscomm_priv_processes_describe(dscomm_processes_t *processes,
                                           int rank,
                                           char text[DSCOMM_PROCESS_MAX]);

#endif
