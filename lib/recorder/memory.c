/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of the flight recorder: a file in memory, without a name. Other
 * processes open it by the descriptor that its maker has, in /proc, which the
 * kernel allows to the same user only. */
#include "config.h"

#include "lib/recorder/recorder.h"

#include "lib/base/kernel.h"
#include "lib/base/random.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "dscomm-recorder"
#define LINK "/memfd:" NAME " (deleted)"
/* The file may become longer: every rank maps only what it has reserved. */
#define SEALS F_SEAL_SHRINK

dscomm_recorder_slot_t dscomm_priv_recorder_spare;

static _Thread_local char problem[160];

static const char *explain(const char *call)
{
    const int error = errno;

    snprintf(problem, sizeof problem, "%s: %s", call, strerror(error));
    return problem;
}

_Static_assert(sizeof(dscomm_recorder_slot_t) % 4096 == 0 &&
                   sizeof(dscomm_recorder_memory_t) % 4096 == 0,
               "slots begin on pages");

static size_t memory_bytes(uint64_t slots)
{
    return sizeof(dscomm_recorder_memory_t) +
           (size_t)slots * sizeof(dscomm_recorder_slot_t);
}

/* Returns MAP_FAILED if the memory cannot be mapped. */
static void *fd_map(int fd, dscomm_recorder_access_t access, size_t from,
                    size_t bytes)
{
    const int protection =
        access == RECORDER_WRITE ? PROT_READ | PROT_WRITE : PROT_READ;
    void *memory = mmap(NULL, bytes, protection, MAP_SHARED, fd, (off_t)from);

    if (memory != MAP_FAILED)
        madvise(memory, bytes, MADV_DONTDUMP); /* dumps have the contents */
    return memory;
}

/* Maps the memory without slots; closes fd if it cannot. */
static const char *head_map(int fd, dscomm_recorder_access_t access,
                            dscomm_recorder_t *ret_recorder)
{
    void *memory = fd_map(fd, access, 0, memory_bytes(0));
    const char *failed = memory == MAP_FAILED ? explain("mmap") : NULL;

    if (failed)
        close(fd);
    else
        *ret_recorder = (dscomm_recorder_t){memory, 0, fd, NULL, 0};
    return failed;
}

/* The bytes between the start of slot's page and slot, where pages are longer
 * than 4 KiB. */
static size_t slot_slack(uint32_t number)
{
    return memory_bytes(number) % (size_t)sysconf(_SC_PAGESIZE);
}

/* NULL: it cannot be mapped. */
static dscomm_recorder_slot_t *slot_map(int fd, uint32_t number)
{
    const size_t slack = slot_slack(number);
    char *memory = fd_map(fd, RECORDER_WRITE, memory_bytes(number) - slack,
                          sizeof(dscomm_recorder_slot_t) + slack);

    return memory == MAP_FAILED ? NULL : (void *)(memory + slack);
}

static void slot_unmap(dscomm_recorder_slot_t *slot, uint32_t number)
{
    const size_t slack = slot_slack(number);

    munmap((char *)slot - slack, sizeof *slot + slack);
}

/* Reserves the pages, because a write to a page that is missing would kill the
 * process. The file becomes longer if they are beyond its end. */
static const char *pages_reserve(int fd, size_t from, size_t bytes)
{
    int failed;

    if (from + bytes > dscomm_priv_file_limit())
        return "the limit of file sizes (ulimit -f) is too low";
    do {
        failed = fallocate(fd, 0, (off_t)from, (off_t)bytes);
    } while (failed && errno == EINTR);
    return failed ? explain("fallocate") : NULL;
}

static void head_fill(dscomm_recorder_memory_t *memory, const char *job)
{
    uint64_t number;

    if (!dscomm_priv_random(&number, sizeof number))
        number = (uint64_t)dscomm_priv_moment().real_ns;
    snprintf(memory->id, sizeof memory->id, "%016llx",
             (unsigned long long)number);
    memcpy(memory->magic, RECORDER_MAGIC, sizeof memory->magic);
    memory->version = RECORDER_VERSION;
    memory->slot_bytes = sizeof(dscomm_recorder_slot_t);
    g_strlcpy(memory->job, job, sizeof memory->job);
}

const char *dscomm_priv_recorder_create(const char *job,
                                        dscomm_recorder_t *ret_recorder)
{
    const char *failed;
    const int fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return explain("memfd_create");
    failed = pages_reserve(fd, 0, memory_bytes(0));
    if (!failed && fcntl(fd, F_ADD_SEALS, SEALS))
        failed = explain("sealing");
    if (failed) {
        close(fd);
        return failed;
    }
    failed = head_map(fd, RECORDER_WRITE, ret_recorder);
    if (!failed)
        head_fill(ret_recorder->memory, job);
    return failed;
}

/* The number of slots that fd has room for; -1: it is no memory of a recorder
 * that this library knows, or another user's. */
static int64_t memory_check(int fd)
{
    dscomm_recorder_memory_t head;
    struct stat file;
    const int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &file) ||
        file.st_uid != geteuid() ||
        pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        memcmp(head.magic, RECORDER_MAGIC, sizeof head.magic) ||
        head.version != RECORDER_VERSION ||
        head.slot_bytes != sizeof(dscomm_recorder_slot_t))
        return -1;
    return MIN((file.st_size - (off_t)sizeof head) / (off_t)head.slot_bytes,
               RECORDER_SLOTS_MAX);
}

const char *dscomm_priv_recorder_open(int64_t pid, int fd,
                                      dscomm_recorder_access_t access,
                                      dscomm_recorder_t *ret_recorder)
{
    const int mode = access == RECORDER_WRITE ? O_RDWR : O_RDONLY;
    struct stat file;
    char path[64];
    int own;

    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)pid, fd);
    /* To open a device may have an effect. */
    own = stat(path, &file) || !S_ISREG(file.st_mode)
              ? -1
              : open(path, mode | O_CLOEXEC | O_NONBLOCK);
    if (own < 0)
        return explain(path);
    if (memory_check(own) >= 0)
        return head_map(own, access, ret_recorder);
    close(own);
    return "it is another user's, or of another version of dscomm";
}

const char *dscomm_priv_recorder_view(const dscomm_recorder_t *recorder,
                                      dscomm_recorder_access_t access,
                                      dscomm_recorder_t *ret_view)
{
    const int64_t slots = memory_check(recorder->fd);
    void *memory;

    if (slots < 0)
        return "its head was overwritten";
    memory = fd_map(recorder->fd, access, 0, memory_bytes((uint64_t)slots));
    if (memory == MAP_FAILED)
        return explain("mmap");
    *ret_view = (dscomm_recorder_t){memory, (uint32_t)slots, -1, NULL, 0};
    return NULL;
}

/* The descriptor of process pid that is the memory; -1: none is. */
static int fd_find(int64_t pid)
{
    char path[320], target[64];
    const struct dirent *entry;
    int found = -1;
    DIR *folder;

    snprintf(path, sizeof path, "/proc/%lld/fd", (long long)pid);
    folder = opendir(path);
    if (!folder)
        return -1;
    while (found < 0 && (entry = readdir(folder))) {
        ssize_t size;

        snprintf(path, sizeof path, "/proc/%lld/fd/%s", (long long)pid,
                 entry->d_name);
        size = readlink(path, target, sizeof target);
        if (size == sizeof LINK - 1 &&
            memcmp(target, LINK, sizeof LINK - 1) == 0)
            found = atoi(entry->d_name);
    }
    closedir(folder);
    return found;
}

const char *dscomm_priv_recorder_find(int64_t pid,
                                      dscomm_recorder_access_t access,
                                      dscomm_recorder_t *ret_recorder)
{
    const int fd = fd_find(pid);

    if (fd < 0)
        return "it has no flight recorder, or is another user's";
    return dscomm_priv_recorder_open(pid, fd, access, ret_recorder);
}

static bool owner_lives(int64_t pid)
{
    return pid && (kill((pid_t)pid, 0) == 0 || errno != ESRCH);
}

/* Takes a slot whose last owner is owner; false if another process was
 * faster. */
static bool slot_take(dscomm_recorder_slot_t *slot)
{
    int64_t owner = atomic_load(&slot->owner);

    return !owner_lives(owner) && atomic_compare_exchange_strong(
                                      &slot->owner, &owner, (int64_t)getpid());
}

static void slot_reset(dscomm_recorder_slot_t *slot, const char *world,
                       int rank, int size)
{
    atomic_store(&slot->pid, 0);
    memset((char *)slot + sizeof slot->owner, 0,
           sizeof *slot - sizeof slot->owner);
    slot->rank = rank;
    slot->size = size;
    g_strlcpy(slot->world, world, sizeof slot->world);
    slot->is_counted = dscomm_priv_ticks_counted;
    slot->opened = dscomm_priv_moment();
    atomic_store(&slot->pid, (int64_t)getpid());
}

/* Takes slot number unless it has an owner; makes it if there is none. NULL:
 * tried; then recorder->slot may be set. */
static const char *slot_try(dscomm_recorder_t *recorder, uint32_t number)
{
    const char *failed = pages_reserve(recorder->fd, memory_bytes(number),
                                       sizeof *recorder->slot);
    dscomm_recorder_slot_t *slot =
        failed ? NULL : slot_map(recorder->fd, number);

    if (!slot)
        return failed ? failed : explain("mmap");
    if (slot_take(slot)) {
        recorder->slot = slot;
        recorder->number = number;
    } else {
        slot_unmap(slot, number);
    }
    return NULL;
}

const char *dscomm_priv_recorder_claim(dscomm_recorder_t *recorder,
                                       int preferred, const char *world,
                                       int rank, int size)
{
    const char *failed = slot_try(recorder, (uint32_t)preferred);

    for (uint32_t i = 0; !failed && !recorder->slot && i < RECORDER_SLOTS_MAX;
         i++)
        failed = slot_try(recorder, i);
    if (!failed && !recorder->slot)
        failed = "each of its slots has an owner";
    if (!failed)
        slot_reset(recorder->slot, world, rank, size);
    return failed;
}

void dscomm_priv_recorder_close(dscomm_recorder_t *recorder)
{
    int64_t owner = (int64_t)getpid();

    if (recorder->slot) {
        atomic_compare_exchange_strong(&recorder->slot->owner, &owner, 0);
        slot_unmap(recorder->slot, recorder->number);
    }
    if (recorder->memory)
        munmap(recorder->memory, memory_bytes(recorder->slots));
    if (recorder->fd >= 0)
        close(recorder->fd);
    *recorder = (dscomm_recorder_t)DSCOMM_RECORDER_INIT;
}

uint32_t dscomm_priv_recorder_group(dscomm_recorder_slot_t *slot,
                                    const char *name, const char *id, int rank,
                                    int size, const char *backend)
{
    const uint32_t number = atomic_fetch_add(&slot->groups, 1) + 1;
    dscomm_recorder_group_t *group = &slot->group[number % RECORDER_GROUPS];

    atomic_store(&group->number, 0);
    group->rank = rank;
    group->size = size;
    g_strlcpy(group->name, name, sizeof group->name);
    g_strlcpy(group->id, id, sizeof group->id);
    g_strlcpy(group->backend, backend, sizeof group->backend);
    atomic_store(&group->number, number);
    return number;
}

void dscomm_priv_recorder_fail(dscomm_recorder_slot_t *slot,
                               const dscomm_failure_t *failure,
                               const char *sentence)
{
    uint32_t none = 0;

    if (!atomic_compare_exchange_strong(&slot->has_failed, &none, 1))
        return;
    slot->failure = *failure;
    g_strlcpy(slot->sentence, sentence, sizeof slot->sentence);
    atomic_store(&slot->has_failed, 2);
}

/* from is NULL if the call has no such counts. */
static void counts_copy(uint64_t to[RECORDER_COUNTS], const size_t *from,
                        int ranks)
{
    for (int r = 0; from && r < MIN(ranks, RECORDER_COUNTS); r++)
        to[r] = from[r];
}

uint32_t dscomm_priv_recorder_detail(dscomm_recorder_slot_t *slot,
                                     uint64_t serial,
                                     const dscomm_coll_args_t *args, int ranks)
{
    const uint32_t number =
        1 + atomic_fetch_add(&slot->details, 1) % (2 * RECORDER_DETAILS);
    dscomm_recorder_detail_t *detail = &slot->detail[number % RECORDER_DETAILS];

    atomic_store(&detail->serial, 0);
    detail->ncounts = detail->sum = 0;
    g_strlcpy(detail->op, args->user ? args->user->text : "",
              sizeof detail->op);
    if (args->coll == DSCOMM_COLL_ALL_GATHER_V ||
        args->coll == DSCOMM_COLL_REDUCE_SCATTER_V)
        detail->ncounts = (uint64_t)ranks;
    for (uint64_t r = 0; r < detail->ncounts; r++)
        detail->sum += args->recv_counts[r];
    counts_copy(detail->counts, args->recv_counts, ranks);
    counts_copy(detail->send_counts, args->send_counts, ranks);
    atomic_store(&detail->serial, serial);
    return number;
}

void dscomm_priv_recorder_change(dscomm_recorder_slot_t *slot, uint64_t serial,
                                 uint64_t what, uint64_t ended)
{
    dscomm_recorder_entry_t *entry;

    if (!serial)
        return;
    entry = dscomm_priv_recorder_entry(slot, serial);
    if (atomic_load_explicit(&entry->word[WORD_SERIAL], memory_order_relaxed) !=
        serial)
        return;
    atomic_fetch_or_explicit(&entry->word[WORD_WHAT], what,
                             memory_order_relaxed);
    if (ended)
        atomic_store_explicit(&entry->word[WORD_ENDED], ended,
                              memory_order_release);
}
