/* SPDX-License-Identifier: BSD-3-Clause */
/* Findings in dumps, and the texts that they are made of. */
#ifndef TOOLS_FINDING_H
#define TOOLS_FINDING_H

#include "tools/analyze/dump.h"

/* A finding. */
typedef struct {
    const char *kind; /* "dead", "stopped", "mismatch", ... */
    const char *group; /* name, or NULL */
    gint64 sequence; /* 0: none */
    GArray *ranks; /* int: numbers in the world */
    char *text;
} finding_t;

/* Adds a finding about no rank yet; owns text. */
finding_t *finding_add(GPtrArray *findings, const char *kind, const char *group,
                       gint64 sequence, char *text);
void finding_add_rank(finding_t *finding, int rank);
void finding_free(void *finding);

/* Appends "rank 0" or "ranks 0, 2" to text; of more than RANKS_SHOWN ranks, the
 * first ones. count: of all, of which ranks may have only the first ones. */
#define RANKS_SHOWN 32
void append_ranks(GString *text, const GArray *ranks, guint count);
/* The seconds for which the call had run when the dump was written. */
double call_age(const call_t *call);
/* True if the call had run for so long that ranks which have not made theirs
 * are a finding. The records of a dump are read one after the other, all after
 * written_ns, while ranks may go on. So of two of them the one that was read
 * later is younger; but what a call has waited for since before written_ns, and
 * is in no record, had not been done at that time. */
bool call_is_old(const call_t *call);
/* "in recv from rank 0 with tag 5 of group 'world' for 1.5 s", or that it was
 * in no call; g_free(). */
char *rank_activity(const rank_t *rank);

/* groups.c: adds what is found in the collectives of a group: calls that
 * differ, ranks that are behind, an incomplete call, ranks without a dump. */
void find_in_group(const group_t *group, GPtrArray *findings);

/* waits.c: adds ranks that wait for each other, and messages whose peer does
 * nothing for them. */
void find_waits(const dumps_t *dumps, GPtrArray *findings);

#endif
