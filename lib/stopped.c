/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/stopped.h"

#include "lib/clock.h"
#include "lib/roster.h"
#include "lib/store.h"

#include <stdio.h>
#include <string.h>

/* Time for all records, in ms. */
#define LOOK_MS 300

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

/* The pid of a process of this machine; 0: not known. */
static int64_t find_pid(dscomm_store_t *records, int rank)
{
    dscomm_record_t record = {0};
    char key[16];
    void *value;
    size_t bytes;
    int64_t pid = 0;

    snprintf(key, sizeof key, "%d", rank);
    if (dscomm_store_get(records, key, LOOK_MS, &value, &bytes) < 0)
        return 0;
    if (dscomm_priv_record_read(value, bytes, &record) == 0 &&
        dscomm_priv_record_here(&record))
        pid = record.pid;
    dscomm_priv_record_clear(&record);
    dscomm_store_free(value);
    return pid;
}

static void append_ranks(const dscomm_meeting_t *meeting,
                         const int *world_ranks, int count, char *text,
                         size_t size)
{
    const int64_t end = dscomm_priv_clock_after(dscomm_priv_clock(), LOOK_MS);
    dscomm_store_t *records;

    if (dscomm_store_prefix(meeting->store, "r", &records) < 0)
        return;
    dscomm_priv_store_limit(records, end);
    for (int i = 0; i < count && dscomm_priv_clock() < end; i++) {
        const int64_t pid = world_ranks[i] == meeting->rank
                                ? 0
                                : find_pid(records, world_ranks[i]);
        const char *how = pid ? dscomm_priv_process_stopped(pid) : NULL;

        if (how)
            append(world_ranks[i], pid, how, 0, text, size);
    }
    dscomm_store_close(records);
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
    else if (meeting->store)
        append_ranks(meeting, world_ranks, count, text, size);
}
