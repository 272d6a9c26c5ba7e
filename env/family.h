/* SPDX-License-Identifier: BSD-3-Clause */
/* Sources of rank and world size. Each family of launchers has a file, and each
 * source a row: the variables that show that it is present, those with its
 * numbers, and functions for what must be inferred. */
#ifndef ENV_FAMILY_H
#define ENV_FAMILY_H

#include "env/view.h"

#include <dscomm/env.h>

#define ENV_NUMBERS (DSCOMM_ENV_NODE_RANK + 1)
#define ENV_MARKS 6
#define ENV_OVERLAYS 3

/* How close a source is to the program: closer sources come first. */
typedef enum {
    ENV_TIER_EXPLICIT, /* the user says so */
    /* started by one of the following, so closer to the program */
    ENV_TIER_AGENT,
    ENV_TIER_MANAGER, /* a process manager of an MPI, or a similar one */
    ENV_TIER_STEP, /* a scheduler's step, which may also start managers */
    ENV_TIER_TORCH, /* common names, which may be left over */
    ENV_TIER_LIST, /* a platform's list of hosts, one process each */
    ENV_TIER_ALONE
} env_tier_t;

/* A variable, and another one to read if that is not set. */
typedef const char *env_names_t[2];

typedef struct {
    const char *name;
    const char *about;
    env_tier_t tier;
    int on_request; /* 1: only if DSCOMM_LAUNCHER asks for it */
    /* Marks: the source is present if all of `all` are set and, if `any` is not
     * empty, one of these. Arrays end with NULL, or when they are full. */
    const char *all[ENV_MARKS];
    const char *any[ENV_MARKS];
    /* Returns 1, and why, if the source is not present although its marks are
     * set. */
    int (*refuses)(const env_view_t *view, char **ret_why);
    /* Variables that give the numbers. */
    env_names_t numbers[ENV_NUMBERS];
    /* Infers the numbers that the variables do not give, and finds
     * contradictions. */
    dscomm_status_t (*complete)(const env_view_t *view, dscomm_env_t *env);
    /* Sets the address of rank 0, and the port if it is known. Called if the
     * user gave no address and there are several nodes. If it cannot, it sets
     * the reason. */
    dscomm_status_t (*find_master)(const env_view_t *view, dscomm_env_t *env);
    const char *no_address; /* why there is no such function; or NULL */
    /* Sets other fields, after everything else is known. */
    dscomm_status_t (*finish)(const env_view_t *view, dscomm_env_t *env);
    /* The variables that name the job; those that are set are joined. */
    env_names_t job[3];
    /* The kernel's name of a process from which all ranks of a node descend. It
     * names the job if nothing else does and there is one node. */
    const char *ancestor;
    /* If this variable is not set, other jobs that the scheduler's job has
     * started may have the same name. */
    const char *unique_if;
    /* If the scheduler names the job: a variable that is equal in all ranks,
     * because one step has started all their proxies. */
    const char *step;
    int port; /* 0: none by default */
    /* 1: if another manager is taken, it must have the same numbers as this
     * one. Other managers may be around it. */
    int rival;
} env_family_t;

/* A platform around the source, which gives no numbers. */
typedef struct {
    const char *name;
    const char *marker; /* present if this is set, */
    const char *unless; /* and this is not set */
    dscomm_status_t (*find_master)(const env_view_t *view, dscomm_env_t *env);
    int port; /* of several nodes; 0: none by default */
    int local_port; /* of one node, if the job has no name; 0: none */
} env_overlay_t;

/* In the order of precedence; the last one is always present. */
extern const env_family_t *const dscomm_priv_env_families[];
extern const size_t dscomm_priv_env_family_count;

extern const env_overlay_t *const dscomm_priv_env_overlays[ENV_OVERLAYS];

#define ENV_FAMILY(name) extern const env_family_t dscomm_priv_env_##name
ENV_FAMILY(torchrun);
ENV_FAMILY(openmpi);
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

/* 1: this process is a task of a step that a user started. rank and size are
 * the task's, as text, or NULL. */
int dscomm_priv_env_is_step(const env_view_t *view, const char *rank,
                            const char *size);

/* 1: this process descends from the step's task (SLURM_TASK_PID), or no task is
 * known. 0: the variables are those of a step around mpiexec; Hydra passes them
 * on to its ranks, except the numbers of task and node. */
int dscomm_priv_env_is_own_step(const env_view_t *view);

/* The source that PMI_RANK and PMI_SIZE belong to, if they are set; NULL if
 * they are the numbers that Slurm, Flux or PALS give to a manager's own
 * process. */
const char *dscomm_priv_env_pmi_rival(const env_view_t *view);

/* Sets the job by torch elastic's variables, and whether its agent serves the
 * store. */
dscomm_status_t dscomm_priv_env_elastic(const env_view_t *view,
                                        dscomm_env_t *env);

#endif
