/* SPDX-License-Identifier: BSD-3-Clause */
/* The words by which users say where ranks run: DSCOMM_BIND, and --bind of
 * dscomm run and dscomm env. */
#ifndef ENV_PLACE_RULE_H
#define ENV_PLACE_RULE_H

#include <hwloc.h>
#include <stdbool.h>

typedef enum {
    DSCOMM_PLACE_NONE,
    DSCOMM_PLACE_NUMA, /* a share of the cores of a NUMA node */
    DSCOMM_PLACE_CORE, /* a core */
    DSCOMM_PLACE_SOCKET, /* a share of the cores of a socket */
    DSCOMM_PLACE_GPU, /* a share of the cores near the rank's GPU */
    DSCOMM_PLACE_LIST /* a share of the listed processors */
} dscomm_place_kind_t;

typedef struct {
    dscomm_place_kind_t kind;
    bool force; /* "force:": also if the launcher has bound the process */
    hwloc_bitmap_t list; /* of DSCOMM_PLACE_LIST; else NULL */
} dscomm_place_rule_t;

/* Reads a word, or a list in DeepSpeed's grammar: numbers and ranges in
 * ascending order with commas between, without blanks. False and *ret_problem,
 * g_free(), which ends a sentence: it is none. */
bool dscomm_priv_place_rule_read(const char *text,
                                 dscomm_place_rule_t *ret_rule,
                                 char **ret_problem);
void dscomm_priv_place_rule_clear(dscomm_place_rule_t *rule);

/* The word of a kind; "list"; static. */
const char *dscomm_priv_place_kind_name(dscomm_place_kind_t kind);

#endif
