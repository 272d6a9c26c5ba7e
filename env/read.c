/* SPDX-License-Identifier: BSD-3-Clause */
/* Discovery: reads valid numbers from the chosen source. */
#include "config.h"

#include "env/env.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"

#include <string.h>

static dscomm_status_t read_variables(const env_view_t *view, dscomm_env_t *env)
{
    for (int i = 0; i < ENV_NUMBERS; i++) {
        const char *const *names = env->family->numbers[i];
        const char *name = dscomm_priv_view_either(view, names[0], names[1]);
        dscomm_env_field_t field = (dscomm_env_field_t)i;
        dscomm_status_t status;

        if (!name)
            continue;
        status =
            dscomm_priv_env_number(view, env, name, field, &env->numbers[i]);
        if (status != DSCOMM_OK)
            return status;
        env->origins[i] = name;
    }
    return DSCOMM_OK;
}

/* An incomplete pair is an error. The next source would give wrong numbers. */
static dscomm_status_t check_pair(const env_view_t *view, dscomm_env_t *env)
{
    const env_family_t *family = env->family;
    int missing = env->numbers[DSCOMM_ENV_RANK] < 0 ? DSCOMM_ENV_RANK
                                                    : DSCOMM_ENV_WORLD_SIZE;
    const char *set = family->all[0] ? family->all[0] : "DSCOMM_LAUNCHER";

    if (env->numbers[missing] >= 0)
        return DSCOMM_OK;
    for (int i = ENV_NUMBERS - 1; i >= 0; i--) {
        if (env->origins[i])
            set = env->origins[i];
    }
    return dscomm_priv_env_fail(
        view, env, set, "%s is missing. Set both %s and %s, or neither",
        family->numbers[missing][0], family->numbers[DSCOMM_ENV_RANK][0],
        family->numbers[DSCOMM_ENV_WORLD_SIZE][0]);
}

/* Checks the relation between two numbers. */
static const struct {
    dscomm_env_field_t low, high;
    int may_equal;
} orders[] = {
    {DSCOMM_ENV_RANK, DSCOMM_ENV_WORLD_SIZE, 0},
    {DSCOMM_ENV_LOCAL_RANK, DSCOMM_ENV_LOCAL_SIZE, 0},
    {DSCOMM_ENV_LOCAL_RANK, DSCOMM_ENV_WORLD_SIZE, 0},
    {DSCOMM_ENV_LOCAL_SIZE, DSCOMM_ENV_WORLD_SIZE, 1},
    {DSCOMM_ENV_NODE_RANK, DSCOMM_ENV_WORLD_SIZE, 0},
};

static dscomm_status_t check_order(const env_view_t *view, dscomm_env_t *env)
{
    for (size_t i = 0; i < G_N_ELEMENTS(orders); i++) {
        int low = env->numbers[orders[i].low];
        int high = env->numbers[orders[i].high];

        if (low < 0 || high < 0 || low < high ||
            (orders[i].may_equal && low == high))
            continue;
        return dscomm_priv_env_fail(
            view, env, env->origins[orders[i].low],
            "must %s the %d of %s. Ranks count from 0; correct or unset both",
            orders[i].may_equal ? "not exceed" : "be less than", high,
            env->origins[orders[i].high]);
    }
    return DSCOMM_OK;
}

/* Each other node has at least one rank, so there are at most as many of them
 * as ranks elsewhere. */
static dscomm_status_t check_node(const env_view_t *view, dscomm_env_t *env)
{
    const int *numbers = env->numbers;
    const int world = numbers[DSCOMM_ENV_WORLD_SIZE];
    const int local = numbers[DSCOMM_ENV_LOCAL_SIZE];

    if (local < 1 || numbers[DSCOMM_ENV_NODE_RANK] <= world - local)
        return DSCOMM_OK;
    return dscomm_priv_env_fail(
        view, env, env->origins[DSCOMM_ENV_NODE_RANK],
        "must not exceed %d: %s tells %d ranks here, of %d. Nodes count from "
        "0; correct or unset both",
        world - local, env->origins[DSCOMM_ENV_LOCAL_SIZE], local, world);
}

/* A stale RANK is a common cause of jobs in which all processes are rank 0. A
 * RANK that agrees is normal, because container hooks and programs set it. An
 * agent's own RANK is not compared with the launcher around the agent. */
static int is_compared(const dscomm_env_t *env)
{
    return !env->forced && (env->family->tier == ENV_TIER_MANAGER ||
                            env->family->tier == ENV_TIER_STEP);
}

/* ERR_ENVIRONMENT if one of two variables, a rank and a number of ranks,
 * contradicts the number that is taken; remedy is the end of the sentence.
 * NULL: they may contradict it. */
static dscomm_status_t compare_pair(const env_view_t *view, dscomm_env_t *env,
                                    const char *rank_name,
                                    const char *size_name, const char *remedy)
{
    const char *const names[] = {rank_name, size_name};

    for (int i = DSCOMM_ENV_RANK; i <= DSCOMM_ENV_WORLD_SIZE; i++) {
        int number;
        dscomm_status_t status = dscomm_priv_env_number(
            view, env, names[i], (dscomm_env_field_t)i, &number);

        if (status != DSCOMM_OK)
            return status;
        if (remedy && number >= 0 && number != env->numbers[i])
            return dscomm_priv_env_fail(
                view, env, names[i], "disagrees with %s='%d'. %s",
                env->origins[i], env->numbers[i], remedy);
    }
    return DSCOMM_OK;
}

/* The same for the variables of a source; NULL: they may contradict. */
static dscomm_status_t compare_rival(const env_view_t *view, dscomm_env_t *env,
                                     const char *rank_name,
                                     const char *size_name, const char *rival)
{
    char remedy[128];

    g_snprintf(remedy, sizeof remedy,
               "Name the source that is right in DSCOMM_LAUNCHER: %s or %s",
               env->family->name, rival ? rival : "");
    return compare_pair(view, env, rank_name, size_name, rival ? remedy : NULL);
}

/* Some programs set LOCAL_RANK to choose a device. */
static dscomm_status_t compare_local(const env_view_t *view, dscomm_env_t *env)
{
    int own = env->numbers[DSCOMM_ENV_LOCAL_RANK], number;
    dscomm_status_t status = dscomm_priv_env_number(
        view, env, "LOCAL_RANK", DSCOMM_ENV_LOCAL_RANK, &number);

    if (status == DSCOMM_OK && number >= 0 && own >= 0 && number != own)
        dscomm_priv_env_warn(env,
                             "LOCAL_RANK='%d' disagrees with %s='%d', which "
                             "is taken",
                             number, env->origins[DSCOMM_ENV_LOCAL_RANK], own);
    return status;
}

/* Compares the numbers of managers of which each could have started the other;
 * a contradiction is an error. If PMI's pair contradicts, mpiexec runs below a
 * manager, whose numbers are the same in all of mpiexec's ranks. */
static dscomm_status_t check_managers(const env_view_t *view, dscomm_env_t *env)
{
    dscomm_status_t status = DSCOMM_OK;

    if (env->family->tier != ENV_TIER_MANAGER)
        return DSCOMM_OK;
    for (size_t i = 0; i < dscomm_priv_env_family_count; i++) {
        const env_family_t *family = dscomm_priv_env_families[i];

        if (status == DSCOMM_OK && family->rival &&
            env->judgements[i].verdict == DSCOMM_ENV_IGNORED)
            status = compare_rival(
                view, env, family->numbers[DSCOMM_ENV_RANK][0],
                family->numbers[DSCOMM_ENV_WORLD_SIZE][0], family->name);
    }
    return status == DSCOMM_OK
               ? compare_rival(view, env, "PMI_RANK", "PMI_SIZE",
                               dscomm_priv_env_pmi_rival(view))
               : status;
}

/* Warns if this source of one rank hides a larger job, for example because srun
 * was called below mpirun. */
static void warn_larger(const env_view_t *view, dscomm_env_t *env)
{
    const int one = env->numbers[DSCOMM_ENV_WORLD_SIZE] == 1;

    for (size_t i = 0; i < dscomm_priv_env_family_count; i++) {
        const env_family_t *family = dscomm_priv_env_families[i];
        const char *name = family->numbers[DSCOMM_ENV_WORLD_SIZE][0];
        const char *text = dscomm_priv_view_value(view, name);
        int64_t size;

        if (!one || env->forced || env->family->tier == ENV_TIER_EXPLICIT ||
            env->judgements[i].verdict != DSCOMM_ENV_IGNORED || !text ||
            dscomm_priv_parse_decimal(text, &size) || size < 2)
            continue;
        dscomm_priv_env_warn(env,
                             "one rank, by %s, although %s='%.16s': if %s "
                             "has started this program, set "
                             "DSCOMM_LAUNCHER=%s",
                             env->origins[DSCOMM_ENV_WORLD_SIZE], name, text,
                             family->about, family->name);
        return;
    }
}

static dscomm_status_t check_agreement(const env_view_t *view,
                                       dscomm_env_t *env)
{
    dscomm_status_t status;

    warn_larger(view, env);
    if (!is_compared(env))
        return DSCOMM_OK;
    status = compare_pair(view, env, "RANK", "WORLD_SIZE",
                          "Unset RANK, WORLD_SIZE and LOCAL_RANK if they are "
                          "left over, or name the source that is right in "
                          "DSCOMM_LAUNCHER");
    if (status == DSCOMM_OK)
        status = check_managers(view, env);
    return status == DSCOMM_OK ? compare_local(view, env) : status;
}

static void field_derive(dscomm_env_t *env, dscomm_env_field_t field,
                         int number, const char *origin)
{
    if (env->numbers[field] < 0)
        dscomm_priv_env_set(env, field, number, origin);
}

static void complete_one_node(dscomm_env_t *env)
{
    if (env->numbers[DSCOMM_ENV_WORLD_SIZE] == 1)
        field_derive(env, DSCOMM_ENV_LOCAL_SIZE, 1, "one rank");
    if (!dscomm_priv_env_one_node(env))
        return;
    field_derive(env, DSCOMM_ENV_LOCAL_RANK, env->numbers[DSCOMM_ENV_RANK],
                 "one node");
    field_derive(env, DSCOMM_ENV_NODE_RANK, 0, "one node");
}

static void find_overlays(const env_view_t *view, dscomm_env_t *env)
{
    size_t count = 0;

    for (size_t i = 0; i < ENV_OVERLAYS; i++) {
        const env_overlay_t *overlay = dscomm_priv_env_overlays[i];

        if (strcmp(overlay->name, env->family->name) != 0 &&
            dscomm_priv_view_value(view, overlay->marker) &&
            !dscomm_priv_view_value(view, overlay->unless))
            env->overlays[count++] = overlay;
    }
}

static dscomm_status_t fields_read_numbers(const env_view_t *view,
                                           dscomm_env_t *env)
{
    dscomm_status_t status = read_variables(view, env);

    if (status == DSCOMM_OK && env->family->complete)
        status = env->family->complete(view, env);
    if (status == DSCOMM_OK)
        status = check_pair(view, env);
    if (status == DSCOMM_OK)
        status = check_order(view, env);
    if (status == DSCOMM_OK)
        status = check_node(view, env);
    if (status == DSCOMM_OK)
        status = check_agreement(view, env);
    if (status == DSCOMM_OK)
        complete_one_node(env);
    return status;
}

dscomm_status_t dscomm_priv_env_read(const env_view_t *view, dscomm_env_t *env)
{
    dscomm_status_t status = dscomm_priv_env_choose(view, env);

    if (status != DSCOMM_OK)
        return status;
    find_overlays(view, env);
    status = fields_read_numbers(view, env);
    if (status != DSCOMM_OK)
        return status;
    dscomm_priv_env_name_job(view, env);
    if (env->family->finish)
        status = env->family->finish(view, env);
    if (status == DSCOMM_OK)
        status = dscomm_priv_env_find_master(view, env);
    return status;
}
