/* SPDX-License-Identifier: BSD-3-Clause */
/* The terminal, while a view fills it. */
#ifndef TOOLS_SCREEN_H
#define TOOLS_SCREEN_H

#include <signal.h>
#include <stdbool.h>
#include <termios.h>

typedef struct {
    struct termios before;
    sigset_t mask; /* before */
    bool has_keys; /* stdin is this terminal */
    int signals; /* a signalfd */
    int ended_by; /* signal; 0: none */
} screen_t;

typedef enum {
    SCREEN_TIME, /* the time has passed */
    SCREEN_DRAW, /* the size may have changed */
    SCREEN_UP,
    SCREEN_DOWN,
    SCREEN_QUIT
} screen_event_t;

/* True if stdout is a terminal on which a view can be shown. */
bool screen_is_there(void);
/* Takes over the terminal: another screen, without cursor and echo. False:
 * errno; nothing was changed. */
bool screen_open(screen_t *screen);
/* Waits for a key, a signal, or so many milliseconds. */
screen_event_t screen_wait(screen_t *screen, int timeout_ms);
void screen_size(int *ret_rows, int *ret_columns);
/* Restores the terminal; if a signal has ended the view, ends the process by
 * it. */
void screen_close(screen_t *screen);

#endif
