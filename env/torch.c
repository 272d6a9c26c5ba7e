/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables of torch's env://, as Ray, accelerate and people set them; and
 * Kubeflow's PyTorchJob, Alibaba's PAI and Google's AI Platform, where RANK and
 * WORLD_SIZE number pods or nodes, of one process each. */
#include "config.h"

#include "env/fields.h"
#include "lib/base/settings.h"

static int torch_has_loopback(const env_view_t *view)
{
    const char *name =
        dscomm_priv_view_either(view, "DSCOMM_MASTER_ADDR", "MASTER_ADDR");

    return name && dscomm_priv_is_loopback(dscomm_priv_view_value(view, name));
}

/* Without these variables, RANK and WORLD_SIZE may be a platform's numbers of
 * pods. */
static int is_pod(const env_view_t *view, char **ret_why)
{
    if (dscomm_priv_view_either(view, "LOCAL_RANK", "LOCAL_WORLD_SIZE") ||
        torch_has_loopback(view))
        return 0;
    *ret_why = g_strdup("LOCAL_RANK not set: see pod");
    return 1;
}

/* Ranks that meet at a loopback address are on one node. */
static dscomm_status_t torch_count_local(const env_view_t *view,
                                         dscomm_env_t *env)
{
    int world = env->numbers[DSCOMM_ENV_WORLD_SIZE];

    if (world >= 0 && env->numbers[DSCOMM_ENV_LOCAL_SIZE] < 0 &&
        torch_has_loopback(view))
        dscomm_priv_env_set(env, DSCOMM_ENV_LOCAL_SIZE, world,
                            "loopback address");
    return DSCOMM_OK;
}

const env_family_t dscomm_priv_env_torch = {
    .name = "torch",
    .about = "RANK, WORLD_SIZE and LOCAL_RANK",
    .tier = ENV_TIER_TORCH,
    .any = {"RANK", "WORLD_SIZE"},
    .refuses = is_pod,
    .numbers =
        {
            [DSCOMM_ENV_RANK] = {"RANK"},
            [DSCOMM_ENV_WORLD_SIZE] = {"WORLD_SIZE"},
            [DSCOMM_ENV_LOCAL_RANK] = {"LOCAL_RANK"},
            [DSCOMM_ENV_LOCAL_SIZE] = {"LOCAL_WORLD_SIZE"},
            [DSCOMM_ENV_NODE_RANK] = {"NODE_RANK"},
        },
    .complete = torch_count_local,
    .port = 29500,
};

/* PET_* are torchrun's options, which may be "auto" instead of a number. */
static dscomm_status_t check_processes(const env_view_t *view,
                                       dscomm_env_t *env)
{
    const char *name =
        dscomm_priv_view_either(view, "PET_NPROC_PER_NODE", "NPROC_PER_NODE");
    int64_t number;

    if (!name || (dscomm_priv_parse_decimal(dscomm_priv_view_value(view, name),
                                            &number) == 0 &&
                  number == 1))
        return DSCOMM_OK;
    return dscomm_priv_env_fail(view, env, name,
                                "RANK counts pods, and each is to have several "
                                "processes. Start one process per GPU with "
                                "torchrun");
}

static dscomm_status_t pod_count_local(const env_view_t *view,
                                       dscomm_env_t *env)
{
    int rank = env->numbers[DSCOMM_ENV_RANK];
    dscomm_status_t status;

    if (rank < 0 || env->numbers[DSCOMM_ENV_WORLD_SIZE] < 0)
        return DSCOMM_OK;
    status = check_processes(view, env);
    if (status != DSCOMM_OK)
        return status;
    dscomm_priv_env_set(env, DSCOMM_ENV_LOCAL_RANK, 0, "one process a pod");
    dscomm_priv_env_set(env, DSCOMM_ENV_LOCAL_SIZE, 1, "one process a pod");
    dscomm_priv_env_set(env, DSCOMM_ENV_NODE_RANK, rank, "one process a pod");
    return DSCOMM_OK;
}

const env_family_t dscomm_priv_env_pod = {
    .name = "pod",
    .about = "RANK and WORLD_SIZE of pods: PyTorchJob, PAI, AI Platform",
    .tier = ENV_TIER_TORCH,
    .any = {"RANK", "WORLD_SIZE"},
    .numbers =
        {
            [DSCOMM_ENV_RANK] = {"RANK"},
            [DSCOMM_ENV_WORLD_SIZE] = {"WORLD_SIZE"},
        },
    .complete = pod_count_local,
};

const env_overlay_t dscomm_priv_env_kubernetes = {
    .name = "kubernetes",
    .marker = "KUBERNETES_SERVICE_HOST",
};
