/* SPDX-License-Identifier: BSD-3-Clause */
/* Random bytes from the kernel. */
#ifndef LIB_RANDOM_H
#define LIB_RANDOM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/random.h>

/* Fills ret_bytes, which has at most 256 bytes, because the kernel never
 * returns only a part of so few. False, with errno, if the system gives no
 * random numbers. Blocks until the kernel's generator is seeded, which a signal
 * may interrupt. */
static inline bool dscomm_priv_random(void *ret_bytes, size_t size)
{
    ssize_t got;

    do {
        got = getrandom(ret_bytes, size, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)size;
}

#endif
