/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes of a world's ranks, as far as this machine can see them: who
 * they are, and which of them have ended. */
#ifndef LIB_PROCESSES_H
#define LIB_PROCESSES_H

#include "lib/base/failure.h"
#include "lib/base/node.h"
#include "lib/store/store.h"

#include <stddef.h>
#include <stdint.h>

typedef struct dscomm_processes dscomm_processes_t;

/* Of size ranks, of which nothing is known yet, NULL where there is no memory;
 * and the end of it. */
dscomm_processes_t *dscomm_priv_processes_new(int size);
void dscomm_priv_processes_free(dscomm_processes_t *processes);

/* Takes note of a rank's process, unless it is known; node and host are those
 * of its member record. */
void dscomm_priv_processes_add(dscomm_processes_t *processes, int rank,
                               int64_t pid, const char *node, const char *host);
/* Takes note of the process that a rank's member record, text as the store has
 * it, tells of. */
void dscomm_priv_processes_note(dscomm_processes_t *processes, int rank,
                                const void *text, size_t size);
/* The same for those of ranks (NULL: of the first count ranks) that are not
 * known yet, from store, a view of the world's keys, where all of them are.
 * Returns the status of the store. */
dscomm_status_t dscomm_priv_processes_learn(dscomm_processes_t *processes,
                                            dscomm_store_t *store,
                                            const int *ranks, int count);

/* Makes this process's end known to whoever looks: by a last will in store, a
 * view of the world's keys, if its server keeps one, until it is withdrawn.
 * Returns the status of the store. */
dscomm_status_t dscomm_priv_processes_leave_will(dscomm_store_t *store,
                                                 int rank);
void dscomm_priv_processes_withdraw_will(dscomm_store_t *store);
/* Where store, a view of the world's keys, has the last wills of the ranks that
 * have ended, wherever they were: for dscomm_priv_store_look(). And reads them
 * after it; those that cannot be read count as before. */
dscomm_priv_look_t dscomm_priv_processes_key(dscomm_store_t *store);
void dscomm_priv_processes_read(dscomm_processes_t *processes,
                                const dscomm_priv_look_t *look);

/* The first of the ranks below count, but for own, whose last will was carried
 * out, or -1. */
int dscomm_priv_processes_died(dscomm_processes_t *processes, int count,
                               int own);

/* 1 where the rank's process has ended, dead or not yet reaped by its parent; 0
 * where it lives or is not known. Of another machine's this is known after
 * dscomm_priv_processes_read(). */
int dscomm_priv_processes_ended(dscomm_processes_t *processes, int rank);

/* The pid of a process that is known and on this machine, so that its end is
 * seen; else 0. */
int64_t dscomm_priv_processes_pid(dscomm_processes_t *processes, int rank);

/* The pid of a rank's process and, in node, the name of its host; 0 and "" if
 * they are not known. */
int64_t dscomm_priv_processes_find(dscomm_processes_t *processes, int rank,
                                   char node[DSCOMM_NODE_MAX]);
/* The same as dscomm_priv_process_describe() writes it; returns text. */
const char *dscomm_priv_processes_describe(dscomm_processes_t *processes,
                                           int rank,
                                           char text[DSCOMM_PROCESS_MAX]);

#endif
