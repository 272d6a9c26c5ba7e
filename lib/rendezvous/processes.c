/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/rendezvous/processes.h"

#include "lib/base/kernel.h"
#include "lib/base/node.h"
#include "lib/base/process.h"
#include "lib/base/status.h"
#include "lib/rendezvous/record.h"
#include "lib/store/store.h"
#include "lib/store/tcp/connect.h"

#include <glib.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Time for reading member records, all of which exist, and for reading last
 * wills; in ms. */
#define LEARN_MS 300
#define BATCH 64 /* records read by one request */
/* In a world's keys: one line for each rank whose last will was carried out,
 * with its rank, pid and node. The server removes the line if the rank comes
 * back. */
#define DIED_KEY "died"

typedef struct {
    pid_t pid; /* 0: not known */
    int here; /* 1: on this machine, so that its pid can be checked */
    int died; /* 1: its last will was carried out */
    int recorded; /* 1: known from its record, not only from the last will */
    int fd; /* pidfd + 1, or 0: memory of unknown processes stays untouched */
    char node[DSCOMM_NODE_MAX];
} process_t;

struct dscomm_processes {
    pthread_mutex_t lock;
    char *machine; /* of this process, dscomm_priv_record_machine() */
    int size;
    int died; /* number of ranks whose last will was carried out */
    process_t *of;
};

dscomm_processes_t *dscomm_priv_processes_new(int size)
{
    dscomm_processes_t *processes = g_try_new0(dscomm_processes_t, 1);

    if (!processes)
        return NULL;
    pthread_mutex_init(&processes->lock, NULL);
    processes->machine = dscomm_priv_record_machine();
    processes->size = size;
    processes->of = g_try_new0(process_t, (gsize)size);
    if (!processes->of || !processes->machine) {
        processes->size = 0;
        dscomm_priv_processes_free(processes);
        return NULL;
    }
    return processes;
}

void dscomm_priv_processes_free(dscomm_processes_t *processes)
{
    if (!processes)
        return;
    for (int i = 0; i < processes->size; i++)
        if (processes->of[i].fd)
            close(processes->of[i].fd - 1);
    pthread_mutex_destroy(&processes->lock);
    g_free(processes->of);
    g_free(processes->machine);
    g_free(processes);
}

/* Opens a pidfd, which still identifies the process after its pid was given to
 * another one. */
static void process_set(process_t *process, const char *machine, int64_t pid,
                        const char *node, const char *host)
{
    if (process->fd)
        close(process->fd - 1);
    process->recorded = 1;
    process->pid = (pid_t)pid;
    process->here = strcmp(host, machine) == 0;
    process->fd =
        process->here ? dscomm_priv_process_open(process->pid) + 1 : 0;
    g_strlcpy(process->node, node, sizeof process->node);
}

void dscomm_priv_processes_note(dscomm_processes_t *processes, int rank,
                                const void *text, size_t size)
{
    dscomm_record_t record = {0};

    pthread_mutex_lock(&processes->lock);
    if (dscomm_priv_record_read(text, size, &record) == 0)
        process_set(&processes->of[rank], processes->machine, record.pid,
                    record.node, record.host);
    dscomm_priv_record_clear(&record);
    pthread_mutex_unlock(&processes->lock);
}

void dscomm_priv_processes_add(dscomm_processes_t *processes, int rank,
                               int64_t pid, const char *node, const char *host)
{
    pthread_mutex_lock(&processes->lock);
    if (!processes->of[rank].recorded)
        process_set(&processes->of[rank], processes->machine, pid, node, host);
    pthread_mutex_unlock(&processes->lock);
}

/* view: the view of the store that has the records. */
static dscomm_status_t learn_some(dscomm_processes_t *processes,
                                  dscomm_store_t *view, const int *ranks,
                                  int count)
{
    char texts[BATCH][16];
    const char *keys[BATCH];
    void *records[BATCH];
    size_t sizes[BATCH];
    dscomm_status_t status;

    for (int i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "%d", ranks[i]);
        keys[i] = texts[i];
    }
    status = dscomm_store_multi_get(view, keys, (size_t)count, LEARN_MS,
                                    records, sizes);
    for (int i = 0; i < count && status == DSCOMM_OK; i++) {
        dscomm_priv_processes_note(processes, ranks[i], records[i], sizes[i]);
        dscomm_store_free(records[i]);
    }
    return status;
}

dscomm_status_t dscomm_priv_processes_learn(dscomm_processes_t *processes,
                                            dscomm_store_t *store,
                                            const int *ranks, int count)
{
    char node[DSCOMM_NODE_MAX];
    int unknown[BATCH], n = 0;
    dscomm_store_t *view = NULL;
    dscomm_status_t status = dscomm_store_prefix(store, "r", &view);

    if (status < 0)
        return status;
    dscomm_priv_store_limit_diagnosis(view, LEARN_MS);
    for (int i = 0; i < count && status == DSCOMM_OK; i++) {
        const int rank = ranks ? ranks[i] : i;

        if (!dscomm_priv_processes_find(processes, rank, node))
            unknown[n++] = rank;
        if (n == BATCH || i == count - 1) {
            status = learn_some(processes, view, unknown, n);
            n = 0;
        }
    }
    dscomm_store_close(view);
    return status;
}

dscomm_status_t dscomm_priv_processes_leave_will(dscomm_store_t *store,
                                                 int rank)
{
    char node[DSCOMM_NODE_MAX], line[DSCOMM_NODE_MAX + 32];

    dscomm_priv_node_name(node);
    snprintf(line, sizeof line, "%d %ld %s\n", rank, (long)getpid(), node);
    return dscomm_priv_store_will(store, DIED_KEY, line);
}

void dscomm_priv_processes_withdraw_will(dscomm_store_t *store)
{
    dscomm_priv_store_withdraw(store, DIED_KEY);
}

/* Reads one line of DIED_KEY, which also identifies the process if no record
 * did. Malformed lines are ignored, because anybody who can write to the store
 * can write anything there. */
static void note_died(dscomm_processes_t *processes, const char *line)
{
    int rank, length = 0;
    long pid;
    process_t *process;

    if (sscanf(line, "%d %ld %n", &rank, &pid, &length) < 2 || !length ||
        rank < 0 || rank >= processes->size || pid < 1)
        return;
    process = &processes->of[rank];
    processes->died += !process->died;
    process->died = 1;
    if (process->pid)
        return;
    process->pid = (pid_t)pid;
    g_strlcpy(process->node, line + length, sizeof process->node);
    dscomm_priv_tidy(process->node, strlen(process->node) + 1);
}

/* Reads the lines of DIED_KEY; NULL: there are none. A line that is gone was
 * removed because the rank lives. */
static void note_all_died(dscomm_processes_t *processes, char *text)
{
    char *line, *rest = text;

    pthread_mutex_lock(&processes->lock);
    for (int i = 0; i < processes->size && processes->died; i++) {
        processes->died -= processes->of[i].died;
        processes->of[i].died = 0;
        if (!processes->of[i].recorded)
            processes->of[i].pid = 0;
    }
    while ((line = strsep(&rest, "\n")))
        note_died(processes, line);
    pthread_mutex_unlock(&processes->lock);
}

dscomm_priv_look_t dscomm_priv_processes_key(dscomm_store_t *store)
{
    return (dscomm_priv_look_t){.store = store, .key = DIED_KEY};
}

void dscomm_priv_processes_read(dscomm_processes_t *processes,
                                const dscomm_priv_look_t *look)
{
    dscomm_store_t *view = NULL;
    void *value = NULL;
    size_t size;

    if (!look->present) {
        note_all_died(processes, NULL);
        return;
    }
    if (dscomm_store_prefix(look->store, "", &view) < 0)
        return;
    dscomm_priv_store_limit_diagnosis(view, LEARN_MS);
    if (dscomm_store_get(view, look->key, LEARN_MS, &value, &size) == DSCOMM_OK)
        note_all_died(processes, value);
    dscomm_store_free(value);
    dscomm_store_close(view);
}

int dscomm_priv_processes_died(dscomm_processes_t *processes, int count,
                               int own)
{
    int rank = -1;

    pthread_mutex_lock(&processes->lock);
    for (int i = 0; i < count && processes->died && rank < 0; i++)
        if (i != own && processes->of[i].died)
            rank = i;
    pthread_mutex_unlock(&processes->lock);
    return rank;
}

int dscomm_priv_processes_ended(dscomm_processes_t *processes, int rank)
{
    const process_t *process = &processes->of[rank];
    int ended;

    pthread_mutex_lock(&processes->lock);
    ended = process->died ||
            (process->here &&
             dscomm_priv_process_ended(process->pid, process->fd - 1));
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

int64_t dscomm_priv_processes_find(dscomm_processes_t *processes, int rank,
                                   char node[DSCOMM_NODE_MAX])
{
    const process_t *process = &processes->of[rank];
    int64_t pid;

    pthread_mutex_lock(&processes->lock);
    pid = process->pid;
    memcpy(node, process->node, sizeof process->node);
    pthread_mutex_unlock(&processes->lock);
    return pid;
}

const char *dscomm_priv_processes_describe(dscomm_processes_t *processes,
                                           int rank,
                                           char text[DSCOMM_PROCESS_MAX])
{
    char node[DSCOMM_NODE_MAX];
    const int64_t pid = dscomm_priv_processes_find(processes, rank, node);

    return dscomm_priv_process_describe(rank, rank, pid, node, text);
}

/* Processes that are stopped or have ended */

static void stopped_append(int rank, int64_t pid, const char *how, int serves,
                           char *text, size_t size)
{
    const size_t used = strlen(text);

    snprintf(text + used, size - used, "%srank %d (pid %lld)%s %s%s",
             used ? "; " : "", rank, (long long)pid,
             serves ? ", which serves the store," : "",
             how ? "is stopped" : "has ended", how ? how : "");
}

static bool process_has_ended(int64_t pid)
{
    const char state = dscomm_priv_process_state(pid);

    return !state || state == 'Z' || state == 'X';
}

/* Returns whether the store's server is stopped, as far as that is known. */
static bool append_store(const dscomm_store_t *store, bool by_rank_0,
                         char *text, size_t size)
{
    dscomm_priv_store_place_t place;

    return dscomm_priv_store_silent(store, &place) &&
           dscomm_priv_stopped_server(&place, by_rank_0, text, size);
}

dscomm_status_t dscomm_priv_stopped_learn(const dscomm_meeting_t *meeting,
                                          dscomm_store_t *store,
                                          const int *world_ranks, int count)
{
    const int *node = meeting->nodes.node;
    int *ranks = g_try_new(int, (gsize)count), n = 0;
    dscomm_status_t status = DSCOMM_ERR_NO_MEMORY;

    for (int i = 0; ranks && i < count; i++)
        if (node[world_ranks[i]] == node[meeting->rank])
            ranks[n++] = world_ranks[i];
    if (ranks)
        status =
            dscomm_priv_processes_learn(meeting->processes, store, ranks, n);
    g_free(ranks);
    return status;
}

int dscomm_priv_stopped_append(const dscomm_meeting_t *meeting,
                               const int *world_ranks, int count, char *text,
                               size_t size)
{
    const char *how = meeting->server_pid
                          ? dscomm_priv_process_stopped(meeting->server_pid)
                          : NULL;
    int first = how ? 0 : -1;
    bool first_is_stopped = how, ended;

    if (how)
        stopped_append(0, meeting->server_pid, how, 1, text, size);
    if (how || !meeting->store || !meeting->processes)
        return first;
    if (!dscomm_priv_store_silent(meeting->store, NULL))
        dscomm_priv_processes_learn(meeting->processes, meeting->store,
                                    world_ranks, count);
    for (int i = 0; i < count; i++) {
        const int rank = world_ranks[i];
        const int64_t pid = dscomm_priv_processes_pid(meeting->processes, rank);

        how = pid ? dscomm_priv_process_stopped(pid) : NULL;
        ended = pid && !how && process_has_ended(pid);
        if (!how && !ended)
            continue;
        stopped_append(rank, pid, how, 0, text, size);
        if (first < 0 || (how && !first_is_stopped))
            first = rank;
        first_is_stopped = first_is_stopped || how;
    }
    if (append_store(meeting->store, meeting->serves, text, size) &&
        meeting->serves && first < 0)
        first = 0;
    return first;
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
