/* SPDX-License-Identifier: BSD-3-Clause */
/* The world's slot in the flight recorder. The memory is that of dscomm run, or
 * one that this process has for another world. Without it, each rank makes one,
 * of 4 KiB, before it meets the others, and then takes that of the first rank
 * of its host, which therefore exists. Nothing here fails or waits for another
 * rank: a rank without shared memory records in its own. */
#include "config.h"

#include "lib/base/settings.h"
#include "lib/group/failure.h"
#include "lib/group/world.h"
#include "lib/recorder/dump.h"
#include "lib/rendezvous/processes.h"

#include <dscomm/log.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Time before the dump of a mismatch: the rank that differs may see it before
 * the others have made the call in which they differ. */
#define SETTLE_US 100000

/* Longest time before the dump of a death: a connection ends before its
 * process, which the dump then would show as running. */
#define DEATH_US 200000

/* Opens the memory at place, "PID:FD". */
static const char *place_open(const char *place, dscomm_recorder_t *recorder)
{
    long long pid;
    int fd;

    if (sscanf(place, "%lld:%d", &pid, &fd) != 2)
        return "it is not PID:FD";
    return dscomm_priv_recorder_open(pid, fd, RECORDER_WRITE, recorder);
}

static void log_problem(const char *problem)
{
    dscomm_log(DSCOMM_LOG_INFO, "core",
               "flight recorder: no memory that outlives this process: %s; its "
               "record is lost if it dies",
               problem);
}

/* Opens the memory of another world of this process, or makes one. Threads that
 * make their worlds together get one memory. */
static const char *memory_make(dscomm_recorder_t *recorder)
{
    static GMutex lock;
    const char *problem;
    char job[24];

    snprintf(job, sizeof job, "pid%lld", (long long)getpid());
    g_mutex_lock(&lock);
    problem = dscomm_priv_recorder_find(getpid(), RECORDER_WRITE, recorder);
    if (problem)
        problem = dscomm_priv_recorder_create(job, recorder);
    g_mutex_unlock(&lock);
    return problem;
}

void dscomm_priv_world_record_prepare(dscomm_world_t *world)
{
    const char *place = dscomm_priv_setting_text(SETTING_RECORDER);
    const char *problem;

    dscomm_priv_ticks_choose();
    if (place)
        problem = place_open(place, &world->recorder);
    else
        problem = memory_make(&world->recorder);
    if (problem && place)
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "DSCOMM_RECORDER is '%s', and cannot be used: %s", place,
                   problem);
    else if (problem)
        log_problem(problem);
}

/* The first rank of this rank's host, or -1 in a world of one rank. */
static int host_first(const dscomm_meeting_t *meeting)
{
    const dscomm_nodes_t *hosts = &meeting->hosts;

    for (int r = 0; r < hosts->ranks; r++)
        if (hosts->node[r] == hosts->node[meeting->rank])
            return r;
    return -1;
}

/* Replaces this rank's memory by that of the first rank of its host. */
static void memory_share(dscomm_world_t *world, int first)
{
    const dscomm_meeting_t *meeting = &world->meeting;
    dscomm_recorder_t found = DSCOMM_RECORDER_INIT;
    const char *problem;

    dscomm_priv_processes_learn(meeting->processes, meeting->store, &first, 1);
    problem = dscomm_priv_recorder_find(
        dscomm_priv_processes_pid(meeting->processes, first), RECORDER_WRITE,
        &found);
    if (problem) {
        log_problem(problem);
        return;
    }
    dscomm_priv_recorder_close(&world->recorder);
    world->recorder = found;
}

/* Warns of a folder in which no dump could be written. */
static void folder_check(const char *folder)
{
    char *path =
        g_canonicalize_filename(folder, NULL); /* no slash at the end */
    char *parent = g_path_get_dirname(path);
    const bool there = g_file_test(folder, G_FILE_TEST_EXISTS);

    if (access(there ? folder : parent, W_OK | X_OK))
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "DSCOMM_DUMP: no dump can be written to %s: %s", folder,
                   strerror(errno));
    g_free(parent);
    g_free(path);
}

void dscomm_priv_world_record(dscomm_world_t *world, int rank)
{
    const dscomm_meeting_t *meeting = &world->meeting;
    const int first = host_first(meeting);
    const int local = first < 0 ? 0 : meeting->hosts.local[rank];
    const char *problem;

    if (!local && dscomm_priv_setting_text(SETTING_DUMP))
        folder_check(dscomm_priv_setting_text(SETTING_DUMP));
    if (local && !dscomm_priv_setting_text(SETTING_RECORDER))
        memory_share(world, first);
    if (!world->recorder.memory)
        return;
    problem = dscomm_priv_recorder_claim(&world->recorder, local, meeting->id,
                                         rank, world->size);
    if (!problem)
        return;
    dscomm_priv_recorder_close(&world->recorder);
    log_problem(problem);
}

/* Ranks that share no memory have files of their own. */
static const char *group_dump(dscomm_group_t *group, const char *folder,
                              const char *name)
{
    const dscomm_world_t *world = group->identity.world;
    char identity[DSCOMM_WORLD_ID + 16];

    if (world->recorder.memory)
        g_strlcpy(identity, world->meeting.id, sizeof identity);
    else
        snprintf(identity, sizeof identity, "%s.%d", world->meeting.id,
                 group->recorder->rank);
    return dscomm_priv_recorder_dump(folder, identity, name, &world->recorder,
                                     group->recorder);
}

/* False, with a warning, if no dump was written to DSCOMM_DUMP. */
static bool dump_to_folder(dscomm_group_t *group, const char *name)
{
    const char *problem =
        group_dump(group, dscomm_priv_setting_text(SETTING_DUMP), name);

    if (problem)
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "flight recorder: no dump was written: %s", problem);
    return !problem;
}

void dscomm_priv_group_dump(dscomm_group_t *group, const char *name)
{
    char *whole = g_strdup_printf("%s-%s", group->identity.id, name);

    if (dscomm_priv_setting_text(SETTING_DUMP))
        dump_to_folder(group, whole);
    g_free(whole);
}

/* Waits for the end of a rank's process on this machine. */
static void death_await(const dscomm_group_t *group, int world_rank)
{
    const dscomm_meeting_t *meeting = &group->identity.world->meeting;

    if (world_rank < 0)
        return;
    dscomm_priv_stopped_learn(meeting, group->life.base, &world_rank, 1);
    for (int us = 0; us < DEATH_US; us += 1000) {
        if (!dscomm_priv_processes_pid(meeting->processes, world_rank) ||
            dscomm_priv_processes_ended(meeting->processes, world_rank))
            return;
        g_usleep(1000);
    }
}

/* Keeps why the group has ended, and writes the memory to DSCOMM_DUMP. */
static void group_record_failure(dscomm_group_t *group)
{
    char text[DSCOMM_ERROR_MAX];
    dscomm_failure_t failure;

    if (group->ops.status(group->impl, &failure) == DSCOMM_OK)
        return;
    dscomm_priv_recorder_fail(group->recorder, &failure,
                              dscomm_priv_failure_sentence(&failure, text));
    if (!dscomm_priv_setting_text(SETTING_DUMP))
        return;
    if (failure.kind == DSCOMM_FAILURE_MISMATCH)
        g_usleep(SETTLE_US);
    if (failure.kind == DSCOMM_FAILURE_DIED)
        death_await(group, failure.rank);
    if (dump_to_folder(group, group->identity.id) &&
        group->identity.world->recorder.memory)
        atomic_fetch_add(&group->identity.world->recorder.memory->dumps, 1);
}

const dscomm_group_part_t dscomm_priv_recorder_part = {
    .on[PART_REVOKED] = group_record_failure,
};
