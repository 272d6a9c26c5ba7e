/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of jobs, from what managers tell of them. */
#include "config.h"

#include "env/job.h"

#include <glib.h>
#include <string.h>

#define PARTS 3

/* Innermost first: a scheduler's step around mpirun is not the same on all of
 * mpirun's nodes, and two mpiruns may run in one job. The first variable must
 * be set, the others are added where they are. */
static const struct {
    const char *manager;
    const char *parts[PARTS];
    const char *not_with; /* where this is set, only the first part is good */
} rows[] = {
    {"torchrun", {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}, NULL},
    {"pmix", {"PMIX_NAMESPACE"}, NULL},
    {"pals", {"PALS_APID"}, NULL},
    {"flux", {"FLUX_JOB_ID"}, NULL},
    {"slurm",
     {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"},
     "MPI_LOCALRANKID"},
    {"lsf", {"LSB_JOBID", "LSB_JOBINDEX"}, NULL},
    {"pbs", {"PBS_JOBID"}, NULL},
    {"batch", {"AWS_BATCH_JOB_ID", "AWS_BATCH_JOB_ATTEMPT"}, NULL},
};

typedef const char *get_t(const char *name, void *arg);

static const char *value_of(get_t *get, void *arg, const char *name)
{
    const char *text = name ? get(name, arg) : NULL;

    return text && *text ? text : NULL;
}

static char *join_parts(size_t row, get_t *get, void *arg)
{
    const int only = value_of(get, arg, rows[row].not_with) != NULL;
    GString *name = g_string_new(rows[row].manager);

    for (int i = 0; i < PARTS; i++) {
        const char *part = value_of(get, arg, rows[row].parts[i]);

        if (part && (i == 0 || !only))
            g_string_append_printf(name, "/%s", part);
    }
    return g_string_free(name, FALSE);
}

void dscomm_priv_job_name(get_t *get, void *arg, char *name, size_t size)
{
    char *text, *sum;

    *name = '\0';
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (!value_of(get, arg, rows[i].parts[0]))
            continue;
        text = join_parts(i, get, arg);
        sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
        g_strlcpy(name, strlen(text) < size ? text : sum, size);
        g_free(sum);
        g_free(text);
        return;
    }
}
