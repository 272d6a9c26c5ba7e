/* SPDX-License-Identifier: BSD-3-Clause */
/* See screen.h. Signals are read from a descriptor, so that the terminal is
 * restored before one ends or stops the process. */
#include "config.h"

#include "tools/top/screen.h"

#include <glib.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

bool screen_is_there(void)
{
    const char *type = getenv("TERM");

    return isatty(STDOUT_FILENO) && type && *type && strcmp(type, "dumb") != 0;
}

static void screen_enter(screen_t *screen)
{
    struct termios keys = screen->before;

    if (screen->has_keys) {
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        keys.c_cc[VMIN] = 1;
        keys.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
    }
    fputs("\033[?1049h\033[?25l", stdout);
    fflush(stdout);
}

static void screen_leave(screen_t *screen)
{
    fputs("\033[0m\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    if (screen->has_keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &screen->before);
}

bool screen_open(screen_t *screen)
{
    static const int caught[] = {SIGINT,  SIGTERM,  SIGHUP,
                                 SIGQUIT, SIGWINCH, SIGTSTP};
    sigset_t set;

    memset(screen, 0, sizeof *screen);
    sigemptyset(&set);
    for (size_t i = 0; i < G_N_ELEMENTS(caught); i++)
        sigaddset(&set, caught[i]);
    screen->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (screen->signals < 0)
        return false;
    sigprocmask(SIG_BLOCK, &set, &screen->mask);
    /* A process in the background would be stopped. */
    screen->has_keys = tcgetattr(STDIN_FILENO, &screen->before) == 0 &&
                       tcgetpgrp(STDIN_FILENO) == getpgrp();
    screen_enter(screen);
    return true;
}

static screen_event_t signal_read(screen_t *screen)
{
    struct signalfd_siginfo info;

    if (read(screen->signals, &info, sizeof info) != sizeof info)
        return SCREEN_DRAW;
    switch (info.ssi_signo) {
    case SIGWINCH:
        return SCREEN_DRAW;
    case SIGTSTP:
        screen_leave(screen);
        raise(SIGSTOP);
        screen_enter(screen);
        return SCREEN_DRAW;
    default:
        screen->ended_by = (int)info.ssi_signo;
        return SCREEN_QUIT;
    }
}

static screen_event_t key_read(screen_t *screen)
{
    char keys[16];
    const ssize_t got = read(STDIN_FILENO, keys, sizeof keys - 1);

    if (got <= 0) {
        screen->has_keys = false;
        return SCREEN_DRAW;
    }
    keys[got] = '\0';
    if (strpbrk(keys, "qQ\004"))
        return SCREEN_QUIT;
    if (strcmp(keys, "j") == 0 || strcmp(keys, "\033[B") == 0)
        return SCREEN_DOWN;
    if (strcmp(keys, "k") == 0 || strcmp(keys, "\033[A") == 0)
        return SCREEN_UP;
    return SCREEN_DRAW;
}

screen_event_t screen_wait(screen_t *screen, int timeout_ms)
{
    struct pollfd fds[] = {{screen->signals, POLLIN, 0},
                           {screen->has_keys ? STDIN_FILENO : -1, POLLIN, 0}};

    if (poll(fds, G_N_ELEMENTS(fds), timeout_ms) <= 0)
        return SCREEN_TIME;
    return fds[0].revents ? signal_read(screen) : key_read(screen);
}

void screen_size(int *ret_rows, int *ret_columns)
{
    struct winsize size = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
        memset(&size, 0, sizeof size);
    *ret_rows = size.ws_row ? size.ws_row : 24;
    *ret_columns = size.ws_col ? size.ws_col : 80;
}

void screen_close(screen_t *screen)
{
    screen_leave(screen);
    close(screen->signals);
    if (screen->ended_by) {
        signal(screen->ended_by, SIG_DFL);
        raise(screen->ended_by);
    }
    sigprocmask(SIG_SETMASK, &screen->mask, NULL);
}
