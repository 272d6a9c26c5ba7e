/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/rendezvous/stopped.h"

#include "lib/base/failure.h"
#include "lib/base/process.h"
#include "lib/base/status.h"
#include "lib/rendezvous/processes.h"
#include "lib/store/store.h"
#include "lib/store/tcp/peer.h"

#include <stdio.h>
#include <string.h>

static void stopped_append(int rank, int64_t pid, const char *how, int serves,
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
            stopped_append(rank, pid, how, 0, text, size);
    }
}

static void append_store(const dscomm_store_t *store, bool by_rank_0,
                         char *text, size_t size)
{
    dscomm_priv_store_place_t place;
    const size_t used = strlen(text);
    char why[DSCOMM_ERROR_MAX];

    if (!dscomm_priv_store_silent(store, &place))
        return;
    dscomm_priv_stopped_server(place.peer, &place.address, by_rank_0, why,
                               sizeof why);
    snprintf(text + used, size - used, "%s%s", used ? "; " : "", why);
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
        stopped_append(0, meeting->server_pid, how, 1, text, size);
    if (how || !meeting->store || !meeting->processes)
        return;
    if (!dscomm_priv_store_silent(meeting->store, NULL))
        append_ranks(meeting, world_ranks, count, text, size);
    append_store(meeting->store, meeting->serves, text, size);
}

dscomm_status_t dscomm_priv_stopped_store(const dscomm_store_t *store,
                                          bool by_rank_0, const char *prefix,
                                          dscomm_status_t status)
{
    char why[DSCOMM_ERROR_MAX] = "";
    dscomm_failure_t failure;

    if (status != DSCOMM_ERR_TIMEOUT || !store)
        return status;
    dscomm_priv_failure_last(status, &failure);
    append_store(store, by_rank_0, why, sizeof why);
    return *why ? dscomm_fail(status, "%s%s", prefix, why)
                : dscomm_backend_fail(&failure);
}
