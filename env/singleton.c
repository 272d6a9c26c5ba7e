/* SPDX-License-Identifier: BSD-3-Clause */
/* No source is present: one rank. Warns if there is a platform that starts
 * jobs, but did not start this process. */
#include "config.h"

#include "env/fields.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"

static const struct {
    const char *variable;
    const char *before, *after; /* its value */
} hints[] = {
    {"SLURM_JOB_ID", "inside Slurm job ",
     " but not started by srun/mpirun: one rank"},
    {"LSB_JOBID", "inside LSF job ",
     " but not started by jsrun/mpirun: one rank"},
    {"PBS_JOBID", "inside PBS job ", " but not started by mpiexec: one rank"},
    {"FLUX_JOB_ID", "inside Flux job ",
     " but not started by flux run: one rank"},
    {"PMIX_RANK", "PMIX_RANK without world size: one rank, although it is ",
     ""},
    {"JOB_COMPLETION_INDEX", "pod ",
     " of an indexed job, but RANK and WORLD_SIZE are not set: one rank"},
};

static void singleton_warn(const env_view_t *view, dscomm_env_t *env)
{
    for (size_t i = 0; i < G_N_ELEMENTS(hints); i++) {
        const char *value = dscomm_priv_view_value(view, hints[i].variable);

        if (!value)
            continue;
        dscomm_priv_env_warn(env, "%s%.64s%s", hints[i].before, value,
                             hints[i].after);
        return;
    }
}

/* LOCAL_RANK does not show a launcher, because programs set it to choose a
 * device. */
static void warn_local(const env_view_t *view, dscomm_env_t *env)
{
    const char *text = dscomm_priv_view_value(view, "LOCAL_RANK");
    char quoted[96];
    int64_t number;

    if (text && dscomm_priv_parse_decimal(text, &number))
        dscomm_priv_env_warn(env,
                             "LOCAL_RANK='%s' is not a rank; 0 is taken, "
                             "since there is one rank",
                             dscomm_priv_quote(text, quoted, sizeof quoted));
}

static dscomm_status_t be_alone(const env_view_t *view, dscomm_env_t *env)
{
    for (int i = 0; i < ENV_NUMBERS; i++)
        dscomm_priv_env_set(env, (dscomm_env_field_t)i, 0, "one rank");
    env->numbers[DSCOMM_ENV_WORLD_SIZE] = 1;
    env->numbers[DSCOMM_ENV_LOCAL_SIZE] = 1;
    if (!env->forced) {
        singleton_warn(view, env);
        warn_local(view, env);
    }
    return DSCOMM_OK;
}

const env_family_t dscomm_priv_env_singleton = {
    .name = "singleton",
    .about = "no launcher: one rank",
    .tier = ENV_TIER_ALONE,
    .complete = be_alone,
};
