/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts that the kernel has about processes: the state of one, and a limit of
 * this one. */
#ifndef LIB_KERNEL_H
#define LIB_KERNEL_H

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* The state of a process, as in ps(1): 'R' runs, 'S' and 'D' sleep, 'T' and 't'
 * are stopped by a signal or a debugger, 'Z' and 'X' have ended; 0: there is no
 * such process; '?': there is one, but its state cannot be read, for example
 * because this process has no descriptor left. */
static inline char dscomm_priv_process_state(int64_t pid)
{
    char path[40], text[512];
    const char *end;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    file = fopen(path, "re");
    if (!file)
        return pid > 0 && (!kill((pid_t)pid, 0) || errno != ESRCH) ? '?' : 0;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    end = strrchr(text, ')'); /* the name may contain any character, also ')' */
    return end && end[1] == ' ' ? end[2] : '\0';
}

/* A limit of this process, RLIMIT_*; UINT64_MAX: none. */
static inline uint64_t dscomm_priv_limit(int resource)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

/* The size that a file of this process may have (ulimit -f). The kernel ends a
 * process by SIGXFSZ that makes a longer one. */
static inline uint64_t dscomm_priv_file_limit(void)
{
    return dscomm_priv_limit(RLIMIT_FSIZE);
}

#endif
