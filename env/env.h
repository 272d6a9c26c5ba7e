/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of discovery. */
#ifndef ENV_ENV_H
#define ENV_ENV_H

#include "env/fields.h"

/* Fills env, which is empty, from what view shows. */
dscomm_status_t dscomm_priv_env_read(const env_view_t *view, dscomm_env_t *env);

/* Chooses env->family, and says of each why or why not (env/choose.c). */
dscomm_status_t dscomm_priv_env_choose(const env_view_t *view,
                                       dscomm_env_t *env);

/* The job's name, once the numbers are known (env/job.c). */
void dscomm_priv_env_name_job(const env_view_t *view, dscomm_env_t *env);

/* Names it after its ancestor, if it is to be (env/job.c); then the port by its
 * name is known as well (env/master.c). MT: safe. */
const dscomm_env_t *dscomm_priv_env_named(const dscomm_env_t *env);
void dscomm_priv_env_find_port(dscomm_env_t *env);

/* Address and port, once the job has its name (env/master.c). */
dscomm_status_t dscomm_priv_env_find_master(const env_view_t *view,
                                            dscomm_env_t *env);

/* The origin of a port that the job's name leads to. */
extern const char dscomm_priv_env_by_name[];

/* 1: the port is the first of several, of which rank 0 takes one that is
 * free (DSCOMM_PORTS of lib/rendezvous/rendezvous.h). */
int dscomm_priv_env_has_ports(const dscomm_env_t *env);

/* The port that a job's name leads to, above those that Linux gives out
 * itself. */
int dscomm_priv_env_port(const char *job);

#endif
