/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/base/process-fd.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORD_BITS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *kept; /* a bit for each descriptor */
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

/* With the lock: a child that is forked meanwhile must not close another
 * descriptor of the same number. */
void dscomm_priv_fd_close(int fd)
{
    const size_t word = (size_t)fd / WORD_BITS;

    pthread_mutex_lock(&lock);
    if (word < words)
        kept[word] &= ~(UINT64_C(1) << fd % WORD_BITS);
    close(fd);
    pthread_mutex_unlock(&lock);
}

void dscomm_priv_fd_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

void dscomm_priv_fd_after_fork(bool child)
{
    for (size_t i = 0; child && i < words; i++)
        for (; kept[i]; kept[i] &= kept[i] - 1)
            close((int)(i * WORD_BITS) + __builtin_ctzll(kept[i]));
    pthread_mutex_unlock(&lock);
}
