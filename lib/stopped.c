/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/stopped.h"

#include "lib/processes.h"

#include <stdio.h>
#include <string.h>

const char *dscomm_priv_process_stopped(int64_t pid)
{
    char path[40], text[512];
    const char *end;
    FILE *file;
    size_t size;

    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    file = fopen(path, "re");
    if (!file)
        return NULL;
    size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    end = strrchr(text, ')'); /* the name may hold anything, ')' too */
    if (!end || end[1] != ' ')
        return NULL;
    return end[2] == 'T'   ? " by a signal"
           : end[2] == 't' ? " by a debugger"
                           : NULL;
}

static void append(int rank, int64_t pid, const char *how, int serves,
                   char *text, size_t size)
{
    const size_t used = strlen(text);

    snprintf(text + used, size - used, "%srank %d (pid %lld)%s is stopped%s",
             used ? "; " : "", rank, (long long)pid,
             serves ? ", which serves the store," : "", how);
}

static void append_ranks(const dscomm_meeting_t *meeting,
                         const int *world_ranks, int count, char *text,
                         size_t size)
{
    dscomm_priv_processes_learn(meeting->processes, meeting->store, world_ranks,
                                count);
    for (int i = 0; i < count; i++) {
        const int rank = world_ranks[i];
        const int64_t pid = dscomm_priv_processes_pid(meeting->processes, rank);
        const char *how = pid ? dscomm_priv_process_stopped(pid) : NULL;

        if (how)
            append(rank, pid, how, 0, text, size);
    }
}

/* A stopped server answers nobody, so that its pid must be known before. */
void dscomm_priv_stopped_append(const dscomm_meeting_t *meeting,
                                const int *world_ranks, int count, char *text,
                                size_t size)
{
    const char *how = meeting->server_pid
                          ? dscomm_priv_process_stopped(meeting->server_pid)
                          : NULL;

    if (how)
        append(0, meeting->server_pid, how, 1, text, size);
    else if (meeting->store && meeting->processes)
        append_ranks(meeting, world_ranks, count, text, size);
}
