/* SPDX-License-Identifier: BSD-3-Clause */
/* The roster: who the ranks of a world are, and what they agree on. */
#ifndef LIB_ROSTER_H
#define LIB_ROSTER_H

#include "lib/base/node.h"
#include "lib/rendezvous/processes.h"
#include "lib/rendezvous/rendezvous.h"

/* Bytes of a record's host; of a longer DSCOMM_HOST_ID the rest is cut. */
#define DSCOMM_HOST_ID_MAX 1024

/* What rank 0 decides for all. */
typedef struct {
    const dscomm_module_t *module; /* the backend */
    dscomm_nodes_t nodes;
    int crowded; /* ranks outnumber processors on a machine */
    int64_t pid; /* of rank 0 */
    /* of rank 0, as in its record */
    char node[DSCOMM_NODE_MAX], host[DSCOMM_HOST_ID_MAX];
} dscomm_verdict_t;

/* As text, to be freed; and back, which is a failure where it tells of one, of
 * another size of the world, or makes no sense. */
char *dscomm_priv_verdict_write(const dscomm_verdict_t *verdict);
char *dscomm_priv_verdict_write_failure(dscomm_status_t status,
                                        const char *sentence);
dscomm_status_t dscomm_priv_verdict_read(const dscomm_join_t *join,
                                         const char *text,
                                         dscomm_verdict_t *ret_verdict);

/* Exchanges records through store, a view of the world's keys; returns what
 * rank 0 decided. token tells this call from any other, before is that of the
 * last one of this process and rank that failed, or "". processes learns who
 * rank 0 is. *ret_final becomes 1 where another attempt ends no better: the
 * status is the verdict of rank 0, or rank 0 was there and has ended. */
dscomm_status_t dscomm_priv_roster(const dscomm_join_t *join,
                                   dscomm_store_t *store, const char *token,
                                   const char *before, int64_t deadline,
                                   int *ret_final,
                                   dscomm_processes_t *processes,
                                   dscomm_verdict_t *ret_verdict);

/* In a world's keys: why it can never meet, as a failed verdict. Rank 0, as
 * long as it waits for others, makes it the verdict. */
#define DSCOMM_ROSTER_WRONG "wrong"

/* What one rank says about itself. */
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
    const char *processors; /* as lib/rendezvous/processors.h has it */
} dscomm_record_t;

/* How this process is known among hosts: equal text where memory can be shared,
 * text of its own where it can share with none. */
void dscomm_priv_record_host(char *text, size_t size);

/* This process's record; memory is NULL if there was none for it. */
void dscomm_priv_record_own(const dscomm_join_t *join, dscomm_record_t *record);
/* As text for g_free(), NULL without memory, and back; -1 where text is no
 * record, 1 without memory. */
char *dscomm_priv_record_write(const dscomm_record_t *record);
int dscomm_priv_record_read(const char *text, size_t size,
                            dscomm_record_t *record);
/* The host of records whose processes share this machine, and the pid namespace
 * (to be freed). */
char *dscomm_priv_record_machine(void);
/* 1 where record is one of them. */
int dscomm_priv_record_here(const dscomm_record_t *record);
/* 1 where it is of a process of this machine that has ended. */
int dscomm_priv_record_gone(const dscomm_record_t *record);
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

/* The backend for these ranks, or why there is none. */
dscomm_status_t dscomm_priv_choose_backend(const dscomm_record_t *records,
                                           int count, int crowded,
                                           const dscomm_module_t **ret_module);
/* All that rank 0, this process, decides for them; the nodes are the caller's
 * to clear. */
dscomm_status_t dscomm_priv_decide(const dscomm_record_t *records, int size,
                                   dscomm_verdict_t *ret_verdict);

#endif
