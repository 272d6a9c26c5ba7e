/* SPDX-License-Identifier: BSD-3-Clause */
/* Platforms that list hosts, of one process each. */
#ifndef ENV_HOSTS_H
#define ENV_HOSTS_H

#include "env/fields.h"

/* Checks the JSON in variable name, which is set. */
dscomm_status_t dscomm_priv_hosts_json(const env_view_t *view,
                                       const dscomm_env_t *env,
                                       const char *name,
                                       const char **ret_value);

/* Sets the numbers of process rank of world, alone on node rank. */
void dscomm_priv_hosts_set(dscomm_env_t *env, int64_t rank, int64_t world,
                           const char *origin);

/* Takes over "host" or "host:port" as where rank 0 is, if it is one, without
 * the brackets of an address. Returns whether it is. */
int dscomm_priv_hosts_set_master(dscomm_env_t *env, char *text,
                                 const char *origin);

#endif
