/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the process that every operation must notice: a fork, and installed
 * hooks. Both are in one word, so that a check costs one load. */
#ifndef LIB_PROCESS_H
#define LIB_PROCESS_H

#include <dscomm/status.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* Bit 0: hooks are installed. The rest counts forks between the first process
 * and this one. */
#define DSCOMM_ATTENTION_HOOKS 1u
#define DSCOMM_ATTENTION_FORK 2u
extern atomic_uint dscomm_priv_attention;

/* The word without the hooks bit; it is equal as long as the process is the
 * same. */
static inline unsigned dscomm_priv_generation(void)
{
    return atomic_load_explicit(&dscomm_priv_attention, memory_order_relaxed) &
           ~DSCOMM_ATTENTION_HOOKS;
}

/* Registers the fork handlers; dscomm_init() may call this any number of
 * times. */
dscomm_status_t dscomm_priv_process_watch(void);

/* Sets the functions that other rooms run in the child of a fork: static memory
 * that ends with NULL. Called by dscomm_init(). */
void dscomm_priv_process_set_forked(void (*const *table)(void));

/* Descriptors that are of this process alone. A forked child has copies of all
 * descriptors, and a connection ends for the peer only when its last copy is
 * closed. So a child that lives on would hide the death of its parent: fork()
 * closes there what was kept here. That does not reach children made by
 * clone(), which runs no handlers, nor a descriptor that is being made in
 * another thread during the fork. */

/* Lists fd, so that children forked from now on close it; does nothing if there
 * is no memory. A listed descriptor must be closed by
 * dscomm_priv_fd_close(). */
void dscomm_priv_fd_keep(int fd);
/* Closes fd, whether it is listed or not. */
void dscomm_priv_fd_close(int fd);

/* Frees memory, unless it is held: a transport may use it until the process
 * ends. Held memory is kept reachable, so that no tool reports it as lost. */
void dscomm_priv_buffer_free(void *memory, bool held);

/* Returns a pidfd; -1 if the process has ended, the kernel has no pidfds, or
 * this process has no descriptor left. */
int dscomm_priv_process_open(pid_t pid);
/* Returns 1 if the process has ended, even if its parent has not reaped it. fd:
 * its pidfd, or -1. */
int dscomm_priv_process_ended(pid_t pid, int fd);
/* Returns " by a signal" or " by a debugger" if the process is stopped; NULL if
 * it runs, or its state is not known. */
const char *dscomm_priv_process_stopped(int64_t pid);

#endif
