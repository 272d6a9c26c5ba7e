/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting one rank, see spawn.h. */
#include "config.h"

#include "tools/common/errors.h"
#include "tools/common/tool.h"
#include "tools/run/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Variables of a process's identity that only its launcher may set: values of
 * an outer job would be wrong. */
static const char *const stale[] = {
    "DSCOMM_RANK",        "DSCOMM_WORLD_SIZE",       "DSCOMM_LOCAL_RANK",
    "DSCOMM_LOCAL_SIZE",  "DSCOMM_NODE_RANK",        "DSCOMM_MASTER_ADDR",
    "DSCOMM_MASTER_PORT", "DSCOMM_LAUNCHER",         "DSCOMM_RECORDER",
    "NODE_RANK",          "TORCHELASTIC_ERROR_FILE",
};

/* A variable of torchrun; if text is NULL, the value is a number. */
typedef struct {
    const char *name;
    const char *text;
    int number;
} variable_t;

static char **set_variables(char **environment, const variable_t *variables,
                            size_t count, bool overwrite)
{
    for (size_t i = 0; i < count; i++) {
        const variable_t *v = &variables[i];
        char *number = g_strdup_printf("%d", v->number);
        environment = g_environ_setenv(environment, v->name,
                                       v->text ? v->text : number, overwrite);
        g_free(number);
    }
    return environment;
}

/* The environment of a rank: environment, with torchrun's variables for this
 * rank and without those that would contradict them; g_strfreev(). */
static char **make_environment(const tool_job_t *job, int rank,
                               char *const *environment)
{
    const int number = job->first_rank + rank;
    const variable_t variables[] = {
        {"RANK", NULL, number},
        {"WORLD_SIZE", NULL, job->world},
        {"LOCAL_RANK", NULL, rank},
        {"LOCAL_WORLD_SIZE", NULL, job->ranks},
        {"GROUP_RANK", NULL, job->node_rank},
        {"GROUP_WORLD_SIZE", NULL, job->nodes},
        {"ROLE_NAME", "default", 0},
        {"ROLE_RANK", NULL, number},
        {"ROLE_WORLD_SIZE", NULL, job->world},
        {"MASTER_ADDR", job->address, 0},
        {"MASTER_PORT", NULL, job->port},
        {"TORCHELASTIC_RUN_ID", job->run_id, 0},
        {"TORCHELASTIC_RESTART_COUNT", NULL, job->attempt},
        {"TORCHELASTIC_MAX_RESTARTS", NULL, job->max_restarts},
        {"TORCHELASTIC_USE_AGENT_STORE", "True", 0},
    };
    /* These keep the user's values; the defaults are torchrun's. */
    const variable_t defaults[] = {
        {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", 0},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", NULL, 1},
        {"OMP_NUM_THREADS", NULL, tool_bind_cores(&job->binding, rank)},
    };
    char **result = g_strdupv((char **)environment);

    for (size_t i = 0; i < G_N_ELEMENTS(stale); i++)
        result = g_environ_unsetenv(result, stale[i]);
    if (*job->guard.folder) {
        char *path = tool_errors_path(job->guard.folder, rank);

        result =
            g_environ_setenv(result, "TORCHELASTIC_ERROR_FILE", path, true);
        g_free(path);
    }
    if (job->recorder.memory) {
        char *place = g_strdup_printf("%d:%d", (int)getpid(), job->recorder.fd);

        result = g_environ_setenv(result, "DSCOMM_RECORDER", place, true);
        g_free(place);
    }
    /* the last variable is only for several ranks */
    result = set_variables(result, defaults,
                           G_N_ELEMENTS(defaults) - (job->ranks == 1), false);
    return set_variables(result, variables, G_N_ELEMENTS(variables), true);
}

static void child_stdio(const tool_job_t *job, int rank, const int *fds)
{
    if (job->first_rank + rank > 0)
        dup2(job->null_fd, STDIN_FILENO);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            dup2(fds[i], i ? STDERR_FILENO : STDOUT_FILENO);
}

/* Signals by which a terminal stops all processes of a group. */
static const int stop_signals[] = {SIGTSTP, SIGTTIN, SIGTTOU};

/* Discards pending stop signals. A child of vfork() that stops would block its
 * parent, which could then not stop either, so these signals are blocked until
 * exec. The parent gets the same signal, and stops; a rank that then reads the
 * terminal gets another one. */
static void drop_stops(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction action;

    for (size_t i = 0; i < G_N_ELEMENTS(stop_signals); i++)
        if (sigaction(stop_signals[i], &ignore, &action) == 0)
            sigaction(stop_signals[i], &action, NULL);
}

/* Runs in the child, which shares this process's memory until exec: only system
 * calls are allowed. If the parent has died before prctl(), the child has
 * another parent. */
static void child_execute(const tool_job_t *job, int rank, const int *fds,
                          char *const *environment, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        return;
    if (!(job->terminal && rank == 0)) {
        setpgid(0, 0);
        /* or writing would stop it if "stty tostop" is set */
        signal(SIGTTOU, SIG_IGN);
    }
    drop_stops();
    child_stdio(job, rank, fds);
    setrlimit(RLIMIT_NOFILE, &job->files);
    tool_bind_apply(&job->binding, rank);
    sigaction(SIGPIPE, &job->pipe_action, NULL);
    sigprocmask(SIG_SETMASK, &job->mask, NULL);
    execvpe(job->argv[0], job->argv, (char **)environment);
}

/* Uses vfork, because fork's copy of the page tables takes most of the time of
 * a start. If exec fails, the child reports that by the pipe. */
static pid_t start_child(const tool_job_t *job, int rank, const int *fds,
                         char *const *environment, int report_fd)
{
    pid_t parent = getpid();
    sigset_t stops, mask;

    sigemptyset(&stops);
    for (size_t i = 0; i < G_N_ELEMENTS(stop_signals); i++)
        sigaddset(&stops, stop_signals[i]);
    pthread_sigmask(SIG_BLOCK, &stops, &mask);
    pid_t pid = vfork();
    if (pid == 0) {
        child_execute(job, rank, fds, environment, parent);
        int error = errno;
        ssize_t written = write(report_fd, &error, sizeof(error));
        _exit(written < 0 ? 126 : 127);
    }
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    errno = error;
    return pid;
}

static int await_exec(int fd)
{
    int error;
    ssize_t size;

    do
        size = read(fd, &error, sizeof(error));
    while (size < 0 && errno == EINTR);
    return size == sizeof(error) ? error : 0;
}

/* Starts rank with fds as stdout and stderr (-1: ours). Returns 0, or the errno
 * of what failed; *ret_executing = exec did. */
static int rank_start(const tool_job_t *job, int rank, const int fds[2],
                      pid_t *ret_pid, bool *ret_executing)
{
    int ends[2];
    int error = 0;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    char **environment = make_environment(job, rank, environ);
    pid_t pid = start_child(job, rank, fds, environment, ends[1]);
    if (pid < 0)
        error = errno;
    close(ends[1]);
    if (pid > 0) {
        error = await_exec(ends[0]);
        *ret_executing = error != 0;
        if (error)
            waitpid(pid, NULL, 0);
    }
    close(ends[0]);
    g_strfreev(environment);
    if (!error)
        *ret_pid = pid;
    return error;
}

static int fail_execution(const tool_job_t *job, int error)
{
    const char *program = job->argv[0];
    int missing = error == ENOENT || error == ENOTDIR;

    if (missing && strchr(program, '/') && access(program, F_OK) == 0)
        return tool_fail(TOOL_NOT_EXECUTABLE, job->command,
                         "cannot execute '%s': it is there, but its "
                         "interpreter or loader is not",
                         program);
    return tool_fail(missing ? TOOL_NOT_FOUND : TOOL_NOT_EXECUTABLE,
                     job->command, "cannot execute '%s': %s", program,
                     g_strerror(error));
}

static int fail_start(const tool_job_t *job, int rank, int error)
{
    return tool_fail(TOOL_INTERNAL, job->command,
                     "cannot start rank %d of %d: %s%s", job->first_rank + rank,
                     job->world, g_strerror(error),
                     error == EAGAIN   ? "; see 'ulimit -u'"
                     : error == EMFILE ? "; see 'ulimit -n'"
                                       : "");
}

int tool_spawn(const tool_job_t *job, tool_output_t *output, int rank,
               pid_t *ret_pid)
{
    int fds[2] = {-1, -1}, error = 0, status = TOOL_OK;
    bool executing = false;

    tool_errors_forget(job->guard.folder, rank);
    if (job->log_dir)
        status = tool_logs_open(job, rank, fds);
    if (status == TOOL_OK && output)
        error = tool_output_open(output, rank, fds);
    if (status == TOOL_OK && !error)
        error = rank_start(job, rank, fds, ret_pid, &executing);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (error)
        status = executing ? fail_execution(job, error)
                           : fail_start(job, rank, error);
    return status;
}
