/* SPDX-License-Identifier: BSD-3-Clause */
/* Running a job, see job.h. One loop of poll() over a signalfd and the
 * ranks' pipes. Processes that a rank started and left behind become our
 * children (we are a subreaper), so that "no child is left" means that nothing
 * is left of the job. */
#include "config.h"

#include "tools/common/errors.h"
#include "tools/common/tool.h"
#include "tools/run/job.h"
#include "tools/run/ranks.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* If a process survives SIGKILL for so long, it hangs in the kernel. */
#define GIVE_UP_US (10 * G_USEC_PER_SEC)

/* A signal that is repeated within this time counts once: timeout(1) signals
 * its child and then its child's group. A user takes longer to repeat it. */
#define REPEAT_US (G_USEC_PER_SEC / 4)

/* Limits of a rank's message about its failure. */
#define MESSAGE_LINES 20
#define MESSAGE_LINE_MAX 1000

typedef enum { RUNNING, ENDING, KILLING, GIVEN_UP } stage_t;

typedef struct {
    tool_job_t *job;
    const tool_limits_t *limits;
    tool_nodes_t *nodes; /* NULL: this machine alone */
    tool_output_t *output; /* NULL: not tagged */
    pid_t *pids; /* job's */
    int running; /* ranks */
    bool children; /* some process of the job is left */
    stage_t stage;
    gint64 job_deadline; /* monotonic time; G_MAXINT64 = none */
    gint64 deadline; /* of the stage */
    gint64 stopped_deadline; /* of stopped ranks; 0: others are left */
    gint64 ended; /* time from which only output was left; 0: not yet */
    int end_signal; /* the signal that is sent to processes in this stage */
    bool from_terminal; /* that signal came from the terminal */
    GHashTable *signalled; /* pids that were */
    int status; /* to exit with */
    int signal; /* to end by */
    gint64 signal_time; /* when it came */
    /* the ranks start again when all processes have ended */
    bool restarting;
    /* all ranks of this attempt on this node have succeeded; with --survive:
     * all have ended */
    bool succeeded;
    /* with --survive: a rank has ended with status 0; exit status of the first
     * one that failed */
    bool survived;
    int failed;
    bool over; /* on all nodes; of an elastic job, this attempt */
    bool again; /* another attempt follows, with other nodes */
    uint32_t dumps; /* of the flight recorders, before this attempt */
} supervisor_t;

/* The signals that this program handles. */
static void reap(supervisor_t *s, const struct signalfd_siginfo *info);
static void suspend(supervisor_t *s, const struct signalfd_siginfo *info);
static void end_by_signal(supervisor_t *s, const struct signalfd_siginfo *info);
static void pass_on(supervisor_t *s, const struct signalfd_siginfo *info);

static const struct {
    int number;
    void (*handle)(supervisor_t *s, const struct signalfd_siginfo *info);
} handlers[] = {
    {SIGCHLD, reap},          {SIGTSTP, suspend},      {SIGINT, end_by_signal},
    {SIGTERM, end_by_signal}, {SIGHUP, end_by_signal}, {SIGQUIT, end_by_signal},
    {SIGUSR1, pass_on},       {SIGUSR2, pass_on},
};

/* Messages */

/* Prints a sentence to stderr; if tagged output goes there, as a line of it. */
static G_GNUC_PRINTF(2, 3) void print_line(const supervisor_t *s,
                                           const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *line = tool_sentence(s->job->command, format, args);
    va_end(args);
    if (s->output)
        tool_output_write_line(s->output, line);
    else
        fputs(line, stderr);
    g_free(line);
}

/* Returns "; ending ranks 0, 2", and whether they start again; g_free(). */
static char *name_consequence(const supervisor_t *s, bool again)
{
    GString *text = g_string_new(NULL);
    char *others = tool_ranks_running(s->job);

    if (s->running > 0)
        g_string_append_printf(text, "; ending %s", others);
    if (again)
        g_string_append_printf(text, "; starting all again (restart %d of %d)",
                               s->job->attempt + 1, s->job->max_restarts);
    g_free(others);
    return g_string_free(text, false);
}

/* Prints rank's message about its failure to stderr. */
static void quote_rank(const supervisor_t *s, int rank)
{
    const int number = s->job->first_rank + rank;
    char *message = tool_errors_read(s->job->guard.folder, rank);
    char **lines = g_strsplit(message ? message : "", "\n", MESSAGE_LINES + 1);

    for (int i = 0; lines[i]; i++) {
        char *line = g_strndup(g_strchomp(lines[i]), MESSAGE_LINE_MAX);
        if (i == MESSAGE_LINES)
            print_line(s, "rank %d: ...", number);
        else if (*line)
            print_line(s, "rank %d: %s", number, line);
        g_free(line);
    }
    g_strfreev(lines);
    g_free(message);
}

/* Ending */

/* Adds signal to the set, unless it was ignored when this program was started
 * (nohup). */
static void fill_signals(sigset_t *set)
{
    struct sigaction action;

    sigemptyset(set);
    for (size_t i = 0; i < G_N_ELEMENTS(handlers); i++)
        if (sigaction(handlers[i].number, NULL, &action) == 0 &&
            action.sa_handler != SIG_IGN)
            sigaddset(set, handlers[i].number);
}

int tool_supervise_prepare(tool_job_t *job)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t set;

    sigaction(SIGPIPE, &ignore, &job->pipe_action);
    sigaction(SIGCHLD, &standard, NULL);
    fill_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, &job->mask);
    sigdelset(&job->mask, SIGCHLD);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return tool_fail(-1, job->command,
                         "cannot adopt the ranks' processes: %s",
                         g_strerror(errno));
    job->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (job->signal_fd >= 0)
        return 0;
    return tool_fail(-1, job->command, "cannot receive signals: %s",
                     g_strerror(errno));
}

/* Returns whether the process has already received a signal of the terminal,
 * because it is in this process group. */
static bool has_signal(pid_t pid, bool from_terminal)
{
    return from_terminal && getpgid(pid) == getpgrp();
}

static void signal_child(supervisor_t *s, pid_t pid)
{
    if (pid == s->job->guard.pid ||
        !g_hash_table_add(s->signalled, GINT_TO_POINTER(pid)))
        return;
    if (has_signal(pid, s->from_terminal))
        return;
    int group = kill(-pid, s->end_signal) == 0;
    if (!group)
        kill(pid, s->end_signal);
    if (s->end_signal != SIGKILL)
        kill(group ? -pid : pid, SIGCONT);
}

/* Signals every child that was not signalled yet. These children are not reaped
 * yet, so their pids cannot belong to other processes or process groups. */
static void signal_children(supervisor_t *s)
{
    char *path = g_strdup_printf("/proc/self/task/%d/children", getpid());
    char *text = NULL;

    for (int i = 0; i < s->job->ranks; i++)
        if (s->pids[i])
            signal_child(s, s->pids[i]);
    if (g_file_get_contents(path, &text, NULL, NULL))
        for (char *at = text; *g_strchug(at);)
            signal_child(s, (pid_t)strtol(at, &at, 10));
    g_free(text);
    g_free(path);
}

static void enter(supervisor_t *s, stage_t stage, int signal, gint64 duration)
{
    s->stage = stage;
    s->deadline = g_get_monotonic_time() + duration;
    s->end_signal = signal;
    g_hash_table_remove_all(s->signalled);
    signal_children(s);
}

static void end_all(supervisor_t *s, int signal)
{
    s->stopped_deadline = 0;
    enter(s, ENDING, signal, s->limits->grace_us);
}

static void kill_all(supervisor_t *s)
{
    s->from_terminal = false;
    enter(s, KILLING, SIGKILL, GIVE_UP_US);
}

/* true if the ranks start again because one of them failed. */
static bool fail_attempt(supervisor_t *s, const char *text)
{
    const bool again = s->job->attempt < s->job->max_restarts;

    if (!s->nodes)
        s->restarting = again;
    else if (again)
        tool_nodes_restart(s->nodes, text);
    else
        tool_nodes_end(s->nodes, s->status, text);
    return again;
}

/* Ends the job on the other nodes, with this node's text. */
static void end_job(const supervisor_t *s, const char *text)
{
    if (s->nodes && !s->over)
        tool_nodes_end(s->nodes, s->status, text);
}

/* Reports how a rank failed, to stderr and to the other nodes. */
static void report(supervisor_t *s, int rank, pid_t pid, int wait_status)
{
    char *text = tool_ranks_failure(s->job, rank, pid, wait_status);
    tool_records_end(s->job, rank, pid, text);
    bool again = fail_attempt(s, text);
    char *then = name_consequence(s, again);

    print_line(s, "%s%s", text, then);
    quote_rank(s, rank);
    /* its failure may be the lack of a reader, for which this program is
     * responsible */
    if (s->output && tool_output_failed(s->output))
        s->status = TOOL_INTERNAL;
    g_free(then);
    g_free(text);
}

static int to_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status)
                                    : WEXITSTATUS(wait_status);
}

/* A rank fails, and the others go on. */
static void outlive(supervisor_t *s, int rank, pid_t pid, int wait_status)
{
    char *text = tool_ranks_failure(s->job, rank, pid, wait_status);
    char *others = tool_ranks_running(s->job);

    if (!s->failed)
        s->failed = to_status(wait_status);
    tool_records_end(s->job, rank, pid, text);
    if (s->running > 0)
        print_line(s, "%s; going on with %s", text, others);
    else
        print_line(s, "%s", text);
    quote_rank(s, rank);
    g_free(others);
    g_free(text);
}

static void rank_ended(supervisor_t *s, int rank, int wait_status)
{
    pid_t pid = s->pids[rank];

    s->pids[rank] = 0;
    s->running--;
    s->survived |= wait_status == 0;
    if (s->stage != RUNNING || wait_status == 0)
        return;
    if (s->limits->survive) {
        outlive(s, rank, pid, wait_status);
        return;
    }
    s->status = to_status(wait_status);
    if (WIFSIGNALED(wait_status) || !s->limits->ranks_explain)
        report(s, rank, pid, wait_status);
    end_all(s, SIGTERM);
}

/* Warns about a stopped rank: its peers will wait for it. This program must not
 * continue it. */
static void rank_stopped(const supervisor_t *s, int rank, int signal)
{
    if (rank > 0 && (signal == SIGTTIN || signal == SIGTTOU))
        print_line(s,
                   "rank %d (pid %d) is stopped, since only rank 0 may use the "
                   "terminal",
                   s->job->first_rank + rank, (int)s->pids[rank]);
}

/* Reaps `which` (-1 = any child) if it has ended; false if none has. */
static bool reap_one(supervisor_t *s, pid_t which)
{
    int wait_status;
    pid_t pid = waitpid(which, &wait_status, WNOHANG | WUNTRACED);

    if (pid < 0 && which == -1)
        s->children = false;
    if (pid <= 0)
        return false;
    if (!WIFSTOPPED(wait_status))
        g_hash_table_remove(s->signalled, GINT_TO_POINTER(pid));
    for (int i = 0; i < s->job->ranks; i++) {
        if (s->pids[i] != pid)
            continue;
        if (WIFSTOPPED(wait_status))
            rank_stopped(s, i, WSTOPSIG(wait_status));
        else
            rank_ended(s, i, wait_status);
    }
    return true;
}

/* Finds whether only stopped ranks are left, which are ended after the grace
 * period. If no rank has failed, a user may have stopped them on purpose. */
static void watch_stopped(supervisor_t *s)
{
    const gint64 before = s->stopped_deadline;
    const gint64 grace_end = g_get_monotonic_time() + s->limits->grace_us;

    s->stopped_deadline = 0;
    if (s->stage != RUNNING || !tool_ranks_only_stopped(s->job))
        return;
    s->stopped_deadline = before ? before : s->failed ? grace_end : G_MAXINT64;
    if (!before && !s->failed) {
        char *who = tool_ranks_stopped(s->job);
        print_line(s, "%s; waiting for %s", who,
                   s->running == 1 ? "it" : "them");
        g_free(who);
    }
}

/* SIGCHLD names the child that ended first; of several, that one is the
 * cause. */
static void reap(supervisor_t *s, const struct signalfd_siginfo *info)
{
    reap_one(s, (pid_t)info->ssi_pid);
    while (reap_one(s, -1))
        continue;
    if (s->stage == RUNNING && s->running == 0) {
        s->succeeded = true;
        s->status = s->survived ? TOOL_OK : s->failed;
        if (s->children)
            end_all(s, SIGTERM);
    } else if (s->children && s->stage != RUNNING) {
        signal_children(s);
    }
    watch_stopped(s);
}

static void pass_signal(supervisor_t *s, bool from_terminal, int signal)
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
    pass_signal(s, false, SIGCONT);
}

/* Whether the other nodes go on without this one: an elastic job outlives all
 * nodes but node 0. */
static bool is_dispensable(const supervisor_t *s)
{
    return s->nodes && s->limits->place->least && s->job->node_rank > 0 &&
           s->job->attempt < s->job->max_restarts;
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
    s->status = 128 + s->signal;
    s->restarting = false;
    char *text = g_strdup_printf("dscomm run was told to end by signal %d (%s)",
                                 s->signal, g_strsignal(s->signal));
    if (is_dispensable(s)) {
        tool_nodes_restart(s->nodes, text);
        s->over = true;
    } else {
        end_job(s, text);
    }
    g_free(text);
}

static void pass_on(supervisor_t *s, const struct signalfd_siginfo *info)
{
    pass_signal(s, info->ssi_code == SI_KERNEL, (int)info->ssi_signo);
}

static void handle_signals(supervisor_t *s)
{
    struct signalfd_siginfo info;

    while (read(s->job->signal_fd, &info, sizeof(info)) == sizeof(info))
        for (size_t i = 0; i < G_N_ELEMENTS(handlers); i++)
            if (handlers[i].number == (int)info.ssi_signo)
                handlers[i].handle(s, &info);
}

static void time_out(supervisor_t *s, const char *who)
{
    char *text =
        g_strdup_printf("%s still ran after %g s", who,
                        (double)s->limits->timeout_us / G_USEC_PER_SEC);

    print_line(s, "%s; ending %s", text, s->running == 1 ? "it" : "them");
    s->status = TOOL_TIMED_OUT;
    end_job(s, text);
    end_all(s, SIGTERM);
    g_free(text);
}

static void end_stopped(supervisor_t *s)
{
    char *who = tool_ranks_stopped(s->job);

    print_line(s, "%s; ending %s", who, s->running == 1 ? "it" : "them");
    s->succeeded = true;
    s->status = s->survived ? TOOL_OK : s->failed;
    end_all(s, SIGTERM);
    g_free(who);
}

/* Returns whether other nodes still have processes although this one has none;
 * the time-out of the job applies to them as well. */
static bool awaits_nodes(const supervisor_t *s)
{
    return s->nodes && !s->over && s->stage == RUNNING && !s->children;
}

static void handle_deadline(supervisor_t *s)
{
    char *who =
        awaits_nodes(s) ? g_strdup("other nodes") : tool_ranks_running(s->job);

    if (s->stopped_deadline && s->stopped_deadline <= s->deadline) {
        end_stopped(s);
    } else if (s->stage == RUNNING) {
        time_out(s, who);
    } else if (s->stage == ENDING) {
        if (s->running > 0)
            print_line(s, "%s did not end within %g s; killing %s", who,
                       (double)s->limits->grace_us / G_USEC_PER_SEC,
                       s->running == 1 ? "it" : "them");
        kill_all(s);
    } else {
        print_line(s, "some processes do not end even by SIGKILL; leaving them "
                      "behind");
        s->stage = GIVEN_UP;
        end_job(s, "some processes do not end even by SIGKILL");
    }
    g_free(who);
}

/* Other nodes */

static void start_all(supervisor_t *s)
{
    if (s->job->recorder.memory)
        s->dumps = atomic_load(&s->job->recorder.memory->dumps);
    for (int i = 0; i < s->job->ranks; i++) {
        s->status = tool_spawn(s->job, s->output, i, &s->pids[i]);
        if (s->status != TOOL_OK) {
            end_job(s, "not all of its ranks could be started");
            end_all(s, SIGTERM);
            return;
        }
        s->running++;
        s->children = true;
    }
}

static void start_again(supervisor_t *s)
{
    s->job->attempt++;
    s->restarting = s->succeeded = false;
    s->status = TOOL_OK;
    s->stage = RUNNING;
    s->deadline = s->job_deadline;
    start_all(s);
}

/* Prints the event of another node, unless this job was signalled to end. */
static void quote_node(const supervisor_t *s, const tool_nodes_event_t *event,
                       bool again)
{
    char *then;

    if (!*event->text || event->node == s->job->node_rank || s->signal)
        return;
    then = s->stage == RUNNING ? name_consequence(s, again) : g_strdup("");
    if (event->node < 0)
        print_line(s, "%s%s", event->text, then);
    else
        print_line(s, "node %d (%s): %s%s", event->node,
                   tool_nodes_host(s->nodes, event->node), event->text, then);
    g_free(then);
}

static void end_by_node(supervisor_t *s, const tool_nodes_event_t *event)
{
    quote_node(s, event, false);
    s->over = true;
    s->restarting = false;
    /* With --survive, the ranks of this node decide unless a node is lost. */
    if (!s->signal && s->status != TOOL_INTERNAL &&
        !(s->limits->survive && event->status == TOOL_OK))
        s->status = event->status;
    if (s->stage == RUNNING && s->children)
        end_all(s, SIGTERM);
}

static void restart_by_node(supervisor_t *s, const tool_nodes_event_t *event)
{
    quote_node(s, event, true);
    s->restarting = !s->signal;
    if (s->stage == RUNNING && s->children)
        end_all(s, SIGTERM);
}

static void handle_nodes(supervisor_t *s)
{
    tool_nodes_event_t *event;

    while ((event = tool_nodes_next(s->nodes))) {
        if (event->kind == TOOL_NODES_END)
            end_by_node(s, event);
        else if (event->kind == TOOL_NODES_RESTART)
            restart_by_node(s, event);
        else if (!s->signal && !s->over)
            start_again(s);
        tool_nodes_event_free(event);
    }
}

/* No process of this attempt is left here. */
static void attempt_ended(supervisor_t *s)
{
    const char *problem = NULL;

    if (s->status != TOOL_OK || s->restarting)
        problem = tool_records_dump(s->job, s->dumps);
    if (problem)
        print_line(s, "no dump was written: %s", problem);
    if (s->output)
        tool_output_end(s->output);
    if (s->restarting && s->nodes && s->limits->place->least)
        s->again = s->over = true;
    else if (s->restarting && s->nodes)
        tool_nodes_ready(s->nodes);
    else if (s->restarting)
        start_again(s);
    else if (s->succeeded && s->nodes)
        tool_nodes_done(s->nodes);
    s->restarting = s->succeeded = false;
}

/* Returns whether only output is left that a reader has not taken. */
static bool awaits_reader(const supervisor_t *s)
{
    return s->output && !s->children && !(s->nodes && !s->over);
}

/* A reader that pauses for less than this still reads. */
#define READER_US G_USEC_PER_SEC

/* The deadline of the present stage. A reader may take as long as the job may;
 * after that it may go on as long as it pauses for less than the ranks' grace
 * period. */
static gint64 current_deadline(const supervisor_t *s)
{
    if (s->stopped_deadline)
        return MIN(s->deadline, s->stopped_deadline);
    if (s->children || awaits_nodes(s))
        return s->deadline;
    if (!s->ended || s->job_deadline == G_MAXINT64)
        return G_MAXINT64;
    return MAX(MAX(s->job_deadline, s->ended), tool_output_taken(s->output)) +
           MAX(s->limits->grace_us, READER_US);
}

static void give_up_output(supervisor_t *s)
{
    s->stage = GIVEN_UP;
    if (s->status == TOOL_OK)
        s->status = TOOL_TIMED_OUT;
    tool_output_give_up(s->output);
}

/* Milliseconds to the deadline, rounded up, for poll(). */
static int wait_time(const supervisor_t *s)
{
    gint64 deadline = current_deadline(s);
    gint64 left = deadline - g_get_monotonic_time();

    if (deadline == G_MAXINT64)
        return -1;
    return left <= 0 ? 0 : (int)MIN(left / 1000 + 1, G_MAXINT);
}

static void wait_once(supervisor_t *s, GArray *fds)
{
    struct pollfd own[] = {{s->job->signal_fd, POLLIN, 0}, {-1, POLLIN, 0}};

    if (s->nodes)
        own[1].fd = tool_nodes_fd(s->nodes);
    g_array_set_size(fds, 0);
    g_array_append_vals(fds, own, G_N_ELEMENTS(own));
    if (s->output)
        tool_output_prepare(s->output, fds);
    if (poll((struct pollfd *)(void *)fds->data, fds->len, wait_time(s)) < 0)
        return;
    if (s->output)
        tool_output_dispatch(s->output, fds);
    if (g_array_index(fds, struct pollfd, 0).revents)
        handle_signals(s);
    if (g_array_index(fds, struct pollfd, 1).revents)
        handle_nodes(s);
    if (g_get_monotonic_time() < current_deadline(s))
        return;
    if (s->children || awaits_nodes(s))
        handle_deadline(s);
    else if (!tool_output_idle(s->output))
        give_up_output(s);
}

static bool is_done(const supervisor_t *s)
{
    if (s->stage == GIVEN_UP)
        return true;
    if (s->children || (s->nodes && !s->over))
        return false;
    return !s->output || tool_output_idle(s->output);
}

static void supervise(supervisor_t *s)
{
    GArray *fds = g_array_new(false, false, sizeof(struct pollfd));

    while (!is_done(s)) {
        wait_once(s, fds);
        if (!s->children && s->stage != GIVEN_UP)
            attempt_ended(s);
        if (!s->ended && awaits_reader(s))
            s->ended = g_get_monotonic_time();
    }
    g_array_free(fds, true);
}

int tool_supervise(tool_job_t *job, const tool_limits_t *limits,
                   tool_nodes_t *nodes)
{
    supervisor_t s = {.job = job, .limits = limits, .nodes = nodes};

    s.pids = job->guard.groups;
    s.signalled = g_hash_table_new(NULL, NULL);
    if (limits->tag_output)
        s.output = tool_output_new(job->command, &limits->tags, job->first_rank,
                                   job->ranks);
    if (!job->deadline)
        job->deadline = limits->timeout_us > 0
                            ? g_get_monotonic_time() + limits->timeout_us
                            : G_MAXINT64;
    s.job_deadline = job->deadline;
    s.deadline = s.job_deadline;
    start_all(&s);
    supervise(&s);
    if (s.output && tool_output_failed(s.output) && s.status == TOOL_OK)
        s.status = TOOL_INTERNAL;
    tool_output_free(s.output);
    g_hash_table_destroy(s.signalled);
    tool_nodes_leave(nodes);
    job->end_signal = s.signal;
    return s.again && !s.signal ? TOOL_AGAIN : s.status;
}
