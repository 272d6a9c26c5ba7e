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

/* The list, and where this host is in it. */
typedef struct {
    gint64 count, index; /* index: -1 where it is not there */
    int is_twice;
} hosts_t;

/* 1: it is own; 0: another host; -1: none. */
static int compare(const char *item, const char *own)
{
    size_t length;
    const char *plain = dscomm_priv_json_plain(item, &length);
    char *text = plain ? NULL : dscomm_priv_json_string(item);
    int result = -1;

    if (text)
        length = strlen(text);
    if ((plain || text) && dscomm_priv_is_host_of(plain ? plain : text, length))
        result = own && strlen(own) == length &&
                 memcmp(plain ? plain : text, own, length) == 0;
    g_free(text);
    return result;
}

/* Where the list begins, once read_hosts() has accepted it. */
static const char *first_of(const env_view_t *view)
{
    const char *text = dscomm_priv_view_value(view, list_name);

    return dscomm_priv_json_first(text + strspn(text, " \t\r\n"));
}

/* At least one host. A host that is there twice finds that out by itself. */
static dscomm_status_t read_hosts(const env_view_t *view,
                                  const dscomm_env_t *env, hosts_t *ret_hosts)
{
    const char *own = dscomm_priv_view_value(view, host_name);
    hosts_t hosts = {0, -1, 0};
    const char *value = NULL, *item = NULL;
    int found = 0;
    dscomm_status_t status =
        dscomm_priv_hosts_json(view, env, list_name, &value);

    if (status != DSCOMM_OK)
        return status;
    item = dscomm_priv_json_first(value);
    for (; item && found >= 0; item = dscomm_priv_json_next(item)) {
        found = compare(item, own);
        hosts.is_twice |= found > 0 && hosts.index >= 0;
        if (found > 0)
            hosts.index = hosts.count;
        hosts.count++;
    }
    if (!hosts.count || found < 0)
        return dscomm_priv_env_fail(view, env, list_name,
                                    "not a list of hosts. Correct it");
    if (hosts.is_twice)
        return dscomm_priv_env_fail(view, env, list_name,
                                    "names a host twice. Correct it");
    *ret_hosts = hosts;
    return DSCOMM_OK;
}

static dscomm_status_t take_first(const env_view_t *view, dscomm_env_t *env)
{
    dscomm_status_t status = DSCOMM_OK;
    hosts_t hosts;

    if (!dscomm_priv_view_value(view, list_name)) {
        dscomm_priv_env_no_address(env, "SM_HOSTS is not set either");
        return DSCOMM_OK;
    }
    if (env->family != &dscomm_priv_env_sagemaker)
        status = read_hosts(view, env, &hosts);
    if (status == DSCOMM_OK)
        dscomm_priv_env_set_address(env,
                                    dscomm_priv_json_string(first_of(view)),
                                    "first host of SM_HOSTS");
    return status;
}

static dscomm_status_t find_self(const env_view_t *view, dscomm_env_t *env)
{
    const char *own = dscomm_priv_view_value(view, host_name);
    const char *list = dscomm_priv_view_value(view, list_name);
    dscomm_status_t status;
    hosts_t hosts;

    if (!own || !list)
        return dscomm_priv_env_fail(view, env, own ? host_name : list_name,
                                    "%s is missing. Set both %s and %s, or "
                                    "neither",
                                    own ? list_name : host_name, list_name,
                                    host_name);
    status = read_hosts(view, env, &hosts);
    if (status != DSCOMM_OK)
        return status;
    if (hosts.index < 0)
        return dscomm_priv_env_fail(view, env, host_name,
                                    "not in SM_HOSTS. Correct one of them");
    dscomm_priv_hosts_set(env, hosts.index, hosts.count, host_name);
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
