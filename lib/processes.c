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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Time allowed for reading member records, which are all there, in ms; and for
 * last wills. */
#define LEARN_MS 300
/* In a world's keys: the ranks whose last wills the server has carried out,
 * each with a line feed. */
#define DIED_KEY "died"

typedef struct {
    pid_t pid; /* 0: not known */
    int here; /* 1: on this machine, where its pid means something */
    int died; /* 1: its last will was carried out */
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

dscomm_status_t dscomm_priv_processes_leave_will(dscomm_store_t *store,
                                                 int rank)
{
    char line[16];

    snprintf(line, sizeof line, "%d\n", rank);
    return dscomm_priv_store_will(store, DIED_KEY, line);
}

/* Whoever can write to the store can write anything there. */
static void note_died(dscomm_processes_t *processes, dscomm_store_t *store,
                      const char *text)
{
    int *ranks = g_new(int, (gsize)processes->size), count = 0;
    char *end;

    for (; count < processes->size && *text; text = end + 1) {
        const long rank = strtol(text, &end, 10);

        if (end == text || *end != '\n' || rank < 0 || rank >= processes->size)
            break;
        ranks[count++] = (int)rank;
    }
    dscomm_priv_processes_learn(processes, store, ranks, count);
    pthread_mutex_lock(&processes->lock);
    for (int i = 0; i < count; i++)
        processes->of[ranks[i]].died = 1;
    pthread_mutex_unlock(&processes->lock);
    g_free(ranks);
}

void dscomm_priv_processes_look(dscomm_processes_t *processes,
                                dscomm_store_t *store)
{
    const char *key = DIED_KEY;
    dscomm_store_t *view = NULL;
    int present = 0;
    void *value = NULL;
    size_t size;

    if (dscomm_store_prefix(store, "", &view) < 0)
        return;
    dscomm_priv_store_limit(
        view, dscomm_priv_clock_after(dscomm_priv_clock(), LEARN_MS));
    if (dscomm_store_check(view, &key, 1, &present) == DSCOMM_OK && present &&
        dscomm_store_get(view, key, LEARN_MS, &value, &size) == DSCOMM_OK) {
        note_died(processes, store, value);
        dscomm_store_free(value);
    }
    dscomm_store_close(view);
}

int dscomm_priv_processes_ended(dscomm_processes_t *processes, int rank)
{
    const process_t *process = &processes->of[rank];
    int ended;

    pthread_mutex_lock(&processes->lock);
    ended =
        process->died ||
        (process->here && dscomm_priv_process_ended(process->pid, process->fd));
    pthread_mutex_unlock(&processes->lock);
    return ended;
}

int64_t dscomm_priv_processes_pid(dscomm_processes_t *processes, int rank)
{
    const process_t *process = &processes->of[rank];
    int64_t pid;

    pthread_mutex_lock(&processes->lock);
    pid = process->here ? process->pid : 0;
    pthread_mutex_unlock(&processes->lock);
    return pid;
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
