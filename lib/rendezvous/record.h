/* SPDX-License-Identifier: BSD-3-Clause */
/* Member records: what a rank tells the others of its world about itself. */
#ifndef LIB_RECORD_H
#define LIB_RECORD_H

#include "lib/rendezvous/rendezvous.h"

/* Bytes of a record's host; of a longer DSCOMM_HOST_ID the rest is cut. */
#define DSCOMM_HOST_ID_MAX 1024

typedef struct {
    char *memory; /* of all strings; NULL: none is there */
    int64_t version, abi, size, pid;
    int64_t local_rank, local_size, node_rank; /* as told; -1: not known */
    const char *node; /* host name, for messages */
    const char *host; /* equal text = can share memory */
    const char *alone; /* why this process can share memory with none, or "" */
    const char *backend; /* asked for */
    const char
        *modules; /* names of those it can load, blanks between and around */
    const char
        *why; /* why the one asked for, or others, are not among them, or "" */
    const char *rules; /* DSCOMM_ALGORITHM, or "" */
    const char *processors; /* dscomm_priv_processors_own() */
} dscomm_record_t;

/* This process's record; memory is NULL if there was none for it. */
void dscomm_priv_record_own(const dscomm_join_t *join, dscomm_record_t *record);
/* As text for g_free(), NULL without memory, and back; -1 where text is no
 * record, 1 without memory. */
char *dscomm_priv_record_write(dscomm_record_t *record);
int dscomm_priv_record_read(const char *text, size_t size,
                            dscomm_record_t *record);
/* The host of records whose processes share this machine, and the pid namespace
 * (to be freed). */
char *dscomm_priv_record_machine(void);
/* 1 where record is one of them. */
int dscomm_priv_record_here(const dscomm_record_t *record);
/* ERR_MISMATCH where the record of rank has other settings than mine, rank 0's.
 */
dscomm_status_t dscomm_priv_record_compare(const dscomm_record_t *mine,
                                           const dscomm_record_t *other,
                                           int rank);
/* ERR_PEER_FAILED where the process of rank's record has ended. in_file: the
 * store may be a file; of two runs that use one, the later finds the records of
 * the earlier. */
dscomm_status_t dscomm_priv_record_check_alive(const dscomm_record_t *record,
                                               int rank, bool in_file);
void dscomm_priv_record_clear(dscomm_record_t *record);

/* Processors: whether a job has one for each rank */

#define DSCOMM_PROCESSORS_MAX 4096 /* bytes; what is more is left out */

/* This process's machine, a blank, and the processors on which it may run, as
 * in "0-3,8", or nothing where the system does not tell. */
void dscomm_priv_processors_own(char text[DSCOMM_PROCESSORS_MAX]);

/* Of such texts, one a rank: whether on a machine there are more ranks than
 * processors on which they may run, those of all of them together. What makes
 * no sense in a text counts for nothing. */
int dscomm_priv_processors_lack(const char *const *texts, int ranks);

#endif
