/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks of one launcher that fail with one sentence: one of them prints it, and
 * the others go on when it has. */
#include "config.h"

#include "tests/tap.h"
#include "tools/common/errors.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_two(void)
{
    struct pollfd ended;
    int pipes[2], file, status = -1;
    pid_t other;

    if (pipe(pipes))
        bail("no pipe");
    ok(tool_errors_is_first("a sentence", &file), "the first rank says it");
    other = fork();
    if (!other) {
        int own;

        close(pipes[0]);
        close(file);
        _exit(tool_errors_is_first("a sentence", &own));
    }
    close(pipes[1]);
    ended = (struct pollfd){pipes[0], POLLIN, 0};
    is_int(poll(&ended, 1, 200), 0, "the other waits until it is said");
    tool_errors_said(file);
    waitpid(other, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "and does not repeat it");
    close(pipes[0]);
    ok(tool_errors_is_first("another one", &file), "another sentence is said");
    tool_errors_said(file);
}

/* A rank that was killed before it has printed has said nothing. */
static void test_killed(void)
{
    const pid_t other = fork();
    int file;

    if (!other)
        _exit(!tool_errors_is_first("a third one", &file));
    waitpid(other, NULL, 0);
    ok(tool_errors_is_first("a third one", &file),
       "what a rank that died was to say is said by the next one");
    tool_errors_said(file);
}

int main(void)
{
    char folder[256], *path;

    tool_errors_make(folder, sizeof folder);
    path = tool_errors_path(folder, 0);
    g_setenv("TORCHELASTIC_ERROR_FILE", path, TRUE);
    test_two();
    test_killed();
    g_setenv("TORCHELASTIC_ERROR_FILE", "/elsewhere/0.json", TRUE);
    for (int i = 0; i < 2; i++) {
        int file;

        ok(tool_errors_is_first("a sentence", &file),
           "in another launcher's folder, every rank says it");
        tool_errors_said(file);
    }
    tool_errors_remove(folder);
    g_free(path);
    return tap_done();
}
