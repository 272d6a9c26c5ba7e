/* SPDX-License-Identifier: BSD-3-Clause */
/* Accounts: what a rank says of itself when its schedules do not go on, for the
 * others to read: the latest collectives it was called for, and the ranks it
 * waits for. */
#ifndef LIB_ACCOUNT_H
#define LIB_ACCOUNT_H

#include "lib/group/group.h"

#include <dscomm/backend.h>
#include <glib.h>

#define ACCOUNT_CALLS 8
#define ACCOUNT_COUNTS 8

/* One collective, as it was called here. */
typedef struct {
    dscomm_coll_args_t args; /* its pointers mean nothing any more */
    int ncounts; /* of recv_counts; 0 where it has none */
    uint64_t sum;
    size_t counts[ACCOUNT_COUNTS]; /* the first of them */
    char op[DSCOMM_OP_TEXT]; /* of DSCOMM_OP_USER */
} dscomm_past_call_t;

/* The latest ones. */
struct dscomm_history {
    dscomm_past_call_t calls[ACCOUNT_CALLS];
};

/* The history of a group. */
extern const dscomm_group_part_t dscomm_priv_history_part;

void dscomm_priv_history_note(dscomm_history_t *history,
                              const dscomm_coll_args_t *args, int ranks);

/* An account as it was read. */
typedef struct {
    uint64_t sequence; /* 0: none */
    uint32_t fingerprint;
    char text[160];
} dscomm_account_call_t;

typedef struct {
    int known; /* 0: nothing was read */
    uint64_t last; /* sequence of the latest call */
    uint64_t waits_for[4]; /* a bit a rank, of the first 256 */
    dscomm_account_call_t calls[ACCOUNT_CALLS];
} dscomm_account_t;

/* Room for the longest one: an id, ranks, and calls. */
#define ACCOUNT_MAX (1024 + 1024 + 512 * ACCOUNT_CALLS)

/* id is the group's; waits_for: nwaits ranks. */
void dscomm_priv_account_write(const dscomm_history_t *history, const char *id,
                               const int *waits_for, int nwaits,
                               char text[ACCOUNT_MAX]);
/* 0 where text is an account of the group id, else -1: any bytes may come. */
int dscomm_priv_account_read(const char *text, const char *id,
                             dscomm_account_t *ret_account);

/* What it says of a collective, or NULL. */
const dscomm_account_call_t *
dscomm_priv_account_call(const dscomm_account_t *account, uint64_t sequence);
/* The oldest collective that both tell of, and not the same; 0: none. */
uint64_t dscomm_priv_account_difference(const dscomm_account_t *a,
                                        const dscomm_account_t *b);
int dscomm_priv_account_waits(const dscomm_account_t *account, int rank);

#endif
