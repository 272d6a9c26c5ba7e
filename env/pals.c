/* SPDX-License-Identifier: BSD-3-Clause */
/* PALS, HPE's mpiexec, mostly in jobs of PBS. */
#include "config.h"

#include "env/fields.h"

#include <string.h>

/* Slurm's plugin for Cray sets the same variables; PMI_SIZE need not be set. */
static int pals_is_slurm(const env_view_t *view, char **ret_why)
{
    const char *rank = dscomm_priv_view_value(view, "PALS_RANKID");
    const char *size = dscomm_priv_view_value(view, "PMI_SIZE");

    if (!dscomm_priv_env_is_step(view, rank, size))
        return 0;
    *ret_why = g_strdup("set by Slurm, whose step says the same");
    return 1;
}

/* The file has one line with the host for each slot; rank 0 is on the first
 * host. */
static dscomm_status_t pals_find_master(const env_view_t *view,
                                        dscomm_env_t *env)
{
    const char *path = dscomm_priv_view_value(view, "PBS_NODEFILE");
    char *text = path ? dscomm_priv_view_file(view, path) : NULL;
    char *host = NULL;

    if (text) {
        g_strchug(text);
        host = g_strndup(text, strcspn(text, " \t\r\n"));
    }
    g_free(text);
    if (host && dscomm_priv_is_host(host)) {
        dscomm_priv_env_set_address(env, host, "first host of PBS_NODEFILE");
        return DSCOMM_OK;
    }
    dscomm_priv_env_no_address(env, path ? "no host can be read from the file "
                                           "that PBS_NODEFILE names"
                                         : "PBS_NODEFILE is not set either");
    g_free(host);
    return DSCOMM_OK;
}

const env_family_t dscomm_priv_env_pals = {
    .name = "pals",
    .about = "HPE's mpiexec (PALS)",
    .tier = ENV_TIER_MANAGER,
    .all = {"PALS_RANKID"},
    .refuses = pals_is_slurm,
    .numbers =
        {
            [DSCOMM_ENV_RANK] = {"PALS_RANKID"},
            [DSCOMM_ENV_WORLD_SIZE] = {"PMI_SIZE"},
            [DSCOMM_ENV_LOCAL_RANK] = {"PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"},
            [DSCOMM_ENV_LOCAL_SIZE] = {"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"},
            [DSCOMM_ENV_NODE_RANK] = {"PALS_NODEID"},
        },
    .find_master = pals_find_master,
    /* Each mpiexec of a job has an application id of its own. */
    .job = {{"PBS_JOBID"}, {"PALS_APID"}},
    .unique_if = "PALS_APID",
};
