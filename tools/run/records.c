/* SPDX-License-Identifier: BSD-3-Clause */
/* The flight recorders of a job's ranks, see spawn.h. */
#include "config.h"

#include "lib/recorder/dump.h"
#include "tools/run/spawn.h"

#include <dscomm/log.h>
#include <glib.h>

void tool_records_make(tool_job_t *job)
{
    const char *problem =
        dscomm_priv_recorder_create(job->run_id, &job->recorder);

    if (problem)
        dscomm_log(DSCOMM_LOG_INFO, "tools",
                   "no memory for the flight recorder: %s", problem);
}

/* True if the slot is of the process with that rank. pid: the process that was
 * started, of which the rank may be a child. Ranks of other worlds have the
 * same numbers. */
static bool slot_is_of(const dscomm_recorder_slot_t *slot, int rank, pid_t pid)
{
    const int64_t owner = atomic_load(&slot->pid);

    return owner && slot->rank == rank &&
           (owner == pid || dscomm_priv_recorder_state(slot) == SLOT_DEAD);
}

void tool_records_end(const tool_job_t *job, int rank, pid_t pid,
                      const char *text)
{
    dscomm_failure_t failure = DSCOMM_FAILURE_INIT;
    dscomm_recorder_t view = DSCOMM_RECORDER_INIT;

    failure.status = DSCOMM_ERR_PEER_FAILED;
    failure.kind = DSCOMM_FAILURE_DIED;
    failure.rank = job->first_rank + rank;
    failure.pid = pid;
    if (job->recorder.memory)
        dscomm_priv_recorder_view(&job->recorder, RECORDER_WRITE, &view);
    for (uint32_t i = 0; i < view.slots; i++) {
        dscomm_recorder_slot_t *slot = &view.memory->slot[i];

        if (slot_is_of(slot, failure.rank, pid))
            dscomm_priv_recorder_fail(slot, &failure, text);
    }
    dscomm_priv_recorder_close(&view);
}

/* True if a rank has got as far as to record anything. */
static bool has_ranks(const dscomm_recorder_t *recorder)
{
    dscomm_recorder_t view = DSCOMM_RECORDER_INIT;
    bool has = dscomm_priv_recorder_view(recorder, RECORDER_READ, &view) != 0;

    for (uint32_t i = 0; i < view.slots; i++)
        has |= atomic_load(&view.memory->slot[i].pid) != 0;
    dscomm_priv_recorder_close(&view);
    return has;
}

const char *tool_records_dump(const tool_job_t *job, uint32_t before)
{
    const char *folder = g_getenv("DSCOMM_DUMP"), *problem;
    dscomm_recorder_memory_t *memory = job->recorder.memory;
    char *name;

    if (!folder || !*folder || !memory ||
        atomic_load(&memory->dumps) != before || !has_ranks(&job->recorder))
        return NULL;
    name = g_strdup_printf("attempt%d", job->attempt);
    problem = dscomm_priv_recorder_dump(folder, job->run_id, name,
                                        &job->recorder, NULL);
    g_free(name);
    return problem;
}
