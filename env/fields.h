/* SPDX-License-Identifier: BSD-3-Clause */
/* The object that discovery fills, and how a source fills it. */
#ifndef ENV_FIELDS_H
#define ENV_FIELDS_H

#include "env/family.h"
#include "lib/base/array.h"

#include <dscomm/env.h>
#include <glib.h>

/* One source: taken, refused, ignored or absent, and why. */
typedef struct {
    dscomm_env_verdict_t verdict;
    char *why;
} env_judgement_t;

/* The range of a number, and its name in sentences. */
typedef struct {
    const char *what;
    int min, max;
    const char *with; /* another variable to unset as well; or NULL */
} env_limits_t;

struct dscomm_env {
    const env_family_t *family; /* gave the numbers; NULL: none yet */
    int forced; /* 1: DSCOMM_LAUNCHER asks for it */
    int numbers[ENV_NUMBERS]; /* -1: unknown */
    int lone_rank; /* the rank, if only the number of ranks is missing; else -1
                    */
    char *address; /* NULL: unknown */
    int port; /* -1: unknown */
    const char *origins[DSCOMM_ENV_FIELD_COUNT];
    /* why there is no address, if a source knows the reason; or NULL */
    char *no_address;
    int agent_store;
    int agent_port; /* 1: MASTER_PORT belongs to an agent's store */
    char job[128];
    /* The scheduler's variable that names the job, if several programs of the
     * scheduler's job may get this name; NULL: the name is unique. */
    const char *shared;
    /* The job is named after this ancestor process. It is searched for only
     * when the name is needed, because reading /proc takes longer than
     * everything else. */
    const char *ancestor; /* static; NULL: the member job is the name */
    char *root; /* of the file system to look at */
    const env_overlay_t *overlays[ENV_OVERLAYS + 1]; /* ends with NULL */
    dscomm_array_t warnings; /* char *, g_free() */
    env_judgement_t *judgements; /* one a family */
    dscomm_status_t status;
    char *sentence; /* if status is not OK */
    int bad; /* 1: an allocation failed, so discovery fails */
};

/* A text for g_free(); NULL, and env->bad, if there is no memory. */
char *dscomm_priv_env_text(dscomm_env_t *env, const char *format, ...)
    G_GNUC_PRINTF(2, 3);

/* Sets a number and its origin, static. */
void dscomm_priv_env_set(dscomm_env_t *env, dscomm_env_field_t field,
                         int64_t number, const char *origin);

/* Takes over address, which may be NULL. */
void dscomm_priv_env_set_address(dscomm_env_t *env, char *address,
                                 const char *origin);

void dscomm_priv_env_set_port(dscomm_env_t *env, int port, const char *origin);

/* Adds a warning. */
void dscomm_priv_env_warn(dscomm_env_t *env, const char *format, ...)
    G_GNUC_PRINTF(2, 3);

/* Says why there is no address, unless that was said already; printf. */
void dscomm_priv_env_no_address(dscomm_env_t *env, const char *format, ...)
    G_GNUC_PRINTF(2, 3);

/* Names the job; a name that is too long is replaced by its checksum. */
void dscomm_priv_env_set_job(dscomm_env_t *env, const char *name);

/* 1: all ranks are known to be on one node. */
int dscomm_priv_env_one_node(const dscomm_env_t *env);

/* "openmpi+azureml", for sentences; g_free(). */
char *dscomm_priv_env_title(const dscomm_env_t *env);

/* ERR_ENVIRONMENT: "NAME='VALUE': TEXT (source: SOURCE)", without VALUE if the
 * variable is not set. */
dscomm_status_t dscomm_priv_env_fail(const env_view_t *view,
                                     const dscomm_env_t *env, const char *name,
                                     const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* Reads a decimal number within limit from variable name; *ret_number = -1 if
 * it is not set. */
dscomm_status_t dscomm_priv_env_count(const env_view_t *view,
                                      const dscomm_env_t *env, const char *name,
                                      const env_limits_t *limit,
                                      int *ret_number);

/* Reads a decimal number within field's range from variable name; *ret_number
 * = -1 if it is not set. */
dscomm_status_t dscomm_priv_env_number(const env_view_t *view,
                                       const dscomm_env_t *env,
                                       const char *name,
                                       dscomm_env_field_t field,
                                       int *ret_number);

/* Platforms that list hosts, of one process each */

/* Checks the JSON in variable name, which is set. */
dscomm_status_t dscomm_priv_hosts_json(const env_view_t *view,
                                       const dscomm_env_t *env,
                                       const char *name,
                                       const char **ret_value);

/* Sets the numbers of process rank of world, alone on node rank. */
void dscomm_priv_hosts_set(dscomm_env_t *env, int64_t rank, int64_t world,
                           const char *origin);

/* Makes "[::1]" to "::1": brackets separate an address from a port, and PyTorch
 * does not accept them. Returns 0 if the brackets are no pair. */
int dscomm_priv_strip_brackets(char *text);

/* Takes over "host" or "host:port" as the address of rank 0, if it is valid,
 * without the brackets of an IPv6 address. Returns whether it is. */
int dscomm_priv_hosts_set_master(dscomm_env_t *env, char *text,
                                 const char *origin);

#endif
