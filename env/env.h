/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of discovery. */
#ifndef ENV_ENV_H
#define ENV_ENV_H

#include "env/fields.h"

/* Fills env, which is empty, from view. */
dscomm_status_t dscomm_priv_env_read(const env_view_t *view, dscomm_env_t *env);

/* Chooses env->family. The judgement of each source has the reason why it was
 * taken or not (env/choose.c). */
dscomm_status_t dscomm_priv_env_choose(const env_view_t *view,
                                       dscomm_env_t *env);

/* Sets the job's name; the numbers must be known (env/job.c). */
void dscomm_priv_env_name_job(const env_view_t *view, dscomm_env_t *env);

/* If the job is to be named after an ancestor process, finds that process and
 * names the job (named), then finds the port, which depends on the name
 * (find_port; env/master.c). MT: safe. */
const dscomm_env_t *dscomm_priv_env_named(const dscomm_env_t *env);
void dscomm_priv_env_find_port(dscomm_env_t *env);

/* Sets address and port; the job must have its name (env/master.c). */
dscomm_status_t dscomm_priv_env_find_master(const env_view_t *view,
                                            dscomm_env_t *env);

/* The text that dscomm_env_origin() gives for a port that follows from the
 * job's name. */
extern const char dscomm_priv_env_by_name[];

/* 1: the port is the first of several, and rank 0 takes a free one of them
 * (DSCOMM_PORTS of lib/rendezvous/rendezvous.h). */
int dscomm_priv_env_has_ports(const dscomm_env_t *env);

/* The port for a job's name, above the ports that Linux assigns itself. */
int dscomm_priv_env_port(const char *job);

#endif
