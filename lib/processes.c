/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/processes.h"

#include "lib/clock.h"
#include "lib/process.h"
#include "lib/roster.h"
#include "lib/store.h"

#include <glib.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Time allowed for reading member records, which are all there, in ms. */
#define LEARN_MS 300

typedef struct {
    pid_t pid; /* 0: not known */
    int here; /* 1: on this machine, where its pid means something */
    int fd; /* pidfd, or -1 */
    char node[DSCOMM_NODE_MAX];
} process_t;

struct dscomm_processes {
    pthread_mutex_t lock;
    int size;
    process_t *of;
};

dscomm_processes_t *dscomm_priv_processes_new(int size)
{
    dscomm_processes_t *processes = g_new0(dscomm_processes_t, 1);

    pthread_mutex_init(&processes->lock, NULL);
    processes->size = size;
    processes->of = g_new0(process_t, (gsize)size);
    for (int i = 0; i < size; i++)
        processes->of[i].fd = -1;
    return processes;
}

void dscomm_priv_processes_free(dscomm_processes_t *processes)
{
    if (!processes)
        return;
    for (int i = 0; i < processes->size; i++)
        if (processes->of[i].fd >= 0)
            close(processes->of[i].fd);
    pthread_mutex_destroy(&processes->lock);
    g_free(processes->of);
    g_free(processes);
}

/* A pidfd still names the process after its number has gone to another one. */
static void process_set(process_t *process, const dscomm_record_t *record)
{
    if (process->fd >= 0)
        close(process->fd);
    process->pid = (pid_t)record->pid;
    process->here = dscomm_priv_record_here(record);
    process->fd = process->here ? dscomm_priv_process_open(process->pid) : -1;
    g_strlcpy(process->node, record->node, sizeof process->node);
}

void dscomm_priv_processes_note(dscomm_processes_t *processes, int rank,
                                const void *text, size_t size)
{
    dscomm_record_t record = {0};

    pthread_mutex_lock(&processes->lock);
    if (dscomm_priv_record_read(text, size, &record) == 0)
        process_set(&processes->of[rank], &record);
    dscomm_priv_record_clear(&record);
    pthread_mutex_unlock(&processes->lock);
}

/* The keys of records that are not known yet, and whose they are. */
static int list_unknown(dscomm_processes_t *processes, const int *ranks,
                        int count, char **ret_keys, int *ret_ranks)
{
    int unknown = 0;

    pthread_mutex_lock(&processes->lock);
    for (int i = 0; i < count; i++)
        if (!processes->of[ranks[i]].pid) {
            ret_ranks[unknown] = ranks[i];
            ret_keys[unknown++] = g_strdup_printf("%d", ranks[i]);
        }
    pthread_mutex_unlock(&processes->lock);
    return unknown;
}

dscomm_status_t dscomm_priv_processes_learn(dscomm_processes_t *processes,
                                            dscomm_store_t *store,
                                            const int *ranks, int count)
{
    char **keys = g_new0(char *, (gsize)count + 1);
    void **records = g_new0(void *, (gsize)count);
    size_t *sizes = g_new0(size_t, (gsize)count);
    int *unknown = g_new(int, (gsize)count);
    const int n = list_unknown(processes, ranks, count, keys, unknown);
    dscomm_store_t *view = NULL;
    dscomm_status_t status = dscomm_store_prefix(store, "r", &view);

    if (status == DSCOMM_OK) {
        dscomm_priv_store_limit(
            view, dscomm_priv_clock_after(dscomm_priv_clock(), LEARN_MS));
        status = dscomm_store_multi_get(view, (const char *const *)keys,
                                        (size_t)n, LEARN_MS, records, sizes);
    }
    for (int i = 0; i < n && status == DSCOMM_OK; i++) {
        dscomm_priv_processes_note(processes, unknown[i], records[i], sizes[i]);
        dscomm_store_free(records[i]);
    }
    dscomm_store_close(view);
    g_free(unknown);
    g_free(sizes);
    g_free(records);
    g_strfreev(keys);
    return status;
}

int dscomm_priv_processes_ended(dscomm_processes_t *processes, int rank)
{
    const process_t *process = &processes->of[rank];
    int ended;

    pthread_mutex_lock(&processes->lock);
    ended =
        process->here && dscomm_priv_process_ended(process->pid, process->fd);
    pthread_mutex_unlock(&processes->lock);
    return ended;
}

int dscomm_priv_processes_here(dscomm_processes_t *processes, int rank)
{
    int here;

    pthread_mutex_lock(&processes->lock);
    here = processes->of[rank].here;
    pthread_mutex_unlock(&processes->lock);
    return here;
}

const char *dscomm_priv_processes_describe(dscomm_processes_t *processes,
                                           int rank,
                                           char text[DSCOMM_PROCESS_MAX])
{
    const process_t *process = &processes->of[rank];

    pthread_mutex_lock(&processes->lock);
    if (process->pid)
        snprintf(text, DSCOMM_PROCESS_MAX, "rank %d (pid %ld on %s)", rank,
                 (long)process->pid, process->node);
    else
        snprintf(text, DSCOMM_PROCESS_MAX, "rank %d", rank);
    pthread_mutex_unlock(&processes->lock);
    return text;
}
