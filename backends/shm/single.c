/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies out of another rank's ordinary memory, by process_vm_readv(2): one
 * copy in place of two through a ring. The system call takes a microsecond, and
 * the kernel looks up each page, so that on some processors it is never faster.
 * A trial measures it (trial.c). The kernel may forbid it, by ptrace_scope or
 * in containers: a rank that may not read all others uses the rings, and all
 * do. */
#define _GNU_SOURCE
#include "config.h"

#include "backends/shm/copy.h"

#include <errno.h>
#include <glib.h>
#include <string.h>
#include <sys/uio.h>

/* marks an address among references, which are below it */
#define ADDRESS (UINT64_C(1) << 63)
/* shortest payload if single copies are wanted without a trial */
#define LEAST ((size_t)32 << 10)

/* Words of DSCOMM_SHM_SINGLE_COPY, in order. */
enum { SINGLE_AUTO, SINGLE_YES, SINGLE_NO };

int shm_single_read(const shm_t *shm, int rank, void *dest, uint64_t address,
                    size_t size)
{
    size_t done = 0;

    while (done < size) {
        struct iovec to = {(char *)dest + done, size - done};
        struct iovec from = {(void *)(uintptr_t)(address + done), size - done};
        ssize_t got = process_vm_readv(shm->peers->pids[shm->peer[rank]], &to,
                                       1, &from, 1, 0);

        if (got <= 0)
            return got ? errno : EFAULT;
        done += (size_t)got;
    }
    return 0;
}

void shm_single_publish(shm_t *shm)
{
    shm->word = (uint64_t)g_random_int() << 32 | g_random_int();
    shm->own->word = shm->word;
    shm->own->word_at = (uintptr_t)&shm->word;
}

dscomm_status_t shm_single_look(shm_t *shm)
{
    int64_t kind = SINGLE_AUTO;
    dscomm_status_t status =
        dscomm_setting_number(&shm_settings[SHM_SETTING_SINGLE_COPY], &kind);
    int error = 0;

    if (status || kind == SINGLE_NO)
        return status;
    for (int r = 0; r < shm->ranks && !error; r++) {
        uint64_t word = 0;

        if (r != shm->rank)
            error = shm_single_read(shm, r, &word, shm_control(shm, r)->word_at,
                                    sizeof word);
        /* Another process may have that number here. */
        if (r != shm->rank && !error && word != shm_control(shm, r)->word)
            error = ESRCH;
    }
    if (error)
        dscomm_log(
            DSCOMM_LOG_INFO, "shm",
            "group '%s': payloads go through rings, as rank %d may not "
            "read other ranks' memory: %s (see kernel.yama.ptrace_scope)",
            shm->name, shm_number(shm, shm->rank), strerror(error));
    if (kind == SINGLE_YES)
        shm->trial.single = shm->trial.single_one_way = error ? 0 : LEAST;
    shm->asks_single = kind == SINGLE_AUTO;
    shm->own->reads = !error;
    return DSCOMM_OK;
}

bool shm_single_allowed(shm_t *shm)
{
    while (shm->readers < shm->ranks && shm_control(shm, shm->readers)->reads)
        shm->readers++;
    return shm->readers == shm->ranks;
}

/* Whether others can read this rank's memory, as its first and last byte show:
 * nobody can read pages of memfd_secret(2), or of devices. A try takes more
 * than a microsecond, so that buffers are remembered. */
static bool memory_is_readable(shm_t *shm, const void *memory, size_t size)
{
    shm_readable_t *known =
        &shm->readable[(uintptr_t)memory / shm_page() % SHM_READABLE];
    char bytes[2];
    const struct iovec to = {bytes, sizeof bytes};
    const struct iovec from[] = {{(void *)memory, 1},
                                 {(char *)memory + size - 1, 1}};

    if (known->address == memory && known->size >= size)
        return true;
    if (process_vm_readv(getpid(), &to, 1, from, 2, 0) != sizeof bytes)
        return false;
    *known = (shm_readable_t){memory, size};
    return true;
}

/* Returns own, the reference of memory that is shared, or the address if others
 * may read that. */
static uint64_t reference_or_address(shm_t *shm, uint64_t own,
                                     const void *memory, size_t size,
                                     bool one_way)
{
    const size_t least =
        one_way ? shm->trial.single_one_way : shm->trial.single;

    if (own || !least || size < least || !shm_single_allowed(shm) ||
        !memory_is_readable(shm, memory, size))
        return own;
    return ADDRESS | (uintptr_t)memory;
}

uint64_t shm_reference(shm_t *shm, const void *memory, size_t size,
                       bool one_way)
{
    if (shm->own->voided)
        return 0;
    return reference_or_address(shm, shm_own_reference(shm, memory, size),
                                memory, size, one_way);
}

uint64_t shm_reference_look(shm_t *shm, const void *memory, size_t size,
                            bool one_way)
{
    if (shm->own->voided)
        return 0;
    return reference_or_address(shm, shm_own_place(shm, memory, size), memory,
                                size, one_way);
}

void shm_single_void(shm_t *shm)
{
    atomic_store_explicit(&shm->own->voided, true, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

bool shm_reference_held(const shm_t *shm, int rank)
{
    atomic_thread_fence(memory_order_seq_cst);
    return shm_left(shm, rank) < SHM_LEFT &&
           !atomic_load_explicit(&shm_control(shm, rank)->voided,
                                 memory_order_acquire);
}

bool shm_reference_is_address(uint64_t reference)
{
    return reference & ADDRESS;
}

/* The owner has given up the call, and may have used its memory again. */
static dscomm_status_t void_fail(shm_t *shm, int rank)
{
    dscomm_failure_t failure;

    shm_blame(shm, DSCOMM_ERR_PEER_FAILED, DSCOMM_FAILURE_LEFT, rank, &failure);
    dscomm_backend_failure_detail(&failure, "it has given up the call");
    return shm_fail(shm, &failure);
}

static dscomm_status_t read_fail(shm_t *shm, int rank, size_t size, int error)
{
    dscomm_failure_t failure;

    shm_blame(shm, error == ESRCH ? DSCOMM_ERR_PEER_FAILED : DSCOMM_ERR_IO,
              error == ESRCH ? DSCOMM_FAILURE_DIED : DSCOMM_FAILURE_RESOURCE,
              rank, &failure);
    dscomm_backend_failure_detail(
        &failure, "%zu bytes of its memory cannot be read: %s%s", size,
        strerror(error),
        error == ESRCH ? ""
                       : "; set DSCOMM_SHM_SINGLE_COPY=no on "
                         "all ranks");
    return shm_fail(shm, &failure);
}

/* Copies by a reference. Returns 0, an errno, or -1 if a heap cannot be
 * mapped. */
static int reference_copy(shm_t *shm, int rank, uint64_t reference, size_t skip,
                          void *dest, size_t size, bool stream)
{
    const unsigned char *from;

    if (reference & ADDRESS)
        return shm_single_read(shm, rank, dest, (reference & ~ADDRESS) + skip,
                               size);
    from = shm_heap_resolve(shm, rank, reference, skip + size);
    if (!from)
        return -1;
    if (stream)
        shm_copy_stream(dest, from + skip, size);
    else
        memcpy(dest, from + skip, size);
    return 0;
}

bool shm_reference_try(shm_t *shm, int rank, uint64_t reference, void *dest,
                       size_t size)
{
    return !reference_copy(shm, rank, reference, 0, dest, size,
                           size >= shm->cache / 2);
}

dscomm_status_t shm_reference_read(shm_t *shm, int rank, uint64_t reference,
                                   size_t skip, void *dest, size_t size,
                                   bool stream)
{
    const int error =
        reference_copy(shm, rank, reference, skip, dest, size, stream);

    if (error < 0)
        return shm_revoke_last(shm, DSCOMM_ERR_NO_MEMORY);
    if (shm_is_revoked_since(shm))
        return shm_revoked(shm);
    if (!shm_reference_held(shm, rank))
        return void_fail(shm, rank);
    return error ? read_fail(shm, rank, size, error) : DSCOMM_OK;
}
