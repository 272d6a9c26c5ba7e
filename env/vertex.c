/* SPDX-License-Identifier: BSD-3-Clause */
/* Google Vertex AI, CLUSTER_SPEC:
 *
 *   {"cluster": {"workerpool0": ["host:port"], "workerpool1": [...]},
 *    "task": {"type": "workerpool1", "index": 0}}
 *
 * and TF_CONFIG, which has the same form but is often set for other reasons. */
#include "config.h"

#include "env/fields.h"
#include "env/json.h"

#include <string.h>

#define LISTS_MAX 5

/* Returned instead of a number of hosts if there is no such list. */
#define NO_LIST (-2)

/* A variable's names of the lists of a cluster, in the order of ranks. */
typedef struct {
    const char *variable;
    const char *lists[LISTS_MAX + 1];
} cluster_t;

static const cluster_t vertex = {
    "CLUSTER_SPEC",
    {"workerpool0", "workerpool1", "workerpool2", "workerpool3"},
};

static const cluster_t tf_config = {
    "TF_CONFIG",
    {"chief", "master", "worker", "ps"},
};

static const cluster_t *cluster_names(const dscomm_env_t *env)
{
    return env->family == &dscomm_priv_env_vertex ? &vertex : &tf_config;
}

/* The ranks of one list, and the number of ranks before it. */
typedef struct {
    int64_t before, own, all;
} place_t;

static int find_list(const cluster_t *names, const char *key)
{
    char *name = dscomm_priv_json_string(key);
    int i = 0;

    while (names->lists[i] && g_strcmp0(name, names->lists[i]) != 0)
        i++;
    g_free(name);
    return names->lists[i] ? i : -1;
}

/* Finds a list in one pass, because it may have thousands of hosts. If a name
 * occurs twice, the first one counts. *ret_end: of cluster, an object */
static void count_lists(const cluster_t *names, const char *cluster,
                        int64_t counts[LISTS_MAX], const char **ret_end)
{
    const char *key = dscomm_priv_json_key(cluster);

    for (int i = 0; i < LISTS_MAX; i++)
        counts[i] = NO_LIST;
    for (*ret_end = cluster + 1; key; key = dscomm_priv_json_behind(*ret_end)) {
        const int i = find_list(names, key);
        const int64_t count =
            dscomm_priv_json_strings(dscomm_priv_json_value(key), ret_end);

        if (i >= 0 && counts[i] == NO_LIST)
            counts[i] = count;
    }
    *ret_end = strchr(*ret_end, '}') + 1;
}

/* The contents of the variable; cluster and task are NULL if they are missing.
 */
typedef struct {
    const char *cluster, *task;
    int64_t counts[LISTS_MAX];
} spec_t;

static spec_t read_spec(const cluster_t *names, const char *value)
{
    const char *key = dscomm_priv_json_key(value), *end, *part;
    spec_t spec = {NULL, NULL, {0}};

    for (; key; key = dscomm_priv_json_behind(end)) {
        char *name = dscomm_priv_json_string(key);

        part = dscomm_priv_json_value(key);
        if (!spec.cluster && *part == '{' && g_strcmp0(name, "cluster") == 0) {
            spec.cluster = part;
            count_lists(names, part, spec.counts, &end);
        } else {
            dscomm_priv_json_count(part, &end);
            if (!spec.task && g_strcmp0(name, "task") == 0)
                spec.task = part;
        }
        g_free(name);
    }
    return spec;
}

/* Returns 1 if a list has values that are not names of hosts. */
static int has_others(const cluster_t *names, const spec_t *spec)
{
    for (int i = 0; spec->cluster && names->lists[i]; i++) {
        if (spec->counts[i] == -1)
            return 1;
    }
    return 0;
}

/* own is -1 if type is not a list of the cluster's. */
static place_t find_place(const cluster_t *names, const spec_t *spec,
                          const char *type)
{
    place_t place = {0, -1, 0};

    for (int i = 0; spec->cluster && names->lists[i]; i++) {
        const int64_t items = MAX(spec->counts[i], 0);

        if (g_strcmp0(type, names->lists[i]) == 0) {
            place.before = place.all;
            place.own = items;
        }
        place.all += items;
    }
    return place;
}

/* Finds the same list as read_spec(), if a name occurs twice. */
static const char *find_cluster(const char *value)
{
    const char *key = dscomm_priv_json_key(value);

    while (key) {
        const char *part = dscomm_priv_json_value(key);
        char *name = dscomm_priv_json_string(key);
        const int found = *part == '{' && g_strcmp0(name, "cluster") == 0;

        g_free(name);
        if (found)
            return part;
        key = dscomm_priv_json_next(part);
    }
    return NULL;
}

static const char *vertex_first_host(const cluster_t *names,
                                     const char *cluster)
{
    const char *host = NULL;

    for (int i = 0; names->lists[i] && !host; i++)
        host = dscomm_priv_json_first(
            dscomm_priv_json_member(cluster, names->lists[i]));
    return host;
}

static dscomm_status_t use_task(const env_view_t *view, dscomm_env_t *env,
                                const cluster_t *names, const char *value)
{
    const spec_t spec = read_spec(names, value);
    const char *task = spec.task;
    char *type = dscomm_priv_json_string(dscomm_priv_json_member(task, "type"));
    int64_t index = -1;
    int is_number = dscomm_priv_json_number(
                        dscomm_priv_json_member(task, "index"), &index) == 0;
    place_t place = find_place(names, &spec, type);
    const char *wrong = !spec.cluster ? "there is no cluster"
                        : has_others(names, &spec)
                            ? "a list of cluster has what is no host"
                        : !place.all    ? "cluster has no list of hosts"
                        : !task         ? "there is no task"
                        : place.own < 0 ? "task.type names no list of cluster"
                        : !is_number    ? "task.index is no number"
                                        : NULL;

    g_free(type);
    if (wrong)
        return dscomm_priv_env_fail(view, env, names->variable,
                                    "%s. Correct it, or name another source in "
                                    "DSCOMM_LAUNCHER",
                                    wrong);
    if (index >= place.own || place.all > G_MAXINT)
        return dscomm_priv_env_fail(view, env, names->variable,
                                    "task.index is %" G_GINT64_FORMAT
                                    ", but its list has %" G_GINT64_FORMAT
                                    " hosts. Correct it",
                                    (gint64)index, (gint64)place.own);
    dscomm_priv_hosts_set(env, place.before + index, place.all,
                          names->variable);
    return DSCOMM_OK;
}

static dscomm_status_t vertex_find_self(const env_view_t *view,
                                        dscomm_env_t *env)
{
    const cluster_t *names = cluster_names(env);
    const char *value;
    dscomm_status_t status =
        dscomm_priv_hosts_json(view, env, names->variable, &value);

    return status == DSCOMM_OK ? use_task(view, env, names, value) : status;
}

/* Called after vertex_find_self(), which has checked the text. */
static dscomm_status_t vertex_take_first(const env_view_t *view,
                                         dscomm_env_t *env)
{
    const cluster_t *names = cluster_names(env);
    const char *value = dscomm_priv_view_value(view, names->variable);
    const char *host;
    char *text;

    value += strspn(value, " \t\r\n");
    host = vertex_first_host(names, find_cluster(value));
    text = dscomm_priv_json_string(host);
    if (text && dscomm_priv_hosts_set_master(env, text, names->variable))
        return DSCOMM_OK;
    return dscomm_priv_env_fail(view, env, names->variable,
                                "its first host is not one. Correct it, or set "
                                "MASTER_ADDR");
}

const env_family_t dscomm_priv_env_vertex = {
    .name = "vertex",
    .about = "Vertex AI's CLUSTER_SPEC",
    .tier = ENV_TIER_LIST,
    .all = {"CLUSTER_SPEC"},
    .complete = vertex_find_self,
    .find_master = vertex_take_first,
    .job = {{"CLOUD_ML_JOB_ID"}},
};

const env_family_t dscomm_priv_env_tf_config = {
    .name = "tf_config",
    .about = "TensorFlow's TF_CONFIG",
    .tier = ENV_TIER_LIST,
    .on_request = 1,
    .all = {"TF_CONFIG"},
    .complete = vertex_find_self,
    .find_master = vertex_take_first,
};
