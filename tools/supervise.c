/* SPDX-License-Identifier: BSD-3-Clause */
/* Running a job, see supervise.h. One loop of poll() over a signalfd and the
 * ranks' pipes. Processes that a rank started and left behind become our
 * children (we are a subreaper), so that "no child is left" means that nothing
 * is left of the job. */
#include "config.h"

#include "tools/errors.h"
#include "tools/output.h"
#include "tools/supervise.h"
#include "tools/tool.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that survives SIGKILL so long hangs in the kernel. */
#define GIVE_UP_US (10 * G_USEC_PER_SEC)

/* Of what a rank says about its failure. */
#define MESSAGE_LINES 20
#define MESSAGE_LINE_MAX 1000

/* The same wish twice: timeout(1) signals its child, and then its child's
 * group. A person who insists takes longer. */
#define REPEAT_US (G_USEC_PER_SEC / 4)

typedef enum { RUNNING, ENDING, KILLING, GIVEN_UP } stage_t;

typedef struct {
    const tool_job_t *job;
    const tool_limits_t *limits;
    tool_output_t *output; /* NULL: not tagged */
    int signal_fd;
    pid_t *pids; /* job's */
    int running; /* ranks */
    gboolean children; /* is any process left, the ranks' own included? */
    stage_t stage;
    gint64 deadline; /* of the stage; monotonic time, G_MAXINT64 = none */
    int end_signal; /* what processes are told in this stage */
    gboolean from_terminal; /* is that the terminal's signal? */
    GHashTable *told; /* pids that were */
    int status; /* to exit with */
    int signal; /* to end by */
    gint64 signal_time; /* when it came */
} supervisor_t;

static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int passed_signals[] = {SIGUSR1, SIGUSR2};

/* A signal that was ignored when we were started (nohup) stays so. */
static void add_signal(sigset_t *set, int signal)
{
    struct sigaction action;

    if (sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
        sigaddset(set, signal);
}

static void fill_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    add_signal(set, SIGTSTP);
    for (size_t i = 0; i < G_N_ELEMENTS(end_signals); i++)
        add_signal(set, end_signals[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(passed_signals); i++)
        add_signal(set, passed_signals[i]);
}

int tool_supervise_prepare(tool_job_t *job)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t set;

    fill_signals(&set);
    sigaction(SIGPIPE, &ignore, &job->pipe_action);
    sigaction(SIGCHLD, &standard, NULL);
    pthread_sigmask(SIG_BLOCK, &set, &job->mask);
    sigdelset(&job->mask, SIGCHLD);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) == 0)
        return 0;
    return tool_fail(-1, job->command, "cannot adopt the ranks' processes: %s",
                     g_strerror(errno));
}

/* A process in our own group gets the terminal's signals without us. */
static gboolean has_signal(pid_t pid, gboolean from_terminal)
{
    return from_terminal && getpgid(pid) == getpgrp();
}

static void tell(supervisor_t *s, pid_t pid)
{
    if (pid == s->job->guard.pid ||
        !g_hash_table_add(s->told, GINT_TO_POINTER(pid)))
        return;
    if (has_signal(pid, s->from_terminal))
        return;
    int group = kill(-pid, s->end_signal) == 0;
    if (!group)
        kill(pid, s->end_signal);
    if (s->end_signal != SIGKILL)
        kill(group ? -pid : pid, SIGCONT);
}

/* Every child that was not told yet. A pid here is of a child that we have not
 * reaped, so it cannot have become another process, nor another process
 * group. */
static void tell_children(supervisor_t *s)
{
    char *path = g_strdup_printf("/proc/self/task/%d/children", getpid());
    char *text = NULL;

    for (int i = 0; i < s->job->ranks; i++)
        if (s->pids[i])
            tell(s, s->pids[i]);
    if (g_file_get_contents(path, &text, NULL, NULL))
        for (char *at = text; *g_strchug(at);)
            tell(s, (pid_t)strtol(at, &at, 10));
    g_free(text);
    g_free(path);
}

static void enter(supervisor_t *s, stage_t stage, int signal, gint64 duration)
{
    s->stage = stage;
    s->deadline = g_get_monotonic_time() + duration;
    s->end_signal = signal;
    g_hash_table_remove_all(s->told);
    tell_children(s);
}

static void end_all(supervisor_t *s, int signal)
{
    enter(s, ENDING, signal, s->limits->grace_us);
}

static void kill_all(supervisor_t *s)
{
    s->from_terminal = FALSE;
    enter(s, KILLING, SIGKILL, GIVE_UP_US);
}

/* "rank 3" or "ranks 0, 2-5": those that run; g_free(). */
static char *name_running(const supervisor_t *s)
{
    GString *text = g_string_new(s->running == 1 ? "rank" : "ranks");
    const char *separator = " ";

    for (int i = 0; i < s->job->ranks; i++) {
        int first = i;
        if (!s->pids[i])
            continue;
        while (i + 1 < s->job->ranks && s->pids[i + 1])
            i++;
        g_string_append_printf(text, "%s%d", separator, first);
        if (i > first)
            g_string_append_printf(text, "-%d", i);
        separator = ", ";
    }
    return g_string_free(text, FALSE);
}

/* A sentence to stderr; where that is tagged output's too, as a line of it. */
static void say(const supervisor_t *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *line = tool_sentence(s->job->command, format, args);
    va_end(args);
    if (s->output)
        tool_output_say(s->output, line);
    else
        fputs(line, stderr);
    g_free(line);
}

/* What rank said about its failure, to stderr. */
static void report_message(const supervisor_t *s, int rank)
{
    char *message = tool_errors_read(s->job->guard.folder, rank);
    char **lines = g_strsplit(message ? message : "", "\n", MESSAGE_LINES + 1);

    for (int i = 0; lines[i]; i++) {
        char *line = g_strndup(g_strchomp(lines[i]), MESSAGE_LINE_MAX);
        if (i == MESSAGE_LINES)
            say(s, "rank %d: ...", rank);
        else if (*line)
            say(s, "rank %d: %s", rank, line);
        g_free(line);
    }
    g_strfreev(lines);
    g_free(message);
}

/* How a rank failed, to stderr. Returns the exit status that says so. */
static int report(const supervisor_t *s, int rank, pid_t pid, int wait_status)
{
    int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    char *others = s->running > 0 ? name_running(s) : NULL;
    char *how;

    if (signal)
        how = g_strdup_printf("was killed by signal %d (%s%s)", signal,
                              g_strsignal(signal),
                              WCOREDUMP(wait_status) ? ", core dumped" : "");
    else
        how =
            g_strdup_printf("exited with status %d", WEXITSTATUS(wait_status));
    say(s, "rank %d (pid %d) %s%s%s", rank, (int)pid, how,
        others ? "; ending " : "", others ? others : "");
    g_free(how);
    g_free(others);
    return signal ? 128 + signal : WEXITSTATUS(wait_status);
}

static void rank_ended(supervisor_t *s, int rank, int wait_status)
{
    pid_t pid = s->pids[rank];

    s->pids[rank] = 0;
    s->running--;
    if (s->stage != RUNNING || wait_status == 0)
        return;
    if (WIFEXITED(wait_status) && s->limits->ranks_explain) {
        s->status = WEXITSTATUS(wait_status);
    } else {
        s->status = report(s, rank, pid, wait_status);
        report_message(s, rank);
        /* of nobody who takes what it writes, which is ours to tell */
        if (s->output && tool_output_failed(s->output))
            s->status = TOOL_INTERNAL;
    }
    end_all(s, SIGTERM);
}

/* It would hang, and its peers with it; it is not ours to wake it up. */
static void rank_stopped(const supervisor_t *s, int rank, int signal)
{
    if (rank > 0 && (signal == SIGTTIN || signal == SIGTTOU))
        say(s,
            "rank %d (pid %d) is stopped, since only rank 0 may use the "
            "terminal",
            rank, (int)s->pids[rank]);
}

/* Reaps which (-1 = any child) if it has ended; FALSE if none has. */
static gboolean reap_one(supervisor_t *s, pid_t which)
{
    int wait_status;
    pid_t pid = waitpid(which, &wait_status, WNOHANG | WUNTRACED);

    if (pid < 0 && which == -1)
        s->children = FALSE;
    if (pid <= 0)
        return FALSE;
    if (!WIFSTOPPED(wait_status))
        g_hash_table_remove(s->told, GINT_TO_POINTER(pid));
    for (int i = 0; i < s->job->ranks; i++) {
        if (s->pids[i] != pid)
            continue;
        if (WIFSTOPPED(wait_status))
            rank_stopped(s, i, WSTOPSIG(wait_status));
        else
            rank_ended(s, i, wait_status);
    }
    return TRUE;
}

/* SIGCHLD tells of the child that ended first: of several, that is the one to
 * blame. */
static void reap(supervisor_t *s, pid_t first)
{
    reap_one(s, first);
    while (reap_one(s, -1))
        continue;
    if (!s->children)
        return;
    if (s->stage != RUNNING)
        tell_children(s);
    else if (s->running == 0)
        end_all(s, SIGTERM);
}

static void pass_signal(supervisor_t *s, gboolean from_terminal, int signal)
{
    for (int i = 0; i < s->job->ranks; i++)
        if (s->pids[i] && !has_signal(s->pids[i], from_terminal) &&
            kill(-s->pids[i], signal) < 0)
            kill(s->pids[i], signal);
}

static void suspend(supervisor_t *s, const struct signalfd_siginfo *info)
{
    pass_signal(s, info->ssi_code == SI_KERNEL, SIGTSTP);
    raise(SIGSTOP);
    pass_signal(s, FALSE, SIGCONT);
}

static void end_by_signal(supervisor_t *s, const struct signalfd_siginfo *info)
{
    gint64 now = g_get_monotonic_time();

    if (s->signal && now - s->signal_time < REPEAT_US)
        return;
    if (!s->children) {
        s->stage = GIVEN_UP;
    } else if (s->signal) {
        kill_all(s);
    } else {
        s->from_terminal = info->ssi_code == SI_KERNEL;
        end_all(s, (int)info->ssi_signo);
    }
    s->signal = (int)info->ssi_signo;
    s->signal_time = now;
}

static gboolean is_in(int signal, const int *signals, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (signals[i] == signal)
            return TRUE;
    return FALSE;
}

static void handle_signals(supervisor_t *s)
{
    struct signalfd_siginfo info;

    while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        int signal = (int)info.ssi_signo;
        if (signal == SIGCHLD)
            reap(s, (pid_t)info.ssi_pid);
        else if (signal == SIGTSTP)
            suspend(s, &info);
        else if (is_in(signal, end_signals, G_N_ELEMENTS(end_signals)))
            end_by_signal(s, &info);
        else
            pass_signal(s, info.ssi_code == SI_KERNEL, signal);
    }
}

static void handle_deadline(supervisor_t *s)
{
    char *who = name_running(s);

    if (s->stage == RUNNING) {
        say(s, "%s still ran after %g s; ending %s", who,
            (double)s->limits->timeout_us / G_USEC_PER_SEC,
            s->running == 1 ? "it" : "them");
        s->status = TOOL_TIMED_OUT;
        end_all(s, SIGTERM);
    } else if (s->stage == ENDING) {
        if (s->running > 0)
            say(s, "%s did not end within %g s; killing %s", who,
                (double)s->limits->grace_us / G_USEC_PER_SEC,
                s->running == 1 ? "it" : "them");
        kill_all(s);
    } else {
        tool_fail(0, s->job->command,
                  "some processes do not end even by SIGKILL; "
                  "leaving them behind");
        s->stage = GIVEN_UP;
    }
    g_free(who);
}

/* Milliseconds to the deadline, rounded up, for poll(). */
static int wait_time(const supervisor_t *s)
{
    gint64 left = s->deadline - g_get_monotonic_time();

    if (s->deadline == G_MAXINT64 || !s->children)
        return -1;
    return left <= 0 ? 0 : (int)MIN(left / 1000 + 1, G_MAXINT);
}

static void wait_once(supervisor_t *s, GArray *fds)
{
    struct pollfd signals = {s->signal_fd, POLLIN, 0};

    g_array_set_size(fds, 0);
    g_array_append_val(fds, signals);
    if (s->output)
        tool_output_prepare(s->output, fds);
    if (poll((struct pollfd *)(void *)fds->data, fds->len, wait_time(s)) < 0)
        return;
    if (s->output)
        tool_output_dispatch(s->output, fds);
    if (g_array_index(fds, struct pollfd, 0).revents)
        handle_signals(s);
    if (s->children && g_get_monotonic_time() >= s->deadline)
        handle_deadline(s);
}

static gboolean is_done(const supervisor_t *s)
{
    if (s->stage == GIVEN_UP)
        return TRUE;
    return !s->children && (!s->output || tool_output_idle(s->output));
}

static void supervise(supervisor_t *s)
{
    GArray *fds = g_array_new(FALSE, FALSE, sizeof(struct pollfd));

    while (!is_done(s)) {
        wait_once(s, fds);
        if (!s->children && s->output && s->stage != GIVEN_UP)
            tool_output_end(s->output);
    }
    g_array_free(fds, TRUE);
}

static int fail_start(const supervisor_t *s, int rank, int error,
                      gboolean executing)
{
    if (executing) {
        const char *program = s->job->argv[0];
        int missing = error == ENOENT || error == ENOTDIR;
        if (missing && strchr(program, '/') && access(program, F_OK) == 0)
            return tool_fail(TOOL_NOT_EXECUTABLE, s->job->command,
                             "cannot execute '%s': it is there, but its "
                             "interpreter or loader is not",
                             program);
        return tool_fail(missing ? TOOL_NOT_FOUND : TOOL_NOT_EXECUTABLE,
                         s->job->command, "cannot execute '%s': %s", program,
                         g_strerror(error));
    }
    return tool_fail(TOOL_INTERNAL, s->job->command,
                     "cannot start rank %d of %d: %s%s", rank, s->job->ranks,
                     g_strerror(error),
                     error == EAGAIN   ? "; see 'ulimit -u'"
                     : error == EMFILE ? "; see 'ulimit -n'"
                                       : "");
}

static gboolean start_one(supervisor_t *s, int rank)
{
    int fds[2];
    gboolean executing = FALSE;
    int error = s->output ? tool_output_open(s->output, rank, fds) : 0;

    if (!error) {
        error = tool_spawn(s->job, rank, s->output ? fds : NULL, &s->pids[rank],
                           &executing);
        if (s->output) {
            close(fds[0]);
            close(fds[1]);
        }
    }
    if (error) {
        s->status = fail_start(s, rank, error, executing);
        return FALSE;
    }
    s->running++;
    s->children = TRUE;
    return TRUE;
}

static void start_all(supervisor_t *s)
{
    int rank = 0;

    while (rank < s->job->ranks && start_one(s, rank))
        rank++;
    if (rank < s->job->ranks && s->children)
        end_all(s, SIGTERM);
}

/* As if the signal had never been caught, so that a shell sees it. No core of
 * ours. */
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

int tool_supervise(const tool_job_t *job, const tool_limits_t *limits)
{
    supervisor_t s = {.job = job, .limits = limits, .deadline = G_MAXINT64};
    sigset_t set;

    s.pids = job->guard.groups;
    fill_signals(&set);
    s.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s.signal_fd < 0)
        return tool_fail(TOOL_INTERNAL, job->command,
                         "cannot receive signals: %s", g_strerror(errno));
    s.told = g_hash_table_new(NULL, NULL);
    if (limits->tag_output)
        s.output = tool_output_new(job->ranks);
    if (limits->timeout_us > 0)
        s.deadline = g_get_monotonic_time() + limits->timeout_us;
    start_all(&s);
    supervise(&s);
    if (s.output && tool_output_failed(s.output) && s.status == TOOL_OK)
        s.status = TOOL_INTERNAL;
    tool_output_free(s.output);
    g_hash_table_destroy(s.told);
    close(s.signal_fd);
    if (s.signal) {
        tool_guard_end(&job->guard);
        die_by(s.signal);
    }
    return s.status;
}
