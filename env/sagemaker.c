/* SPDX-License-Identifier: BSD-3-Clause */
/* Amazon SageMaker. If it starts the program by mpirun (also for smddp) or
 * torchrun, their variables are used; if it starts the program itself, there is
 * one process on each host. */
#include "config.h"

#include "env/fields.h"
#include "env/json.h"

#include <string.h>

#define PORT 7777

static const char list_name[] = "SM_HOSTS";
static const char host_name[] = "SM_CURRENT_HOST";

/* The list, and where this host is in it. */
typedef struct {
    gint64 count, index; /* index: -1 if it is not in the list */
    int is_twice;
} hosts_t;

/* 1 for characters of hosts, which need no escape. */
static inline int sagemaker_is_plain(char c)
{
    return (unsigned char)c > ' ' && c != '"' && c != '\\' && c != 0x7f;
}

static inline const char *sagemaker_after_blanks(const char *at)
{
    return at + ((unsigned char)*at <= ' ' ? strspn(at, " \t\r\n") : 0);
}

static void count_host(hosts_t *hosts, int is_own)
{
    hosts->is_twice |= is_own && hosts->index >= 0;
    if (is_own)
        hosts->index = hosts->count;
    hosts->count++;
}

/* 1: the text is a list of hosts without escapes, the usual case; it is read in
 * one pass. */
static int read_plain(const char *text, const char *own, hosts_t *ret_hosts)
{
    const size_t own_length = own ? strlen(own) : 0;
    const char *at = sagemaker_after_blanks(text);
    hosts_t hosts = {0, -1, 0};

    if (*at != '[')
        return 0;
    do {
        const char *host = sagemaker_after_blanks(at + 1), *end = host + 1;

        while (*host == '"' && sagemaker_is_plain(*end))
            end++;
        if (*host != '"' || *end != '"' || end == host + 1 || end - host > 256)
            return 0;
        count_host(&hosts, (size_t)(end - host - 1) == own_length &&
                               memcmp(host + 1, own, own_length) == 0);
        at = sagemaker_after_blanks(end + 1);
    } while (*at == ',');
    if (*at != ']' || *sagemaker_after_blanks(at + 1))
        return 0;
    *ret_hosts = hosts;
    return 1;
}

/* The beginning of the list, after read_hosts() has accepted it. */
static const char *sagemaker_first_of(const env_view_t *view)
{
    const char *text = dscomm_priv_view_value(view, list_name);

    return dscomm_priv_json_first(text + strspn(text, " \t\r\n"));
}

/* Reads any other text; -1: it is no list of hosts. */
static int read_any(const char *value, const char *own, hosts_t *ret_hosts)
{
    const char *item = dscomm_priv_json_first(value);
    hosts_t hosts = {0, -1, 0};
    int is_host = 1;

    for (; item && is_host; item = dscomm_priv_json_next(item)) {
        char *text = dscomm_priv_json_string(item);

        is_host = text && dscomm_priv_is_host(text);
        count_host(&hosts, is_host && g_strcmp0(text, own) == 0);
        g_free(text);
    }
    *ret_hosts = hosts;
    return is_host && hosts.count ? 0 : -1;
}

/* Fails if there is no host. Each process of a host that is listed twice
 * fails. */
static dscomm_status_t read_hosts(const env_view_t *view,
                                  const dscomm_env_t *env, hosts_t *ret_hosts)
{
    const char *own = dscomm_priv_view_value(view, host_name);
    const char *text = dscomm_priv_view_value(view, list_name), *value = NULL;
    hosts_t hosts = {0, -1, 0};

    if (!read_plain(text, own, &hosts)) {
        dscomm_status_t status =
            dscomm_priv_hosts_json(view, env, list_name, &value);

        if (status != DSCOMM_OK)
            return status;
        if (read_any(value, own, &hosts))
            return dscomm_priv_env_fail(view, env, list_name,
                                        "not a list of hosts. Correct it");
    }
    if (hosts.is_twice)
        return dscomm_priv_env_fail(view, env, list_name,
                                    "names a host twice. Correct it");
    *ret_hosts = hosts;
    return DSCOMM_OK;
}

static dscomm_status_t sagemaker_take_first(const env_view_t *view,
                                            dscomm_env_t *env)
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
        dscomm_priv_env_set_address(
            env, dscomm_priv_json_string(sagemaker_first_of(view)),
            "first host of SM_HOSTS");
    return status;
}

static dscomm_status_t sagemaker_find_self(const env_view_t *view,
                                           dscomm_env_t *env)
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
    .complete = sagemaker_find_self,
    .find_master = sagemaker_take_first,
    .port = PORT,
};

const env_overlay_t dscomm_priv_env_sagemaker_mpi = {
    .name = "sagemaker",
    .marker = "SM_TRAINING_ENV",
    .find_master = sagemaker_take_first,
    .port = PORT,
};
