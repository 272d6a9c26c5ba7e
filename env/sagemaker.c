/* SPDX-License-Identifier: BSD-3-Clause */
/* Amazon SageMaker: mpirun's or torchrun's ranks where it starts the program by
 * these (smddp is mpirun as well), one process a host where it starts it
 * itself. */
#include "config.h"

#include "env/hosts.h"
#include "env/json.h"

#include <string.h>

#define PORT 7777

static const char list_name[] = "SM_HOSTS";
static const char host_name[] = "SM_CURRENT_HOST";

static int has_host(const GPtrArray *hosts, const char *host)
{
    for (guint i = 0; i < hosts->len; i++) {
        if (strcmp(g_ptr_array_index(hosts, i), host) == 0)
            return 1;
    }
    return 0;
}

/* The hosts, at least one; NULL after a failure; g_strfreev(). */
static char **read_hosts(const env_view_t *view, const dscomm_env_t *env,
                         dscomm_status_t *ret_status)
{
    GPtrArray *hosts = g_ptr_array_new_with_free_func(g_free);
    const char *value = NULL, *item = NULL;
    int are_hosts = 1, are_twice = 0;

    *ret_status = dscomm_priv_hosts_json(view, env, list_name, &value);
    if (*ret_status == DSCOMM_OK)
        item = dscomm_priv_json_first(value);
    for (; item && are_hosts; item = dscomm_priv_json_next(item)) {
        char *host = dscomm_priv_json_string(item);

        are_hosts = host && dscomm_priv_is_host(host);
        are_twice |= are_hosts && has_host(hosts, host);
        g_ptr_array_add(hosts, host);
    }
    if (*ret_status == DSCOMM_OK && (!hosts->len || !are_hosts))
        *ret_status = dscomm_priv_env_fail(view, env, list_name,
                                           "not a list of hosts. Correct it");
    if (*ret_status == DSCOMM_OK && are_twice)
        *ret_status = dscomm_priv_env_fail(view, env, list_name,
                                           "names a host twice. Correct it");
    if (*ret_status != DSCOMM_OK) {
        g_ptr_array_unref(hosts);
        return NULL;
    }
    g_ptr_array_add(hosts, NULL);
    return (char **)g_ptr_array_free(hosts, FALSE);
}

static dscomm_status_t take_first(const env_view_t *view, dscomm_env_t *env)
{
    dscomm_status_t status = DSCOMM_OK;
    char **hosts;

    if (!dscomm_priv_view_value(view, list_name)) {
        dscomm_priv_env_no_address(env, "SM_HOSTS is not set either");
        return DSCOMM_OK;
    }
    hosts = read_hosts(view, env, &status);
    if (hosts)
        dscomm_priv_env_set_address(env, g_strdup(hosts[0]),
                                    "first host of SM_HOSTS");
    g_strfreev(hosts);
    return status;
}

static dscomm_status_t find_self(const env_view_t *view, dscomm_env_t *env)
{
    const char *own = dscomm_priv_view_value(view, host_name);
    const char *list = dscomm_priv_view_value(view, list_name);
    dscomm_status_t status;
    char **hosts;
    guint index = 0, count;

    if (!own || !list)
        return dscomm_priv_env_fail(view, env, own ? host_name : list_name,
                                    "%s is missing. Set both %s and %s, or "
                                    "neither",
                                    own ? list_name : host_name, list_name,
                                    host_name);
    hosts = read_hosts(view, env, &status);
    if (!hosts)
        return status;
    count = g_strv_length(hosts);
    while (index < count && strcmp(hosts[index], own) != 0)
        index++;
    g_strfreev(hosts);
    if (index == count)
        return dscomm_priv_env_fail(view, env, host_name,
                                    "not in SM_HOSTS. Correct one of them");
    dscomm_priv_hosts_set(env, index, count, host_name);
    return DSCOMM_OK;
}

const env_family_t dscomm_priv_env_sagemaker = {
    .name = "sagemaker",
    .about = "SageMaker's list of hosts",
    .tier = ENV_TIER_LIST,
    .any = {list_name, host_name},
    .complete = find_self,
    .find_master = take_first,
    .port = PORT,
};

const env_overlay_t dscomm_priv_env_sagemaker_mpi = {
    .name = "sagemaker",
    .marker = "SM_TRAINING_ENV",
    .find_master = take_first,
    .port = PORT,
};
