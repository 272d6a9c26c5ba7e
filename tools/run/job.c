/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs, see job.h. */
#include "config.h"

#include "lib/base/random.h"
#include "tools/common/errors.h"
#include "tools/common/tool.h"
#include "tools/run/job.h"

#include <dscomm/env.h>
#include <dscomm/status.h>
#include <dscomm/store.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Time for opening a store that this process serves, in ms. */
#define STORE_TIMEOUT_MS 10000
/* Bytes drawn for a secret, and characters of a run's id with the final zero.
 */
#define RANDOM_MOST 32
#define RUN_ID_SIZE 33

/* Raises the limit of open files: for pipes and logs, and for two connections
 * of each rank to a store that is served here. */
static int raise_file_limit(const tool_job_t *job, const tool_limits_t *limits)
{
    rlim_t need =
        64 + (rlim_t)job->ranks * (limits->tag_output ? 2 : 0) +
        (rlim_t)job->ranks * (limits->tag_output && limits->log_dir ? 2 : 0) +
        (rlim_t)(job->node_rank == 0 ? job->world : 0) * 2;
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= need)
        return TOOL_OK;
    if (limit.rlim_max < need)
        return tool_fail(TOOL_INTERNAL, job->command,
                         "%d ranks need %llu open files, and the hard limit "
                         "is %llu: raise it (ulimit -Hn) or start fewer",
                         job->world, (unsigned long long)need,
                         (unsigned long long)limit.rlim_max);
    limit.rlim_cur = need;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return TOOL_OK;
    return tool_fail(TOOL_INTERNAL, job->command,
                     "cannot have %llu open files: %s",
                     (unsigned long long)need, g_strerror(errno));
}

/* Opens /dev/null for closed standard streams, so that the job's own files do
 * not get their numbers. */
static void fill_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
    if (fd > STDERR_FILENO)
        close(fd);
}

/* Fills text with size - 1 random hexadecimal digits, an even number of at most
 * 2 * RANDOM_MOST. */
static int draw_hex(const tool_job_t *job, char *text, size_t size)
{
    unsigned char bytes[RANDOM_MOST];
    const size_t count = (size - 1) / 2;

    if (!dscomm_priv_random(bytes, count))
        return tool_fail(TOOL_INTERNAL, job->command, "no random numbers: %s",
                         g_strerror(errno));
    for (size_t i = 0; i < count; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return TOOL_OK;
}

/* Makes a secret for the store of a job on one node; the ranks inherit it. The
 * secret of several nodes must come from the user, because nodes have no other
 * channel. */
static int choose_secret(const tool_job_t *job, const tool_limits_t *limits)
{
    static const char *const names[] = {"DSCOMM_JOB_SECRET",
                                        "DSCOMM_JOB_SECRET_FILE"};
    bool given =
        limits->place && (limits->place->nodes > 1 || limits->place->least);
    char text[2 * RANDOM_MOST + 1];
    int status;

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *value = g_getenv(names[i]);

        given |= value && *value;
        if (limits->no_secret)
            g_unsetenv(names[i]);
    }
    if (given || limits->no_secret)
        return TOOL_OK;
    status = draw_hex(job, text, sizeof(text));
    if (status == TOOL_OK)
        g_setenv(names[0], text, true);
    return status;
}

static int prepare(tool_job_t *job, const tool_limits_t *limits)
{
    const int node_rank = limits->place ? limits->place->node_rank : 0;
    int error, status;

    getrlimit(RLIMIT_NOFILE, &job->files);
    status = raise_file_limit(job, limits);
    fill_standard_fds();
    if (limits->id)
        g_strlcpy(job->run_id, limits->id, sizeof(job->run_id));
    else if (status == TOOL_OK)
        status = draw_hex(job, job->run_id, RUN_ID_SIZE);
    if (status == TOOL_OK)
        status = choose_secret(job, limits);
    if (status != TOOL_OK)
        return status;
    job->terminal = node_rank == 0 && tcgetpgrp(STDIN_FILENO) >= 0;
    job->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (job->null_fd < 0)
        return tool_fail(TOOL_INTERNAL, job->command, "/dev/null: %s",
                         g_strerror(errno));
    job->binding = tool_bind_choose(job->command, limits->bind, job->ranks);
    error = tool_guard_start(job->ranks, &job->guard);
    if (error)
        return tool_fail(TOOL_INTERNAL, job->command,
                         "cannot start the guard process: %s",
                         g_strerror(error));
    tool_errors_make(job->guard.folder, PATH_MAX);
    tool_records_make(job);
    return TOOL_OK;
}

static int job_open_store(tool_job_t *job, dscomm_store_t **ret_store)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;

    attr.serve = 1;
    attr.timeout_ms = STORE_TIMEOUT_MS;
    if (dscomm_store_open("tcp://127.0.0.1:0", &attr, ret_store) < 0)
        return tool_fail(TOOL_INTERNAL, job->command,
                         "cannot serve the ranks' store: %s",
                         dscomm_last_error());
    job->port = dscomm_store_port(*ret_store);
    dscomm_store_set(*ret_store, TOOL_NODES_PREFIX "/" TOOL_NODES_RUN,
                     job->run_id, strlen(job->run_id));
    return TOOL_OK;
}

static int run_here(tool_job_t *job, const tool_limits_t *limits)
{
    dscomm_store_t *store;
    int status = job_open_store(job, &store);

    if (status != TOOL_OK)
        return status;
    status = TOOL_INTERNAL;
    if (tool_supervise_prepare(job) == 0)
        status = tool_supervise(job, limits, NULL);
    dscomm_store_close(store);
    return status;
}

/* Runs this node's ranks together with the nodes that have met. */
static int run_attempt(tool_job_t *job, const tool_limits_t *limits,
                       tool_nodes_t *nodes)
{
    int status = raise_file_limit(job, limits);

    if (status == TOOL_OK && job->signal_fd < 0 &&
        tool_supervise_prepare(job) < 0)
        status = TOOL_INTERNAL;
    tool_nodes_watch(nodes);
    if (status == TOOL_OK)
        return tool_supervise(job, limits, nodes);
    tool_nodes_end(nodes, status, "its ranks could not be started");
    tool_nodes_leave(nodes);
    return status;
}

/* Runs the attempts of an elastic job, each with the nodes that come. */
static int run_elastic(tool_job_t *job, const tool_limits_t *limits)
{
    tool_elastic_t *elastic;
    int status = tool_elastic_open(job, limits->place, &elastic);

    if (status == TOOL_OK)
        status = TOOL_AGAIN;
    while (status == TOOL_AGAIN) {
        tool_nodes_t *nodes;

        status = tool_elastic_join(elastic, &nodes);
        if (nodes)
            status = run_attempt(job, limits, nodes);
    }
    tool_elastic_close(elastic);
    return status;
}

static int run_on_nodes(tool_job_t *job, const tool_limits_t *limits)
{
    tool_nodes_t *nodes;
    int status = tool_nodes_join(job, limits->place, &nodes);

    return status == TOOL_OK ? run_attempt(job, limits, nodes) : status;
}

/* Ends this process by the signal, as if it had never been caught, so that a
 * shell sees it; without a core dump. */
static void die_by(int signal)
{
    struct rlimit none = {0, 0};
    sigset_t set;

    setrlimit(RLIMIT_CORE, &none);
    sigemptyset(&set);
    sigaddset(&set, signal);
    raise(signal);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int tool_job_run(const char *command, char **argv, int ranks,
                 const tool_limits_t *limits)
{
    tool_job_t job = {
        .command = command,
        .argv = argv,
        .ranks = ranks,
        .world = ranks,
        .nodes = 1,
        .address = "127.0.0.1",
        .max_restarts = limits->max_restarts,
        .log_dir = limits->log_dir,
        .signal_fd = -1,
        .recorder = DSCOMM_RECORDER_INIT,
    };
    int status = prepare(&job, limits);

    if (status != TOOL_OK)
        return status;
    if (!limits->place)
        status = run_here(&job, limits);
    else if (limits->place->least)
        status = run_elastic(&job, limits);
    else
        status = run_on_nodes(&job, limits);
    if (job.signal_fd >= 0)
        close(job.signal_fd);
    tool_guard_end(&job.guard);
    tool_bind_free(&job.binding);
    dscomm_priv_recorder_close(&job.recorder);
    if (job.end_signal)
        die_by(job.end_signal);
    return status;
}

int tool_job_run_self(const char *command, char **words, int ranks,
                      const tool_limits_t *limits)
{
    char *self = g_file_read_link("/proc/self/exe", NULL);
    GPtrArray *argv = g_ptr_array_new();
    int status;

    g_ptr_array_add(argv, self ? self : (char *)"dscomm");
    for (int i = 0; words[i]; i++)
        g_ptr_array_add(argv, words[i]);
    g_ptr_array_add(argv, NULL);
    status = tool_job_run(command, (char **)argv->pdata, ranks, limits);
    g_ptr_array_free(argv, true);
    g_free(self);
    return status;
}

bool tool_job_is_needed(int ranks)
{
    const char *method = g_getenv("DSCOMM_INIT_METHOD");
    dscomm_env_t *env = NULL;
    bool alone;

    if (ranks < 2 || (method && *method && strcmp(method, "env://") != 0) ||
        dscomm_env_discover(NULL, &env) != DSCOMM_OK)
        return false;
    alone = dscomm_env_world_size(env) == 1;
    dscomm_env_free(env);
    return alone;
}
