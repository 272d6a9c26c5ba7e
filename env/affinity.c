/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding by the system's calls, see affinity.h. */
#include "config.h"

#include "env/affinity.h"

#include <dirent.h>
#include <errno.h>
#include <glib.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROCESSORS_MOST 8192 /* of a machine, by Linux */
#define NODES_MOST 1024
#define WORD_BITS (8 * sizeof(long))
/* Readings of the list of threads: two, unless threads are being started. */
#define PASSES_MOST 100

typedef cpu_set_t mask_t[PROCESSORS_MOST / CPU_SETSIZE];

static int thread_bind(pid_t thread, const dscomm_affinity_t *affinity)
{
    return sched_setaffinity(thread, affinity->words * sizeof(long),
                             (const cpu_set_t *)(const void *)affinity->mask) <
                   0
               ? errno
               : 0;
}

int dscomm_priv_affinity_thread(const dscomm_affinity_t *affinity)
{
    return thread_bind(0, affinity);
}

int dscomm_priv_affinity_memory(const dscomm_affinity_t *affinity)
{
    unsigned long nodes[NODES_MOST / WORD_BITS] = {0};
    const size_t node = (size_t)affinity->node;
    int policy = MPOL_DEFAULT;

    if (affinity->node < 0 || node >= NODES_MOST)
        return 0;
    nodes[node / WORD_BITS] = 1ul << node % WORD_BITS;
    if (syscall(SYS_get_mempolicy, &policy, NULL, 0ul, NULL, 0ul) < 0)
        return errno;
    if (policy != MPOL_DEFAULT)
        return 0;
    /* the kernel does not look at the last bit */
    return syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes,
                   (unsigned long)NODES_MOST + 1) < 0
               ? errno
               : 0;
}

static void thread_read(pid_t thread, mask_t mask)
{
    memset(mask, 0, sizeof(mask_t));
    sched_getaffinity(thread, sizeof(mask_t), mask);
}

/* Binds a thread that may use the same processors as own. Whether it may use
 * others now. */
static bool thread_move(pid_t thread, mask_t own,
                        const dscomm_affinity_t *affinity)
{
    mask_t now;

    thread_read(thread, now);
    if (memcmp(own, now, sizeof now) != 0 || thread_bind(thread, affinity) != 0)
        return false;
    thread_read(thread, now);
    return memcmp(own, now, sizeof now) != 0;
}

/* Binds the threads that are in the folder. Whether any has moved. A thread
 * that has ended since is passed over. */
static bool threads_move(DIR *tasks, mask_t own,
                         const dscomm_affinity_t *affinity, int *ret_threads)
{
    const struct dirent *entry;
    bool moved = false;

    *ret_threads = 0;
    rewinddir(tasks);
    while ((entry = readdir(tasks)) != NULL) {
        const pid_t thread = (pid_t)g_ascii_strtoll(entry->d_name, NULL, 10);

        if (thread <= 0)
            continue;
        ++*ret_threads;
        moved = thread_move(thread, own, affinity) || moved;
    }
    return moved;
}

/* A thread that starts while the folder is read may be missing there, and has
 * the processors of the thread that starts it: so the folder is read until no
 * thread moves. */
int dscomm_priv_affinity_process(const dscomm_affinity_t *affinity,
                                 int *ret_threads)
{
    DIR *tasks = opendir("/proc/self/task");
    mask_t own;
    int passes = 0;

    *ret_threads = 2;
    thread_read(0, own);
    while (tasks && threads_move(tasks, own, affinity, ret_threads) &&
           ++passes < PASSES_MOST)
        continue;
    if (tasks)
        closedir(tasks);
    return thread_bind(0, affinity);
}
