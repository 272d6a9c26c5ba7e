/* SPDX-License-Identifier: BSD-3-Clause */
/* The identity of this process (rank, sizes, master), from its launcher,
 * scheduler or platform, in one form for all of them. */
#ifndef DSCOMM_ENV_H
#define DSCOMM_ENV_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result of one discovery. It never changes. */
typedef struct dscomm_env dscomm_env_t;

/* Values are ABI: append only. */
typedef enum {
    DSCOMM_ENV_RANK = 0,
    DSCOMM_ENV_WORLD_SIZE = 1,
    DSCOMM_ENV_LOCAL_RANK = 2, /* among the ranks of its node */
    DSCOMM_ENV_LOCAL_SIZE = 3, /* number of ranks on this node */
    DSCOMM_ENV_NODE_RANK = 4,
    DSCOMM_ENV_MASTER_ADDR = 5, /* where the ranks meet */
    DSCOMM_ENV_MASTER_PORT = 6
} dscomm_env_field_t;
#define DSCOMM_ENV_FIELD_COUNT 7

/* The sources of a discovery. Zero or NULL: this process and its file system.
 */
typedef struct dscomm_env_attr {
    size_t size;
    /* Returns a variable's value, or NULL; the value must not change during the
     * call. */
    const char *(*get)(const char *name, void *arg);
    void *arg;
    const char *root; /* a folder that stands for "/" */
    /* 1: an invalid environment does not fail the call; see dscomm_env_status()
     */
    int tolerate;
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

/* Discovers rank, sizes and master of this process. All numbers come from one
 * source, the innermost launcher that is present; without a launcher the
 * process is alone. ERR_ENVIRONMENT, with variable and value in the sentence,
 * for an incomplete pair, an invalid value, and RANK and WORLD_SIZE, or PMI's
 * pair, that contradict the launcher. A scheduler around the launcher may have
 * other numbers. The call queries no name server, starts nothing and changes
 * nothing. attr may be NULL. MT: safe while nobody changes the environment. */
DSCOMM_API dscomm_status_t dscomm_env_discover(const dscomm_env_attr_t *attr,
                                               dscomm_env_t **ret_env);

/* Frees env, which may be NULL. */
DSCOMM_API void dscomm_env_free(dscomm_env_t *env);

/* OK, or ERR_ENVIRONMENT with the sentence if the environment is invalid. All
 * calls below accept NULL for env: they then return -1, NULL or ERR_INVALID.
 * MT: safe. */
DSCOMM_API dscomm_status_t dscomm_env_status(const dscomm_env_t *env);

/* The numbers; -1 if unknown, or if dscomm_env_status() is not OK. MT: safe, as
 * are the queries below. */
DSCOMM_API int dscomm_env_rank(const dscomm_env_t *env);
DSCOMM_API int dscomm_env_world_size(const dscomm_env_t *env);
DSCOMM_API int dscomm_env_local_rank(const dscomm_env_t *env);
DSCOMM_API int dscomm_env_local_size(const dscomm_env_t *env);
DSCOMM_API int dscomm_env_node_rank(const dscomm_env_t *env);

/* Host name or address, "" if unknown, and port, -1 if unknown. The address
 * lives as long as env. */
DSCOMM_API const char *dscomm_env_master_addr(const dscomm_env_t *env);
DSCOMM_API int dscomm_env_master_port(const dscomm_env_t *env);

/* OK if both are known; otherwise ERR_ENVIRONMENT, whose sentence names what to
 * set. */
DSCOMM_API dscomm_status_t dscomm_env_check_master(const dscomm_env_t *env);

/* 1 if the launcher serves a store at the master's address (torchrun); 0 if
 * rank 0 must. */
DSCOMM_API int dscomm_env_agent_store(const dscomm_env_t *env);

/* An identifier of this job and of this restart of it, the same on all ranks;
 * "" if there is none. */
DSCOMM_API const char *dscomm_env_job(const dscomm_env_t *env);

/* The source of the numbers: "openmpi", "slurm", ...; static; "" if there is
 * none. */
DSCOMM_API const char *dscomm_env_source(const dscomm_env_t *env);

/* The source of one value: a variable's name, or a phrase that says how it
 * follows from others; static. NULL if the value is unknown. */
DSCOMM_API const char *dscomm_env_origin(const dscomm_env_t *env,
                                         dscomm_env_field_t field);

/* Platforms that were found but gave no rank ("azureml"), and warnings, by
 * index = 0, 1, ...; NULL after the last. */
DSCOMM_API const char *dscomm_env_overlay(const dscomm_env_t *env,
                                          size_t index);
DSCOMM_API const char *dscomm_env_warning(const dscomm_env_t *env,
                                          size_t index);

/* The result of examining a source. */
typedef enum {
    DSCOMM_ENV_ABSENT = 0,
    DSCOMM_ENV_REFUSED = 1, /* its variables are present but invalid */
    DSCOMM_ENV_IGNORED = 2, /* present, but another has precedence */
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
 * order of precedence; ERR_NOT_FOUND after the last. */
DSCOMM_API dscomm_status_t dscomm_env_candidate(const dscomm_env_t *env,
                                                size_t index,
                                                dscomm_env_candidate_t *info);

/* Sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and
 * MASTER_PORT in this process's environment, as torch's env:// reads them, for
 * programs or libraries that it starts or loads. Nothing is overwritten, except
 * that brackets around an IPv6 address are removed, because torch does not
 * accept them. ERR_ENVIRONMENT, and nothing is set, if one of them has another
 * value already or the master is unknown. Unknown local numbers are left out. A
 * process that is alone gets a port derived from its pid. MT: no other thread
 * may use the environment. */
DSCOMM_API dscomm_status_t dscomm_env_export(const dscomm_env_t *env);

#ifdef __cplusplus
}
#endif

#endif
