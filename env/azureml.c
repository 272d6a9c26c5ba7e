/* SPDX-License-Identifier: BSD-3-Clause */
/* Azure ML, around an MPI's ranks. Jobs of type PyTorch set torch's
 * variables. */
#include "config.h"

#include "env/fields.h"

#include <string.h>

/* DeepSpeed's port, because the one in AZ_BATCH_MASTER_NODE is another
 * service's. */
#define PORT 6105
#define LOCAL_PORT 54965

static int azureml_take_host(const env_view_t *view, dscomm_env_t *env,
                             const char *name)
{
    const char *text = dscomm_priv_view_value(view, name);
    int port = env->port, found;
    const char *origin = env->origins[DSCOMM_ENV_MASTER_PORT];

    if (!text)
        return 0;
    found = dscomm_priv_hosts_set_master(env, g_strdup(text), name);
    dscomm_priv_env_set_port(env, port, origin);
    return found;
}

static dscomm_status_t azureml_find_master(const env_view_t *view,
                                           dscomm_env_t *env)
{
    static const char *const names[] = {"AZ_BATCH_MASTER_NODE",
                                        "AZ_BATCHAI_MPI_MASTER_NODE"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (azureml_take_host(view, env, names[i]))
            return DSCOMM_OK;
        if (dscomm_priv_view_value(view, names[i]))
            return dscomm_priv_env_fail(view, env, names[i],
                                        "not a host, or host and port. Correct "
                                        "it, or set MASTER_ADDR");
    }
    dscomm_priv_env_no_address(env, "neither %s nor %s is set either", names[0],
                               names[1]);
    return DSCOMM_OK;
}

const env_overlay_t dscomm_priv_env_azureml = {
    .name = "azureml",
    .marker = "AZUREML_EXPERIMENT_ID",
    .unless = "DLTS_JOB_ID",
    .find_master = azureml_find_master,
    .port = PORT,
    .local_port = LOCAL_PORT,
};
