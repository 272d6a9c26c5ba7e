/* SPDX-License-Identifier: BSD-3-Clause */
/* Member records: what a rank tells the others of its world about itself. */
#ifndef LIB_RECORD_H
#define LIB_RECORD_H

#include "lib/rendezvous/rendezvous.h"

/* Bytes of a record's host; a longer DSCOMM_HOST_ID is cut off. */
#define DSCOMM_HOST_ID_MAX 1024

typedef struct {
    char *memory; /* of all strings; NULL: the record is empty */
    int64_t version, abi, size, pid;
    /* the launcher's; -1: not known */
    int64_t local_rank, local_size, node_rank;
    const char *node; /* host name, for messages */
    const char *host; /* equal text = can share memory */
    /* why this process cannot share memory with others, or "" */
    const char *alone;
    const char *backend; /* asked for */
    const char
        /* names of the modules that it can use, with blanks between and around
         */
        *modules;
    const char
        /* why others are not among them: text, and for each module
         * DSCOMM_RECORD_REASON "NAME: " and a sentence; or "" */
        *why;
    const char *rules; /* DSCOMM_ALGORITHM, or "" */
    const char *processors; /* dscomm_priv_processors_own() */
} dscomm_record_t;

#define DSCOMM_RECORD_REASON " | "

/* Returns why the process of a record cannot use the module named name (to be
 * freed). */
char *dscomm_priv_record_reason(const dscomm_record_t *record,
                                const char *name);

/* Makes this process's record; memory is NULL if there was no memory. */
void dscomm_priv_record_own(const dscomm_join_t *join, dscomm_record_t *record);
/* write returns the record as text for g_free(), or NULL without memory. read
 * returns 0; -1 if text is not a record; 1 without memory. */
char *dscomm_priv_record_write(dscomm_record_t *record);
int dscomm_priv_record_read(const char *text, size_t size,
                            dscomm_record_t *record);
/* Returns the host that is in the records of processes with this machine and
 * pid namespace (to be freed). */
char *dscomm_priv_record_machine(void);
/* 1 if record is of such a process. */
int dscomm_priv_record_here(const dscomm_record_t *record);
/* ERR_MISMATCH if the record of rank has other settings than mine, which is
 * rank 0's. */
dscomm_status_t dscomm_priv_record_compare(const dscomm_record_t *mine,
                                           const dscomm_record_t *other,
                                           int rank);
/* ERR_PEER_FAILED if the process of rank's record has ended. in_file: the store
 * may be a file, in which a later run finds the records of an earlier one. */
dscomm_status_t dscomm_priv_record_check_alive(const dscomm_record_t *record,
                                               int rank, bool in_file);
void dscomm_priv_record_clear(dscomm_record_t *record);

/* Processors: whether a job has one for each rank */

#define DSCOMM_PROCESSORS_MAX 4096 /* bytes; the rest is left out */

/* Writes this process's machine, a blank, and the processors on which it may
 * run, such as "0-3,8"; no processors if the system does not tell. */
void dscomm_priv_processors_own(char text[DSCOMM_PROCESSORS_MAX]);

/* texts: one such text for each rank. Returns whether, on any machine, there
 * are more ranks than processors on which any of them may run. Malformed texts
 * are ignored. */
int dscomm_priv_processors_lack(const char *const *texts, int ranks);

#endif
