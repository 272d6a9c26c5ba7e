/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding to processors and memory, by the system's calls. */
#ifndef ENV_AFFINITY_H
#define ENV_AFFINITY_H

#include <stddef.h>

typedef struct {
    unsigned long *mask; /* of processors, for sched_setaffinity(2) */
    size_t words; /* of the mask */
    int node; /* NUMA node whose memory is preferred; -1: the nearest */
} dscomm_affinity_t;

/* Binds this thread; only a system call, as after vfork(). 0, or an errno. */
int dscomm_priv_affinity_thread(const dscomm_affinity_t *affinity);

/* Prefers memory of the node for this thread, and for threads and programs that
 * it will start, not for other threads that run already; keeps a policy that is
 * set. Only system calls. 0, or an errno: containers often forbid it. */
int dscomm_priv_affinity_memory(const dscomm_affinity_t *affinity);

/* Binds all threads of this process that may use the same processors as this
 * thread. *ret_threads: the number of threads of the process; 2 if /proc does
 * not tell. 0, or an errno if this thread cannot be bound. */
int dscomm_priv_affinity_process(const dscomm_affinity_t *affinity,
                                 int *ret_threads);

#endif
