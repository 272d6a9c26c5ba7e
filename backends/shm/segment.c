/* SPDX-License-Identifier: BSD-3-Clause */
/* The segment of a group: an anonymous file, mapped by every rank. It has no
 * name, so it cannot outlive the processes. */
#include "config.h"

#include "backends/shm/shm.h"
#include "lib/base/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib.h>

#define MIB ((uint64_t)1 << 20)
/* Rings and heaps begin at a multiple of this, so that they can have such pages
 * where the kernel allows it. */
#define HUGE_PAGE (2 * MIB)

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif
/* The seals of a segment: its size never changes, so no access can be beyond
 * its end. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static uint64_t size_round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* Halves high until the shares of all ranks fit into total, but not below
 * low. */
static uint64_t segment_share(uint64_t total, int ranks, uint64_t low,
                              uint64_t high)
{
    uint64_t bytes = high;

    while (bytes > low && bytes * (uint64_t)ranks > total)
        bytes /= 2;
    return bytes;
}

/* Returns the setting; if that is 0, the automatic value, in whole pages. */
static dscomm_status_t size_setting(int setting, uint64_t automatic,
                                    uint64_t *ret_size)
{
    int64_t value;
    dscomm_status_t status =
        dscomm_setting_number(&shm_settings[setting], &value);

    if (status)
        return status;
    *ret_size = size_round_up(value ? (uint64_t)value : automatic, shm_page());
    return DSCOMM_OK;
}

/* Computes the layout that follows from the number of ranks and the three
 * sizes. */
static shm_layout_t layout_place(uint64_t ranks, uint64_t ring,
                                 uint64_t channel, uint64_t heap)
{
    shm_layout_t l = {.ranks = ranks};

    /* A piece needs at least one line for each rank, and eight pieces must
     * fit. */
    l.ring_size = size_round_up(MAX(ring, 8 * SHM_LINE * ranks), shm_page());
    l.channel_size = size_round_up(channel, shm_page());
    l.heap_size = size_round_up(heap, shm_page());
    l.control = size_round_up(sizeof(shm_header_t), shm_page());
    l.control_stride = size_round_up(sizeof(shm_control_t), shm_page());
    l.ring = size_round_up(l.control + ranks * l.control_stride, HUGE_PAGE);
    l.channel = l.ring + ranks * l.ring_size;
    l.heap =
        size_round_up(l.channel + ranks * ranks * l.channel_size, HUGE_PAGE);
    l.total = l.heap + ranks * l.heap_size;
    return l;
}

dscomm_status_t shm_layout_make(int ranks, shm_layout_t *ret_layout)
{
    uint64_t ring, channel, heap;
    dscomm_status_t status;

    if ((status = size_setting(SHM_SETTING_RING,
                               segment_share(32 * MIB, ranks, MIB / 2, 4 * MIB),
                               &ring)) ||
        (status = size_setting(SHM_SETTING_CHANNEL,
                               segment_share(8 * MIB, ranks, MIB / 16, 4 * MIB),
                               &channel)) ||
        (status = size_setting(SHM_SETTING_HEAP, 0, &heap)))
        return status;
    *ret_layout = layout_place((uint64_t)ranks, ring, channel, heap);
    return DSCOMM_OK;
}

/* Returns whether a size is within the limits of its setting. */
static bool is_size(uint64_t size, uint64_t least, int setting)
{
    return size >= least && size <= (uint64_t)shm_settings[setting].max;
}

/* Checks a layout: three sizes follow from rank 0's settings; all else must be
 * what this rank computes from them. */
static bool is_layout(const shm_layout_t *l, int ranks)
{
    shm_layout_t own;

    if (!is_size(l->ring_size, shm_page(), SHM_SETTING_RING) ||
        !is_size(l->channel_size, shm_page(), SHM_SETTING_CHANNEL) ||
        !is_size(l->heap_size, 0, SHM_SETTING_HEAP))
        return false;
    own = layout_place((uint64_t)ranks, l->ring_size, l->channel_size,
                       l->heap_size);
    return !memcmp(l, &own, sizeof own);
}

/* Limits the heaps so that a rank can map those of all ranks in half of the
 * address space that it may have. */
static void fit_address_limit(const char *name, shm_layout_t *layout)
{
    const uint64_t most = dscomm_priv_limit(RLIMIT_AS) / 2 / layout->ranks &
                          ~(uint64_t)(shm_page() - 1);

    if (layout->heap_size <= most)
        return;
    dscomm_log(DSCOMM_LOG_INFO, "shm",
               "group '%s': shared heaps have %llu bytes in place of %llu, as "
               "address space is limited (ulimit -v)",
               name, (unsigned long long)most,
               (unsigned long long)layout->heap_size);
    layout->heap_size = most;
    layout->total = layout->heap + layout->ranks * most;
}

/* Fits the layout to the process's limit of file sizes, which counts the end of
 * the file although it is sparse: the heap is left out first. */
static dscomm_status_t fit_file_limit(const char *name, shm_layout_t *layout)
{
    const uint64_t limit = dscomm_priv_file_limit();

    if (layout->total <= limit)
        return DSCOMM_OK;
    layout->heap_size = 0;
    layout->total = layout->heap;
    if (layout->total <= limit) {
        dscomm_log(DSCOMM_LOG_INFO, "shm",
                   "group '%s': file size limit (ulimit -f) is too small for "
                   "shared heaps; dscomm_mem_alloc gives plain memory",
                   name);
        return DSCOMM_OK;
    }
    return dscomm_fail(
        DSCOMM_ERR_NO_MEMORY,
        "its shared segment spans %llu bytes, but the file size limit is %llu; "
        "raise it (ulimit -f) or lower DSCOMM_SHM_RING and DSCOMM_SHM_CHANNEL",
        (unsigned long long)layout->total, (unsigned long long)limit);
}

static dscomm_status_t segment_fail_file(const char *call, int fd)
{
    int error = errno;

    if (fd >= 0)
        close(fd);
    return dscomm_fail(
        error == ENOMEM || error == ENOSPC || error == EMFILE || error == ENFILE
            ? DSCOMM_ERR_NO_MEMORY
            : DSCOMM_ERR_IO,
        "its shared segment cannot be made: %s: %s%s", call, strerror(error),
        error == EMFILE ? "; raise the limit of open files "
                          "(ulimit -n)"
                        : "");
}

dscomm_status_t shm_segment_create(const char *name, shm_layout_t *layout,
                                   int *ret_fd)
{
    dscomm_status_t status;
    int fd, failed;

    fit_address_limit(name, layout);
    status = fit_file_limit(name, layout);
    if (status)
        return status;
    fd = memfd_create("dscomm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return segment_fail_file("memfd_create", -1);
    do {
        failed = ftruncate(fd, (off_t)layout->total);
    } while (failed && errno == EINTR);
    if (failed)
        return segment_fail_file("ftruncate", fd);
    if (fcntl(fd, F_ADD_SEALS, SEALS))
        return segment_fail_file("sealing", fd);
    *ret_fd = fd;
    return DSCOMM_OK;
}

dscomm_status_t shm_segment_check(const shm_t *shm)
{
    const shm_layout_t *layout = &shm->layout;
    struct stat file;
    const char *wrong = NULL;
    int seals = fcntl(shm->fd, F_GET_SEALS);

    if (!is_layout(layout, shm->ranks))
        wrong = "has another layout than this rank computes";
    else if (seals < 0 || (seals & SEALS) != SEALS)
        wrong = "is not sealed";
    else if (fstat(shm->fd, &file) || (uint64_t)file.st_size != layout->total)
        wrong = "has another size than its layout";
    if (!wrong)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       "the shared segment that rank %d sent to rank %d %s; "
                       "give all ranks one version of libdscomm",
                       shm_number(shm, 0), shm_number(shm, shm->rank), wrong);
}

/* Whether the kernel gives huge pages to shared memory that asks for them. */
static bool huge_pages_allowed(void)
{
    FILE *file =
        fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "re");
    char line[80] = "[never]";

    if (!file)
        return false;
    if (!fgets(line, sizeof line, file))
        line[0] = '\0';
    fclose(file);
    return line[0] && !strstr(line, "[never]") && !strstr(line, "[deny]");
}

/* Backs memory with huge pages, as far as it has them; false: not all of it, or
 * not with these. */
static bool huge_reserve(void *at, uint64_t size)
{
    return !(size % HUGE_PAGE) && !((uintptr_t)at % HUGE_PAGE) &&
           huge_pages_allowed() && !madvise(at, size, MADV_HUGEPAGE) &&
           !madvise(at, size, MADV_POPULATE_WRITE);
}

dscomm_status_t shm_segment_reserve(shm_t *shm, void *at, uint64_t offset,
                                    uint64_t size, const char *what)
{
    int result;

    if (huge_reserve(at, size))
        return DSCOMM_OK;
    do {
        result =
            fallocate(shm->fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size);
    } while (result && errno == EINTR);
    if (result)
        return shm_fail_resource(
            shm, DSCOMM_ERR_NO_MEMORY,
            "cannot reserve %llu bytes of shared memory for its %s: %s; free "
            "memory, raise the memory limit of the container or job, or lower "
            "DSCOMM_SHM_RING and DSCOMM_SHM_CHANNEL",
            (unsigned long long)size, what, strerror(errno));
    return DSCOMM_OK;
}

dscomm_status_t shm_segment_map(shm_t *shm)
{
    const shm_layout_t *l = &shm->layout;
    dscomm_status_t status;
    void *base = mmap(NULL, l->heap, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, shm->fd, 0);

    if (base == MAP_FAILED)
        return shm_fail_resource(
            shm, DSCOMM_ERR_NO_MEMORY,
            "cannot map its %llu bytes of shared memory: %s; raise the address "
            "space limit (ulimit -v) or lower DSCOMM_SHM_RING and "
            "DSCOMM_SHM_CHANNEL",
            (unsigned long long)l->heap, strerror(errno));
    shm->base = base;
    shm->header = base;
    shm->own = shm_control(shm, shm->rank);
    status = shm_segment_reserve(
        shm, shm->own, l->control + (uint64_t)shm->rank * l->control_stride,
        l->control_stride, "control block");
    if (!status) /* any rank may be the first to write there */
        status = shm_segment_reserve(shm, base, 0, l->control, "header");
    if (status)
        shm_segment_unmap(shm);
    return status;
}

void shm_segment_unmap(shm_t *shm)
{
    if (shm->base)
        munmap(shm->base, shm->layout.heap);
    shm->base = NULL;
}
