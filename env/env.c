/* SPDX-License-Identifier: BSD-3-Clause */
/* The object that discovery fills, its public getters, and its export as
 * variables for torch's env:// and its kin. */
#include "config.h"

#include "env/env.h"
#include "lib/base/attr.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NULL: no memory. */
static dscomm_env_t *env_new(void)
{
    dscomm_env_t *env = g_try_new0(dscomm_env_t, 1);

    if (!env)
        return NULL;
    for (int i = 0; i < ENV_NUMBERS; i++)
        env->numbers[i] = -1;
    env->port = env->lone_rank = -1;
    env->judgements = g_try_new0(env_judgement_t, dscomm_priv_env_family_count);
    if (!env->judgements) {
        g_free(env);
        return NULL;
    }
    return env;
}

void dscomm_env_free(dscomm_env_t *env)
{
    const char *text;

    if (!env)
        return;
    for (size_t i = 0; i < dscomm_priv_env_family_count; i++)
        g_free(env->judgements[i].why);
    g_free(env->judgements);
    for (size_t i = 0; (text = dscomm_env_warning(env, i)); i++)
        g_free((char *)(uintptr_t)text);
    dscomm_priv_array_clear(&env->warnings);
    g_free(env->address);
    g_free(env->no_address);
    g_free(env->root);
    g_free(env->sentence);
    g_free(env);
}

static const char *from_process(const char *name, void *arg)
{
    (void)arg;
    return getenv(name);
}

/* After an error no number is valid. */
static void env_forget(dscomm_env_t *env)
{
    for (int i = 0; i < ENV_NUMBERS; i++)
        env->numbers[i] = -1;
    for (int i = 0; i < DSCOMM_ENV_FIELD_COUNT; i++)
        env->origins[i] = NULL;
    g_clear_pointer(&env->address, g_free);
    env->port = -1;
    env->agent_store = env->agent_port = 0;
    env->ancestor = env->shared = NULL;
    *env->job = '\0';
}

dscomm_status_t dscomm_env_attr_init(dscomm_env_attr_t *attr, size_t size)
{
    return dscomm_priv_attr_init("dscomm_env_attr_init", attr, size);
}

static env_view_t view_of(const dscomm_env_attr_t *attr)
{
    env_view_t view = {from_process, NULL, ""};

    if (attr->get)
        view = (env_view_t){attr->get, attr->arg, ""};
    if (attr->root && strcmp(attr->root, "/") != 0)
        view.root = attr->root;
    return view;
}

/* Keeps an error of the environment in env. The call succeeds, so the thread's
 * last sentence is restored. */
static void env_tolerate(dscomm_env_t *env, const char *sentence)
{
    env->sentence = dscomm_priv_env_text(env, "%s", dscomm_last_error());
    env_forget(env);
    dscomm_priv_fail_with(env->status, sentence);
}

static const char no_memory[] = "no memory for what the environment tells";

dscomm_status_t dscomm_env_discover(const dscomm_env_attr_t *attr,
                                    dscomm_env_t **ret_env)
{
    dscomm_env_attr_t merged = DSCOMM_ENV_ATTR_INIT;
    char before[DSCOMM_ERROR_MAX];
    env_view_t view;
    dscomm_env_t *env;

    if (!ret_env)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_env_discover: ret_env is NULL");
    if (dscomm_priv_attr_read("dscomm_env_discover: attr",
                              "start from DSCOMM_ENV_ATTR_INIT", attr,
                              sizeof merged, &merged) < 0)
        return DSCOMM_ERR_INVALID;
    g_strlcpy(before, dscomm_last_error(), sizeof before);
    view = view_of(&merged);
    env = env_new();
    if (!env)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "%s", no_memory);
    env->status = dscomm_priv_env_read(&view, env);
    if (env->status < 0 && !merged.tolerate) {
        dscomm_status_t status = env->status;

        dscomm_env_free(env);
        return status;
    }
    if (env->status < 0)
        env_tolerate(env, before);
    if (env->bad) {
        dscomm_env_free(env);
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "%s", no_memory);
    }
    *ret_env = env;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_env_status(const dscomm_env_t *env)
{
    if (!env)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "env is NULL; dscomm_env_discover() makes one");
    return env->status < 0 ? dscomm_priv_fail_with(env->status, env->sentence)
                           : DSCOMM_OK;
}

static int env_number(const dscomm_env_t *env, dscomm_env_field_t field)
{
    return env ? env->numbers[field] : -1;
}

int dscomm_env_rank(const dscomm_env_t *env)
{
    return env_number(env, DSCOMM_ENV_RANK);
}

int dscomm_env_world_size(const dscomm_env_t *env)
{
    return env_number(env, DSCOMM_ENV_WORLD_SIZE);
}

int dscomm_env_local_rank(const dscomm_env_t *env)
{
    return env_number(env, DSCOMM_ENV_LOCAL_RANK);
}

int dscomm_env_local_size(const dscomm_env_t *env)
{
    return env_number(env, DSCOMM_ENV_LOCAL_SIZE);
}

int dscomm_env_node_rank(const dscomm_env_t *env)
{
    return env_number(env, DSCOMM_ENV_NODE_RANK);
}

const char *dscomm_env_master_addr(const dscomm_env_t *env)
{
    if (!env)
        return NULL;
    return env->address ? env->address : "";
}

int dscomm_env_master_port(const dscomm_env_t *env)
{
    return env ? dscomm_priv_env_named(env)->port : -1;
}

static dscomm_status_t fail_port(const dscomm_env_t *env, const char *title)
{
    if (env->shared)
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "MASTER_PORT: not set, and only %s names the job, "
                           "which is the same for all that this job of the "
                           "scheduler starts: two of them would meet at one "
                           "port. Set MASTER_PORT to one number on all ranks "
                           "of a program, and to another for each (source: %s)",
                           env->shared, title);
    return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                       "MASTER_PORT: not set, and nothing else tells it. Set "
                       "MASTER_PORT to one number on all ranks (source: %s)",
                       title);
}

/* Names both variables if the port is not known either. */
static dscomm_status_t fail_address(const dscomm_env_t *env, const char *title)
{
    const char *why = env->no_address ? env->no_address
                                      : "nothing else tells where rank 0 is";
    const int known = dscomm_env_master_port(env) > 0; /* settles shared */

    return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                       "MASTER_ADDR: not set, and %s. Set MASTER_ADDR to the "
                       "host of rank 0%s%s (source: %s)",
                       why,
                       known ? ""
                             : ", and MASTER_PORT to one number on all ranks "
                               "of a program",
                       !known && env->shared
                           ? ", and to another for each program of this job"
                           : "",
                       title);
}

dscomm_status_t dscomm_env_check_master(const dscomm_env_t *env)
{
    dscomm_status_t status = dscomm_env_status(env);
    char *title;

    if (status != DSCOMM_OK ||
        (env->address && dscomm_env_master_port(env) > 0))
        return status;
    title = dscomm_priv_env_title(env);
    status = (env->address ? fail_port : fail_address)(env, title);
    g_free(title);
    return status;
}

int dscomm_env_agent_store(const dscomm_env_t *env)
{
    return env ? env->agent_store : -1;
}

int dscomm_priv_env_has_ports(const dscomm_env_t *env)
{
    return dscomm_env_origin(env, DSCOMM_ENV_MASTER_PORT) ==
           dscomm_priv_env_by_name;
}

const char *dscomm_env_job(const dscomm_env_t *env)
{
    return env ? dscomm_priv_env_named(env)->job : NULL;
}

const char *dscomm_env_source(const dscomm_env_t *env)
{
    if (!env)
        return NULL;
    return env->family ? env->family->name : "";
}

const char *dscomm_env_origin(const dscomm_env_t *env, dscomm_env_field_t field)
{
    if (!env || (unsigned)field >= DSCOMM_ENV_FIELD_COUNT)
        return NULL;
    if (field == DSCOMM_ENV_MASTER_PORT)
        dscomm_priv_env_named(env);
    return env->origins[field];
}

const char *dscomm_env_overlay(const dscomm_env_t *env, size_t index)
{
    return env && index < ENV_OVERLAYS && env->overlays[index]
               ? env->overlays[index]->name
               : NULL;
}

const char *dscomm_env_warning(const dscomm_env_t *env, size_t index)
{
    return env && index < env->warnings.len
               ? ((const char *const *)env->warnings.data)[index]
               : NULL;
}

dscomm_status_t dscomm_env_candidate(const dscomm_env_t *env, size_t index,
                                     dscomm_env_candidate_t *info)
{
    dscomm_env_candidate_t row = {.size = sizeof row};
    dscomm_status_t status = dscomm_priv_info_check(
        "dscomm_env_candidate", "info", info ? &info->size : NULL);

    if (status != DSCOMM_OK)
        return status;
    if (!env)
        return dscomm_env_status(env);
    if (index >= dscomm_priv_env_family_count)
        return dscomm_fail(DSCOMM_ERR_NOT_FOUND,
                           "dscomm_env_candidate: %zu is beyond the last "
                           "source",
                           index);
    row.name = dscomm_priv_env_families[index]->name;
    row.about = dscomm_priv_env_families[index]->about;
    row.verdict = (int)env->judgements[index].verdict;
    row.why = env->judgements[index].why;
    dscomm_priv_info_copy(&row, sizeof row, info);
    return DSCOMM_OK;
}

static const struct {
    const char *name;
    dscomm_env_field_t field;
} variables[] = {
    {"RANK", DSCOMM_ENV_RANK},
    {"WORLD_SIZE", DSCOMM_ENV_WORLD_SIZE},
    {"LOCAL_RANK", DSCOMM_ENV_LOCAL_RANK},
    {"LOCAL_WORLD_SIZE", DSCOMM_ENV_LOCAL_SIZE},
    {"MASTER_ADDR", DSCOMM_ENV_MASTER_ADDR},
    {"MASTER_PORT", DSCOMM_ENV_MASTER_PORT},
};

/* Returns a port for a process without a launcher, which is a job of its
 * own. */
static int own_port(void)
{
    char name[32];

    g_snprintf(name, sizeof name, "process %d", (int)getpid());
    return dscomm_priv_env_port(name);
}

/* The field as text, "" if it is unknown. */
static const char *field_text(const dscomm_env_t *env, dscomm_env_field_t field,
                              char *buffer, size_t size)
{
    int number =
        field < ENV_NUMBERS ? env->numbers[field] : dscomm_env_master_port(env);

    if (field == DSCOMM_ENV_MASTER_ADDR)
        return dscomm_env_master_addr(env);
    if (field == DSCOMM_ENV_MASTER_PORT && number < 0)
        number = own_port();
    g_snprintf(buffer, (gulong)size, "%d", number);
    return number < 0 ? "" : buffer;
}

/* Compares "[::1]" with "::1", the form that PyTorch reads. */
static int is_bracketed(const char *text, const char *inner)
{
    char *bare = g_strstrip(g_strdup(text));
    char *wanted = g_strdup_printf("[%s]", inner);
    int same = strchr(inner, ':') && strcmp(bare, wanted) == 0;

    g_free(wanted);
    g_free(bare);
    return same;
}

/* Compares as the variable's reader would. */
static int export_is_same(const char *left, const char *right)
{
    char *a = g_strstrip(g_strdup(left));
    int64_t x, y;
    int same = strcmp(a, right) == 0 || is_bracketed(a, right) ||
               (dscomm_priv_parse_decimal(left, &x) == 0 &&
                dscomm_priv_parse_decimal(right, &y) == 0 && x == y);

    g_free(a);
    return same;
}

static dscomm_status_t export_check(const char *name, const char *text)
{
    const char *old = getenv(name);
    char quoted[96];

    if (!old || !*old || !*text || export_is_same(old, text))
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                       "env: %s='%s': set, but found to be '%s'; nothing is "
                       "overwritten. Unset %s",
                       name, dscomm_priv_quote(old, quoted, sizeof quoted),
                       text, name);
}

static dscomm_status_t export_put(const char *name, const char *text)
{
    const char *old = getenv(name);

    if ((old && *old && !is_bracketed(old, text)) || !*text ||
        setenv(name, text, 1) == 0)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                       "env: no memory to set the variable %s", name);
}

dscomm_status_t dscomm_env_export(const dscomm_env_t *env)
{
    dscomm_status_t status = dscomm_env_status(env);
    char buffer[16];

    if (status == DSCOMM_OK && env->numbers[DSCOMM_ENV_WORLD_SIZE] > 1)
        status = dscomm_env_check_master(env);
    for (size_t i = 0; status == DSCOMM_OK && i < G_N_ELEMENTS(variables); i++)
        status =
            export_check(variables[i].name, field_text(env, variables[i].field,
                                                       buffer, sizeof buffer));
    for (size_t i = 0; status == DSCOMM_OK && i < G_N_ELEMENTS(variables); i++)
        status =
            export_put(variables[i].name, field_text(env, variables[i].field,
                                                     buffer, sizeof buffer));
    return status;
}
