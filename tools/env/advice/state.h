/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice while it is made. */
#ifndef TOOLS_ADVICE_STATE_H
#define TOOLS_ADVICE_STATE_H

#include "tools/env/advice/machine.h"
#include "tools/env/advice/advice.h"

#define ADVICE_OPENMPI (ADVICE_OPENMPI_4 | ADVICE_OPENMPI_5)
#define ADVICE_HYDRA (ADVICE_MPICH | ADVICE_INTEL)
#define ADVICE_ALL (ADVICE_OPENMPI | ADVICE_HYDRA)

#define ADVICE_NODES_MAX 100000
#define ADVICE_RANKS_MAX 4096 /* on each node */
#define ADVICE_JOB_MAX (ADVICE_NODES_MAX * ADVICE_RANKS_MAX)

/* What is the case: bits. */
enum {
    FACT_SEVERAL = 1, /* nodes */
    FACT_RDMA = 2, /* there is a device that UCX drives */
    FACT_SUPERUSER = 4, /* and nothing allows it yet */
    FACT_CROWDED = 8, /* more ranks than cores */
    FACT_NUMA = 16, /* ranks divide evenly among several NUMA nodes */
    FACT_BLIND = 32, /* the number of cores is unknown */
    FACT_NO_HOSTS = 64, /* neither scheduler nor arguments give the nodes */
    FACT_SUBNET = 128, /* a network is known */
    FACT_CHOICE = 256, /* there are several */
    FACT_SCHEDULER = 512,
    /* The old arguments name one that is not judged, or a device has a way of
     * its own. */
    FACT_OWN_PML = 1024,
    FACT_FORWARD = 2048, /* there are variables that other nodes need */
    FACT_MASTER = 4096, /* rank 0's host must be told, and is known */
    FACT_NO_MASTER = 8192, /* nobody tells, and it is not known */
    FACT_DEVICE = 16384, /* there is an RDMA device, whoever drives it */
    FACT_MTL = 32768, /* there is one that an mtl of Open MPI drives */
    FACT_FREE = 65536, /* the old arguments want no binding */
    FACT_FEW_SLOTS = 131072, /* their list of hosts has fewer than ranks */
    FACT_NO_PORT = 262144 /* rank 0's host is known, and no port there */
};

/* An old argument with its values. */
typedef enum { OLD_OPTION, OLD_MCA, OLD_VARIABLE } advice_kind_t;

typedef struct {
    advice_kind_t kind;
    char *name; /* without dashes */
    char *value; /* NULL: none */
    char **words; /* as given */
    gboolean known; /* the option is in the table of options */
    gboolean ambient; /* a variable of the environment, no argument */
} advice_old_t;

typedef struct {
    const tool_advice_question_t *question;
    tool_advice_t *advice;
    const char *wanted; /* interfaces, as the user names them; or NULL */
    tool_advice_machine_t machine;
    unsigned facts;
    GHashTable *values; /* of {NAME} in tables: text to text */
    GPtrArray *old; /* advice_old_t */
} advice_state_t;

/* Cuts the old arguments up; what follows them is advice->command
 * (tools/env/advice/options.c). */
void tool_advice_old_read(advice_state_t *state);

/* The last old one of a kind and name, or the environment's; or NULL. */
const advice_old_t *tool_advice_old_find(const advice_state_t *state,
                                         advice_kind_t kind, const char *name);

/* The numbers of nodes and ranks (tools/env/advice/size.c). */
void tool_advice_size(advice_state_t *state);

/* A decimal number from 1 to max, or 0. */
int tool_advice_decimal(const char *text, int max);

/* Says of each what becomes of it (tools/env/advice/obsolete.c). */
void tool_advice_old_judge(advice_state_t *state);

/* The last old argument that gives the nodes, or NULL; *ret_is_file: in a file
 * (tools/env/advice/master.c). */
const advice_old_t *tool_advice_hosts(const advice_state_t *state,
                                      gboolean *ret_is_file);

/* Whether several nodes have to be told where rank 0 is, and that
 * (tools/env/advice/master.c). */
void tool_advice_master(advice_state_t *state);

/* The parts of the command line that the facts ask for
 * (tools/env/advice/parts.c). */
void tool_advice_parts(advice_state_t *state);

/* Takes over words, and a copy of why. */
void tool_advice_part_add(GPtrArray *parts, char **words, const char *why);

/* text with each {NAME} replaced by its value; g_free(). */
char *tool_advice_expand(const advice_state_t *state, const char *text);

/* The words of text, with single blanks between, expanded; g_strfreev(). */
char **tool_advice_words(const advice_state_t *state, const char *text);

/* A variable that is set and not empty, or NULL. */
const char *tool_advice_variable(const tool_advice_question_t *question,
                                 const char *name);

/* 1: the variable belongs to one process, not to the job. */
gboolean tool_advice_is_of_rank(const char *name);

/* 1: text is a network, as 10.0.0.0/8, or several. */
gboolean tool_advice_is_network(const char *text);

#endif
