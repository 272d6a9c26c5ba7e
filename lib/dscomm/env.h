/* SPDX-License-Identifier: BSD-3-Clause */
/* Who this process is: what its launcher, scheduler or platform says about it,
 * in one form for all of them. */
#ifndef DSCOMM_ENV_H
#define DSCOMM_ENV_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What was found in one environment. Never changes after it was made. */
typedef struct dscomm_env dscomm_env_t;

/* Values are ABI: append only. */
typedef enum {
    DSCOMM_ENV_RANK = 0,
    DSCOMM_ENV_WORLD_SIZE = 1,
    DSCOMM_ENV_LOCAL_RANK = 2, /* among the ranks of its node */
    DSCOMM_ENV_LOCAL_SIZE = 3, /* how many those are */
    DSCOMM_ENV_NODE_RANK = 4,
    DSCOMM_ENV_MASTER_ADDR = 5, /* where the ranks meet */
    DSCOMM_ENV_MASTER_PORT = 6
} dscomm_env_field_t;
#define DSCOMM_ENV_FIELD_COUNT 7

/* Where to look. Zero or NULL means: in this process and its file system. */
typedef struct dscomm_env_attr {
    size_t size;
    /* a variable's value, or NULL; must stay as it is during the call */
    const char *(*get)(const char *name, void *arg);
    void *arg;
    const char *root; /* a folder that stands for "/" */
    int tolerate; /* 1: an environment that makes no sense is no failure of
                   the call; dscomm_env_status() tells */
} dscomm_env_attr_t;
#define DSCOMM_ENV_ATTR_INIT                                                   \
    {                                                                          \
        sizeof(dscomm_env_attr_t), NULL, NULL, NULL, 0                         \
    }
/* Sets the size bytes at attr to the defaults, as DSCOMM_ENV_ATTR_INIT does,
 * for callers in languages that have no macros. size: of the structure that
 * the caller knows. ERR_INVALID if attr is NULL, or if size is smaller than a
 * size_t or larger than 4096. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_env_attr_init(dscomm_env_attr_t *attr,
                                                size_t size);

/* Finds out who this process is. All numbers are of one source, the innermost
 * launcher that is present; without any the process is alone. A half pair, a
 * value that makes no sense, and RANK and WORLD_SIZE, or PMI's pair, that
 * contradict the launcher are ERR_ENVIRONMENT with a sentence that names
 * variable and value; a scheduler around the launcher has other numbers, which
 * is fine. Asks no name server, starts nothing, changes nothing. attr may be
 * NULL. MT: safe while nobody changes the environment. */
DSCOMM_API dscomm_status_t dscomm_env_discover(const dscomm_env_attr_t *attr,
                                               dscomm_env_t **ret_env);

/* NULL is fine. */
DSCOMM_API void dscomm_env_free(dscomm_env_t *env);

/* OK, or why the environment makes no sense, with the sentence as after a call
 * that failed. All calls below take NULL for env: numbers are -1 then, texts
 * NULL, statuses ERR_INVALID. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_env_status(const dscomm_env_t *env);

/* The numbers; -1 where the environment does not tell. All are -1 where
 * dscomm_env_status() is not OK. MT: safe, like all that only ask. */
DSCOMM_API int dscomm_env_rank(const dscomm_env_t *env);
DSCOMM_API int dscomm_env_world_size(const dscomm_env_t *env);
DSCOMM_API int dscomm_env_local_rank(const dscomm_env_t *env);
DSCOMM_API int dscomm_env_local_size(const dscomm_env_t *env);
DSCOMM_API int dscomm_env_node_rank(const dscomm_env_t *env);

/* Host name or address, "" where unknown, and port, -1 where unknown. The
 * address lives as long as env. */
DSCOMM_API const char *dscomm_env_master_addr(const dscomm_env_t *env);
DSCOMM_API int dscomm_env_master_port(const dscomm_env_t *env);

/* OK where both are known; else ERR_ENVIRONMENT, and the sentence says what to
 * set. */
DSCOMM_API dscomm_status_t dscomm_env_check_master(const dscomm_env_t *env);

/* 1: the launcher serves a store at the master's address (torchrun). 0: rank 0
 * is to. */
DSCOMM_API int dscomm_env_agent_store(const dscomm_env_t *env);

/* What tells this job, and this restart of it, from others: the same on all
 * ranks; "" where nothing does. */
DSCOMM_API const char *dscomm_env_job(const dscomm_env_t *env);

/* "openmpi", "slurm", ...: which source the numbers are of; static; "" where
 * none. */
DSCOMM_API const char *dscomm_env_source(const dscomm_env_t *env);

/* Where a value is from: a variable's name, or words, with blanks between, on
 * how it follows from others; static. NULL where the value is unknown. */
DSCOMM_API const char *dscomm_env_origin(const dscomm_env_t *env,
                                         dscomm_env_field_t field);

/* Platforms that gave no rank, but are there ("azureml"), and warnings, by
 * index = 0, 1, ...; NULL beyond the last. */
DSCOMM_API const char *dscomm_env_overlay(const dscomm_env_t *env,
                                          size_t index);
DSCOMM_API const char *dscomm_env_warning(const dscomm_env_t *env,
                                          size_t index);

/* What became of a source. */
typedef enum {
    DSCOMM_ENV_ABSENT = 0,
    DSCOMM_ENV_REFUSED = 1, /* its variables are there, but do not hold */
    DSCOMM_ENV_IGNORED = 2, /* present, but another comes first */
    DSCOMM_ENV_TAKEN = 3
} dscomm_env_verdict_t;

/* One source; name and about are static, why lives as long as env. */
typedef struct dscomm_env_candidate {
    size_t size;
    const char *name; /* "slurm" */
    const char *about; /* "a step of Slurm (srun)" */
    int verdict; /* dscomm_env_verdict_t */
    const char *why;
} dscomm_env_candidate_t;

/* Fills *info, whose size member is set, for source index = 0, 1, ... in the
 * order of precedence; ERR_NOT_FOUND beyond the last. */
DSCOMM_API dscomm_status_t dscomm_env_candidate(const dscomm_env_t *env,
                                                size_t index,
                                                dscomm_env_candidate_t *info);

/* For programs that this one starts, or loads: sets RANK, WORLD_SIZE,
 * LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT in this process's
 * environment, as torch's env:// reads them. None is overwritten:
 * ERR_ENVIRONMENT, and nothing is set, where one of them has another value
 * already, or where the master is unknown; only the brackets around an IPv6
 * address go, which torch does not read. Local ones that are unknown are left
 * out. A process that is alone gets a port by its number. MT: no other thread
 * may use the environment. */
DSCOMM_API dscomm_status_t dscomm_env_export(const dscomm_env_t *env);

#ifdef __cplusplus
}
#endif

#endif
