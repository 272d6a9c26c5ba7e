/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's name, which separates the job from others that may use the same
 * rendezvous. */
#include "config.h"

#include "env/env.h"

#include <pthread.h>
#include <string.h>

/* Names the job by the family's name and those of its variables that are set.
 */
static void name_by_parts(const env_view_t *view, dscomm_env_t *env)
{
    const env_family_t *family = env->family;
    char *name = dscomm_priv_env_text(env, "%s", family->name), *longer;
    const char *first = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(family->job); i++) {
        const char *variable =
            dscomm_priv_view_either(view, family->job[i][0], family->job[i][1]);

        if (!variable)
            continue;
        longer = dscomm_priv_env_text(env, "%s/%s", name ? name : "",
                                      dscomm_priv_view_value(view, variable));
        g_free(name);
        name = longer;
        if (!first)
            first = variable;
    }
    if (first && name)
        dscomm_priv_env_set_job(env, name);
    if (family->unique_if && !dscomm_priv_view_value(view, family->unique_if))
        env->shared = first;
    g_free(name);
}

/* Notes which ancestor process names the job if no variable does. It is
 * searched for later, by dscomm_priv_env_named(). */
static void note_ancestor(const env_view_t *view, dscomm_env_t *env)
{
    if (!env->family->ancestor || !dscomm_priv_env_one_node(env))
        return;
    env->ancestor = env->family->ancestor;
    env->root = dscomm_priv_env_text(env, "%s", view->root);
}

/* Finds name and port at the first call, under a lock, so that env does not
 * change for its callers. */
const dscomm_env_t *dscomm_priv_env_named(const dscomm_env_t *env)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    dscomm_env_t *own = (dscomm_env_t *)(uintptr_t)env;
    const env_view_t view = {NULL, NULL, env->root};
    char *name;

    pthread_mutex_lock(&lock);
    if (own->ancestor) {
        name = dscomm_priv_view_ancestor(&view, own->ancestor);
        if (name) {
            dscomm_priv_env_set_job(own, name);
            own->shared = NULL;
        }
        g_free(name);
        own->ancestor = NULL;
        dscomm_priv_env_find_port(own);
    }
    pthread_mutex_unlock(&lock);
    return env;
}

/* Returns the step by which the manager has started its proxies on several
 * nodes, one task for each. A step around the manager itself does not name a
 * job, because several managers may run in it. */
static const char *proxies_step(const env_view_t *view, const dscomm_env_t *env)
{
    const char *step = dscomm_priv_view_value(view, env->family->step);

    if (!step || dscomm_priv_env_one_node(env) ||
        !dscomm_priv_env_is_step(view, NULL, NULL) ||
        dscomm_priv_env_is_step(view, NULL, "1") ||
        !dscomm_priv_env_is_own_step(view))
        return NULL;
    return step;
}

/* Gives a manager's job the name of the scheduler's job, if it has no other.
 * Steps do not name it, except the step of its proxies. */
static void name_by_scheduler(const env_view_t *view, dscomm_env_t *env)
{
    static const char *const names[] = {"SLURM_JOB_ID", "LSB_JOBID",
                                        "PBS_JOBID"};
    const char *step, *id = NULL;
    char *name;
    size_t i = 0;

    if (env->family->tier != ENV_TIER_MANAGER)
        return;
    while (i < G_N_ELEMENTS(names) &&
           !(id = dscomm_priv_view_value(view, names[i])))
        i++;
    if (!id)
        return;
    step = proxies_step(view, env);
    name = dscomm_priv_env_text(env, "%s/%s%s%s", env->family->name, id,
                                step ? "/" : "", step ? step : "");
    if (name)
        dscomm_priv_env_set_job(env, name);
    env->shared = step ? NULL : names[i];
    g_free(name);
}

void dscomm_priv_env_name_job(const env_view_t *view, dscomm_env_t *env)
{
    static void (*const ways[])(const env_view_t *, dscomm_env_t *) = {
        name_by_parts, note_ancestor, name_by_scheduler};

    for (size_t i = 0; i < G_N_ELEMENTS(ways) && !*env->job; i++)
        ways[i](view, env);
}
