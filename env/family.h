/* SPDX-License-Identifier: BSD-3-Clause */
/* Sources of rank and world size. A family of launchers is a file, and a row of
 * it a source: which variables show that it is there, which give its numbers,
 * and what has to be worked out. */
#ifndef ENV_FAMILY_H
#define ENV_FAMILY_H

#include "env/view.h"

#include <dscomm/env.h>

#define ENV_NUMBERS (DSCOMM_ENV_NODE_RANK + 1)
#define ENV_MARKS 6
#define ENV_OVERLAYS 3

/* How near to the program a source is. */
typedef enum {
    ENV_TIER_EXPLICIT, /* the user says so */
    ENV_TIER_AGENT, /* started by what follows, so nearer */
    ENV_TIER_MANAGER, /* of an MPI, or like one */
    ENV_TIER_STEP, /* of a scheduler, which also starts managers */
    ENV_TIER_TORCH, /* a common set of names, perhaps left over */
    ENV_TIER_LIST, /* a platform's list of hosts, one process each */
    ENV_TIER_ALONE
} env_tier_t;

/* A variable, and one to read where that is not set. */
typedef const char *env_names_t[2];

typedef struct {
    const char *name;
    const char *about;
    env_tier_t tier;
    int on_request; /* 1: only where DSCOMM_LAUNCHER asks for it */
    /* It is there where all of these are set, and one of those if there are
     * any. An array ends with NULL, or where it is full. */
    const char *all[ENV_MARKS];
    const char *any[ENV_MARKS];
    /* 1, and why, where it is not there for all that. */
    int (*refuses)(const env_view_t *view, char **ret_why);
    /* Variables that give the numbers. */
    env_names_t numbers[ENV_NUMBERS];
    /* What the variables do not give, and their contradictions. */
    dscomm_status_t (*complete)(const env_view_t *view, dscomm_env_t *env);
    /* Address of rank 0, and perhaps port, where the user gives none and there
     * are several nodes; says why where it cannot tell. */
    dscomm_status_t (*find_master)(const env_view_t *view, dscomm_env_t *env);
    /* The rest, when everything else is known. */
    dscomm_status_t (*finish)(const env_view_t *view, dscomm_env_t *env);
    /* What names the job: those that are set. */
    env_names_t job[3];
    /* A process that all ranks of a node descend from, as the kernel calls it:
     * names the job where nothing else does and there is one node. */
    const char *ancestor;
    /* Without this variable the job is not told from others that the
     * scheduler's job has started. */
    const char *telling;
    /* With the scheduler's job, where that names it: a variable that is the
     * same in all ranks, since one step has started all their proxies. */
    const char *step;
    int port; /* 0: none by default */
    /* 1: where another manager is taken, this one must say the same. Others may
     * be around it. */
    int rival;
} env_family_t;

/* A platform around the source, which gives no numbers. */
typedef struct {
    const char *name;
    const char *marker; /* there where this is set, */
    const char *unless; /* and this is not */
    dscomm_status_t (*find_master)(const env_view_t *view, dscomm_env_t *env);
    int port; /* of several nodes; 0: none by default */
    int local_port; /* of one node, where the job has no name; 0: none */
} env_overlay_t;

/* In the order of precedence; the last is always there. */
extern const env_family_t *const dscomm_priv_env_families[];
extern const size_t dscomm_priv_env_family_count;

extern const env_overlay_t *const dscomm_priv_env_overlays[ENV_OVERLAYS];

#define ENV_FAMILY(name) extern const env_family_t dscomm_priv_env_##name
ENV_FAMILY(explicit);
ENV_FAMILY(torchrun);
ENV_FAMILY(deepspeed);
ENV_FAMILY(openmpi);
ENV_FAMILY(mvapich2);
ENV_FAMILY(mvapich3);
ENV_FAMILY(jsrun);
ENV_FAMILY(pals);
ENV_FAMILY(flux);
ENV_FAMILY(hydra);
ENV_FAMILY(pmi);
ENV_FAMILY(hydra_port);
ENV_FAMILY(slurm);
ENV_FAMILY(torch);
ENV_FAMILY(pod);
ENV_FAMILY(sagemaker);
ENV_FAMILY(vertex);
ENV_FAMILY(batch);
ENV_FAMILY(tf_config);
ENV_FAMILY(singleton);
#undef ENV_FAMILY

extern const env_overlay_t dscomm_priv_env_azureml;
extern const env_overlay_t dscomm_priv_env_sagemaker_mpi;
extern const env_overlay_t dscomm_priv_env_kubernetes;

/* 1: this is a task of a step that a user started, and rank and size, texts or
 * NULL, are its own. */
int dscomm_priv_env_is_step(const env_view_t *view, const char *rank,
                            const char *size);

/* 1: the step is not one that mpiexec is in, whose variables Hydra passes on to
 * its ranks, but the numbers of task and node; among them is the task's
 * process. */
int dscomm_priv_env_is_own_step(const env_view_t *view);

/* ERR_ENVIRONMENT where PMI_RANK or PMI_SIZE contradicts rank or size: mpiexec
 * runs below a manager, all of whose numbers are the same in its ranks then.
 * What Slurm, Flux or PALS around a manager say of its own process is no
 * contradiction. */
dscomm_status_t dscomm_priv_env_compare_pmi(const env_view_t *view,
                                            dscomm_env_t *env);

/* The job by torch elastic's variables, and whether its agent serves the
 * store. */
dscomm_status_t dscomm_priv_env_elastic(const env_view_t *view,
                                        dscomm_env_t *env);

#endif
