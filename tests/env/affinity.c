/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding: what the kernel has after a call, and the error where a
 * container forbids it. */
#include "config.h"

#include "env/affinity.h"
#include "tests/tap.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long nodes[1024 / 8 / sizeof(long)];

static int policy_now(void)
{
    int policy = -1;

    memset(nodes, 0, sizeof nodes);
    if (syscall(SYS_get_mempolicy, &policy, nodes, 1024ul, NULL, 0ul) < 0)
        return -1;
    return policy;
}

/* Makes a system call fail for good, as the filters of containers do. */
static bool forbid(unsigned call)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void test_memory(void)
{
    dscomm_affinity_t affinity = {.node = -1};

    is_int(dscomm_priv_affinity_memory(&affinity), 0, "no node");
    is_int(policy_now(), MPOL_DEFAULT, "no node: the default");
    affinity.node = 0;
    is_int(dscomm_priv_affinity_memory(&affinity), 0, "node 0");
    is_int(policy_now(), MPOL_PREFERRED, "node 0 is preferred, not demanded");
    is_int((long long)nodes[0], 1, "node 0 and no other one");
    affinity.node = 1023;
    is_int(dscomm_priv_affinity_memory(&affinity), 0, "another node");
    is_int((long long)nodes[0], 1, "a policy that is set is kept");
    syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0ul);
    is_int(dscomm_priv_affinity_memory(&affinity), EINVAL,
           "a node that is not there");
    affinity.node = 0;
    if (forbid(SYS_set_mempolicy))
        is_int(dscomm_priv_affinity_memory(&affinity), EPERM,
               "a container that forbids it");
    else
        skip("a container that forbids it: no filters of system calls");
    is_int(policy_now(), MPOL_DEFAULT, "then the default stays");
}

static void test_processors(void)
{
    unsigned long none = 0;
    dscomm_affinity_t affinity = {.mask = &none, .words = 1, .node = -1};
    int threads = 0;

    is_int(dscomm_priv_affinity_thread(&affinity), EINVAL, "no processor");
    is_int(dscomm_priv_affinity_process(&affinity, &threads), EINVAL,
           "no processor for all threads");
    is_int(threads, 1, "the threads are counted");
}

static void test_same_processors(void)
{
    unsigned long mask[1024 / 8 / sizeof(long)] = {0};
    dscomm_affinity_t affinity = {
        .mask = mask, .words = sizeof mask / sizeof *mask, .node = -1};
    int threads = 0;

    if (syscall(SYS_sched_getaffinity, 0, sizeof mask, mask) < 0) {
        skip("the processors that it has: %s", strerror(errno));
        return;
    }
    is_int(dscomm_priv_affinity_process(&affinity, &threads), 0,
           "the processors that it has");
    is_int(threads, 1, "its threads");
}

/* In a child, where no file can be opened. */
static void test_unknown_threads(void)
{
    unsigned long none = 0;
    dscomm_affinity_t affinity = {.mask = &none, .words = 1, .node = -1};
    const pid_t child = fork();
    int threads = 0, status = 0;

    if (child == 0) {
        if (!forbid(SYS_openat))
            _exit(99);
#ifdef SYS_open
        forbid(SYS_open);
#endif
        dscomm_priv_affinity_process(&affinity, &threads);
        _exit(threads);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        bail("no child: %s", strerror(errno));
    if (WEXITSTATUS(status) == 99)
        skip("threads that /proc does not tell: no filters of system calls");
    else
        is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 2,
               "threads that /proc does not tell");
}

int main(void)
{
    if (policy_now() < 0)
        skip("policies of memory: the kernel has none");
    else
        test_memory();
    test_processors();
    test_same_processors();
    test_unknown_threads();
    return tap_done();
}
