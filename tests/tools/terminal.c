/* SPDX-License-Identifier: BSD-3-Clause */
/* dscomm run as a job of a shell with a terminal: the terminal's keys, and
 * which process may read and write there. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "tests/tap.h"

#define LIMIT_MS 20000

typedef struct {
    const char *name;
    /* the shell starts it with "&", and brings it to the foreground when it
     * stops */
    int background;
    int tostop; /* "stty tostop": a background process that writes is stopped */
    const char *script; /* of each of the two ranks */
    const char *wait_for[2]; /* wait for these texts, then type these keys */
    const char *keys;
    const char *expect[5];
} scenario_t;

#define UNTIL_KILLED "while :; do sleep 0.05; done"

static const scenario_t scenarios[] = {
    {"the terminal's SIGINT",
     0,
     0,
     "trap 'echo got $RANK; exit 0' INT; echo up $RANK; " UNTIL_KILLED,
     {"up 0", "up 1"},
     "\003",
     {"got 0", "got 1", "job ended by signal 2"}},
    {"stopped, and continued",
     0,
     0,
     "trap 'echo again $RANK; exit 0' CONT; echo up $RANK; " UNTIL_KILLED,
     {"up 0", "up 1"},
     "\032",
     {"job stopped", "again 0", "again 1", "job ended with 0"}},
    {"rank 0 reads",
     0,
     0,
     "echo up $RANK; read -r word; echo $RANK read $word",
     {"up 0", "1 read"},
     "word\n",
     {"0 read word", "job ended with 0"}},
    {"rank 0 reads, in the background at first",
     1,
     0,
     "read -r word; echo $RANK read $word",
     {"job stopped", "1 read"},
     "word\n",
     {"0 read word", "job ended with 0"}},
    {"all ranks write where tostop is set",
     0,
     1,
     "echo out $RANK",
     {"out 0", "out 1"},
     "",
     {"job ended with 0"}},
    {"a rank that may not read",
     0,
     0,
     "[ $RANK = 0 ] || read -r word </dev/tty; " UNTIL_KILLED,
     {"dscomm run: rank 1 (pid ", "since only rank 0 may use the terminal"},
     "\003",
     {"job ended by signal 2"}},
};

static void run_job(const scenario_t *s)
{
    char program[4096];

    snprintf(program, sizeof program, "%s/tools/dscomm",
             getenv("abs_top_builddir"));
    setpgid(0, 0);
    if (!s->background)
        tcsetpgrp(0, getpid());
    signal(SIGTTOU, SIG_DFL);
    execl(program, "dscomm", "run", "-n", "2", "--grace", "1", "sh", "-c",
          s->script, (char *)NULL);
    _exit(127);
}

/* Acts as a shell, in a process that leads the terminal's session. */
static void shell(const scenario_t *s)
{
    struct termios modes;
    int status;
    pid_t pid;

    signal(SIGTTOU, SIG_IGN);
    tcgetattr(0, &modes);
    modes.c_lflag &= ~(tcflag_t)ECHO;
    modes.c_lflag |= s->tostop ? TOSTOP : 0;
    tcsetattr(0, TCSANOW, &modes);
    pid = fork();
    if (pid == 0)
        run_job(s);
    setpgid(pid, pid);
    if (!s->background)
        tcsetpgrp(0, pid);
    while (waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status)) {
        printf("job stopped\n");
        fflush(stdout);
        tcsetpgrp(0, pid);
        kill(-pid, SIGCONT);
    }
    if (WIFSIGNALED(status))
        printf("job ended by signal %d\n", WTERMSIG(status));
    else
        printf("job ended with %d\n", WEXITSTATUS(status));
}

static pid_t start_shell(const scenario_t *s, int master)
{
    const char *name = ptsname(master);
    pid_t pid = fork();

    if (pid)
        return pid;
    setsid();
    close(0);
    if (open(name, O_RDWR) != 0)
        _exit(1);
    dup2(0, 1);
    dup2(0, 2);
    close(master);
    shell(s);
    exit(0);
}

static long long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Reads until text has come. */
static void expect(int master, char *seen, size_t size, const char *text,
                   const char *name)
{
    long long end = now_ms() + LIMIT_MS;

    while (!strstr(seen, text) && now_ms() < end) {
        struct pollfd slot = {master, POLLIN, 0};
        size_t length = strlen(seen);
        ssize_t got;

        if (poll(&slot, 1, 100) <= 0)
            continue;
        got = read(master, seen + length, size - length - 1);
        if (got <= 0)
            break;
        seen[length + (size_t)got] = '\0';
    }
    if (!ok(strstr(seen, text) != NULL, "%s: '%s'", name, text))
        printf("# it says: %s\n", seen);
}

static void play(const scenario_t *s, int master)
{
    char seen[16384] = "";
    pid_t pid = start_shell(s, master);

    for (int i = 0; i < 2; i++)
        expect(master, seen, sizeof seen, s->wait_for[i], s->name);
    if (write(master, s->keys, strlen(s->keys)) < 0)
        bail("cannot type: %s", strerror(errno));
    for (int i = 0; s->expect[i]; i++)
        expect(master, seen, sizeof seen, s->expect[i], s->name);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

int main(void)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

        if (master < 0 || grantpt(master) || unlockpt(master))
            skip_all("no pseudo-terminal: %s", strerror(errno));
        play(&scenarios[i], master);
        close(master);
    }
    return tap_done();
}
