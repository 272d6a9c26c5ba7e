/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice on starting a job with a given mpirun: its command line, a reason for
 * each part, and a decision about each given argument. Input is only the
 * question and the files below its root. */
#ifndef TOOLS_ADVICE_H
#define TOOLS_ADVICE_H

#include <glib.h>
#include <stdbool.h>

typedef struct {
    const char *program; /* the mpirun, as the advice prints it */
    const char *version; /* what its --version prints */
    const char *root; /* "" for "/" */
    char *const *environment; /* "NAME=VALUE", NULL at the end */
    bool superuser;
    int cores; /* processors' cores that this process may use; 0: unknown */
    int numa_nodes, cores_per_numa; /* 0: one node, or several that differ */
    int nodes, ranks_per_node; /* 0: not said */
    char *const *given; /* arguments to judge, NULL at the end; or NULL */
} tool_advice_question_t;

/* Words of the command line that belong together. */
typedef struct {
    char **words; /* NULL at the end */
    char *why;
} tool_advice_part_t;

typedef struct {
    char *text; /* the given argument */
    /* "kept": right as it is, or already in the line; "replaced"; "dropped"; or
     * "unknown": kept, but not in the rules */
    const char *verdict;
    char *why;
    char *instead; /* NULL: nothing */
} tool_advice_judgement_t;

typedef struct {
    char *program;
    const char *library; /* "Open MPI" */
    char *version; /* "4.1.4" */
    const char *launcher; /* "openmpi", "mpich" or "intel" */
    int nodes, ranks_per_node, ranks;
    GPtrArray *variables; /* parts: "NAME=VALUE" in front of the command */
    GPtrArray *parts; /* of the command line, in its order */
    GPtrArray *judgements; /* of the given arguments, in their order */
    GPtrArray *notes; /* sentences */
    char **command; /* the program and its arguments, if they were given */
} tool_advice_t;

/* Returns NULL, or what is wrong with the counts of the command line (0: not
 * given); g_free(). */
char *tool_advice_check(int nodes, int ranks_per_node);

/* Returns the advice, or NULL and a sentence in *ret_problem (g_free()) if the
 * version is of no known mpirun or the counts contradict each other. */
tool_advice_t *tool_advise(const tool_advice_question_t *question,
                           char **ret_problem);
void tool_advice_free(tool_advice_t *advice);

/* The command line, quoted for a shell; g_free(). */
char *tool_advice_line(const tool_advice_t *advice);

/* words, quoted for a shell; g_free(). */
char *tool_advice_quote(char *const *words);

#endif
