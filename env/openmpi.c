/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI's mpirun, 4 (ORTE) and 5 (PRRTE). OMPI_COMM_WORLD_NODE_RANK is not
 * the number of the node, but one of the process on it. */
#include "config.h"

#include "env/fields.h"

/* jsrun sets both variables as well, and its own have more information. */
static int is_jsrun(const env_view_t *view, char **ret_why)
{
    if (!dscomm_priv_view_same(view, "OMPI_COMM_WORLD_RANK",
                               "JSM_NAMESPACE_RANK") ||
        !dscomm_priv_view_same(view, "OMPI_COMM_WORLD_SIZE",
                               "JSM_NAMESPACE_SIZE"))
        return 0;
    *ret_why = g_strdup("set by jsrun, which says the same");
    return 1;
}

const env_family_t dscomm_priv_env_openmpi = {
    .name = "openmpi",
    .about = "Open MPI's mpirun",
    .tier = ENV_TIER_MANAGER,
    .any = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    .refuses = is_jsrun,
    .numbers =
        {
            [DSCOMM_ENV_RANK] = {"OMPI_COMM_WORLD_RANK"},
            [DSCOMM_ENV_WORLD_SIZE] = {"OMPI_COMM_WORLD_SIZE"},
            [DSCOMM_ENV_LOCAL_RANK] = {"OMPI_COMM_WORLD_LOCAL_RANK"},
            [DSCOMM_ENV_LOCAL_SIZE] = {"OMPI_COMM_WORLD_LOCAL_SIZE"},
        },
    .no_address = "mpirun does not tell where rank 0 is",
    .job = {{"PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri"}},
};
