/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds mpiruns, and gets their versions. */
#include "config.h"

#include "tools/env/mpirun-version.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX 16384
#define SENTENCE_MAX 200

/* Plain mpirun comes late because it is mostly another name of one of the
 * others. */
static const char *const names[] = {
    "mpirun.openmpi",  "mpirun.mpich",  "mpirun",
    "mpiexec.openmpi", "mpiexec.hydra", "mpiexec",
};

static void program_add(GPtrArray *list, GHashTable *seen, char *path)
{
    char *real = path ? realpath(path, NULL) : NULL;

    if (real && !g_hash_table_contains(seen, real)) {
        g_hash_table_add(seen, g_strdup(real));
        g_ptr_array_add(list, path);
    } else {
        g_free(path);
    }
    free(real);
}

char **tool_mpirun_find(void)
{
    GHashTable *seen =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const char *intel = g_getenv("I_MPI_ROOT");
    GPtrArray *list = g_ptr_array_new();

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        program_add(list, seen, g_find_program_in_path(names[i]));
    if (intel && *intel)
        program_add(list, seen,
                    g_build_filename(intel, "bin", "mpiexec.hydra", NULL));
    g_hash_table_unref(seen);
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, false);
}

/* Starts the program as leader of its own process group, so that its children
 * can be killed with it. */
static int version_start(const char *program, int output, pid_t *ret_pid)
{
    char *const argv[] = {(char *)program, (char *)"--version", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                     O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    error =
        posix_spawnp(ret_pid, program, &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int deadline_left(gint64 deadline)
{
    gint64 msec = (deadline - g_get_monotonic_time()) / 1000;

    return (int)CLAMP(msec, 0, G_MAXINT);
}

/* Reads the output. Returns false if neither its end nor TEXT_MAX bytes arrived
 * in time. */
static bool version_read(int fd, gint64 deadline, GString *text)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    char buffer[4096];

    while (text->len < TEXT_MAX) {
        int ready = poll(&poll_fd, 1, deadline_left(deadline));
        ssize_t got;

        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        got = read(fd, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return true;
        g_string_append_len(text, buffer, got);
    }
    return true;
}

/* Waits until the deadline for the program to end by itself, so that it can
 * clean up; then kills it and its children. Returns its status as waitpid()
 * does, 0 if it was killed. */
static int version_reap(pid_t pid, gint64 deadline)
{
    siginfo_t info = {.si_pid = 0};
    int status = 0;

    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0 && deadline_left(deadline))
        g_usleep(2000);
    kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return info.si_pid ? status : 0;
}

/* Describes how the program has failed, with the beginning of its output;
 * g_free(). */
static char *describe_failure(const char *program, int status, const char *text)
{
    char *how =
        WIFSIGNALED(status)
            ? g_strdup_printf("was ended by signal %d (%s)", WTERMSIG(status),
                              g_strsignal(WTERMSIG(status)))
            : g_strdup_printf("failed with exit status %d",
                              WEXITSTATUS(status));
    const char *line = text + strspn(text, " \t\r\n");
    const int length = (int)MIN(strcspn(line, "\r\n"), SENTENCE_MAX);
    char *sentence = g_strdup_printf("'%s --version' %s%s%.*s", program, how,
                                     length ? ": " : "", length, line);

    g_free(how);
    return sentence;
}

char *tool_mpirun_version(const char *program, int msec, char **ret_problem)
{
    gint64 deadline = g_get_monotonic_time() + (gint64)msec * 1000;
    GString *text;
    int fds[2], error, status;
    bool ended;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0) {
        *ret_problem =
            g_strdup_printf("cannot make a pipe: %s", g_strerror(errno));
        return NULL;
    }
    error = version_start(program, fds[1], &pid);
    close(fds[1]);
    if (error) {
        close(fds[0]);
        *ret_problem = g_strdup_printf("cannot execute '%s': %s", program,
                                       g_strerror(error));
        return NULL;
    }
    text = g_string_new(NULL);
    ended = version_read(fds[0], deadline, text);
    status = version_reap(pid, ended && text->len < TEXT_MAX ? deadline : 0);
    close(fds[0]);
    if (!ended)
        *ret_problem = g_strdup_printf(
            "'%s --version' has not ended after %d ms", program, msec);
    else if (status)
        *ret_problem = describe_failure(program, status, text->str);
    return g_string_free(text, !ended || status);
}
