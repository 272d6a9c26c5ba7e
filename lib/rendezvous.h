/* SPDX-License-Identifier: BSD-3-Clause */
/* The rendezvous: how the ranks of a world find each other in a store, and how
 * they leave it again. */
#ifndef LIB_RENDEZVOUS_H
#define LIB_RENDEZVOUS_H

#include "lib/module.h"

#include <dscomm/store.h>

struct dscomm_point;

/* What this process knows before it meets the others. */
typedef struct {
    int rank, size;
    dscomm_store_t *store; /* the user's, or NULL: open url */
    char *url; /* "tcp://HOST:PORT", "file:///PATH" */
    int serve; /* TCP: rank 0 serves the store */
    char run_id[128]; /* or "0" */
    char *backend; /* asked for: a name, or "auto" */
    int timeout_ms;
} dscomm_join_t;

/* What a world keeps of it. */
typedef struct {
    dscomm_store_t *store; /* view of the world's keys; NULL: one rank */
    struct dscomm_point *point; /* NULL where the store is the user's */
    int rank, size;
    int serves; /* other ranks use the server in this process */
} dscomm_meeting_t;

/* Meets the other ranks, at most timeout_ms from now, and agrees on the
 * backend. On failure the sentence is the same on all ranks that came, where
 * possible. */
dscomm_status_t dscomm_priv_rendezvous(const dscomm_join_t *join,
                                       dscomm_meeting_t *ret_meeting,
                                       const dscomm_module_t **ret_module);

/* Leaves. orderly: all ranks do, so one that serves waits for the others, a few
 * seconds and at most timeout_ms. */
void dscomm_priv_rendezvous_leave(dscomm_meeting_t *meeting, int orderly,
                                  int timeout_ms);

/* In a forked child: its lock is new. */
void dscomm_priv_rendezvous_forked(void);

#endif
