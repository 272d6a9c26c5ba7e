/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of the fake devices, see fake-device.h. It is mapped twice, and
 * the host is given the mapping that it cannot access. If FAKE_CUDA_OPEN is set
 * it can, like an MPI that is CUDA-aware. */
#define _GNU_SOURCE
#include "config.h"

#include "tests/compression/fake-device.h"
#include "tests/compression/fake-kernels.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECES_MAX 1024

typedef struct {
    char *device, *shadow;
    size_t bytes;
    int number;
    int fd;
    uint64_t file; /* equal for mappings of the same memory */
    int is_mapped;
} piece_t;

/* The beginning of a handle. */
typedef struct {
    int64_t process;
    int32_t fd;
    uint64_t bytes;
} lent_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static piece_t pieces[PIECES_MAX];
static atomic_int count, early;
static _Thread_local int chosen;

int fake_device_aware, fake_device_one_process = 1;

static piece_t *find(const void *pointer)
{
    piece_t *found = NULL;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < PIECES_MAX && !found; i++)
        if ((uintptr_t)pointer - (uintptr_t)pieces[i].device < pieces[i].bytes)
            found = &pieces[i];
    pthread_mutex_unlock(&lock);
    return found;
}

void *fake_device_shadow(const void *pointer)
{
    const piece_t *piece = find(pointer);

    return piece ? piece->shadow + ((const char *)pointer - piece->device)
                 : (void *)pointer;
}

size_t fake_device_room(const void *pointer)
{
    const piece_t *piece = find(pointer);

    return piece
               ? piece->bytes - (size_t)((const char *)pointer - piece->device)
               : 0;
}

int fake_device_number(const void *pointer)
{
    const piece_t *piece = find(pointer);

    return piece ? piece->number : -1;
}

static void *add(piece_t piece)
{
    const int access =
        getenv("FAKE_CUDA_OPEN") ? PROT_READ | PROT_WRITE : PROT_NONE;
    struct stat about;
    int i = 0;

    fstat(piece.fd, &about);
    piece.file = about.st_ino;
    piece.shadow = mmap(NULL, piece.bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                        piece.fd, 0);
    piece.device = mmap(NULL, piece.bytes, access, MAP_SHARED, piece.fd, 0);
    pthread_mutex_lock(&lock);
    while (pieces[i].bytes)
        if (++i == PIECES_MAX)
            abort();
    pieces[i] = piece;
    pthread_mutex_unlock(&lock);
    count++;
    return piece.device;
}

void *fake_device_alloc_on(int device, size_t bytes)
{
    piece_t piece = {.bytes = bytes ? bytes : 1,
                     .number = device,
                     .fd = memfd_create("device", MFD_CLOEXEC)};

    if (piece.fd < 0 || ftruncate(piece.fd, (off_t)piece.bytes))
        return NULL;
    return add(piece);
}

void fake_device_lend(const void *memory, char handle[64])
{
    const piece_t *piece = find(memory);
    const lent_t lent = {getpid(), piece->fd, piece->bytes};

    memcpy(handle, &lent, sizeof lent);
}

void *fake_device_map(int device, const char handle[64])
{
    piece_t piece = {.number = device, .is_mapped = 1};
    char path[64];
    lent_t lent;

    memcpy(&lent, handle, sizeof lent);
    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)lent.process,
             lent.fd);
    piece.bytes = lent.bytes;
    piece.fd = open(path, O_RDWR | O_CLOEXEC);
    return piece.fd < 0 ? NULL : add(piece);
}

int fake_device_open(const void *memory)
{
    const piece_t *piece = find(memory);
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/self/fd/%d", piece->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    lseek(fd, (const char *)memory - piece->device, SEEK_SET);
    return fd;
}

int fake_device_is_mapped(const void *pointer)
{
    const piece_t *piece = find(pointer);

    return piece && piece->is_mapped;
}

int fake_device_chosen(void)
{
    return chosen;
}

void fake_device_choose(int device)
{
    chosen = device;
}

void *fake_device_alloc(size_t bytes)
{
    return fake_device_alloc_on(chosen, bytes);
}

/* Removes the entry from the table first, because the next mapping may have the
 * same address. */
void fake_device_free(void *memory)
{
    piece_t *piece = find(memory);
    piece_t gone;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < PIECES_MAX; i++)
        early += !piece->is_mapped && pieces[i].is_mapped &&
                 pieces[i].file == piece->file;
    gone = *piece;
    *piece = (piece_t){0};
    pthread_mutex_unlock(&lock);
    munmap(gone.shadow, gone.bytes);
    munmap(gone.device, gone.bytes);
    close(gone.fd);
    count--;
}

int fake_device_early(void)
{
    return early;
}

void fake_device_write(void *to, const void *from, size_t bytes)
{
    memcpy(fake_device_shadow(to), from, bytes);
}

void fake_device_read(void *to, const void *from, size_t bytes)
{
    memcpy(to, fake_device_shadow(from), bytes);
}

int fake_device_mappings(void)
{
    return count;
}
