/* SPDX-License-Identifier: BSD-3-Clause */
/* See remote.h. The kernel lets only the same user read the environment of a
 * rank, which has the job's secret. */
#include "config.h"

#include "tools/top/remote.h"

#include "lib/rendezvous/roster.h"
#include "tools/common/nodes-store.h"

#include <string.h>

#define STORE_MS 2000

/* The environment of the first rank that lives and was started by dscomm run;
 * g_strfreev(). NULL: there is none. */
static char **rank_environment(const GArray *samples)
{
    for (guint i = 0; i < samples->len; i++) {
        char path[40], *text;
        char **environment;
        gsize size;
        GPtrArray *list;

        g_snprintf(path, sizeof path, "/proc/%d/environ",
                   g_array_index(samples, sample_t, i).pid);
        if (!g_file_get_contents(path, &text, &size, NULL))
            continue;
        list = g_ptr_array_new();
        for (gsize at = 0; at < size; at += strlen(text + at) + 1)
            g_ptr_array_add(list, g_strdup(text + at));
        g_ptr_array_add(list, NULL);
        g_free(text);
        environment = (char **)g_ptr_array_free(list, false);
        if (g_environ_getenv(environment, "DSCOMM_RECORDER"))
            return environment;
        g_strfreev(environment);
    }
    return NULL;
}

static int get_number(char **environment, const char *name)
{
    const char *text = g_environ_getenv(environment, name);

    return text ? (int)CLAMP(g_ascii_strtoll(text, NULL, 10), 0, 65535) : 0;
}

/* Opens the store as the rank would. */
static char *store_open(remote_t *remote, char **environment)
{
    static const char *const secrets[] = {"DSCOMM_JOB_SECRET",
                                          "DSCOMM_JOB_SECRET_FILE"};
    const char *address = g_environ_getenv(environment, "MASTER_ADDR");
    char *url = tool_nodes_url(address ? address : "",
                               get_number(environment, "MASTER_PORT"));
    char *problem = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(secrets); i++) {
        const char *secret = g_environ_getenv(environment, secrets[i]);

        if (secret)
            g_setenv(secrets[i], secret, true);
        else
            g_unsetenv(secrets[i]);
    }
    if (tool_nodes_open(url, 0, STORE_MS, NULL, &remote->store) < 0) {
        remote->store = NULL;
        problem = g_strdup_printf("the other nodes cannot be asked: %s",
                                  dscomm_last_error());
    }
    g_free(url);
    return problem;
}

char *remote_open(remote_t *remote, const GArray *samples)
{
    char **environment = rank_environment(samples);
    char *problem = NULL;

    *remote = (remote_t){1, 0, NULL};
    if (!environment)
        return NULL;
    remote->own = get_number(environment, "GROUP_RANK");
    remote->nodes =
        MIN(get_number(environment, "GROUP_WORLD_SIZE"), TOOL_NODES_MAX);
    if (remote->nodes > 1)
        problem = store_open(remote, environment);
    g_strfreev(environment);
    return problem;
}

/* Adds the samples of a node, if it has written any. */
static dscomm_status_t node_add(remote_t *remote, int node, GArray *samples)
{
    char *key = g_strdup_printf(TOOL_NODES_SAMPLES "/%d", node), *text;
    void *value;
    size_t size;
    const dscomm_status_t status =
        dscomm_priv_roster_fetch(remote->store, key, &value, &size);

    g_free(key);
    if (status < 0 || !value)
        return status;
    text = g_strndup(value, size);
    dscomm_store_free(value);
    samples_parse(text, node, samples);
    g_free(text);
    return DSCOMM_OK;
}

static dscomm_status_t node_ask(remote_t *remote, int node)
{
    char *key = g_strdup_printf(TOOL_NODES_BEAT "/%d", node);
    const dscomm_status_t status =
        dscomm_store_add(remote->store, key, TOOL_NODES_REQUEST, NULL);

    g_free(key);
    return status;
}

void remote_add(remote_t *remote, GArray *samples)
{
    dscomm_status_t status = DSCOMM_OK;

    for (guint i = 0; i < samples->len; i++)
        g_array_index(samples, sample_t, i).node = remote->own;
    if (!remote->store)
        return;
    for (int node = 0; node < remote->nodes && status >= 0; node++)
        if (node != remote->own)
            status = node_add(remote, node, samples);
    for (int node = 1; node < remote->nodes && status >= 0; node++)
        status = node_ask(remote, node);
    if (status < 0) /* the job has ended, or its first node is gone */
        remote_close(remote);
    samples_sort(samples);
}

void remote_close(remote_t *remote)
{
    dscomm_store_close(remote->store);
    remote->store = NULL;
}
