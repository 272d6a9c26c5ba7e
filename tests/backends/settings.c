/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings that must be the same on all ranks, and are not. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/tap.h"

#include <stdlib.h>

/* What one rank has, and what all others are told. */
typedef struct {
    const char *name, *value, *word;
    int odd; /* the rank */
} setting_t;

static void join(job_rank_t *me)
{
    const setting_t *setting = me->arg;
    dscomm_group_t *world = NULL;
    double started = job_now_ms();
    dscomm_status_t status;

    setenv("DSCOMM_BACKEND", "shm", 1);
    if (me->rank == setting->odd)
        setenv(setting->name, setting->value, 1);
    status = job_init(me, &world);
    if (status == DSCOMM_OK)
        status = dscomm_barrier(world, NULL);
    job_tell(me, status, started);
    dscomm_finalize(world);
}

static void run(const setting_t *setting)
{
    job_t job;
    int passed;

    passed = job_run(&job, 3, 0, join, (void *)setting, 8000);
    for (int r = 0; r < 3; r++)
        passed &= job.reports[r].status == DSCOMM_ERR_MISMATCH &&
                  job_sentence_has(&job, r, setting->name) &&
                  job_sentence_has(&job, r, setting->word);
    if (!ok(passed, "%s is %s on rank %d only", setting->name, setting->value,
            setting->odd))
        for (int r = 0; r < 3; r++)
            printf("# rank %d: %s: %s\n", r,
                   dscomm_status_name(job.reports[r].status),
                   job.reports[r].sentence);
    job_end(&job, "settings");
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
    is_int(job_leftovers(), 0, "nothing is left behind");
    return tap_done();
}
