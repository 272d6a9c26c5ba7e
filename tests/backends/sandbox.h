/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a system call fail, or kill the process, in the calling thread and
 * everything that it starts. Old kernels and some sandboxes do not have every
 * call. */
#ifndef TESTS_BACKENDS_SANDBOX_H
#define TESTS_BACKENDS_SANDBOX_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Sets the result of a call, SECCOMP_RET_.... Returns 0; or -1 with errno if
 * filters of system calls are not available. */
static inline int sandbox_filter(long call, unsigned result)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, result),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#endif
