/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of the fake devices, see fake-device.h: mapped twice, and the host
 * is given the mapping that it cannot touch. */
#define _GNU_SOURCE
#include "config.h"

#include "tests/compression/fake-device.h"
#include "tests/compression/fake-kernels.h"

#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECES_MAX 1024

typedef struct {
    char *device, *shadow;
    size_t bytes;
    int number;
} piece_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static piece_t pieces[PIECES_MAX];
static atomic_int count;
static _Thread_local int chosen;

int fake_device_aware;

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

int fake_device_number(const void *pointer)
{
    const piece_t *piece = find(pointer);

    return piece ? piece->number : -1;
}

void *fake_device_alloc_on(int device, size_t bytes)
{
    int fd = memfd_create("device", MFD_CLOEXEC), i = 0;
    piece_t piece = {.bytes = MAX(bytes, 1), .number = device};

    if (fd < 0 || ftruncate(fd, (off_t)piece.bytes))
        return NULL;
    piece.shadow =
        mmap(NULL, piece.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    piece.device = mmap(NULL, piece.bytes, PROT_NONE, MAP_SHARED, fd, 0);
    close(fd);
    pthread_mutex_lock(&lock);
    while (pieces[i].bytes)
        i++;
    pieces[i] = piece;
    pthread_mutex_unlock(&lock);
    count++;
    return piece.device;
}

void fake_device_choose(int device)
{
    chosen = device;
}

void *fake_device_alloc(size_t bytes)
{
    return fake_device_alloc_on(chosen, bytes);
}

void fake_device_free(void *memory)
{
    piece_t *piece = find(memory);

    munmap(piece->shadow, piece->bytes);
    munmap(piece->device, piece->bytes);
    pthread_mutex_lock(&lock);
    *piece = (piece_t){0};
    pthread_mutex_unlock(&lock);
    count--;
}

void fake_device_write(void *to, const void *from, size_t bytes)
{
    memcpy(fake_device_shadow(to), from, bytes);
}

void fake_device_read(void *to, const void *from, size_t bytes)
{
    memcpy(to, fake_device_shadow(from), bytes);
}

int fake_device_pieces(void)
{
    return count;
}
