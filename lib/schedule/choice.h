/* SPDX-License-Identifier: BSD-3-Clause */
/* Which algorithm serves a collective: what DSCOMM_ALGORITHM says, else the
 * table of defaults. */
#ifndef LIB_CHOICE_H
#define LIB_CHOICE_H

#include "lib/schedule/algorithm.h"

/* One rule: the first that matches serves, unless its algorithm does not
 * fit. */
typedef struct {
    int coll;
    int ranks; /* up to so many */
    uint64_t from, to; /* bytes, both included; see below */
    const dscomm_algorithm_t *algorithm; /* NULL: what the backend has */
} dscomm_choice_t;

/* The rules of text (DSCOMM_ALGORITHM's syntax, see doc/dscomm.7.rst), to be
 * freed with g_array_free(); ERR_ENVIRONMENT where it makes no sense. NULL text
 * makes none. */
dscomm_status_t dscomm_priv_choices_read(const char *text, GArray **ret_rules);

/* The bytes by which a collective is chosen, equal on all ranks: those of the
 * longest buffer of a rank. 0 for gather_v, scatter_v and all_to_all_v, whose
 * counts no rank knows all of. Without recv_counts, count is everyone's. */
uint64_t dscomm_priv_choice_bytes(const dscomm_coll_args_t *args, int ranks);

/* The user's rule for args, or NULL. nodes: as algorithms' fits wants them. */
const dscomm_choice_t *dscomm_priv_choice_rule(const GArray *rules,
                                               const dscomm_coll_args_t *args,
                                               int ranks,
                                               const dscomm_nodes_t *nodes);
/* The first of the user's rules, from number from on, that is for args, but
 * whose algorithm does not fit, if it comes before the one that serves; or
 * NULL. */
const dscomm_choice_t *dscomm_priv_choice_passed(const GArray *rules,
                                                 guint from,
                                                 const dscomm_coll_args_t *args,
                                                 int ranks,
                                                 const dscomm_nodes_t *nodes);
/* What serves where there is no rule. */
const dscomm_algorithm_t *
dscomm_priv_choice_default(const dscomm_coll_args_t *args, int ranks,
                           const dscomm_nodes_t *nodes);

/* What serves calls of from to to bytes, both included. */
typedef struct {
    uint64_t from, to;
    const dscomm_choice_t *rule; /* the user's, or NULL */
    const dscomm_choice_t *passed; /* see dscomm_priv_choice_passed() */
    const dscomm_algorithm_t *algorithm; /* where there is no rule */
} dscomm_choice_span_t;

/* The span of calls like args that bytes lies in; their count does not
 * matter. */
void dscomm_priv_choice_span(const GArray *rules,
                             const dscomm_coll_args_t *args, int ranks,
                             const dscomm_nodes_t *nodes, uint64_t bytes,
                             dscomm_choice_span_t *ret_span);

/* The table of defaults, row by row; NULL beyond the last. */
const dscomm_choice_t *dscomm_priv_choice_row(size_t index);

#endif
