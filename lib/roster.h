/* SPDX-License-Identifier: BSD-3-Clause */
/* The roster: who the ranks of a world are, and what they agree on. */
#ifndef LIB_ROSTER_H
#define LIB_ROSTER_H

#include "lib/rendezvous.h"

/* Exchanges records through store, a view of the world's keys; returns the
 * backend that rank 0 chose. token tells this call from any other process.
 * *ret_obeyed becomes 1 where the status is the verdict of rank 0. */
dscomm_status_t dscomm_priv_roster(const dscomm_join_t *join,
                                   dscomm_store_t *store, const char *token,
                                   int64_t deadline, int *ret_obeyed,
                                   const dscomm_module_t **ret_module);

/* What one rank says about itself. Strings are owned. */
typedef struct {
    int64_t version, abi, size, pid;
    char *node; /* host name, for messages */
    char *host; /* equal text = can share memory */
    char *backend; /* asked for */
    char *modules; /* names of those it can load, blanks between and around */
    char *why; /* why the one asked for, or others, are not among them, or "" */
    char *rules; /* DSCOMM_ALGORITHM, or "" */
} dscomm_record_t;

/* The name of this machine, or "unknown". */
#define DSCOMM_NODE_MAX 65
void dscomm_priv_node_name(char node[DSCOMM_NODE_MAX]);

/* This process's record. */
void dscomm_priv_record_own(const dscomm_join_t *join, dscomm_record_t *record);
/* As text, and back; -1 where text is no record. */
char *dscomm_priv_record_write(const dscomm_record_t *record);
int dscomm_priv_record_read(const char *text, size_t size,
                            dscomm_record_t *record);
/* 1 where it is of a process of this machine that has ended. */
int dscomm_priv_record_gone(const dscomm_record_t *record);
void dscomm_priv_record_clear(dscomm_record_t *record);

/* The backend for these ranks, or why there is none. */
dscomm_status_t dscomm_priv_choose_backend(const dscomm_record_t *records,
                                           int count,
                                           const dscomm_module_t **ret_module);

#endif
