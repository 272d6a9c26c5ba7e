/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing the algorithm of a collective, by DSCOMM_ALGORITHM or the table of
 * defaults. */
#ifndef LIB_CHOICE_H
#define LIB_CHOICE_H

#include "lib/schedule/algorithm.h"

/* One rule. The first rule that matches and whose algorithm fits serves. */
typedef struct {
    int coll;
    int least, ranks; /* smallest and largest number of ranks */
    int nodes; /* smallest number of nodes, or 0; -1: several shared ones */
    uint64_t from, to; /* bytes, both included; see below */
    const char *backend; /* of the group; NULL: any */
    const dscomm_algorithm_t *algorithm; /* NULL: the backend's own */
} dscomm_choice_t;

/* Reads the rules in text (syntax of DSCOMM_ALGORITHM, see doc/dscomm.7.rst),
 * to be freed with g_array_free(). ERR_ENVIRONMENT if text is malformed. NULL
 * text gives no rules. */
dscomm_status_t dscomm_priv_choices_read(const char *text, GArray **ret_rules);

/* The size by which an algorithm is chosen, in bytes, equal on all ranks: the
 * longest buffer of a rank. 0 for gather_v, scatter_v and all_to_all_v, because
 * no rank knows all their counts. If recv_counts is NULL, count is that of
 * every rank. */
uint64_t dscomm_priv_choice_bytes(const dscomm_coll_args_t *args, int ranks);

/* The user's rule for args in a group of that backend, or NULL. nodes: as for
 * fits. */
const dscomm_choice_t *dscomm_priv_choice_rule(const GArray *rules,
                                               const dscomm_coll_args_t *args,
                                               int ranks, const char *backend,
                                               const dscomm_nodes_t *nodes);
/* A bit for each collective that has a rule for groups of that backend and so
 * many ranks. */
uint32_t dscomm_priv_choices_ruled(const GArray *rules, int ranks,
                                   const char *backend);
/* The first of the user's rules, from number from on, that matches args but
 * whose algorithm does not fit, if it comes before the rule that serves; or
 * NULL. */
const dscomm_choice_t *dscomm_priv_choice_passed(const GArray *rules,
                                                 guint from,
                                                 const dscomm_coll_args_t *args,
                                                 int ranks, const char *backend,
                                                 const dscomm_nodes_t *nodes);
/* The algorithm that serves without a rule. */
const dscomm_algorithm_t *
dscomm_priv_choice_default(const dscomm_coll_args_t *args, int ranks,
                           const dscomm_nodes_t *nodes);

/* The choice for calls of from to to bytes, both included. */
typedef struct {
    uint64_t from, to;
    const dscomm_choice_t *rule; /* the user's, or NULL */
    const dscomm_choice_t *passed; /* see dscomm_priv_choice_passed() */
    const dscomm_algorithm_t *algorithm; /* used without a rule */
} dscomm_choice_span_t;

/* Finds the range of sizes around bytes with the same choice, for calls like
 * args; their count does not matter. Rules for a certain backend count. */
void dscomm_priv_choice_span(const GArray *rules,
                             const dscomm_coll_args_t *args, int ranks,
                             const dscomm_nodes_t *nodes, uint64_t bytes,
                             dscomm_choice_span_t *ret_span);

/* A row of the table of defaults; NULL after the last. */
const dscomm_choice_t *dscomm_priv_choice_row(size_t index);

#endif
