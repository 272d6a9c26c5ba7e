/* SPDX-License-Identifier: BSD-3-Clause */
/* The word that every operation reads, the handler that counts forks,
 * descriptors that are closed in a forked child, and memory that is not freed
 * before the process ends. */
#include "config.h"
#include "lib/base/process.h"
#include "lib/base/kernel.h"
#include "lib/base/log.h"
#include "lib/base/op.h"

#include <dscomm/backend.h>
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

atomic_uint dscomm_priv_attention;

#define WORD_BITS 64

/* Protects kept and words; held during fork(). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *kept; /* one bit for each descriptor */
static size_t words; /* of kept */

static bool flags_grow(size_t word)
{
    const size_t room = word < 2 * words ? 2 * words : word + 1;
    uint64_t *more = realloc(kept, room * sizeof *more);

    if (!more)
        return false;
    memset(more + words, 0, (room - words) * sizeof *more);
    kept = more;
    words = room;
    return true;
}

void dscomm_priv_fd_keep(int fd)
{
    const size_t word = (size_t)fd / WORD_BITS;

    pthread_mutex_lock(&lock);
    if (word < words || flags_grow(word))
        kept[word] |= UINT64_C(1) << fd % WORD_BITS;
    pthread_mutex_unlock(&lock);
}

/* Closes under the lock: a child that is forked meanwhile must not close
 * another descriptor that has got the same number. */
void dscomm_priv_fd_close(int fd)
{
    const size_t word = (size_t)fd / WORD_BITS;

    pthread_mutex_lock(&lock);
    if (word < words)
        kept[word] &= ~(UINT64_C(1) << fd % WORD_BITS);
    close(fd);
    pthread_mutex_unlock(&lock);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int registered;
static void (*const *_Atomic functions)(void);

void dscomm_priv_process_set_forked(void (*const *table)(void))
{
    atomic_store(&functions, table);
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* Runs in the child. The worlds stay known, so that they can be freed; locks
 * are initialised, because a thread that does not exist here may have held
 * them. */
static void after_fork_in_child(void)
{
    atomic_fetch_add(&dscomm_priv_attention, DSCOMM_ATTENTION_FORK);
    dscomm_priv_log_forked();
    dscomm_priv_op_forked();
    for (void (*const *forked)(void) = atomic_load(&functions);
         forked && *forked; forked++)
        (*forked)();
    for (size_t i = 0; i < words; i++)
        for (; kept[i]; kept[i] &= kept[i] - 1)
            close((int)(i * WORD_BITS) + __builtin_ctzll(kept[i]));
    after_fork();
}

static void fork_watch(void)
{
    registered = pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

dscomm_status_t dscomm_priv_process_watch(void)
{
    pthread_once(&once, fork_watch);
    if (registered)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "pthread_atfork: %s",
                           strerror(registered));
    return DSCOMM_OK;
}

typedef struct buffer {
    struct buffer *next;
    void *memory;
} buffer_t;

static buffer_t *_Atomic held_buffers;

void dscomm_priv_buffer_free(void *memory, bool held)
{
    buffer_t *buffer = memory && held ? malloc(sizeof *buffer) : NULL;

    if (!held)
        free(memory);
    if (!buffer)
        return;
    buffer->memory = memory;
    buffer->next = atomic_load(&held_buffers);
    while (!atomic_compare_exchange_weak(&held_buffers, &buffer->next, buffer))
        ;
}

int dscomm_priv_process_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

int dscomm_priv_process_ended(pid_t pid, int fd)
{
    struct pollfd one = {fd, POLLIN, 0};

    if (fd >= 0)
        return poll(&one, 1, 0) > 0;
    return kill(pid, 0) && errno == ESRCH;
}

const char *dscomm_priv_process_stopped(int64_t pid)
{
    const char state = dscomm_priv_process_state(pid);

    return state == 'T'   ? " by a signal"
           : state == 't' ? " by a debugger"
                          : NULL;
}
