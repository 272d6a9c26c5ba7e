/* SPDX-License-Identifier: BSD-3-Clause */
/* A task of a step that srun started. A batch script and the shell of salloc
 * have most of a task's variables, but are no tasks. SLURM_NTASKS and
 * SLURM_NODELIST belong to the job, not always to the step;
 * SLURM_LAUNCH_NODE_IPADDR is the node of srun. */
#include "config.h"

#include "env/fields.h"
#include "env/nodelist.h"
#include "lib/base/settings.h"

#include <string.h>

/* Larger numbers are Slurm's own steps: extern, batch and interactive. */
#define STEPS_END 0xfffffff0

static const char tasks_name[] = "SLURM_STEP_TASKS_PER_NODE";
static const char nodes_name[] = "SLURM_STEP_NODELIST";

static int is_user_step(const env_view_t *view)
{
    const char *id = dscomm_priv_view_value(view, "SLURM_STEP_ID");
    int64_t number;

    return id && dscomm_priv_parse_decimal(id, &number) == 0 &&
           number < STEPS_END;
}

/* 1 if text is a number, which may be negative: Slurm 26 numbers its own steps
 * downwards from -1. */
static int slurm_is_number(const char *text)
{
    int64_t number;

    return dscomm_priv_parse_decimal(*text == '-' ? text + 1 : text, &number) ==
           0;
}

/* A text that is not a number is an error, which is reported if the source is
 * taken. */
static int is_no_task(const env_view_t *view, char **ret_why)
{
    if (is_user_step(view) ||
        !slurm_is_number(dscomm_priv_view_value(view, "SLURM_STEP_ID")))
        return 0;
    *ret_why = g_strdup("SLURM_STEP_ID is not that of a step by srun");
    return 1;
}

static int value_equals(const env_view_t *view, const char *name,
                        const char *text)
{
    const char *value = dscomm_priv_view_value(view, name);
    int64_t left, right;

    return value && dscomm_priv_parse_decimal(value, &left) == 0 &&
           dscomm_priv_parse_decimal(text, &right) == 0 && left == right;
}

int dscomm_priv_env_is_step(const env_view_t *view, const char *rank,
                            const char *size)
{
    return is_user_step(view) &&
           (!rank || value_equals(view, "SLURM_PROCID", rank)) &&
           (!size || value_equals(view, "SLURM_STEP_NUM_TASKS", size));
}

int dscomm_priv_env_is_own_step(const env_view_t *view)
{
    const char *task = dscomm_priv_view_value(view, "SLURM_TASK_PID");

    return !task || dscomm_priv_view_descends(view, task);
}

/* Counts the ranks of this node in SLURM_GTIDS, "0,2"; each is less than world.
 * Returns -1 if text is no such list. */
static int count_ranks(const char *text, int world)
{
    int count = 0;

    for (;; text++) {
        const char *start = text;
        int64_t rank = 0;

        for (; (unsigned)*text - '0' < 10 && rank <= G_MAXINT; text++)
            rank = rank * 10 + *text - '0';
        if (text == start || (*text && *text != ',') || rank >= world)
            return -1;
        count++;
        if (!*text)
            return count;
    }
}

static dscomm_status_t slurm_check_ranks(const env_view_t *view,
                                         dscomm_env_t *env)
{
    const char *text = dscomm_priv_view_value(view, "SLURM_GTIDS");
    int64_t known = env->numbers[DSCOMM_ENV_LOCAL_SIZE];
    int world = env->numbers[DSCOMM_ENV_WORLD_SIZE], count;

    if (!text)
        return DSCOMM_OK;
    count = count_ranks(text, world < 0 ? G_MAXINT : world);
    if (count < 0)
        return dscomm_priv_env_fail(view, env, "SLURM_GTIDS",
                                    "not a list of ranks, which are less than "
                                    "the number of tasks. Correct or unset it");
    if (known >= 0 && known != count)
        dscomm_priv_env_warn(env,
                             "SLURM_GTIDS lists %d ranks on this node, %s "
                             "tells %d; the list is taken",
                             count, tasks_name, (int)known);
    if (known != count)
        dscomm_priv_env_set(env, DSCOMM_ENV_LOCAL_SIZE, count, "SLURM_GTIDS");
    return DSCOMM_OK;
}

static dscomm_status_t use_tasks(const env_view_t *view, dscomm_env_t *env,
                                 const env_tasks_t *tasks)
{
    int world = env->numbers[DSCOMM_ENV_WORLD_SIZE];
    int node = env->numbers[DSCOMM_ENV_NODE_RANK];

    if (world >= 0 && tasks->tasks != world)
        return dscomm_priv_env_fail(view, env, tasks_name,
                                    "%" G_GINT64_FORMAT " tasks, but %s tells "
                                    "%d. Start the program with srun, or "
                                    "correct both",
                                    (gint64)tasks->tasks,
                                    env->origins[DSCOMM_ENV_WORLD_SIZE], world);
    if (node >= tasks->nodes)
        return dscomm_priv_env_fail(view, env, "SLURM_NODEID",
                                    "beyond the %" G_GINT64_FORMAT
                                    " nodes of %s. Correct both",
                                    (gint64)tasks->nodes, tasks_name);
    if (!tasks->here)
        return dscomm_priv_env_fail(view, env, tasks_name,
                                    "no task on this node, number %d. Correct "
                                    "it or SLURM_NODEID",
                                    MAX(node, 0));
    if (tasks->here > 0)
        dscomm_priv_env_set(env, DSCOMM_ENV_LOCAL_SIZE, tasks->here,
                            tasks_name);
    return DSCOMM_OK;
}

/* In a job of several components the list may be that of one component. */
static dscomm_status_t slurm_count_local(const env_view_t *view,
                                         dscomm_env_t *env)
{
    const char *text = dscomm_priv_view_value(view, tasks_name);
    const char *step = dscomm_priv_view_value(view, "SLURM_STEP_ID");
    int node = env->numbers[DSCOMM_ENV_NODE_RANK];
    env_problem_t problem;
    env_tasks_t tasks;
    dscomm_status_t status;

    if (!slurm_is_number(step))
        return dscomm_priv_env_fail(view, env, "SLURM_STEP_ID",
                                    "not the number of a step. Start the "
                                    "program with srun, or unset it");
    if (!text || dscomm_priv_view_value(view, "SLURM_HET_SIZE"))
        return slurm_check_ranks(view, env);
    problem = dscomm_priv_tasks(text, MAX(node, 0), &tasks);
    if (problem.what)
        return dscomm_priv_env_fail(view, env, tasks_name,
                                    "%s, at byte %zu. Correct or unset it",
                                    problem.what, problem.at);
    if (node < 0 && tasks.nodes > 1)
        tasks.here = -1;
    status = use_tasks(view, env, &tasks);
    return status == DSCOMM_OK ? slurm_check_ranks(view, env) : status;
}

/* With an arbitrary distribution rank 0 may be anywhere. */
static dscomm_status_t slurm_find_master(const env_view_t *view,
                                         dscomm_env_t *env)
{
    const char *text = dscomm_priv_view_value(view, nodes_name);
    const char *how = dscomm_priv_view_value(view, "SLURM_DISTRIBUTION");
    char *host = NULL;
    env_problem_t problem;

    if (how && g_str_has_prefix(how, "arbitrary")) {
        dscomm_priv_env_no_address(env,
                                   "with SLURM_DISTRIBUTION='arbitrary' rank 0 "
                                   "need not be on the first node");
        return DSCOMM_OK;
    }
    if (!text) {
        dscomm_priv_env_no_address(env, "%s is not set either", nodes_name);
        return DSCOMM_OK;
    }
    problem = dscomm_priv_nodelist_first(text, &host);
    if (problem.what)
        return dscomm_priv_env_fail(view, env, nodes_name,
                                    "%s, at byte %zu. Correct it, or set "
                                    "MASTER_ADDR",
                                    problem.what, problem.at);
    dscomm_priv_env_set_address(env, host, "first host of SLURM_STEP_NODELIST");
    return DSCOMM_OK;
}

const env_family_t dscomm_priv_env_slurm = {
    .name = "slurm",
    .about = "a step of Slurm (srun)",
    .tier = ENV_TIER_STEP,
    .all = {"SLURM_JOB_ID", "SLURM_STEP_ID"},
    .any = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    .refuses = is_no_task,
    .numbers =
        {
            [DSCOMM_ENV_RANK] = {"SLURM_PROCID"},
            [DSCOMM_ENV_WORLD_SIZE] = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
            [DSCOMM_ENV_LOCAL_RANK] = {"SLURM_LOCALID"},
            [DSCOMM_ENV_NODE_RANK] = {"SLURM_NODEID"},
        },
    .complete = slurm_count_local,
    .find_master = slurm_find_master,
    .job = {{"SLURM_JOB_ID_HET_GROUP_0", "SLURM_JOB_ID"},
            {"SLURM_STEP_ID"},
            {"SLURM_RESTART_COUNT"}},
};
