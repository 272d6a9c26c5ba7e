/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting dscomm run on hosts, see hosts.h. The job's secret goes to the hosts
 * by the standard input of --rsh's processes, which shows nobody else what it
 * is. That input stays open: if it ends, because this process ends the job or
 * is gone, the host's dscomm run is ended by SIGTERM. */
#include "config.h"

#include "lib/base/random.h"
#include "tools/common/tool.h"
#include "tools/run/hosts.h"
#include "tools/run/output.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Time for the hosts to end after their ranks' grace period, before --rsh's
 * processes are ended. */
#define END_US (10 * G_USEC_PER_SEC)
/* Bytes drawn for a secret. */
#define SECRET_SIZE 32

/* Settings that a host's dscomm run must not get: those of one process, and the
 * secret. */
static const char *const own[] = {"DSCOMM_RANK",
                                  "DSCOMM_WORLD_SIZE",
                                  "DSCOMM_LOCAL_RANK",
                                  "DSCOMM_LOCAL_SIZE",
                                  "DSCOMM_NODE_RANK",
                                  "DSCOMM_MASTER_ADDR",
                                  "DSCOMM_MASTER_PORT",
                                  "DSCOMM_LAUNCHER",
                                  "DSCOMM_RECORDER",
                                  "DSCOMM_JOB_SECRET",
                                  NULL};

typedef struct {
    const char *name;
    pid_t pid; /* of --rsh's process; 0: it has ended */
    int fd; /* its standard input; -1: closed */
} remote_t;

typedef struct {
    const tool_hosts_job_t *job;
    const char *rsh; /* its first word */
    remote_t *remotes;
    tool_output_t *output; /* of all hosts; NULL: they write it themselves */
    int count, running;
    int status; /* to exit with */
    bool ending;
    int signal; /* to end by */
    gint64 deadline; /* of the present step of ending */
    gint64 job_deadline; /* 0: none */
    int end_signal; /* the next one for --rsh's processes */
} launch_t;

/* Commands */

static void append_word(GString *text, const char *word)
{
    const char *c = word;
    char *quoted;

    while (*c && (g_ascii_isalnum(*c) || strchr("_-./:=,@%+", *c)))
        c++;
    quoted = *word && !*c ? g_strdup(word) : g_shell_quote(word);
    g_string_append_printf(text, "%s%s", text->len ? " " : "", quoted);
    g_free(quoted);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends "env" and the settings of dscomm, if there are any. */
static void append_settings(GString *text)
{
    char **names = g_listenv();
    bool some = false;

    qsort(names, g_strv_length(names), sizeof(*names), compare_names);
    for (char **name = names; *name; name++) {
        char *word;

        if (!g_str_has_prefix(*name, "DSCOMM_") || g_strv_contains(own, *name))
            continue;
        if (!some)
            append_word(text, "env");
        some = true;
        word = g_strdup_printf("%s=%s", *name, g_getenv(*name));
        append_word(text, word);
        g_free(word);
    }
    g_strfreev(names);
}

/* The path of this program. The PATH of a remote shell may lack its folder. */
static char *name_program(void)
{
    char *path = g_find_program_in_path(program_invocation_name), *full;

    full = g_canonicalize_filename(path ? path : program_invocation_name, NULL);
    g_free(path);
    return full;
}

static void append_number(GString *text, const char *option, int number)
{
    append_word(text, option);
    g_string_append_printf(text, " %d", number);
}

/* The command of host r, for a shell; g_free(). */
static char *write_command(const tool_hosts_t *hosts,
                           const tool_hosts_job_t *job, int r)
{
    const tool_host_t *host = &g_array_index(hosts->list, tool_host_t, r);
    GString *text = g_string_new(NULL);
    char *program = name_program();

    append_settings(text);
    append_word(text, program);
    append_word(text, "run");
    append_word(text, "--nnodes");
    append_word(text, job->nodes);
    if (!job->least || r == 0)
        append_number(text, "--node-rank", r);
    append_word(text, "--master");
    append_word(text, job->master);
    append_number(text, "-n", host->ranks);
    for (guint i = 0; i < job->options->len; i++)
        append_word(text, g_ptr_array_index(job->options, i));
    append_word(text, "--");
    for (char *const *word = job->argv; *word; word++)
        append_word(text, *word);
    g_free(program);
    return g_string_free(text, false);
}

static int print_commands(const tool_hosts_t *hosts,
                          const tool_hosts_job_t *job)
{
    puts("# On each host, with the same DSCOMM_JOB_SECRET in the environment, "
         "or none:");
    for (guint r = 0; r < hosts->list->len; r++) {
        char *command = write_command(hosts, job, (int)r);

        printf("# on %s\n%s\n", g_array_index(hosts->list, tool_host_t, r).name,
               command);
        g_free(command);
    }
    return TOOL_OK;
}

/* The script of a host: reads the secret, runs command in this folder, and ends
 * it when standard input ends. It works in any login shell. */
static char *write_script(const char *command)
{
    char *folder = g_get_current_dir(), *quoted = g_shell_quote(folder);
    char *script = g_strdup_printf(
        "IFS= read -r DSCOMM_JOB_SECRET || exit 125; "
        "if [ \"$DSCOMM_JOB_SECRET\" ]; then export DSCOMM_JOB_SECRET; "
        "else unset DSCOMM_JOB_SECRET; fi; cd %s || exit 125; exec 3<&0; "
        "%s </dev/null 3<&- & p=$!; "
        "{ read -r x <&3; kill $p; } >/dev/null 2>&1 & w=$!; exec 3<&-; "
        "wait $p; s=$?; kill $w 2>/dev/null; exit $s",
        quoted, command);
    char *word = g_shell_quote(script);
    char *result = g_strdup_printf("exec sh -c %s", word);

    g_free(word);
    g_free(script);
    g_free(quoted);
    g_free(folder);
    return result;
}

/* The line that the hosts read: the secret, or nothing. */
static char *write_secret(const tool_hosts_job_t *job)
{
    const char *given = g_getenv("DSCOMM_JOB_SECRET");
    const char *file = g_getenv("DSCOMM_JOB_SECRET_FILE");
    unsigned char bytes[SECRET_SIZE];
    GString *text;

    if (job->no_secret || (file && *file))
        return g_strdup("\n");
    if (given && *given)
        return g_strconcat(given, "\n", NULL);
    if (!dscomm_priv_random(bytes, sizeof(bytes)))
        return NULL;
    text = g_string_new(NULL);
    for (size_t i = 0; i < sizeof(bytes); i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    g_string_append_c(text, '\n');
    return g_string_free(text, false);
}

/* Ending */

static void remote_close(remote_t *remote)
{
    if (remote->fd >= 0)
        close(remote->fd);
    remote->fd = -1;
}

static void end_all(launch_t *l)
{
    if (l->ending)
        return;
    l->ending = true;
    l->deadline = g_get_monotonic_time() + l->job->grace_us + END_US;
    l->end_signal = SIGTERM;
    for (int r = 0; r < l->count; r++)
        remote_close(&l->remotes[r]);
}

/* --rsh's processes do not end: signals them. */
static void force_end(launch_t *l)
{
    for (int r = 0; r < l->count; r++)
        if (l->remotes[r].pid)
            kill(l->remotes[r].pid, l->end_signal);
    l->deadline = g_get_monotonic_time() + l->job->grace_us + END_US;
    l->end_signal = SIGKILL;
}

/* Prints a line between those of the hosts. */
static void print_line(const launch_t *l, char *line)
{
    char *whole = g_strdup_printf("dscomm run: %s\n", line);

    if (l->output)
        tool_output_write_line(l->output, whole);
    else
        fputs(whole, stderr);
    g_free(whole);
    g_free(line);
}

static void remote_fail(launch_t *l, int r, int status)
{
    const bool on =
        l->job->least && r > 0 && l->running >= l->job->least && !l->ending;

    if (!l->ending)
        print_line(l, g_strdup_printf("node %d (%s): %s ended with status %d%s",
                                      r, l->remotes[r].name, l->rsh, status,
                                      on ? "; going on with the other hosts"
                                      : l->running == 0
                                          ? ""
                                          : "; ending the other hosts"));
    if (on)
        return;
    if (!l->ending)
        l->status = status;
    end_all(l);
}

static void reap(launch_t *l)
{
    int wait_status;
    pid_t pid;

    while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0)
        for (int r = 0; r < l->count; r++) {
            if (l->remotes[r].pid != pid)
                continue;
            l->remotes[r].pid = 0;
            l->running--;
            remote_close(&l->remotes[r]);
            if (wait_status)
                remote_fail(l, r,
                            WIFSIGNALED(wait_status)
                                ? 128 + WTERMSIG(wait_status)
                                : WEXITSTATUS(wait_status));
        }
}

static void handle_signal(launch_t *l, int signal)
{
    if (signal == SIGCHLD) {
        reap(l);
        return;
    }
    l->signal = signal;
    l->status = 128 + signal;
    end_all(l);
}

/* Starting */

typedef struct {
    const sigset_t *mask;
    int fds[2]; /* stdout and stderr; -1: those of this process */
} child_t;

/* Runs in the child. */
static void child_setup(void *arg)
{
    const child_t *child = arg;

    for (int i = 0; i < 2; i++)
        if (child->fds[i] >= 0)
            dup2(child->fds[i], i ? STDERR_FILENO : STDOUT_FILENO);
    sigprocmask(SIG_SETMASK, child->mask, NULL);
}

static int remote_start(launch_t *l, int r, char **rsh, const char *command,
                        const char *secret, sigset_t *mask)
{
    remote_t *remote = &l->remotes[r];
    child_t child = {mask, {-1, -1}};
    const int lack = l->output ? tool_output_open(l->output, r, child.fds) : 0;
    char *name = g_strdup(remote->name);
    const size_t length = strlen(name);
    GPtrArray *argv = g_ptr_array_new();
    GError *error = NULL;
    int status = TOOL_OK;

    if (*name == '[') {
        name[length - 1] = '\0';
        memmove(name, name + 1, length - 1);
    }
    for (; *rsh; rsh++)
        g_ptr_array_add(argv, *rsh);
    g_ptr_array_add(argv, name);
    g_ptr_array_add(argv, (char *)command);
    g_ptr_array_add(argv, NULL);
    if (lack) {
        status = tool_fail(TOOL_INTERNAL, "run", "no pipe for a host: %s",
                           g_strerror(lack));
    } else if (!g_spawn_async_with_pipes(
                   NULL, (char **)argv->pdata, NULL,
                   G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, child_setup,
                   &child, &remote->pid, &remote->fd, NULL, NULL, &error)) {
        status =
            tool_fail(g_error_matches(error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT)
                          ? TOOL_NOT_FOUND
                          : TOOL_NOT_EXECUTABLE,
                      "run", "cannot start --rsh: %s", error->message);
        g_error_free(error);
        remote->pid = 0;
        remote->fd = -1;
    } else {
        l->running++;
        /* if it has ended, its status says why */
        if (write(remote->fd, secret, strlen(secret)) < 0)
            remote_close(remote);
    }
    for (int i = 0; i < 2; i++)
        if (child.fds[i] >= 0)
            close(child.fds[i]);
    g_ptr_array_free(argv, true);
    g_free(name);
    return status;
}

static void start_all(launch_t *l, const tool_hosts_t *hosts, char **rsh,
                      sigset_t *mask)
{
    char *secret = write_secret(l->job);

    if (!secret)
        l->status = tool_fail(TOOL_INTERNAL, "run", "no random numbers: %s",
                              g_strerror(errno));
    for (int r = 0; r < l->count && l->status == TOOL_OK; r++) {
        char *command = write_command(hosts, l->job, r);
        char *script = write_script(command);

        l->status = remote_start(l, r, rsh, script, secret, mask);
        g_free(script);
        g_free(command);
    }
    g_free(secret);
    if (l->status != TOOL_OK)
        end_all(l);
}

/* Waits for signals and output, until the deadline if the job is ending. */
static void turn(launch_t *l, int signal_fd, GArray *fds)
{
    const gint64 left = l->deadline - g_get_monotonic_time();
    const struct pollfd signals = {signal_fd, POLLIN, 0};
    struct signalfd_siginfo info;

    g_array_set_size(fds, 0);
    g_array_append_val(fds, signals);
    if (l->output)
        tool_output_prepare(l->output, fds);
    poll((struct pollfd *)(void *)fds->data, fds->len,
         !l->ending ? -1 : (int)(CLAMP(left, 0, END_US) / 1000) + 1);
    if (l->output)
        tool_output_dispatch(l->output, fds);
    while (read(signal_fd, &info, sizeof(info)) == sizeof(info))
        handle_signal(l, (int)info.ssi_signo);
}

/* Until all hosts have ended, and their output is written. */
static void supervise(launch_t *l, int signal_fd)
{
    GArray *fds = g_array_new(false, false, sizeof(struct pollfd));

    while (l->running > 0) {
        turn(l, signal_fd, fds);
        if (l->ending && g_get_monotonic_time() >= l->deadline)
            force_end(l);
    }
    if (l->output) {
        const gint64 ended = g_get_monotonic_time();

        tool_output_end(l->output);
        l->ending = l->signal != 0 || l->job->timeout_us;
        l->deadline = ended + END_US;
        while (!tool_output_idle(l->output) &&
               !(l->ending && g_get_monotonic_time() >= l->deadline)) {
            turn(l, signal_fd, fds);
            if (!l->signal)
                l->deadline = MAX(MAX(l->job_deadline, ended),
                                  tool_output_taken(l->output)) +
                              MAX(l->job->grace_us, G_USEC_PER_SEC);
        }
        if (!tool_output_idle(l->output)) {
            tool_output_give_up(l->output);
            if (l->status == TOOL_OK)
                l->status = TOOL_TIMED_OUT;
        }
        if (tool_output_failed(l->output) && l->status == TOOL_OK)
            l->status = TOOL_INTERNAL;
    }
    g_array_unref(fds);
}

static int start_on_hosts(const tool_hosts_t *hosts,
                          const tool_hosts_job_t *job, char **rsh)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    launch_t l = {.job = job,
                  .rsh = rsh[0],
                  .count = (int)hosts->list->len,
                  .job_deadline = job->timeout_us
                                      ? g_get_monotonic_time() + job->timeout_us
                                      : 0};
    sigset_t set, mask;
    int signal_fd;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        sigaddset(&set, numbers[i]);
    sigprocmask(SIG_BLOCK, &set, &mask);
    signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd < 0)
        return tool_fail(TOOL_INTERNAL, "run", "cannot receive signals: %s",
                         g_strerror(errno));
    l.remotes = g_new0(remote_t, l.count);
    if (job->tagged)
        l.output =
            tool_output_new("run", &(tool_tags_t){.none = true}, 0, l.count);
    for (int r = 0; r < l.count; r++) {
        l.remotes[r].name = g_array_index(hosts->list, tool_host_t, r).name;
        l.remotes[r].fd = -1;
    }
    start_all(&l, hosts, rsh, &mask);
    supervise(&l, signal_fd);
    tool_output_free(l.output);
    g_free(l.remotes);
    close(signal_fd);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (l.signal) {
        signal(l.signal, SIG_DFL);
        raise(l.signal);
    }
    return l.status;
}

int tool_hosts_run(const tool_hosts_t *hosts, const tool_hosts_job_t *job)
{
    GError *error = NULL;
    char **rsh;
    int status;

    if (!hosts->rsh)
        return print_commands(hosts, job);
    if (!g_shell_parse_argv(hosts->rsh, NULL, &rsh, &error)) {
        status = tool_fail(TOOL_USAGE, "run", "--rsh '%s': %s", hosts->rsh,
                           error->message);
        g_error_free(error);
        return status;
    }
    status = start_on_hosts(hosts, job, rsh);
    g_strfreev(rsh);
    return status;
}
