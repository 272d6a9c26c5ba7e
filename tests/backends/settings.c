/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings that must be the same on all ranks, but differ. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/tap.h"

#include <stdlib.h>

/* The setting of one rank, and what all other ranks must report. */
typedef struct {
    const char *name, *value, *word;
    int odd; /* the rank */
} setting_t;

static void join(job_rank_t *me)
{
    const setting_t *setting = me->arg;
    dscomm_status_t status;

    setenv("DSCOMM_BACKEND", "shm", 1);
    if (me->rank == setting->odd)
        setenv(setting->name, setting->value, 1);
    status = job_init(me);
    if (status == DSCOMM_OK)
        status = dscomm_barrier(me->world, NULL);
    job_leave(me, status);
}

static void run(const setting_t *setting)
{
    job_t job;
    int passed = job_run(&job, 3, 0, join, (void *)setting, 8000);

    passed &= job_reported(&job, JOB_ALL, DSCOMM_ERR_MISMATCH, 8000,
                           setting->name, setting->word, NULL);
    job_ok(&job, passed, "%s is %s on rank %d only", setting->name,
           setting->value, setting->odd);
}

int main(void)
{
    static const setting_t settings[] = {
        {"DSCOMM_ALGORITHM", "all_reduce:ring", "all_reduce:ring", 1},
        {"DSCOMM_ALGORITHM", "barrier:linear", "barrier:linear", 0},
        {"DSCOMM_SHM_NATIVE", "0", "0 on rank 2", 2},
        {"DSCOMM_SHM_NATIVE", "0", "is 0 on rank 0", 0},
    };

    unsetenv("DSCOMM_ALGORITHM");
    unsetenv("DSCOMM_SHM_NATIVE");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        run(&settings[i]);
    return job_done();
}
