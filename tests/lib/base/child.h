/* SPDX-License-Identifier: BSD-3-Clause */
/* A child of a test, and what it writes to a pipe. */
#ifndef TESTS_LIB_BASE_CHILD_H
#define TESTS_LIB_BASE_CHILD_H

#include "tests/tap.h"

#include <sys/wait.h>
#include <unistd.h>

/* Runs body in a child, which exits with its result. Reads what the child
 * writes to out, at most size bytes; returns their number, and its wait status.
 */
static inline size_t child_read(int (*body)(const void *arg, int out),
                                const void *arg, void *buffer, size_t size,
                                int *ret_status)
{
    size_t length = 0;
    ssize_t got;
    int ends[2];
    pid_t child;

    if (pipe(ends) || (child = fork()) < 0)
        bail("no child");
    if (child == 0)
        _exit(body(arg, ends[1]));
    close(ends[1]);
    while (length < size &&
           (got = read(ends[0], (char *)buffer + length, size - length)) > 0)
        length += (size_t)got;
    close(ends[0]);
    waitpid(child, ret_status, 0);
    return length;
}

#endif
